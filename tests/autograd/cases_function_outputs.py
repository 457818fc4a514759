"""What custom functions return: tensors, inputs, views, and other things."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tests.autograd.function_tools import function, twice
from tests.harness import Cases, attempt, grads, leaf, look

cases = Cases()


# --- outputs --------------------------------------------------------------------------------------
@cases
def one_in_a_tuple(lib: Any) -> Any:
    x = leaf(lib, 2)
    found = function(lib, lambda ctx, x: (x * 2,), twice).apply(x)
    return [type(found).__name__, len(found), look(found[0]), grads(lib, found[0].sum(), x)]


@cases
def a_list(lib: Any) -> Any:
    x = leaf(lib, 2)
    return function(lib, lambda ctx, x: [x * 2, x * 3], lambda ctx, a, b: a).apply(x)


@cases
def a_namedtuple(lib: Any) -> Any:
    pair = namedtuple("pair", "a b")
    F = function(lib, lambda ctx, x: pair(x * 2, x * 3), lambda ctx, a, b: a)
    found = F.apply(leaf(lib, 2))
    return [isinstance(found, tuple), hasattr(found, "a"), look(found[1])]


@cases
def an_empty_tuple(lib: Any) -> Any:
    return function(lib, lambda ctx, x: (), lambda ctx: None).apply(leaf(lib, 2))


@cases
def none(lib: Any) -> Any:
    return function(lib, lambda ctx, x: None, twice).apply(leaf(lib, 2))


@cases
def a_number(lib: Any) -> Any:
    return function(lib, lambda ctx, x: 3.0, twice).apply(leaf(lib, 2))


@cases
def a_number_unrecorded(lib: Any) -> Any:
    return function(lib, lambda ctx, x: 3.0, twice).apply(lib.ones(2))


@cases
def a_string(lib: Any) -> Any:
    return function(lib, lambda ctx, x: "text", twice).apply(leaf(lib, 2))


@cases
def a_dict(lib: Any) -> Any:
    return function(lib, lambda ctx, x: {"a": x * 2}, twice).apply(leaf(lib, 2))


@cases
def other_things_in_a_tuple(lib: Any) -> Any:
    seen = []

    def backward(ctx: Any, *gs: Any) -> Any:
        seen.append([None if g is None else g.tolist() for g in gs])
        return gs[1] * 2

    x = leaf(lib, 2)
    out = function(lib, lambda ctx, x: (3, x * 2, "s", None, [x]), backward).apply(x)
    gradient = grads(lib, out[1].sum(), x)
    return [out[0], look(out[1]), out[2:4], type(out[4]).__name__, out[4][0] is x, gradient, seen]


@cases
def an_integer_tensor(lib: Any) -> Any:
    y = function(lib, lambda ctx, x: x.long(), twice).apply(leaf(lib, 2))
    return look(y)


@cases
def integers_among_others(lib: Any) -> Any:
    seen = []

    def backward(ctx: Any, g: Any, h: Any) -> Any:
        seen.append([g.tolist(), None if h is None else [h.tolist(), str(h.dtype)]])
        return g

    x = leaf(lib, 2)
    a, b = function(lib, lambda ctx, x: (x * 2, x > 1), backward).apply(x)
    a.sum().backward()
    return [look(a), look(b), seen]


@cases
def the_same_tensor_twice(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        return y, y

    x = leaf(lib, 2)
    a, b = function(lib, forward, lambda ctx, g, h: g * 10 + h).apply(x)
    return [a is b, look(a), look(b), grads(lib, (a * 3 + b * 5).sum(), x)]


@cases
def an_input_as_it_is(lib: Any) -> Any:
    x = leaf(lib, 2)
    y = function(lib, lambda ctx, x: x, lambda ctx, g: g * 7).apply(x)
    return [y is x, look(x), look(y), y._base is x, y.data_ptr() == x.data_ptr(),
            grads(lib, y.sum(), x)]  # fmt: skip


@cases
def an_interior_input_as_it_is(lib: Any) -> Any:
    x = leaf(lib, 2)
    h = x * 2
    y = function(lib, lambda ctx, x: x, lambda ctx, g: g * 7).apply(h)
    return [y is h, look(h), look(y), y._base is h, grads(lib, y.sum(), x, h)]


@cases
def an_input_view_as_it_is(lib: Any) -> Any:
    x = leaf(lib, 2, 2)
    h = (x * 2)[0]
    y = function(lib, lambda ctx, x: x, lambda ctx, g: g * 7).apply(h)
    return [y is h, look(h), look(y), y._base is h._base, grads(lib, y.sum(), x, h)]


@cases
def an_input_twice(lib: Any) -> Any:
    x = leaf(lib, 2)
    a, b = function(lib, lambda ctx, x: (x, x), lambda ctx, g, h: g * 10 + h).apply(x)
    return [a is b, look(a), look(b), grads(lib, (a * 3 + b * 5).sum(), x)]


@cases
def an_input_and_more(lib: Any) -> Any:
    x = leaf(lib, 2)
    a, b = function(lib, lambda ctx, x: (x, x * 2), lambda ctx, g, h: g * 10 + h).apply(x)
    return [look(a), look(b), grads(lib, (a * 3 + b * 5).sum(), x)]


@cases
def an_input_that_asks_nothing(lib: Any) -> Any:
    x, c = leaf(lib, 2), lib.ones(2)
    F = function(lib, lambda ctx, x, c: c, lambda ctx, g: (g * 2, g * 3))
    y = F.apply(x, c)
    return [y is c, look(c), look(y), grads(lib, y.sum(), x)]


@cases
def an_input_as_it_is_unrecorded(lib: Any) -> Any:
    c = lib.ones(2)
    F = function(lib, lambda ctx, c: c, twice)
    y = F.apply(c)
    x = leaf(lib, 2)
    with lib.no_grad():
        z = F.apply(x)
    return [y is c, look(y), z is x, look(z)]


@cases
def write_to_an_input_returned(lib: Any) -> Any:
    x = leaf(lib, 2) * 1
    y = function(lib, lambda ctx, x: x, lambda ctx, g: g * 7).apply(x)
    return attempt(lambda: y.mul_(2))


@cases
def write_to_an_input_after_it_was_returned(lib: Any) -> Any:
    x = leaf(lib, 2)
    h = x * 1
    y = function(lib, lambda ctx, x: x, lambda ctx, g: g * 7).apply(h)
    h.mul_(2)
    return [look(h), attempt(lambda: look(y)), attempt(lambda: grads(lib, y.sum(), x))]


@cases
def an_input_marked_fixed(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_non_differentiable(x)
        return x

    x = leaf(lib, 2)
    y = function(lib, forward, twice).apply(x)
    return [y is x, look(y), look(x)]


@cases
def a_tensor_from_outside(lib: Any) -> Any:
    """Neither an input nor made inside."""
    c = lib.ones(2)
    x = leaf(lib, 2)
    y = function(lib, lambda ctx, x: c, lambda ctx, g: g * 3).apply(x)
    return [y is c, look(c), grads(lib, y.sum(), x)]


@cases
def a_leaf_from_outside(lib: Any) -> Any:
    c = leaf(lib, 2)
    x = leaf(lib, 2)

    def run() -> Any:
        y = function(lib, lambda ctx, x: c, lambda ctx, g: g * 3).apply(x)
        return [y is c, look(y), look(c), grads(lib, y.sum(), x)]

    return attempt(run)


@cases
def an_interior_tensor_from_outside(lib: Any) -> Any:
    c = leaf(lib, 2) * 2
    x = leaf(lib, 2)

    def run() -> Any:
        y = function(lib, lambda ctx, x: c, lambda ctx, g: g * 3).apply(x)
        return [y is c, look(y), grads(lib, y.sum(), x)]

    return attempt(run)


@cases
def made_with_grad_enabled(lib: Any) -> Any:
    """A recorded tensor made inside forward: only the function's own history remains."""

    def forward(ctx: Any, x: Any) -> Any:
        with lib.enable_grad():
            return x.detach().requires_grad_() * 2

    x = leaf(lib, 2)
    y = function(lib, forward, lambda ctx, g: g * 3).apply(x)
    return [look(y), grads(lib, y.sum(), x)]


