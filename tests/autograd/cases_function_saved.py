"""What custom functions save, and when it is gone."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from tests.autograd.function_tools import function, twice
from tests.harness import Cases, attempt, grads, leaf, look

cases = Cases()


# --- saving ---------------------------------------------------------------------------------------
@cases
def saved_twice(lib: Any) -> Any:
    """The second call replaces the first; reading twice gives equal tensors."""

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_backward(x * 3, x)
        return x * 2

    seen = []

    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors, ctx.saved_tensors
        seen.append([len(a), a[0] is b[0], a[1] is b[1], a[0].tolist(), type(a).__name__])
        return g

    x = leaf(lib, 2)
    function(lib, forward, backward).apply(x).sum().backward()
    return seen


@cases
def saved_inside_forward(lib: Any) -> Any:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        seen.append(attempt(lambda: len(ctx.saved_tensors)))
        ctx.save_for_backward(x)
        seen.append(attempt(lambda: len(ctx.saved_tensors)))
        return x * 2

    function(lib, forward, twice).apply(leaf(lib, 2))
    return seen


@cases
def saved_number(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, 3)
        return x * 2

    return attempt(lambda: function(lib, forward, twice).apply(leaf(lib, 2)))


@cases
def saved_number_unrecorded(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x, 3)
        return x * 2

    return attempt(lambda: look(function(lib, forward, twice).apply(lib.ones(2))))


@cases
def saved_list(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward([x])
        return x * 2

    return attempt(lambda: function(lib, forward, twice).apply(leaf(lib, 2)))


@cases
def saved_none(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(None, x, None)
        return x * 2

    y = function(lib, forward, twice).apply(leaf(lib, 2))
    return [s if s is None else s.tolist() for s in y.grad_fn.saved_tensors]


@cases
def saved_nothing(lib: Any) -> Any:
    y = function(lib, twice, lambda ctx, g: g * 2).apply(leaf(lib, 2))
    node = y.grad_fn
    y.sum().backward()
    return [attempt(lambda: node.saved_tensors), attempt(lambda: y.sum().backward())]


@cases
def saved_after_free(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.extra = 3
        return x * 2

    y = function(lib, forward, lambda ctx, g: g * 2).apply(leaf(lib, 2))
    node = y.grad_fn
    s = y.sum()
    s.backward()
    return [
        attempt(lambda: node.saved_tensors), attempt(lambda: node._raw_saved_tensors), node.extra,
        attempt(lambda: s.backward()), node.needs_input_grad, node.to_save,
    ]  # fmt: skip


@cases
def saved_with_retain_graph(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(lib, 2)
    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return [x.grad.tolist(), attempt(lambda: y.backward())]


@cases
def saved_input_and_output(lib: Any) -> Any:
    def forward(ctx: Any, x: Any, c: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(x, y, c, x * 2)
        return y

    x = leaf(lib, 2)
    c = lib.ones(2)
    h = x * 0
    y = function(lib, forward, lambda ctx, g, h: g).apply(h, c)
    a, b, d, e = y.grad_fn.saved_tensors
    return [a is h, a.grad_fn is h.grad_fn, b is y, b.grad_fn is y.grad_fn, d is c,
            look(a), look(b), look(d), look(e)]  # fmt: skip


@cases
def saved_input_returned(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x

    x = leaf(lib, 2)
    h = x * 1
    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(h)
    (saved,) = y.grad_fn.saved_tensors
    return [saved.grad_fn is h.grad_fn, look(saved), grads(lib, y.sum(), x)]


@cases
def saved_view(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(lib, 2, 2)
    v = (x * 1)[0]
    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(v)
    (saved,) = y.grad_fn.saved_tensors
    return [look(saved), saved is v, grads(lib, y.sum(), x)]


@cases
def saved_output_of_several(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        a, b = x.exp(), x * 3
        ctx.save_for_backward(b, a)
        return a, b

    x = leaf(lib, 2)
    y = function(lib, forward, lambda ctx, g, h: g).apply(x)[0]
    return [look(t) for t in y.grad_fn.saved_tensors]


@cases
def saved_attributes_stay(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    h = leaf(lib, 2) * 1
    h.mine = 3
    return function(lib, forward, twice).apply(h).grad_fn.saved_tensors[0].mine


@cases
def saved_leaf(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(lib, 2)
    y = function(lib, forward, lambda ctx, g, h: g).apply(x)
    return [y.grad_fn.saved_tensors[0] is x, look(y.grad_fn.saved_tensors[0])]


@cases
def saved_and_overwritten(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(lib, 2)
    h = x * 1
    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(h)
    h.mul_(2)
    return [attempt(lambda: y.sum().backward()), attempt(lambda: y.grad_fn.saved_tensors)]


@cases
def saved_and_overwritten_but_not_read(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(lib, 2)
    h = x * 1
    y = function(lib, forward, lambda ctx, g: g * 2).apply(h)
    h.mul_(2)
    return grads(lib, y.sum(), x)


@cases
def saved_output_overwritten(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    x = leaf(lib, 2)
    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    y.mul_(2)
    return attempt(lambda: y.sum().backward())


@cases
def saved_inference_tensor(lib: Any) -> Any:
    with lib.inference_mode():
        c = lib.ones(2)

    def forward(ctx: Any, x: Any, c: Any) -> Any:
        ctx.save_for_backward(x, c)
        return x * 2

    return attempt(lambda: function(lib, forward, twice).apply(leaf(lib, 2), c))


@cases
def saved_as_an_attribute(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.x, ctx.n = x, 3
        return x * 2

    x = leaf(lib, 2)
    y = function(lib, forward, lambda ctx, g: g * ctx.x * ctx.n).apply(x)
    found = [y.grad_fn.x is x, y.grad_fn.n, grads(lib, y.sum(), x)]
    return [*found, attempt(lambda: y.grad_fn.other)]


@cases
def to_save_is_no_tuple(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.to_save = [x]
        return x * 2

    return attempt(lambda: function(lib, forward, twice).apply(leaf(lib, 2)))


@cases
def to_save_is_a_tuple(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.to_save = (x,)
        return x * 2

    return len(function(lib, forward, twice).apply(leaf(lib, 2)).grad_fn.saved_tensors)


@cases
def saved_outside_forward(lib: Any) -> Any:
    y = function(lib, twice, lambda ctx, g: g * 2).apply(leaf(lib, 2))
    y.grad_fn.save_for_backward(lib.ones(2))
    return attempt(lambda: len(y.grad_fn.saved_tensors))


@cases
def save_for_forward_number(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_forward(x, 3)
        return x * 2

    return attempt(lambda: function(lib, forward, twice).apply(leaf(lib, 2)))


@cases
def save_for_forward_none(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_forward(x, None)
        return x * 2

    y = function(lib, forward, twice).apply(leaf(lib, 2))
    return [len(y.grad_fn.saved_tensors), y.grad_fn.saved_for_forward]


@cases
def saved_variables(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    node = function(lib, forward, twice).apply(leaf(lib, 2)).grad_fn
    return attempt(lambda: len(node.saved_variables))


@cases
def raw_saved_tensors(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.save_for_backward(x, y)
        return y

    y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(leaf(lib, 2))
    raw = y.grad_fn._raw_saved_tensors
    raw[0].register_hooks(lambda t: t * 1, lambda t: t * 10)
    y.sum().backward()
    return len(raw)


@cases
def clear_saved_tensors_on_access(lib: Any) -> Any:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        y = x * 2
        ctx.save_for_backward(x, y)
        return y

    def backward(ctx: Any, g: Any) -> Any:
        a, _ = ctx.saved_tensors
        seen.append(attempt(lambda: len(ctx.saved_tensors)))
        return g * a

    x = leaf(lib, 2)
    F = function(lib, forward, backward, clear_saved_tensors_on_access=True)
    y = F.apply(x).sum()
    y.backward(retain_graph=True)
    return [seen, x.grad.tolist(), attempt(lambda: y.backward())]


@cases
def maybe_clear_saved_tensors(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    node = function(lib, forward, twice).apply(leaf(lib, 2)).grad_fn
    node.maybe_clear_saved_tensors()
    return attempt(lambda: len(node.saved_tensors))


@cases
def boxed_gradients(lib: Any) -> Any:
    seen = []

    def backward(ctx: Any, gs: Any) -> Any:
        seen.append([type(gs).__name__, len(gs)])
        a = gs.pop()
        return a * 2

    x = leaf(lib, 2)
    F = function(lib, lambda ctx, x: (x * 2, x * 3), backward, boxed_grads_call=True)
    a, b = F.apply(x)
    found = grads(lib, (a * 5 + b * 7).sum(), x)
    node = F.apply(x)[0].grad_fn
    return [found, seen, node.apply(lib.ones(2), lib.ones(2)).tolist()]


@cases
def memory_is_freed(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y

    x = leaf(lib, 2)
    gc.collect()
    gc.disable()
    try:
        y = function(lib, forward, lambda ctx, g: g * ctx.saved_tensors[1]).apply(x)
        node = weakref.ref(y.grad_fn)
        y.sum().backward()
        del y
        return node() is None
    finally:
        gc.enable()


results = cases.results
