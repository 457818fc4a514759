"""What the rules of custom functions return, and derivatives of derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.autograd.function_tools import function, square, twice
from tests.harness import Cases, attempt, grads, leaf, look

cases = Cases()


# --- what backward returns ------------------------------------------------------------------------
def answered(lib: Any, answer: Any, inputs: int = 2) -> Any:
    """A function of some tensors and a number, whose backward returns what it is told."""
    xs = [leaf(lib, 2) for _ in range(inputs)]
    y = function(lib, lambda ctx, *xs: xs[0] * 2, lambda ctx, g: answer(g)).apply(*xs, 3.0)

    def run() -> Any:
        y.sum().backward()
        return [None if x.grad is None else [x.grad.tolist(), str(x.grad.dtype)] for x in xs]

    return attempt(run)


ANSWERS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "one": lambda lib: lambda g: g,
    "two": lambda lib: lambda g: (g, g),
    "three": lambda lib: lambda g: (g, g * 2, None),
    "none_alone": lambda lib: lambda g: None,
    "all_none": lambda lib: lambda g: (None, None, None),
    "trailing_none": lambda lib: lambda g: (g, g, None, None, None),
    "trailing_tensor": lambda lib: lambda g: (g, g, None, g),
    "for_a_number": lambda lib: lambda g: (g, g, g),
    "list": lambda lib: lambda g: [g, g, None],
    "number": lambda lib: lambda g: (3.0, g, None),
    "string": lambda lib: lambda g: (g, "text", None),
    "array": lambda lib: lambda g: (g.numpy(), g, None),
    "other_shape": lambda lib: lambda g: (lib.ones(5), g, None),
    "scalar": lambda lib: lambda g: (lib.tensor(3.0), g, None),
    "broadcast": lambda lib: lambda g: (lib.ones(3, 2), g, None),
    "one_element": lambda lib: lambda g: (lib.ones(1), g, None),
    "double": lambda lib: lambda g: (g.double(), g, None),
    "integers": lambda lib: lambda g: (g.long(), g, None),
    "complex": lambda lib: lambda g: (g * 1j, g, None),
    "bool": lambda lib: lambda g: (g > 0, g, None),
    "empty_tuple": lambda lib: lambda g: (),
    "nested": lambda lib: lambda g: ((g, g), None, None),
    "generator": lambda lib: lambda g: (x for x in (g, g, None)),
}


def answer_case(name: str) -> None:
    cases[f"returned_{name}"] = lambda lib: answered(lib, ANSWERS[name](lib))


for key in ANSWERS:
    answer_case(key)


@cases
def gradient_for_a_constant(lib: Any) -> Any:
    x, c = leaf(lib, 2), lib.ones(2)
    F = function(lib, lambda ctx, x, c: x * 2, lambda ctx, g: (g, "anything"))
    y = F.apply(x, c)
    return attempt(lambda: grads(lib, y.sum(), x))


@cases
def wrong_shape_for_a_constant(lib: Any) -> Any:
    x, c = leaf(lib, 2), lib.ones(2)
    y = function(lib, lambda ctx, x, c: x * 2, lambda ctx, g: (g, lib.ones(7))).apply(x, c)
    return attempt(lambda: grads(lib, y.sum(), x))


@cases
def only_none_for_trailing_arguments(lib: Any) -> Any:
    x = leaf(lib, 2)
    y = function(lib, lambda ctx, x, *rest: x * 2, lambda ctx, g: (g, None)).apply(x, 1, 2)
    return attempt(lambda: grads(lib, y.sum(), x))


@cases
def wrong_shape_after_a_number(lib: Any) -> Any:
    """The index counts tensors."""
    x = leaf(lib, 2)
    y = function(lib, lambda ctx, n, x: x * 2, lambda ctx, g: (None, lib.ones(7))).apply(3, x)
    return attempt(lambda: grads(lib, y.sum(), x))


@cases
def complex_input_and_real_gradient(lib: Any) -> Any:
    x = lib.ones(2, dtype=lib.complex64, requires_grad=True)
    F = function(lib, lambda ctx, x: x.real * 2, lambda ctx, g: g * 2)
    G = function(lib, lambda ctx, x: x.real * 2, lambda ctx, g: g.long())
    return [grads(lib, F.apply(x).sum(), x), attempt(lambda: grads(lib, G.apply(x).sum(), x))]


@cases
def other_dtypes(lib: Any) -> Any:
    x = leaf(lib, 2)
    y = function(lib, lambda ctx, x: x.double(), lambda ctx, g: g * 2).apply(x)
    y.sum().backward()
    return [str(y.dtype), str(x.grad.dtype), x.grad.tolist()]


@cases
def complex_and_real(lib: Any) -> Any:
    x = leaf(lib, 2)
    F = function(lib, lambda ctx, x: x * (1 + 2j), lambda ctx, g: g * (1 - 2j))
    y = F.apply(x)
    return attempt(lambda: grads(lib, y.abs().sum(), x))


@cases
def gradient_of_the_output_is_shared(lib: Any) -> Any:
    """What backward returns may be the very gradient it got; leaves do not share it."""
    a, b = leaf(lib, 2), leaf(lib, 2)
    y = function(lib, lambda ctx, a, b: a + b, lambda ctx, g: (g, g)).apply(a, b)
    y.sum().backward()
    a.grad.add_(5)
    return [a.grad.tolist(), b.grad.tolist()]


@cases
def called_directly(lib: Any) -> Any:
    x = leaf(lib, 2)
    node = function(lib, lambda ctx, x, n: x * 2, lambda ctx, g: (g * 3, None)).apply(x, 1).grad_fn
    return [attempt(lambda: type(node(lib.ones(2))).__name__),
            [None if g is None else g.tolist() for g in node.apply(lib.ones(2))]]  # fmt: skip


# --- hooks on the node ----------------------------------------------------------------------------
@cases
def node_hooks(lib: Any) -> Any:
    seen: list[Any] = []

    def told(*groups: Any) -> None:
        seen.append([[None if g is None else g.tolist() for g in gs] for gs in groups])

    x = leaf(lib, 2)
    F = function(lib, lambda ctx, x, n, c: x * 2, lambda ctx, g: (g * 2, None, None))
    y = F.apply(x, 3, lib.ones(2))
    y.grad_fn.register_prehook(lambda gs: told(gs))
    y.grad_fn.register_hook(lambda gi, go: told(gi, go))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, *gi[1:]))
    y.register_hook(lambda g: g * 5)
    y.sum().backward()
    return [seen, x.grad.tolist()]


@cases
def hooks_on_the_context(lib: Any) -> Any:
    """Registered from inside forward."""
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.register_hook(lambda gi, go: seen.append(gi[0].tolist()))
        ctx.metadata["a"] = 1
        return x * 2

    x = leaf(lib, 2)

    def run() -> Any:
        y = function(lib, forward, lambda ctx, g: g * 3).apply(x)
        y.sum().backward()
        return [seen, y.grad_fn.metadata]

    return attempt(run)


# --- once_differentiable --------------------------------------------------------------------------
@cases
def once(lib: Any) -> Any:
    x = leaf(lib, 2)
    F = square(lib, True)
    return [grads(lib, F.apply(x).sum(), x), F.backward.__name__]


@cases
def once_with_create_graph(lib: Any) -> Any:
    x = leaf(lib, 2)
    (g,) = lib.autograd.grad(square(lib, True).apply(x).sum(), x, create_graph=True)
    return look(g)


@cases
def once_differentiated_twice(lib: Any) -> Any:
    x = leaf(lib, 2)
    y = square(lib, True).apply(x)
    (g,) = lib.autograd.grad((y * x).sum(), x, create_graph=True)
    return [look(g), attempt(lambda: g.sum().backward())]


@cases
def once_with_a_gradient_that_asks(lib: Any) -> Any:
    x, v = leaf(lib, 2), leaf(lib, 2)
    (g,) = lib.autograd.grad(square(lib, True).apply(x), x, v, create_graph=True)
    return [look(g), attempt(lambda: grads(lib, g.sum(), v))]


@cases
def once_with_several(lib: Any) -> Any:
    modes = []

    def backward(ctx: Any, g: Any) -> Any:
        modes.append(lib.is_grad_enabled())
        return g * 2, None, g * 3

    wrapped = lib.autograd.function.once_differentiable(backward)
    F = function(lib, lambda ctx, a, n, b: a + b, wrapped)
    a, b, v = leaf(lib, 2), leaf(lib, 2), leaf(lib, 2)
    found = lib.autograd.grad(F.apply(a, 3, b), (a, b), v, create_graph=True)
    return [[look(g) for g in found], modes, attempt(lambda: grads(lib, found[0].sum(), v))]


@cases
def once_under_no_grad(lib: Any) -> Any:
    x = leaf(lib, 2)
    wrapped = lib.autograd.function.once_differentiable(lambda ctx, g: g * 2)
    y = function(lib, twice, wrapped).apply(x)
    with lib.no_grad():
        return grads(lib, y, x, grad_outputs=lib.ones(2))


# --- derivatives of derivatives -------------------------------------------------------------------
@cases
def double_backward(lib: Any) -> Any:
    x = leaf(lib, 2)
    y = square(lib, False).apply(x)
    (g,) = lib.autograd.grad((y * y).sum(), x, create_graph=True)
    return [look(g), grads(lib, g.sum(), x)]


@cases
def double_backward_through_a_function(lib: Any) -> Any:
    """The backward is itself a custom function."""

    def back(ctx: Any, x: Any, g: Any) -> Any:
        ctx.save_for_backward(x, g)
        return 3 * x * x * g

    def back_back(ctx: Any, gg: Any) -> Any:
        x, g = ctx.saved_tensors
        return 6 * x * g * gg, 3 * x * x * gg

    CubeGrad = function(lib, back, back_back, name="CubeGrad")

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    Cube = function(lib, forward, lambda ctx, g: CubeGrad.apply(ctx.saved_tensors[0], g))
    x = leaf(lib, 2)
    (g,) = lib.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    (gg,) = lib.autograd.grad(g.sum(), x, create_graph=True)
    return [look(g), look(gg), grads(lib, gg.sum(), x)]


@cases
def double_backward_with_a_saved_output(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    x = leaf(lib, 2)
    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x * 0)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True, allow_unused=True)
    h = x * 0
    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(h)
    (g,) = lib.autograd.grad(y.sum(), h, create_graph=True)
    (gg,) = lib.autograd.grad(g.sum(), h, create_graph=True)
    return [g.tolist(), gg.tolist(), grads(lib, gg.sum(), h)]


@cases
def double_backward_with_an_intermediate(lib: Any) -> Any:
    """Saved without being input or output: wrong, silently, in PyTorch too."""

    def forward(ctx: Any, x: Any) -> Any:
        m = x * 2
        ctx.save_for_backward(m)
        return m * m

    x = leaf(lib, 2)
    y = function(lib, forward, lambda ctx, g: g * 4 * ctx.saved_tensors[0]).apply(x)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    return [look(g), attempt(lambda: grads(lib, g.sum(), x))]


@cases
def constant_backward(lib: Any) -> Any:
    x = leaf(lib, 2)
    y = function(lib, twice, lambda ctx, g: lib.ones(2)).apply(x)
    (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    return look(g)


@cases
def gradgradcheck(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
    F = square(lib, False)
    return [lib.autograd.gradcheck(F.apply, (x,)), lib.autograd.gradgradcheck(F.apply, (x,))]


@cases
def gradcheck_finds_a_wrong_rule(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
    F = function(lib, twice, lambda ctx, g: g * 3)
    return lib.autograd.gradcheck(F.apply, (x,), raise_exception=False)


results = cases.results