# --- outputs that are views -----------------------------------------------------------------------
@cases
def a_view_of_an_input(lib: Any) -> Any:
    x = leaf(lib, 2, 2)
    y = function(lib, lambda ctx, x: x[0], lambda ctx, g: lib.stack([g * 2, g * 0])).apply(x)
    return [look(y), y._base is x, grads(lib, y.sum(), x)]


@cases
def write_to_a_view_of_an_input(lib: Any) -> Any:
    x = leaf(lib, 2, 2) * 1
    y = function(lib, lambda ctx, x: x[0], lambda ctx, g: lib.stack([g * 2, g * 0])).apply(x)
    return [attempt(lambda: y.mul_(2)), attempt(lambda: look(x.mul_(2))), attempt(lambda: look(y))]


@cases
def write_to_a_view_of_an_input_unrecorded(lib: Any) -> Any:
    x = leaf(lib, 2, 2) * 1
    y = function(lib, lambda ctx, x: x[0], lambda ctx, g: lib.stack([g * 2, g * 0])).apply(x)
    with lib.no_grad():
        return attempt(lambda: look(y.mul_(2)))


@cases
def a_view_of_a_constant(lib: Any) -> Any:
    x, c = leaf(lib, 2), lib.ones(2, 2)
    y = function(lib, lambda ctx, x, c: c[0], lambda ctx, g: (g, None)).apply(x, c)
    return [look(y), y._base is c, attempt(lambda: look(y.mul_(2))), look(c)]


