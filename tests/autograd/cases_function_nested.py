"""Custom functions in one another, in forward mode, and in the graph."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.autograd.function_tools import function, several_back, several_written, square, twice
from tests.harness import Cases, attempt, grads, leaf, look

cases = Cases()


# --- functions in functions -----------------------------------------------------------------------
@cases
def nested_calls(lib: Any) -> Any:
    Inner = function(lib, twice, lambda ctx, g: g * 100, name="Inner")

    def forward(ctx: Any, x: Any) -> Any:
        y = Inner.apply(x)
        ctx.seen = [y.requires_grad, y.grad_fn is None]
        return y

    x = leaf(lib, 2)
    y = function(lib, forward, lambda ctx, g: g * 3, name="Outer").apply(x)
    return [look(y), y.grad_fn.seen, grads(lib, y.sum(), x)]


@cases
def nested_calls_with_grad_enabled(lib: Any) -> Any:
    Inner = function(lib, twice, lambda ctx, g: g * 100, name="Inner")

    def forward(ctx: Any, x: Any) -> Any:
        with lib.enable_grad():
            return Inner.apply(x)

    x = leaf(lib, 2)
    y = function(lib, forward, lambda ctx, g: g * 3, name="Outer").apply(x)
    return [look(y), grads(lib, y.sum(), x)]


@cases
def chained(lib: Any) -> Any:
    F = function(lib, twice, lambda ctx, g: g * 2)
    x = leaf(lib, 2)
    y = x
    for _ in range(5):
        y = F.apply(y)
    return [look(y), grads(lib, y.sum(), x)]


@cases
def backward_inside_backward(lib: Any) -> Any:
    """Re-entrant: the rule itself runs a backward pass."""

    def forward(ctx: Any, x: Any) -> Any:
        with lib.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = ctx.x**3
        return ctx.y.detach()

    def backward(ctx: Any, g: Any) -> Any:
        with lib.enable_grad():
            ctx.y.backward(g)
        return ctx.x.grad

    x = leaf(lib, 2)
    y = function(lib, forward, backward).apply(x)
    (y * 2).sum().backward()
    return x.grad.tolist()


@cases
def backward_inside_to_the_same_leaf(lib: Any) -> Any:
    w = leaf(lib, 2)

    def backward(ctx: Any, g: Any) -> Any:
        with lib.enable_grad():
            (w * 10).sum().backward()
        return g

    y = function(lib, twice, backward).apply(w)
    (y + w).sum().backward()
    return w.grad.tolist()


@cases
def grad_inside_backward(lib: Any) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        with lib.enable_grad():
            (x,) = ctx.saved_tensors
            z = x.detach().requires_grad_()
            (d,) = lib.autograd.grad((z**3).sum(), z)
        return d * g

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    x = leaf(lib, 2)
    return grads(lib, function(lib, forward, backward).apply(x).sum(), x)


@cases
def deep_reentrance(lib: Any) -> Any:
    """Each backward runs the next level's."""

    class Deep(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, depth: int) -> Any:
            ctx.depth = depth
            with lib.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = ctx.x * 2 if depth == 0 else Deep.apply(ctx.x, depth - 1)
            return ctx.y.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            with lib.enable_grad():
                ctx.y.backward(g)
            return ctx.x.grad, None

    x = leaf(lib, 2)
    Deep.apply(x, 30).sum().backward()
    return x.grad.tolist()


