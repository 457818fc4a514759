"""Transforms at their edges: arguments that are written but not differentiated, running statistics
in a batch, writes to members that share memory, batches of gradients."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import rushlight as torch
from rushlight.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, vmap


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
