"""Custom functions that write into their arguments."""

from __future__ import annotations

import warnings
from typing import Any

from tests.autograd.function_tools import function, several_back, several_written, twice, written
from tests.harness import Cases, attempt, grads, leaf, look

cases = Cases()


# --- mark_dirty -----------------------------------------------------------------------------------
@cases
def dirty(lib: Any) -> Any:
    x = leaf(lib, 2)
    h = x * 1
    y = function(lib, written, lambda ctx, g: g * 2).apply(h)
    return [y is h, look(y), grads(lib, y.sum(), x)]


@cases
def dirty_leaf(lib: Any) -> Any:
    x = leaf(lib, 2)
    found = attempt(lambda: function(lib, written, twice).apply(x))
    return [found, look(x)]


@cases
def dirty_constant(lib: Any) -> Any:
    x, c = leaf(lib, 2), lib.ones(2)

    def forward(ctx: Any, c: Any, x: Any) -> Any:
        ctx.mark_dirty(c)
        return c.mul_(x)

    y = function(lib, forward, lambda ctx, g: (None, g * 5)).apply(c, x)
    return [y is c, look(c), grads(lib, c.sum(), x)]


@cases
def dirty_unrecorded(lib: Any) -> Any:
    c = lib.ones(2)
    y = function(lib, written, twice).apply(c)
    x = leaf(lib, 2)
    with lib.no_grad():
        z = function(lib, written, twice).apply(x)
    return [y is c, look(c), z is x, look(x)]