@cases
def views_of_an_input(lib: Any) -> Any:
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        return lib.stack([a * 2, b * 3])

    x = leaf(lib, 2, 2)
    h = x * 1
    a, b = function(lib, lambda ctx, x: (x[0], x[1]), backward).apply(h)
    found = [look(a), look(b), a._base is h, grads(lib, (a + b).sum(), x, retain_graph=True)]
    return [*found, attempt(lambda: a.mul_(2)), attempt(lambda: look(h.mul_(2)))]


@cases
def a_view_and_a_copy(lib: Any) -> Any:
    x = leaf(lib, 2, 2)
    F = function(lib, lambda ctx, x: (x.view(4), x * 2), lambda ctx, a, b: b + a.view(2, 2))
    a, b = F.apply(x * 1)
    return [look(a), look(b), attempt(lambda: look(b.mul_(2))), attempt(lambda: look(a.mul_(2)))]


@cases
def a_view_of_something_made_inside(lib: Any) -> Any:
    x = leaf(lib, 2)
    y = function(lib, lambda ctx, x: (x * 2).view(1, 2), lambda ctx, g: g.view(2)).apply(x)
    return [look(y), y._base is None, attempt(lambda: look(y.mul_(2))), grads(lib, y.sum(), x)]


@cases
def a_detached_input(lib: Any) -> Any:
    x = leaf(lib, 2)
    y = function(lib, lambda ctx, x: x.detach(), lambda ctx, g: g * 2).apply(x)
    return [look(y), y._base is None, grads(lib, y.sum(), x), attempt(lambda: look(y.mul_(2)))]


@cases
def view_as_self(lib: Any) -> Any:
    x = leaf(lib, 2)
    h = x * 1
    y = function(lib, lambda ctx, x: x.view_as(x), lambda ctx, g: g * 2).apply(h)
    return [look(y), y._base is h, grads(lib, y.sum(), x), attempt(lambda: y.mul_(2))]


@cases
def a_view_unrecorded(lib: Any) -> Any:
    c = lib.ones(2, 2)
    y = function(lib, lambda ctx, x: x[0], twice).apply(c)
    return [look(y), y._base is c, attempt(lambda: look(y.mul_(2))), look(c)]


