"""Transforms inside `inference_mode`, and random numbers of chunks. Values are PyTorch 2.13's."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.func import grad, hessian, jacrev, jvp, vjp, vmap

X = torch.tensor([0.0, 1.0])
SLOPES = X.cos().tolist()


def total(x: Any) -> Any:
    return x.sin().sum()


@pytest.mark.parametrize(
    "slopes",
    [
        lambda: grad(total)(X),
        lambda: vmap(grad(torch.sin))(X),
        lambda: vjp(torch.sin, X)[1](torch.ones(2))[0],
        lambda: jvp(torch.sin, (X,), (torch.ones(2),))[1],
        lambda: jacrev(torch.sin)(X).diagonal(),
    ],
)
def test_derivatives_are_taken_in_inference_mode(slopes: Any) -> None:
    with torch.inference_mode():
        found = slopes()
    assert found.tolist() == SLOPES
    assert not found.requires_grad and not found.is_inference()


def test_second_derivatives_in_inference_mode() -> None:
    with torch.inference_mode():
        assert hessian(total)(X).diagonal().tolist() == (-X.sin()).tolist()


def test_inference_tensors_are_constants_of_a_transform() -> None:
    with torch.inference_mode():
        q = X.clone()
    assert grad(total)(q).tolist() == SLOPES
    assert grad(lambda x: (x * q).sum())(torch.ones(2)).tolist() == q.tolist()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        torch.ones(2, requires_grad=True) * q


def test_inference_mode_inside_hides_what_it_covers() -> None:
    def covered(x: Any) -> Any:
        with torch.inference_mode():
            return total(x)

    assert grad(covered)(X).tolist() == [0.0, 0.0]


def test_chunks_of_the_same_randomness_are_the_same() -> None:
    torch.manual_seed(0)
    one = torch.rand(())
    after = torch.rand(())
    torch.manual_seed(0)
    drawn = vmap(lambda x: torch.rand(()), randomness="same", chunk_size=1)(torch.zeros(3))
    assert drawn.tolist() == [one.item()] * 3
    assert torch.rand(()).item() == after.item()
