"""Activations of every kind: rounding, integers, in-place forms, nodes."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.nn.helpers import F

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize("fn", [F.elu, F.selu, F.celu])
def test_second_derivatives_where_two_pieces_meet(fn: Any) -> None:
    """At 0 the piece above counts, which is straight."""
    x = torch.tensor([0.0, -0.0, 1.0], requires_grad=True)
    (g,) = torch.autograd.grad(fn(x).sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [0, 0, 0]


def test_low_precision_rounds_once() -> None:
    x = torch.tensor([1.0, -2.0], dtype=torch.bfloat16)
    for fn in (F.relu, F.gelu, F.silu, F.mish, F.elu, F.softplus, F.leaky_relu, F.hardswish):
        want = fn(x.to(torch.float)).to(torch.bfloat16)
        got = fn(x)
        assert got.dtype is torch.bfloat16 and got.tolist() == want.tolist()


def test_integers_are_refused_or_kept() -> None:
    x = torch.tensor([-2, 7])
    assert F.relu6(x).tolist() == [0, 6] and F.relu6(x).dtype is torch.int64
    assert F.threshold(x, 0, 1).tolist() == [1, 7]
    for fn, kernel in ((F.gelu, "GeluKernelImpl"), (F.silu, "silu_cpu"), (F.elu, "elu_cpu")):
        with pytest.raises(NotImplementedError, match=f"\"{kernel}\" not implemented for 'Long'"):
            fn(x)


def test_in_place_activations() -> None:
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    y = x * 1
    assert F.relu(y, inplace=True) is y and y.tolist() == [0.0, 2.0]
    assert type(y.grad_fn).__name__ == "ReluBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]
    for fn in (F.relu_, F.elu_, F.leaky_relu_, F.hardtanh_, torch.selu_, torch.celu_):
        z = torch.tensor([0.5])
        assert fn(z) is z
    with pytest.raises(
        RuntimeError, match="a leaf Variable that requires grad is being used in an"
    ):
        F.relu_(x)


def test_node_names() -> None:
    x = torch.tensor([[0.5, -0.5]], requires_grad=True)
    names = {
        F.relu: "Relu", F.relu6: "Hardtanh", F.leaky_relu: "LeakyRelu", F.elu: "Elu", F.selu: "Elu",
        F.celu: "Celu", F.gelu: "Gelu", F.silu: "Silu", F.mish: "Mish", F.softplus: "Softplus",
        F.logsigmoid: "LogSigmoid", F.rrelu: "RreluWithNoise", F.glu: "Glu",
        F.hardshrink: "Hardshrink", F.softshrink: "Softshrink", F.hardswish: "Hardswish",
    }  # fmt: skip
    for fn, name in names.items():
        assert type(fn(x).grad_fn).__name__ == name + "Backward0"