@cases
def a_view_under_no_grad(lib: Any) -> Any:
    x = leaf(lib, 2, 2)
    with lib.no_grad():
        y = function(lib, lambda ctx, x: x[0], twice).apply(x)
    return [look(y), attempt(lambda: y.mul_(2))]


@cases
def a_no_grad_view_given(lib: Any) -> Any:
    x = leaf(lib, 2, 2) * 1
    with lib.no_grad():
        v = x[0]
    y = function(lib, twice, twice).apply(v)
    return [look(v), look(y)]


# --- mark_non_differentiable, materialised gradients ----------------------------------------------
@cases
def fixed(lib: Any) -> Any:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        values, index = x.sort()
        more = x * 5
        ctx.mark_non_differentiable(index, more)
        return values, index, more

    def backward(ctx: Any, *gs: Any) -> Any:
        seen.append([None if g is None else [g.tolist(), str(g.dtype)] for g in gs])
        return gs[0] * 2

    x = leaf(lib, 2)
    out = function(lib, forward, backward).apply(x)
    out[0].sum().backward()
    return [[look(t) for t in out], seen]


@cases
def fixed_alone(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.mark_non_differentiable(y)
        return y

    y = function(lib, forward, twice).apply(leaf(lib, 2))
    return look(y)


@cases
def fixed_but_not_returned(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_non_differentiable(x * 3)
        return x * 2

    return attempt(lambda: look(function(lib, forward, twice).apply(leaf(lib, 2))))


@cases
def fixed_no_tensor(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_non_differentiable(3)
        return x * 2

    return attempt(lambda: look(function(lib, forward, twice).apply(leaf(lib, 2))))


@cases
def fixed_view_of_an_input(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x[0]
        ctx.mark_non_differentiable(y)
        return y

    x = leaf(lib, 2, 2) * 1
    y = function(lib, forward, twice).apply(x)
    return [look(y), attempt(lambda: look(y.mul_(2)))]


@cases
def unused_outputs(lib: Any) -> Any:
    found = []
    for materialise in (None, True, False):
        seen: list[Any] = []

        def forward(ctx: Any, x: Any, flag: Any = materialise) -> Any:
            if flag is not None:
                ctx.set_materialize_grads(flag)
            return x * 2, x.double(), (x > 1), x[:1] * 1

        def backward(ctx: Any, *gs: Any, seen: list[Any] = seen) -> Any:
            seen.extend([None if g is None else [g.tolist(), str(g.dtype)] for g in gs])
            return None

        x = leaf(lib, 2)
        out = function(lib, forward, backward).apply(x)
        out[0].sum().backward()
        found.append([seen, None if x.grad is None else x.grad.tolist()])
    return found


@cases
def materialise_in_setup(lib: Any) -> Any:
    seen = []
    F = function(lib, lambda x: (x * 2, x * 3), lambda ctx, a, b: seen.append(b is None),
                 setup_context=lambda ctx, i, o: ctx.set_materialize_grads(False))  # fmt: skip
    F.apply(leaf(lib, 2))[0].sum().backward()
    return seen


@cases
def materialise_no_bool(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(0)
        return x * 2

    return attempt(lambda: look(function(lib, forward, twice).apply(leaf(lib, 2))))


@cases
def an_undefined_gradient_arrives(lib: Any) -> Any:
    """A function whose consumer returns None runs, with zeros or with None."""
    found = []
    for materialise in (True, False):
        seen: list[Any] = []

        def forward(ctx: Any, x: Any, flag: Any = materialise) -> Any:
            ctx.set_materialize_grads(flag)
            return x * 2

        def backward(ctx: Any, g: Any, seen: list[Any] = seen) -> Any:
            seen.append(None if g is None else g.tolist())
            return g

        x = leaf(lib, 2)
        y = function(lib, forward, backward).apply(x)
        z = function(lib, twice, lambda ctx, g: None).apply(y)
        z.sum().backward()
        found.append([seen, None if x.grad is None else x.grad.tolist()])
    return found


results = cases.results