@cases
def dirty_not_written(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x

    h = leaf(lib, 2) * 1
    y = function(lib, forward, twice).apply(h)
    return [y is h, look(y)]


@cases
def written_not_dirty(lib: Any) -> Any:
    x = leaf(lib, 2)
    h = x * 1
    y = function(lib, lambda ctx, x: x.mul_(2), lambda ctx, g: g * 2).apply(h)
    return [y is h, look(h), look(y), attempt(lambda: grads(lib, y.sum(), x))]


@cases
def dirty_not_returned(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2) * 1

    return attempt(lambda: function(lib, forward, twice).apply(leaf(lib, 2) * 1))


@cases
def dirty_not_returned_unrecorded(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2) * 1

    return attempt(lambda: look(function(lib, forward, twice).apply(lib.ones(2))))


@cases
def dirty_no_input(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.mark_dirty(y)
        return y

    x = leaf(lib, 2)

    def run() -> Any:
        y = function(lib, forward, lambda ctx, g: g * 2).apply(x)
        return [look(y), grads(lib, y.sum(), x)]

    return attempt(run)


@cases
def dirty_no_tensor(lib: Any) -> Any:
    def forward(ctx: Any, x: Any, n: Any) -> Any:
        ctx.mark_dirty(n)
        return x * 2

    return attempt(lambda: function(lib, forward, twice).apply(leaf(lib, 2), 3))


@cases
def dirty_list(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty([x])
        return x.mul_(2)

    return attempt(lambda: function(lib, forward, twice).apply(leaf(lib, 2) * 1))


@cases
def dirty_attribute_is_no_tuple(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.dirty_tensors = [x]
        return x.mul_(2)

    return attempt(lambda: function(lib, forward, twice).apply(leaf(lib, 2) * 1))


@cases
def dirty_view(lib: Any) -> Any:
    x = leaf(lib, 2, 2)
    h = x * 1
    v = h[0]
    y = function(lib, written, lambda ctx, g: g * 2).apply(v)
    return [y is v, look(v), look(h), h.grad_fn.name(), grads(lib, h.sum(), x)]


@cases
def dirty_view_then_siblings(lib: Any) -> Any:
    x = leaf(lib, 2, 2)
    h = x * 1
    v, w = h[0], h[:, 0]
    function(lib, written, lambda ctx, g: g * 10).apply(v)
    return [look(w), look(v), grads(lib, (w.sum() + v.sum()), x)]


@cases
def dirty_view_of_a_constant(lib: Any) -> Any:
    def forward(ctx: Any, v: Any, x: Any) -> Any:
        ctx.mark_dirty(v)
        return v.mul_(x)

    c, x = lib.ones(2, 2), leaf(lib, 2)
    v = c[0]
    y = function(lib, forward, lambda ctx, g: (g, g * 5)).apply(v, x)
    return [y is v, look(v), look(c), grads(lib, c.sum(), x)]


@cases
def dirty_view_of_a_leaf(lib: Any) -> Any:
    x = leaf(lib, 2, 2)
    return attempt(lambda: function(lib, written, twice).apply(x[0]))


@cases
def dirty_view_no_grad(lib: Any) -> Any:
    x = leaf(lib, 2, 2) * 1
    with lib.no_grad():
        v = x[0]
    return attempt(lambda: look(function(lib, written, twice).apply(v)))


@cases
def dirty_multi_output_view(lib: Any) -> Any:
    x = leaf(lib, 2, 2) * 1
    v = x.unbind(0)[0]
    return attempt(lambda: look(function(lib, written, twice).apply(v)))


@cases
def dirty_custom_view(lib: Any) -> Any:
    x = leaf(lib, 2, 2) * 1
    v = function(lib, lambda ctx, x: x[0], lambda ctx, g: lib.stack([g, g])).apply(x)
    return attempt(lambda: look(function(lib, written, twice).apply(v)))


@cases
def dirty_view_of_a_view(lib: Any) -> Any:
    x = leaf(lib, 2, 2)
    h = x * 1
    v = h.view(4)[1:3]
    function(lib, written, lambda ctx, g: g * 2).apply(v)
    return [look(v), look(h), grads(lib, (h * h).sum(), x)]


@cases
def dirty_expanded(lib: Any) -> Any:
    x = leaf(lib, 1) * 1

    def forward(ctx: Any, v: Any) -> Any:
        ctx.mark_dirty(v)
        return v

    return attempt(lambda: look(function(lib, forward, twice).apply(x.expand(2))))


@cases
def dirty_two(lib: Any) -> Any:
    x, z = leaf(lib, 2), leaf(lib, 2)
    a, b = x * 1, z * 1
    c, d = function(lib, several_written, several_back).apply(a, b)
    return [c is a, d is b, look(a), look(b), grads(lib, (a * b).sum(), x, z)]


@cases
def dirty_two_one_a_view(lib: Any) -> Any:
    x, z = leaf(lib, 2, 2), leaf(lib, 2)
    a, b = x * 1, z * 1
    v = a[0]
    found = attempt(lambda: function(lib, several_written, several_back).apply(v, b))
    return [found, look(v), look(b), look(a)]


@cases
def dirty_two_second_a_view(lib: Any) -> Any:
    x, z = leaf(lib, 2, 2), leaf(lib, 2)
    a, b = x * 1, z * 1
    return attempt(lambda: function(lib, several_written, several_back).apply(b, a[0]))


@cases
def dirty_view_and_another_output(lib: Any) -> Any:
    def forward(ctx: Any, v: Any) -> Any:
        ctx.mark_dirty(v)
        return v.mul_(2), v * 3

    a = leaf(lib, 2, 2) * 1
    return attempt(lambda: function(lib, forward, lambda ctx, g, h: g).apply(a[0]))


@cases
def dirty_view_and_a_number(lib: Any) -> Any:
    def forward(ctx: Any, v: Any) -> Any:
        ctx.mark_dirty(v)
        return v.mul_(2), 3

    x = leaf(lib, 2, 2)
    a = x * 1
    v = a[0]

    def run() -> Any:
        function(lib, forward, lambda ctx, g, h: g * 2).apply(v)
        return [look(v), look(a), grads(lib, a.sum(), x)]

    return attempt(run)


@cases
def dirty_view_unrecorded_among_two(lib: Any) -> Any:
    """With nothing to record, two are allowed."""
    c = lib.ones(2, 2)
    v, b = c[0], lib.ones(2)
    function(lib, several_written, several_back).apply(v, b)
    return [look(c), look(v), look(b)]


@cases
def dirty_and_new(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x.mul_(2)
        return x, x * 5

    x = leaf(lib, 2)
    h = x * 1
    a, b = function(lib, forward, lambda ctx, g, k: g * 2 + k * 10).apply(h)
    return [a is h, look(a), look(b), grads(lib, (a * 3 + b).sum(), x)]


@cases
def dirty_and_same_input_twice(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x.mul_(2)
        return x, x

    x = leaf(lib, 2)
    h = x * 1

    def run() -> Any:
        a, b = function(lib, forward, lambda ctx, g, k: g * 2 + k * 10).apply(h)
        return [a is h, b is h, look(a), grads(lib, (a * 3 + b).sum(), x)]

    return attempt(run)


@cases
def dirty_same_tensor_given_twice(lib: Any) -> Any:
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    x = leaf(lib, 2)
    h = x * 1
    y = function(lib, forward, lambda ctx, g: (g * 2, g * 3)).apply(h, h)
    return [y is h, look(y), grads(lib, y.sum(), x)]


@cases
def dirty_and_fixed(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x.mul_(2)

    x = leaf(lib, 2)
    h = x * 1

    def run() -> Any:
        y = function(lib, forward, twice).apply(h)
        return [y is h, look(y)]

    return attempt(run)


@cases
def dirty_fixed_leaf(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x.mul_(2)

    x = leaf(lib, 2)
    return [attempt(lambda: look(function(lib, forward, twice).apply(x))), look(x)]


@cases
def dirty_saved_output(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        y = x.exp_()
        ctx.save_for_backward(y)
        return y

    x = leaf(lib, 2)
    h = x * 0
    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(h)
    (saved,) = y.grad_fn.saved_tensors
    same = saved.grad_fn is y.grad_fn
    return [look(y), same, grads(lib, (y * y).sum(), x)]


@cases
def dirty_integers(lib: Any) -> Any:
    c = lib.tensor([1, 2])
    x = leaf(lib, 2)
    F = function(lib, lambda ctx, c, x: written(ctx, c), lambda ctx, g: (None, g))
    y = F.apply(c, x)
    return [y is c, look(y)]


@cases
def dirty_inference_tensor(lib: Any) -> Any:
    with lib.inference_mode():
        c = lib.ones(2)
    F = function(lib, lambda ctx, c, x: written(ctx, c), lambda ctx, g: (None, g))
    return attempt(lambda: F.apply(c, leaf(lib, 2)))


@cases
def dirty_with_hooks(lib: Any) -> Any:
    seen: list[Any] = []
    x = leaf(lib, 2)
    h = x * 1
    h.register_hook(lambda g: seen.append(["before", g.tolist()]))
    h.retain_grad()
    y = function(lib, written, lambda ctx, g: g * 2).apply(h)
    y.register_hook(lambda g: seen.append(["after", g.tolist()]))
    (y * 3).sum().backward()
    return [seen, h.grad.tolist(), x.grad.tolist()]


@cases
def dirty_view_then_written(lib: Any) -> Any:
    h = leaf(lib, 2, 2) * 1
    v = function(lib, written, lambda ctx, g: g * 2).apply(h[0])
    return attempt(lambda: look(v.mul_(2)))


@cases
def dirty_view_then_base_written(lib: Any) -> Any:
    x = leaf(lib, 2, 2)
    h = x * 1
    v = function(lib, written, lambda ctx, g: g * 10).apply(h[0])
    h.mul_(3)
    return [look(h), attempt(lambda: look(v)), grads(lib, h.sum(), x)]


@cases
def dirty_view_then_sibling_written(lib: Any) -> Any:
    x = leaf(lib, 2, 2)
    h = x * 1
    w = h[:, 0]
    v = function(lib, written, lambda ctx, g: g * 10).apply(h[0])
    w.mul_(3)
    return [look(w), attempt(lambda: look(v)), grads(lib, h.sum(), x)]


@cases
def dirty_view_unrecorded_then_written(lib: Any) -> Any:
    c, x = lib.ones(2, 2), leaf(lib, 2)
    v = c[0]
    function(lib, written, twice).apply(v)
    return [attempt(lambda: look(v.mul_(x))), look(c), grads(lib, c.sum(), x)]


@cases
def dirty_view_used_before(lib: Any) -> Any:
    x = leaf(lib, 2, 2)
    h = x * 1
    v = h[0]
    before = v * 5
    function(lib, written, lambda ctx, g: g * 10).apply(v)
    return grads(lib, before.sum() + v.sum() + h.sum(), x)


@cases
def dirty_view_twice(lib: Any) -> Any:
    x = leaf(lib, 2, 2)
    h = x * 1
    F = function(lib, written, lambda ctx, g: g * 10)
    F.apply(h[0])
    F.apply(h[:, 0])
    return [look(h), grads(lib, h.sum(), x)]


@cases
def dirty_view_after_its_base_was_written(lib: Any) -> Any:
    x, c = leaf(lib, 2, 2), lib.ones(2, 2)
    v = c[0]
    c.mul_(x)
    y = function(lib, written, lambda ctx, g: g * 10).apply(v)
    return [look(y), look(c), grads(lib, c.sum(), x)]


@cases
def dirty_view_double_backward(lib: Any) -> Any:
    x = leaf(lib, 2, 2)
    h = x * x
    function(lib, written, lambda ctx, g: g * 10).apply(h[0])
    (g,) = lib.autograd.grad((h * h).sum(), x, create_graph=True)
    return [g.tolist(), grads(lib, g.sum(), x)]


@cases
def dirty_no_input_warns(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.mark_dirty(y)
        return y

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(lib, forward, twice).apply(leaf(lib, 2))
    return [[w.category.__name__, str(w.message).split(" (Triggered")[0]] for w in caught]


results = cases.results
