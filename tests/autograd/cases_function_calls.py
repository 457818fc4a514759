"""How custom functions are named, made and called."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

from tests.autograd.function_tools import function, twice
from tests.harness import Cases, attempt, grads, leaf, look

cases = Cases()


# --- classes and names ----------------------------------------------------------------------------
@cases
def names(lib: Any) -> Any:
    MyFn = function(lib, twice, twice, name="MyFn")
    x = leaf(lib, 2)
    y = MyFn.apply(x)
    node = y.grad_fn
    return [
        type(node).__name__, node.name(), type(node).__module__, type(node).__qualname__,
        type(node) is MyFn._backward_cls, type(node)._forward_cls is MyFn, MyFn.__name__,
        repr(node).split(" at ")[0], repr(y), isinstance(node, lib.autograd.graph.Node),
        isinstance(node, lib.autograd.function.FunctionCtx),
        isinstance(node, lib.autograd.function.BackwardCFunction),
        type(MyFn).__name__, [type(n).__name__ for n, _ in node.next_functions],
    ]  # fmt: skip


@cases
def class_attributes(lib: Any) -> Any:
    F = lib.autograd.Function
    return [F.generate_vmap_rule, F.clear_saved_tensors_on_access, F.boxed_grads_call,
            F.vjp is F.backward, isinstance(F, lib.autograd.function.FunctionMeta)]  # fmt: skip


@cases
def exports(lib: Any) -> Any:
    module = lib.autograd.function
    return [sorted(module.__all__), module.Function.__mro__[-1].__name__,
            [c.__name__ for c in (module.InplaceFunction, module.NestedIOFunction)],
            issubclass(module.InplaceFunction, module.Function)]  # fmt: skip


@cases
def node_attributes(lib: Any) -> Any:
    node = function(lib, twice, twice).apply(leaf(lib, 2)).grad_fn
    names = [
        "apply", "apply_boxed", "apply_jvp", "dirty_tensors", "mark_dirty",
        "mark_non_differentiable", "metadata", "name", "needs_input_grad",
        "next_functions", "non_differentiable", "register_hook", "register_prehook",
        "requires_grad", "save_for_backward", "save_for_forward", "saved_for_forward",
        "saved_tensors", "saved_variables", "set_materialize_grads", "to_save",
        "maybe_clear_saved_tensors", "_raw_saved_tensors", "_sequence_nr", "_input_metadata",
        "_forward_cls", "_autograd_function_id", "_get_user_fn",
        "_register_hook_dict",
    ]  # fmt: skip
    return [n for n in names if not hasattr(node, n)]


@cases
def values_of_attributes(lib: Any) -> Any:
    x = leaf(lib, 2)
    node = function(lib, twice, twice).apply(x, 3).grad_fn
    return [
        node.dirty_tensors, node.non_differentiable, node.needs_input_grad, node.to_save,
        node.saved_for_forward, node.requires_grad,
        list(node.saved_tensors), node.metadata, len(node._raw_saved_tensors),
        len(node.next_functions),
    ]  # fmt: skip


@cases
def input_metadata(lib: Any) -> Any:
    F = function(lib, lambda ctx, x: (x * 2, x.double().sum()), lambda ctx, a, b: a)
    metas = F.apply(leaf(lib, 2, 3))[0].grad_fn._input_metadata
    return [[list(m.shape), str(m.dtype)] for m in metas]


@cases
def ids_differ(lib: Any) -> Any:
    a, b = function(lib, twice, twice), function(lib, twice, twice)
    return a._backward_cls._autograd_function_id < b._backward_cls._autograd_function_id


@cases
def subclass_of_a_function(lib: Any) -> Any:
    A = function(lib, twice, lambda ctx, g: g * 2, name="A")
    B = function(lib, None, lambda ctx, g: g * 20, name="B", base=A)
    x = leaf(lib, 2)
    y = B.apply(x)
    return [look(y), grads(lib, y.sum(), x)]


@cases
def vjp_in_place_of_backward(lib: Any) -> Any:
    x = leaf(lib, 2)
    return grads(lib, function(lib, twice, vjp=lambda ctx, g: g * 3).apply(x).sum(), x)


@cases
def vjp_and_backward(lib: Any) -> Any:
    return function(lib, twice, twice, vjp=twice).apply(leaf(lib, 2)).sum().backward()


@cases
def no_forward(lib: Any) -> Any:
    return function(lib).apply(leaf(lib, 2))


@cases
def no_backward(lib: Any) -> Any:
    y = function(lib, twice).apply(leaf(lib, 2))
    return [look(y), attempt(lambda: y.sum().backward())]


@cases
def no_jvp(lib: Any) -> Any:
    return attempt(lambda: lib.autograd.Function.jvp(None, 1))


@cases
def no_vmap(lib: Any) -> Any:
    return attempt(lambda: lib.autograd.Function.vmap(None, (), 1))


@cases
def no_setup_context(lib: Any) -> Any:
    return attempt(lambda: lib.autograd.Function.setup_context(None, (), 1))


# --- instances, pickling --------------------------------------------------------------------------
@cases
def instances(lib: Any) -> Any:
    F = type("Old", (lib.autograd.Function,), {"forward": lambda self, x: x})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f = F()
    return [[type(w.message).__name__ for w in caught], attempt(lambda: f(leaf(lib, 2)))]


@cases
def instance_apply(lib: Any) -> Any:
    f = function(lib, twice, twice)()
    return look(f.apply(leaf(lib, 2)))


@cases
def non_static_forward(lib: Any) -> Any:
    F = type("Old", (lib.autograd.Function,), {"forward": lambda self, x: x * 2})
    return look(F.apply(leaf(lib, 2)))


@cases
def inplace_function(lib: Any) -> Any:
    base = lib.autograd.function.InplaceFunction
    f = function(lib, twice, twice, base=base)(inplace=True)
    return [f.inplace, look(f.apply(leaf(lib, 2))), base(False).inplace]


@cases
def nested_io_function(lib: Any) -> Any:
    Nested = lib.autograd.function.NestedIOFunction
    f = Nested()
    return [
        attempt(lambda: f.forward_extended(1)),
        attempt(lambda: f.backward_extended(1)),
    ]


@cases
def pickled_node(lib: Any) -> Any:
    node = function(lib, twice, twice, name="Doubled").apply(leaf(lib, 2)).grad_fn
    ways = (pickle.dumps, copy.copy, copy.deepcopy)
    return [attempt(lambda way=way: way(node)) for way in ways]  # type: ignore[misc]


@cases
def pickled_context(lib: Any) -> Any:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        seen.append(attempt(lambda: pickle.dumps(ctx)))
        return x * 2

    function(lib, forward, twice).apply(leaf(lib, 2))
    function(lib, forward, twice).apply(lib.ones(2))
    return seen


@cases
def copied_output(lib: Any) -> Any:
    y = function(lib, twice, twice).apply(leaf(lib, 2))
    return attempt(lambda: copy.deepcopy(y))


# --- arguments ------------------------------------------------------------------------------------
@cases
def needs_input_grad(lib: Any) -> Any:
    seen = []

    def forward(ctx: Any, *args: Any) -> Any:
        seen.append(list(ctx.needs_input_grad))
        return args[0] * 2

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(list(ctx.needs_input_grad))
        return (g, *[None] * (len(ctx.needs_input_grad) - 1))

    F = function(lib, forward, backward)
    x = leaf(lib, 2)
    F.apply(x, x.detach(), 3, None, "text", [x], lib.tensor(1), x * 1).sum().backward()
    F.apply(lib.ones(2), 3)
    with lib.no_grad():
        F.apply(x)
    y = F.apply(x, x)
    y.sum().backward(inputs=[x])
    return seen


@cases
def needs_input_grad_within_grad(lib: Any) -> Any:
    seen = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(list(ctx.needs_input_grad))
        return g, g

    a, b = leaf(lib, 2), leaf(lib, 2)
    y = function(lib, lambda ctx, a, b: a * b, backward).apply(a, b)
    lib.autograd.grad(y.sum(), a)
    return seen


@cases
def needs_input_grad_is_assigned(lib: Any) -> Any:
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.needs_input_grad = (False,)
        return x * 2

    def backward(ctx: Any, g: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return g

    x = leaf(lib, 2)
    y = function(lib, forward, backward).apply(x)
    return [look(y), grads(lib, y.sum(), x), seen]


@cases
def keyword_arguments(lib: Any) -> Any:
    F = function(lib, lambda ctx, x, scale=3: x * scale, lambda ctx, g: g * 3)
    return attempt(lambda: F.apply(leaf(lib, 2), scale=4))


@cases
def keyword_arguments_with_setup(lib: Any) -> Any:
    seen = []

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        seen.append([type(i).__name__ for i in inputs])
        ctx.scale = inputs[1]

    F = function(lib, lambda x, scale=3: x * scale, lambda ctx, g: (g * ctx.scale, None),
                 setup_context=setup_context)  # fmt: skip
    x = leaf(lib, 2)
    found = [grads(lib, y.sum(), x) for y in (F.apply(x), F.apply(x, 4), F.apply(x, scale=5))]
    return [found, seen, attempt(lambda: F.apply(x, other=2)), attempt(lambda: F.apply())]


@cases
def keyword_only_with_setup(lib: Any) -> Any:
    F = function(lib, lambda x, *, scale=3: x * scale, lambda ctx, g: g,
                 setup_context=lambda ctx, inputs, output: None)  # fmt: skip
    return attempt(lambda: look(F.apply(leaf(lib, 2), scale=4)))


@cases
def no_arguments(lib: Any) -> Any:
    y = function(lib, lambda ctx: lib.ones(2), lambda ctx, g: None).apply()
    return look(y)


@cases
def tensors_in_lists_are_not_seen(lib: Any) -> Any:
    F = function(lib, lambda ctx, xs: xs[0] * 2, lambda ctx, g: None)
    return look(F.apply([leaf(lib, 2)]))


@cases
def arguments_inside_forward(lib: Any) -> Any:
    """The same tensors, and not recorded."""
    seen = []
    x = leaf(lib, 2)

    def forward(ctx: Any, a: Any) -> Any:
        seen.append([a is x, a.requires_grad, lib.is_grad_enabled(), (a * 2).requires_grad])
        return a * 2

    function(lib, forward, twice).apply(x)
    return seen


@cases
def setup_context_sees(lib: Any) -> Any:
    seen = []
    x = leaf(lib, 2)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        seen.extend([type(inputs).__name__, inputs[0] is x, output.requires_grad, output.is_leaf,
                     lib.is_grad_enabled(), len(inputs)])  # fmt: skip
        ctx.save_for_backward(*inputs, output)

    F = function(lib, lambda x: x.exp(), lambda ctx, g: g * ctx.saved_tensors[1],
                 setup_context=setup_context)  # fmt: skip
    y = F.apply(x)
    return [seen, y.grad_fn.saved_tensors[1].grad_fn is y.grad_fn]


@cases
def setup_context_returns_something(lib: Any) -> Any:
    F = function(lib, lambda x: x * 2, twice, setup_context=lambda ctx, i, o: 3)
    return look(F.apply(leaf(lib, 2)))


@cases
def setup_context_of_several(lib: Any) -> Any:
    seen = []
    F = function(lib, lambda x: (x * 2, x * 3), lambda ctx, a, b: a * 2 + b * 3,
                 setup_context=lambda ctx, i, o: seen.append(type(o).__name__))  # fmt: skip
    x = leaf(lib, 2)
    a, b = F.apply(x)
    return [seen, look(a), look(b), grads(lib, (a + b).sum(), x)]


@cases
def setup_context_saves_an_input_returned(lib: Any) -> Any:
    F = function(lib, lambda x: x, lambda ctx, g: g,
                 setup_context=lambda ctx, i, o: ctx.save_for_backward(*i))  # fmt: skip
    with lib.no_grad():
        unrecorded = attempt(lambda: look(F.apply(leaf(lib, 2))))
    return [attempt(lambda: F.apply(leaf(lib, 2))), attempt(lambda: look(F.apply(lib.ones(2)))),
            unrecorded]  # fmt: skip


@cases
def setup_context_saves_an_input_returned_for_jvp(lib: Any) -> Any:
    F = function(lib, lambda x: x, lambda ctx, g: g,
                 setup_context=lambda ctx, i, o: ctx.save_for_forward(o))  # fmt: skip
    return attempt(lambda: F.apply(leaf(lib, 2)))


@cases
def setup_context_and_dirty(lib: Any) -> Any:
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_dirty(*inputs)
        ctx.save_for_backward(output)

    F = function(lib, lambda x: x.mul_(2), lambda ctx, g: g * ctx.saved_tensors[0],
                 setup_context=setup_context)  # fmt: skip
    x = leaf(lib, 2)
    y = F.apply(x * 1)
    return [look(y), grads(lib, y.sum(), x)]


@cases
def setup_context_fails(lib: Any) -> Any:
    F = function(lib, lambda x: x * 2, twice, setup_context=lambda ctx, i, o: 1 / 0)
    return F.apply(leaf(lib, 2))


@cases
def forward_fails(lib: Any) -> Any:
    found = attempt(lambda: function(lib, lambda ctx, x: 1 / 0, twice).apply(leaf(lib, 2)))
    return [found, lib.is_grad_enabled()]


@cases
def backward_fails(lib: Any) -> Any:
    x = leaf(lib, 2)
    y = function(lib, twice, lambda ctx, g: 1 / 0).apply(x)
    return [attempt(lambda: y.sum().backward()), lib.is_grad_enabled(), x.grad]


# --- modes ----------------------------------------------------------------------------------------
@cases
def grad_mode_in_backward(lib: Any) -> Any:
    seen = []

    def backward(ctx: Any, g: Any) -> Any:
        seen.append([lib.is_grad_enabled(), g.requires_grad])
        return g * 2

    x = leaf(lib, 2)
    F = function(lib, twice, backward)
    F.apply(x).sum().backward()
    lib.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    y = F.apply(x).sum()
    with lib.no_grad():
        y.backward()
    y = F.apply(x)
    lib.autograd.grad(y, x, leaf(lib, 2), create_graph=True)
    return seen


@cases
def enable_grad_in_forward(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        with lib.enable_grad():
            inner = x.detach().requires_grad_()
            y = inner * inner
        ctx.inner, ctx.y = inner, y
        return y.detach()

    def backward(ctx: Any, g: Any) -> Any:
        return lib.autograd.grad(ctx.y, ctx.inner, g)[0]

    x = leaf(lib, 2)
    y = function(lib, forward, backward).apply(x)
    return [look(y), grads(lib, y.sum(), x)]


@cases
def under_inference_mode(lib: Any) -> Any:
    x = leaf(lib, 2)
    with lib.inference_mode():
        y = function(lib, twice, twice).apply(x)
        z = function(lib, lambda ctx, x: x, twice).apply(x)
        return [y.is_inference(), y.requires_grad, z.is_inference(), z is x]


@cases
def under_no_grad(lib: Any) -> Any:
    x = leaf(lib, 2)
    seen = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        seen.append([lib.is_grad_enabled(), list(ctx.needs_input_grad)])
        return x * 2

    with lib.no_grad():
        y = function(lib, forward, twice).apply(x)
    return [look(y), seen]


@cases
def grad_mode_switched_in_forward(lib: Any) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        lib.set_grad_enabled(True)
        return x * 2

    y = function(lib, forward, twice).apply(leaf(lib, 2))
    return [look(y), lib.is_grad_enabled()]


results = cases.results
