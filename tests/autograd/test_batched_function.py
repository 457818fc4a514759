"""Custom functions inside `vmap`: with a rule of their own, with one made from the others, without.

Expected values are PyTorch 2.13's.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

import rushlight as torch
from rushlight.autograd import Function
from rushlight.func import (
    grad,
    hessian,
    jacrev,
    jvp,
    vjp,
    vmap,
)

X = torch.arange(6.0).reshape(3, 2)
W = torch.tensor([1.0, 3.0])


class Square(Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.save_for_forward(inputs[0])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2 * x

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * t


class Made(Square):
    generate_vmap_rule = True


class Stated(Square):
    calls: ClassVar[list[Any]] = []

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        Stated.calls.append((info, in_dims, tuple(x.shape), x.requires_grad))
        return Stated.apply(x), 0


class Dot(Function):
    """k times the product of two vectors, and the first of them."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, w: Any, k: Any) -> Any:
        return (x * w).sum() * k, x * 1

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, w, k = inputs
        ctx.save_for_backward(x, w)
        ctx.save_for_forward(x, w)
        ctx.k = k

    @staticmethod
    def backward(ctx: Any, g: Any, g2: Any) -> Any:
        x, w = ctx.saved_tensors
        return g * w * ctx.k + g2, g * x * ctx.k, None

    @staticmethod
    def jvp(ctx: Any, tx: Any, tw: Any, _: Any) -> Any:
        x, w = ctx.saved_tensors
        return (tx * w + x * tw).sum() * ctx.k, tx


@pytest.mark.parametrize("cls", [Made, Stated])
def test_batches_equal_a_loop(cls: Any) -> None:
    twice = (2 * X).tolist()
    assert vmap(cls.apply)(X).tolist() == (X * X).tolist()
    assert vmap(grad(lambda x: cls.apply(x).sum()))(X).tolist() == twice
    assert grad(lambda x: vmap(cls.apply)(x).sum())(X).tolist() == twice
    assert vmap(vmap(cls.apply))(torch.stack([X, X + 1])).tolist() == [
        (X * X).tolist(), ((X + 1) * (X + 1)).tolist(),
    ]  # fmt: skip
    second = vmap(grad(lambda y: grad(lambda x: cls.apply(x).sum())(y).sum()))(X)
    assert second.tolist() == [[2.0, 2.0]] * 3
    assert jacrev(cls.apply)(X[1]).tolist() == [[4.0, 0.0], [0.0, 6.0]]
    assert vmap(jacrev(cls.apply))(X)[1].tolist() == [[4.0, 0.0], [0.0, 6.0]]


@pytest.mark.parametrize("cls", [Made, Stated])
def test_tangents(cls: Any) -> None:
    _, through = jvp(vmap(cls.apply), (X,), (torch.ones(3, 2),))
    inside = vmap(lambda x: jvp(cls.apply, (x,), (torch.ones(2),))[1])(X)
    assert through.tolist() == inside.tolist() == (2 * X).tolist()


def test_a_stated_rule_is_told_about_the_batch() -> None:
    Stated.calls.clear()
    vmap(Stated.apply)(X)
    grad(lambda x: vmap(Stated.apply, in_dims=1)(x).sum())(X)
    (first, dims, shape, asks), (second, _, _, asks_too) = Stated.calls
    assert (first.batch_size, first.randomness) == (3, "error")
    assert dims == (0,) and shape == (3, 2) and not asks
    assert second.batch_size == 2 and asks_too


def test_several_inputs_of_which_one_is_batched() -> None:
    value, same = vmap(Dot.apply, in_dims=(0, None, None))(X, W, 2)
    assert value.tolist() == [6.0, 22.0, 38.0] and same.tolist() == X.tolist()
    per_sample = vmap(grad(lambda x, w: Dot.apply(x, w, 2)[0], argnums=(0, 1)), in_dims=(0, None))
    by_x, by_w = per_sample(X, W)
    assert by_x.tolist() == [[2.0, 6.0]] * 3 and by_w.tolist() == (2 * X).tolist()
    summed = grad(lambda w: vmap(lambda x: Dot.apply(x, w, 2)[0])(X).sum())(W)
    assert summed.tolist() == [12.0, 18.0]
    _, slopes = jvp(lambda w: vmap(lambda x: Dot.apply(x, w, 2)[0])(X), (W,), (W,))
    assert slopes.tolist() == [6.0, 22.0, 38.0]
    assert hessian(lambda x: Dot.apply(x, x, 2)[0])(X[0]).tolist() == [[4.0, 0.0], [0.0, 4.0]]
    _, pull = vjp(lambda x: vmap(lambda row: Dot.apply(row, W, 2))(x), X)
    (g,) = pull((torch.ones(3), torch.ones(3, 2)))
    assert g.tolist() == [[3.0, 7.0]] * 3


def test_captured_weights_get_gradients_by_backward() -> None:
    w = W.clone().requires_grad_()
    vmap(lambda x: Dot.apply(x, w, 2)[0])(X).sum().backward()
    assert w.grad.tolist() == [12.0, 18.0]


class Old(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


class Both(Stated):
    generate_vmap_rule = True


class OneReturn(Square):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return x * x


class WrongDims(Square):
    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return x * x, (0, 0)


@pytest.mark.parametrize(
    ("cls", "text"),
    [
        (Old, "it must override the setup_context staticmethod"),
        (Square, "You tried to vmap over Square, but it does not have vmap support"),
        (Both, "You tried to vmap over Both, but it has both generate_vmap_rule=True and an"),
        (OneReturn, "Expected the vmap staticmethod to have two returns, an output and out_dims"),
        (WrongDims, "returned an incompatible .output, out_dims. tuple. Expected out_dims=.0, 0."),
    ],
)
def test_what_cannot_be_batched_says_why(cls: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=text):
        vmap(cls.apply)(X)
    assert cls.apply(X[0]).shape == (2,)


def test_functions_that_say_nothing_still_work_under_grad() -> None:
    assert grad(lambda x: Old.apply(x).sum())(X[0]).tolist() == [2.0, 2.0]


class Cube(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, power: int) -> Any:
        return x**power, x.sum()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.power = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: Any, total: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * ctx.power * Cube.apply(x, ctx.power - 1)[0] + total, None


def cubes(x: Any) -> Any:
    return vmap(lambda z: Cube.apply(z, 3))(x)[0]


def test_custom_functions_in_a_batch_inside_a_derivative_inside_a_batch() -> None:
    x = torch.arange(8.0).reshape(2, 2, 2)
    slopes = vmap(grad(lambda x: cubes(x).sum()))(x)
    assert torch.equal(slopes, 3 * x**2)
    twice = vmap(grad(lambda x: grad(lambda x: cubes(x).sum())(x).sum()))(x)
    assert torch.equal(twice, 6 * x)
    assert torch.equal(vmap(jacrev(cubes))(x).sum((-1, -2)), 3 * x**2)
    deep = vmap(grad(lambda x: vmap(grad(lambda y: cubes(y).sum()))(x).sum()))
    assert torch.equal(deep(x[None]), 6 * x[None])


def test_derivatives_through_the_backward_of_custom_functions_in_a_batch() -> None:
    x = torch.arange(4.0).reshape(2, 2)
    inner = vmap(grad(lambda y: Cube.apply(y, 3)[0].sum()))
    assert torch.equal(grad(lambda x: inner(x).sum())(x), 6 * x)
    leaf = x.clone().requires_grad_()
    inner(leaf).sum().backward()
    assert torch.equal(leaf.grad, 6 * x)
    assert not jacrev(lambda y: Cube.apply(y, 3)[0])(x).requires_grad
