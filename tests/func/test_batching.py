"""`vmap` at its edges: running statistics, members that share memory, batches of gradients."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.func import functional_call, vmap


def test_running_statistics_of_a_batch_have_no_history() -> None:
    models = [torch.nn.BatchNorm1d(2) for _ in range(2)]
    params, buffers = torch.func.stack_module_state(models)
    x = torch.tensor([[0.0, 2.0], [2.0, 6.0]], requires_grad=True)

    def predict(params: Any, buffers: Any) -> Any:
        return functional_call(models[0], (params, buffers), (x,))

    for _ in range(2):
        vmap(predict)(params, buffers).sum().backward()
    assert not buffers["running_mean"].requires_grad
    assert not buffers["running_var"].requires_grad
    assert torch.allclose(buffers["running_mean"], torch.tensor([0.19, 0.76]).expand(2, 2))


@pytest.mark.parametrize("write", ["mul_", "copy_", "setitem"])
def test_members_that_share_memory_are_not_written(write: str) -> None:
    x = torch.zeros(3).expand(4, 3)

    def f(a: Any, b: Any) -> Any:
        if write == "setitem":
            a[0] = b[0]
        else:
            getattr(a, write)(b)
        return a

    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        vmap(f)(x, torch.arange(12.0).reshape(4, 3))
    assert x.tolist() == [[0.0] * 3] * 4


def test_a_batch_of_gradients_beside_one_without() -> None:
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match="a batch dimension"):
        torch.autograd.grad((x * 2, x.sum()), x, (torch.eye(3), None), is_grads_batched=True)
