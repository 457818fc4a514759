"""Drawing tensors: PyTorch's numbers, arguments, drawing in place."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.helpers import raises


def test_the_same_seed_gives_pytorch_numbers() -> None:
    torch.manual_seed(0)
    assert torch.rand(2).tolist() == pytest.approx([0.4962565899, 0.7682217956])
    torch.manual_seed(0)
    assert torch.randn(2).tolist() == pytest.approx([1.5409961, -0.2934289], abs=1e-6)
    torch.manual_seed(0)
    assert torch.randint(10, (3,)).tolist() == [4, 9, 3]
    torch.manual_seed(0)
    assert torch.randperm(4).tolist() == [0, 1, 3, 2]


def test_state_is_a_tensor() -> None:
    state = torch.get_rng_state()
    assert state.dtype is torch.uint8 and state.shape == (5056,)
    first = torch.rand(3)
    torch.set_rng_state(state)
    assert torch.equal(torch.rand(3), first)
    generator = torch.Generator()
    assert generator.device == torch.device("cpu")
    raises(TypeError, "expected a torch.ByteTensor, but got int", generator.set_state, 3)


def test_random_arguments() -> None:
    assert torch.randint(low=1, high=2, size=(2,)).tolist() == [1, 1]
    assert torch.randint_like(torch.zeros(2), 3, 4).tolist() == [3, 3]
    assert torch.normal(torch.tensor([1.0, 2.0]), 0.0).tolist() == [1, 2]
    assert torch.bernoulli(torch.tensor([0.0, 1.0])).tolist() == [0, 1]
    assert torch.multinomial(torch.tensor([0.0, 1.0]), 3, replacement=True).tolist() == [1, 1, 1]
    raises(TypeError, "randint() received an invalid combination", torch.randint, 3)
    raises(TypeError, "normal() received an invalid combination", torch.normal, 0.0, 1.0)
    raises(NotImplementedError, '"check_uniform_bounds" not implemented for \'Long\'',
           torch.rand, 2, dtype=torch.int64)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args", "node"),
    [
        ("uniform_", (), "UniformBackward0"),
        ("normal_", (), "NormalBackward0"),
        ("random_", (), "RandomBackward2"),
        ("bernoulli_", (0.5,), "BernoulliBackward2"),
        ("exponential_", (), "ExponentialBackward0"),
        ("geometric_", (0.5,), "GeometricBackward0"),
        ("cauchy_", (), "CauchyBackward0"),
        ("log_normal_", (), "LogNormalBackward0"),
    ],
)
def test_drawing_in_place_cuts_the_gradient(name: str, args: Any, node: str) -> None:
    x = torch.ones(3, requires_grad=True)
    raises(RuntimeError, "a leaf Variable that requires grad is being used in an in-place",
           getattr(x, name), *args)  # fmt: skip
    y = x * 2
    assert getattr(y, name)(*args) is y
    assert y.grad_fn.name() == node
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 0]
