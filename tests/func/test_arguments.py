"""Arguments of transforms that are written but not differentiated."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import rushlight as torch
from rushlight.func import grad, grad_and_value, hessian, jacfwd, jacrev, vmap


def one() -> Any:
    return torch.ones(3)


def product(x: Any, b: Any) -> Any:
    b.add_(1)
    return x * x * b


TRANSFORMS = {
    "grad": (lambda f: grad(lambda x, b: f(x, b).sum()), [8.0, 8.0, 8.0]),
    "grad_and_value": (
        lambda f: lambda x, b: grad_and_value(lambda x, b: f(x, b).sum())(x, b)[0],
        [8.0, 8.0, 8.0],
    ),
    "keyword": (lambda f: lambda x, b: grad(lambda x, b: f(x, b).sum())(x, b=b), [8.0, 8.0, 8.0]),
    "jacrev": (lambda f: lambda x, b: jacrev(f)(x, b).sum(1), [8.0, 8.0, 8.0]),
    "jacfwd": (lambda f: lambda x, b: jacfwd(f)(x, b).sum(1), [8.0, 8.0, 8.0]),
    "hessian": (
        lambda f: lambda x, b: hessian(lambda x, b: f(x, b).sum())(x, b).sum(1),
        [4.0, 4.0, 4.0],
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_arguments_not_differentiated_may_be_written(name: str) -> None:
    make, expected = TRANSFORMS[name]
    b = one()
    found = make(product)(torch.full((3,), 2.0), b)
    assert found.tolist() == expected
    assert b.tolist() == [2.0, 2.0, 2.0]
    assert not b.requires_grad
    assert b._version == 1


def test_what_is_written_into_an_argument_has_derivatives_inside() -> None:
    b = one()

    def f(x: Any, b: Any) -> Any:
        b.add_(x)
        return (x * b).sum()

    assert grad(f)(torch.tensor([1.0, 2.0, 3.0]), b).tolist() == [3.0, 5.0, 7.0]
    assert b.tolist() == [2.0, 3.0, 4.0]
    assert not b.requires_grad
    batch = torch.ones(2, 3)
    assert vmap(grad(f))(torch.ones(2, 3), batch).tolist() == [[3.0] * 3] * 2
    assert batch.tolist() == [[2.0] * 3] * 2


@pytest.mark.parametrize("view", [False, True])
def test_what_is_written_into_an_argument_from_outside_has_derivatives_there(view: bool) -> None:
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    whole = torch.ones(2, 3)
    b = whole[1] if view else one()

    def f(x: Any, b: Any) -> Any:
        b.mul_(w)
        return (x * b).sum()

    slope = grad(f)(one(), b)
    assert b.requires_grad
    assert b._version == 1
    (slope.sum() + ((whole if view else b) ** 2).sum()).backward()
    assert w.grad.tolist() == [3.0, 5.0, 7.0]


def test_an_argument_comes_back_as_itself() -> None:
    b = one()
    _, aux = grad(lambda x, b: ((x * b).sum(), {"b": b}), has_aux=True)(one(), b)
    assert aux["b"] is b


def test_the_tensor_outside_is_still_refused() -> None:
    b = one()
    with pytest.raises(RuntimeError, match="that would mutate a captured Tensor"):
        grad(lambda x, _: (b.add_(1), x.sum())[1])(one(), b)
    with pytest.raises(RuntimeError, match="that would mutate a captured Tensor"):
        grad(lambda x: grad(lambda x, b: product(x, b).sum())(x, b).sum())(one())


def test_arguments_lent_are_let_go() -> None:
    gc.collect()
    gc.disable()
    try:
        refs: list[Any] = []

        def f(x: Any, b: Any) -> Any:
            b.mul_(x)
            refs.append(weakref.ref(b))
            return (x * b).sum()

        grad(f)(one(), one())
        hessian(f)(one(), one())
        assert refs
        assert all(r() is None for r in refs)
    finally:
        gc.enable()