@cases
def very_deep_reentrance(lib: Any) -> Any:
    """Deeper than any stack: each backward calls apply and backward again."""
    seen = [0]

    class Deep(lib.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with lib.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen[0] += 1
            if ctx.x < 0:
                return g
            with lib.enable_grad():
                Deep.apply(ctx.x).sum().backward()
            return g

    Deep.apply(lib.tensor(400.0, requires_grad=True)).sum().backward()
    return seen


@cases
def deep_errors_come_back(lib: Any) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        if ctx.depth == 0:
            raise ValueError("the deepest")
        F.apply(leaf(lib, 2), ctx.depth - 1).sum().backward()

    def forward(ctx: Any, x: Any, depth: int) -> Any:
        ctx.depth = depth
        return x * 2

    def with_grad(ctx: Any, g: Any) -> Any:
        with lib.enable_grad():
            return backward(ctx, g)

    F = function(lib, forward, with_grad)
    found = attempt(lambda: F.apply(leaf(lib, 2), 50).sum().backward())
    return [found, lib.is_grad_enabled()]


@cases
def forward_calls_backward(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        with lib.enable_grad():
            z = x.detach().requires_grad_()
            (z * z).sum().backward()
        ctx.save_for_backward(z.grad)
        return (x * x).sum()

    x = leaf(lib, 2)
    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    y.backward()
    return x.grad.tolist()


@cases
def reentrant_through_the_outer_graph(lib: Any) -> Any:
    """A rule that runs backward through a graph the outer pass shares."""
    x = leaf(lib, 2)
    shared = x * 3

    def backward(ctx: Any, g: Any) -> Any:
        (d,) = lib.autograd.grad(shared.sum(), x, retain_graph=True)
        return g + d

    y = function(lib, twice, backward).apply(shared)
    y.sum().backward()
    return x.grad.tolist()


@cases
def reentrant_error(lib: Any) -> Any:
    def backward(ctx: Any, g: Any) -> Any:
        with lib.enable_grad():
            z = leaf(lib, 2)
            function(lib, twice, lambda ctx, g: 1 / 0).apply(z).sum().backward()

    y = function(lib, twice, backward).apply(leaf(lib, 2))
    return attempt(lambda: y.sum().backward())


@cases
def an_edge_shared_by_two_functions(lib: Any) -> Any:
    order: list[str] = []

    def named(name: str) -> Any:
        def backward(ctx: Any, g: Any) -> Any:
            order.append(name)
            return g * 2

        return function(lib, twice, backward, name=name)

    x = leaf(lib, 2)
    h = named("A").apply(x)
    y = named("B").apply(h) + named("C").apply(h)
    return [grads(lib, y.sum(), x), order]


@cases
def threads(lib: Any) -> Any:
    F = square(lib, False)
    x = leaf(lib, 2)

    def work() -> None:
        F.apply(x).sum().backward()

    ts = [threading.Thread(target=work) for _ in range(4)]
    for t in ts:
        t.start()
    for t in ts:
        t.join()
    return x.grad.tolist()


# --- forward mode ---------------------------------------------------------------------------------
def dual_case(fn: Callable[[Any, Any, Any], Any]) -> None:
    def run(lib: Any) -> Any:
        fw = lib.autograd.forward_ad
        with fw.dual_level():
            d = fw.make_dual(lib.tensor([1.0, 2.0]), lib.tensor([10.0, 20.0]))
            return fn(lib, fw, d)

    cases[fn.__name__] = run


def tangent(fw: Any, t: Any) -> Any:
    found = fw.unpack_dual(t).tangent
    return None if found is None else found.detach().tolist()


@dual_case
def dual_and_recorded(lib: Any, fw: Any, d: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp() * 0 + x * x
        ctx.save_for_backward(x)
        ctx.save_for_forward(x, y)
        return y

    def jvp(ctx: Any, t: Any) -> Any:
        x, _ = ctx.saved_tensors
        return 2 * x * t

    x = leaf(lib, 2)
    e = fw.make_dual(x, lib.ones(2))
    y = function(lib, forward, lambda ctx, g: 2 * ctx.saved_tensors[0] * g, jvp=jvp).apply(e)
    return [look(y), tangent(fw, y), grads(lib, y.sum(), x, retain_graph=True),
            grads(lib, fw.unpack_dual(y).tangent.sum(), x)]  # fmt: skip


@dual_case
def dual_tangents_of_others(lib: Any, fw: Any, d: Any) -> Any:
    seen: list[Any] = []

    def jvp(ctx: Any, *ts: Any) -> Any:
        seen.extend([None if t is None else t.tolist() for t in ts])
        return ts[0]

    F = function(lib, lambda ctx, x, n, c: x * 2, jvp=jvp)
    y = F.apply(d, 3, lib.ones(2))
    return [tangent(fw, y), seen]


@dual_case
def dual_saved_tensors(lib: Any, fw: Any, d: Any) -> Any:
    """jvp reads what save_for_forward kept; without it, what save_for_backward will."""
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    def jvp(ctx: Any, t: Any) -> Any:
        seen.append(attempt(lambda: len(ctx.saved_tensors)))
        return t

    y = function(lib, forward, twice, jvp=jvp).apply(d)
    return [tangent(fw, y), seen]


@dual_case
def dual_in_setup(lib: Any, fw: Any, d: Any) -> Any:
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_forward(*inputs)

    F = function(lib, lambda x: x * x, jvp=lambda ctx, t: 2 * ctx.saved_tensors[0] * t,
                 setup_context=setup_context)  # fmt: skip
    return tangent(fw, F.apply(d))


@dual_case
def dual_nested(lib: Any, fw: Any, d: Any) -> Any:
    Inner = function(lib, twice, jvp=lambda ctx, t: t * 100)
    Outer = function(lib, lambda ctx, x: Inner.apply(x), jvp=lambda ctx, t: t * 3)
    return tangent(fw, Outer.apply(d))


@dual_case
def dual_jvp_mode(lib: Any, fw: Any, d: Any) -> Any:
    seen = []

    def jvp(ctx: Any, t: Any) -> Any:
        seen.append([lib.is_grad_enabled(), list(ctx.needs_input_grad)])
        return t * 2

    F = function(lib, twice, twice, jvp=jvp)
    F.apply(d)
    with lib.no_grad():
        F.apply(d)
    return seen


@dual_case
def dual_two_views_written(lib: Any, fw: Any, d: Any) -> Any:
    def jvp(ctx: Any, *ts: Any) -> Any:
        return tuple([t.mul_(i + 2) for i, t in enumerate(ts)])

    a, b = d * 1, d * 2
    function(lib, several_written, several_back, jvp=jvp).apply(a, b)
    return [tangent(fw, a), tangent(fw, b)]


# --- anomalies and graph --------------------------------------------------------------------------
@cases
def next_functions(lib: Any) -> Any:
    x, c = leaf(lib, 2), lib.ones(2)
    F = function(lib, lambda ctx, *xs: xs[0] * 2, lambda ctx, g: (g,) * 5)
    y = F.apply(x, 3, c, x * 2, (x * 3).unbind(0)[1])
    return [[None if n is None else type(n).__name__, i] for n, i in y.grad_fn.next_functions]


@cases
def output_numbers(lib: Any) -> Any:
    F = function(lib, lambda ctx, x: (3, x * 2, None, x > 1, x * 3), lambda ctx, *gs: gs[1])
    out = F.apply(leaf(lib, 2))
    return [out[1].output_nr, out[3].output_nr, out[4].output_nr]


@cases
def gradient_edges(lib: Any) -> Any:
    F = function(lib, lambda ctx, x: (x * 2, x * 3), lambda ctx, a, b: a * 2 + b * 3)
    x = leaf(lib, 2)
    _, b = F.apply(x)
    edge = lib.autograd.graph.get_gradient_edge(b)
    return [edge.output_nr, type(edge.node).__name__, grads(lib, (b * 5).sum(), b)]


@cases
def retained_grad(lib: Any) -> Any:
    F = function(lib, lambda ctx, x: (x * 2, x * 3), lambda ctx, a, b: a * 2 + b * 3)
    x = leaf(lib, 2)
    a, b = F.apply(x)
    a.retain_grad()
    b.retain_grad()
    (a * 4 + b * 5).sum().backward()
    return [a.grad.tolist(), b.grad.tolist(), x.grad.tolist()]


@cases
def write_to_an_output(lib: Any) -> Any:
    x = leaf(lib, 2)
    y = function(lib, twice, lambda ctx, g: g * 2).apply(x)
    y.mul_(3)
    return [look(y), grads(lib, y.sum(), x)]


@cases
def write_to_one_of_two_outputs(lib: Any) -> Any:
    x = leaf(lib, 2)
    a, b = function(lib, lambda ctx, x: (x * 2, x * 3), lambda ctx, a, b: a * 2 + b * 3).apply(x)
    a.mul_(3)
    return [look(a), look(b), grads(lib, (a + b).sum(), x)]


@cases
def outputs_that_share_memory(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        return y, y[0]

    x = leaf(lib, 2, 2)

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return g * 2 + lib.stack([h, h * 0]) * 2

    a, b = function(lib, forward, backward).apply(x)
    return [look(a), look(b), attempt(lambda: look(b.mul_(2))), attempt(lambda: look(a.mul_(2)))]


@cases
def subclass_parameter(lib: Any) -> Any:
    x = lib.nn.Parameter(lib.ones(2))
    y = function(lib, lambda ctx, x: x, lambda ctx, g: g * 2).apply(x)
    return [type(y).__name__, look(y), grads(lib, y.sum(), x)]


@cases
def detach_an_output(lib: Any) -> Any:
    x = leaf(lib, 2)
    y = function(lib, twice, twice).apply(x)
    y.detach_()
    return look(y)


@cases
def a_static_class_in_a_function(lib: Any) -> Any:
    class Scale(lib.autograd.Function):  # type: ignore[misc, name-defined]
        factor = 3

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * Scale.factor

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx._forward_cls.factor

    x = leaf(lib, 2)
    return grads(lib, Scale.apply(x).sum(), x)


results = cases.results
