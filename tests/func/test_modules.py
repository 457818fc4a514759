"""Modules as functions: `functional_call`, `stack_module_state`."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.func import (
    functional_call,
    grad,
    replace_all_batch_norm_modules_,
    vmap,
)
from tests.func import cases_modules as module_cases
from tests.func.cases_transforms import alike
from tests.harness import LIVE, pytorch, stored

STORED = stored("func/modules")


@pytest.mark.parametrize("name", module_cases.cases)
def test_as_pytorch(name: str) -> None:
    found = module_cases.cases.run(torch, name)
    assert alike(found, STORED[name]), f"{found}\n{STORED[name]}"
    if LIVE:
        assert alike(found, module_cases.cases.run(pytorch(), name))


def test_per_sample_gradients_are_those_of_a_loop() -> None:
    net = module_cases.net(torch)
    params = {k: p.detach() for k, p in net.named_parameters()}

    def loss(params: Any, x: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(functional_call(net, params, (x[None],)), y[None])

    x, y = module_cases.X(torch), torch.tensor([0, 1, 1])
    found = vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(params, x, y)
    for i in range(3):
        net.zero_grad()
        loss(dict(net.named_parameters()), x[i], y[i]).backward()
        for name, p in net.named_parameters():
            assert torch.allclose(found[name][i], p.grad)


def test_batch_norms_without_running_statistics() -> None:
    net = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1))
    params = {k: p.detach() for k, p in net.named_parameters()}
    x = module_cases.X(torch)
    call = torch.func.grad(lambda p: functional_call(net, p, (x,)).sum())
    with pytest.raises(RuntimeError, match="captured Tensor"):
        call(params)
    assert replace_all_batch_norm_modules_(net) is net
    assert not net[0].track_running_stats
    assert set(call(params)) == set(params)
    assert list(net.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_batch_norm_in_training_by_functional_call() -> None:
    model = torch.nn.BatchNorm1d(2)
    params, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    x = torch.tensor([[0.0, 2.0], [2.0, 6.0]])

    def loss(params: Any, buffers: Any, x: Any) -> Any:
        return functional_call(model, (params, buffers), (x,)).sum()

    gradient = grad(loss)(params, buffers, x)
    assert gradient["bias"].tolist() == [2.0, 2.0]
    assert torch.allclose(buffers["running_mean"], torch.tensor([0.1, 0.4]))
    assert buffers["num_batches_tracked"].item() == 1
