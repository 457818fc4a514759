"""Derivatives of functions as values: `vjp`, `jvp`, `jacobian`, `hessian`, `vhp`, `hvp`.

Each calls `func` once on its own copies of the inputs, so that a tensor `func` also captures from
outside is not mistaken for an argument. Results leave without history unless `create_graph`.

Note [Rows]
    A Jacobian is one backward pass an output element, all from one root to the same inputs: which
    nodes lead there is worked out for the first pass, and each pass writes its row straight into
    the result. PyTorch indexes the output instead, and asks `autograd.grad` anew.

Note [Twice backward is forward]
    g -> J'g is linear in g, so its own derivative is J, whatever g is: `jvp` and `hvp` take the
    gradient with respect to g of a backward pass that was recorded for a g of zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.arrays import vocabulary
from rushlight.autograd import forward_ad
from rushlight.autograd.api import grad, one_for, root_edge, target_of
from rushlight.autograd.grad_mode import enable_grad
from rushlight.core.engine import engine
from rushlight.core.graph import TensorBase, wrap
from rushlight.errors import readable
from rushlight.ops.described import describe_all as _describe_all
from rushlight.ops.registry import functions

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
__dir__ = __all__.copy

OUTPUTS = "outputs of the user-provided function"
Function = Callable[..., Any]


# --- tuples in, tuples out ------------------------------------------------------------------------
def checked_tuple(x: Any, what: str, name: str) -> tuple[bool, tuple[Any, ...]]:
    """Whether `x` is a tuple, and `x` as a tuple of tensors, which it must be."""
    several = isinstance(x, tuple)
    found: tuple[Any, ...] = x if several else (x,)
    for i, t in enumerate(found):
        if not isinstance(t, TensorBase):
            which = f"value at index {i}" if several else f"given {what}"
            raise TypeError(
                f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the "
                f"{which} has type {type(t)}."
            )
    return several, found


def unwrap_rows(x: Any, outer: bool, inner: bool) -> Any:
    """A tuple of tuples without the levels that the user did not write."""
    found = tuple(x) if inner else tuple(row[0] for row in x)
    return found if outer else found[0]


def alias_inputs(inputs: tuple[Any, ...], create_graph: bool, ask: bool) -> tuple[Any, ...]:
    """New tensors on the same memory: connected to the user's if `create_graph`, else leaves."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(ask)
        for x in inputs
    )


def detach_results(xs: tuple[Any, ...], create_graph: bool) -> tuple[Any, ...]:
    """Results as the user gets them."""
    return xs if create_graph else tuple(x.detach() for x in xs)


def check_direction(v: tuple[Any, ...], like: tuple[Any, ...], several: bool) -> None:
    """`v` must have the shapes of what it multiplies."""
    if len(v) != len(like):
        if several:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (mine, other) in enumerate(zip(v, like)):
        if mine.shape != other.shape:
            which = f"Entry {i} in " if several else ""
            raise RuntimeError(
                f"{which}v has invalid size: should be {other.shape} but got {mine.shape}."
            )


def checked_direction(
    v: Any, name: str, inputs: tuple[Any, ...], several: bool, create_graph: bool
) -> tuple[Any, ...] | None:
    """The `v` of `jvp`, `vhp` and `hvp`, checked; None where it may be left out, and was."""
    if v is None:
        if len(inputs) != 1 or inputs[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the input to the user-provided function is a "
                "single Tensor with a single element."
            )
        return None
    _, found = checked_tuple(v, "v", name)
    found = alias_inputs(found, create_graph, False)
    check_direction(found, inputs, several)
    return found


# --- what strict refuses --------------------------------------------------------------------------
def check_outputs_require_grad(outputs: tuple[Any, ...]) -> None:
    for i, y in enumerate(outputs):
        if not y.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs "
                "must be computed in a differentiable manner from the input when running in "
                "strict mode."
            )


def check_connected(grads: tuple[Any, ...], text: str) -> None:
    """All gradients must be there and depend on the inputs; `text` has a place for the number."""
    for i, g in enumerate(grads):
        if g is None:
            raise RuntimeError(
                f"The output of the user-provided function is independent of input {i}. This is "
                "not allowed in strict mode."
            )
        if not g.requires_grad:
            raise RuntimeError(text.format(i))


FIXED_GRADIENT = (
    "The gradient with respect to input {} is independent of the inputs of the user-provided "
    "function. This is not allowed in strict mode."
)
FIXED_JACOBIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {} is independent of the input. This is not allowed in strict mode. You "
    "should ensure that your function is twice differentiable and that the jacobian depends on the "
    "inputs (this would be violated by a linear function for example)."
)
# What is missing where a gradient is None, by what was being computed
MISSING = {
    "vjp": "The output of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode.",
    "jvp": "The gradient with respect to the input is independent of entry {} in the grad_outputs "
    "when using the double backward trick to compute forward mode gradients. This is not allowed "
    "in strict mode.",
    "vhp": "The jacobian of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode.",
    "hvp": "The hessian of the user-provided function is independent of entry {} in the "
    "grad_jacobian. This is not allowed in strict mode as it prevents from using the double "
    "backward trick to replace forward mode AD.",
}


def fill_zeros(
    grads: tuple[Any, ...], like: tuple[Any, ...], strict: bool, create_graph: bool, name: str
) -> tuple[Any, ...]:
    """Zeros where there is no gradient; if `strict`, an error."""
    found: list[Any] = []
    for i, g in enumerate(grads):
        if g is None:
            if strict:
                raise RuntimeError(MISSING[name].format(i))
            g = functions["zeros_like"](like[i])
        elif strict and create_graph and not g.requires_grad:
            what = "jacobian" if name in ("vjp", "jvp") else "hessian"
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {i}. This is "
                "not allowed in strict mode when create_graph=True."
            )
        found.append(g)
    return tuple(found)


# --- gradients ------------------------------------------------------------------------------------
def gradients_or_none(
    outputs: tuple[Any, ...], inputs: tuple[Any, ...], starts: Any, create_graph: bool
) -> tuple[Any, ...]:
    """`autograd.grad` of those outputs that have a history; None where nothing arrives."""
    if starts is None:
        starts = (None,) * len(outputs)
    asked = [(y, g) for y, g in zip(outputs, starts) if y is not None and y.requires_grad]
    if not asked:
        return (None,) * len(inputs)
    return grad(
        tuple(y for y, _ in asked), inputs, tuple(g for _, g in asked),
        create_graph=create_graph, allow_unused=True,
    )  # fmt: skip


def jacobian_rows(out: Any, inputs: tuple[Any, ...], create_graph: bool) -> list[list[Any]]:
    """For each element of `out`, the gradients of all inputs: None, raw arrays, or tensors if
    `create_graph` (or if they have tangents). See Note [Rows]."""
    n = out.numel()
    if not out.requires_grad:
        return [[None] * len(inputs)] * n
    if out.dtype.is_complex:
        one_for(out.reshape(-1)[0])  # refuses: a complex output has no gradient of its own
    x = out._array
    shape, dtype = x.shape, x.dtype
    edge, nr = root_edge(out, 0)
    targets = [target_of(t) for t in inputs]
    found: list[list[Any]] = []
    like: Any = None
    for j in range(n):
        start = vocabulary.full(x, (n,), 0, dtype)
        start[j] = 1
        start = start.reshape(shape)
        like = engine.backward(
            [edge], [nr], [wrap(start) if create_graph else start], True, create_graph, targets,
            False, like,
        )  # fmt: skip
        found.append([target.grad for target in targets])
        for target in targets:
            target.grad = None
    return found


def gather_rows(row: list[Any], t: Any, shape: tuple[int, ...]) -> Any:
    """The gradients of input `t`, one a row, as one tensor of shape `shape + t.shape`."""
    x = t._array
    if any(isinstance(g, TensorBase) for g in row):
        zero = functions["zeros_like"](t)
        made = functions["stack"]([zero if g is None else g for g in row])
        return made.view(shape + tuple(t.shape))
    whole = vocabulary.full(x, (len(row), *x.shape), 0, x.dtype)
    for j, g in enumerate(row):
        if g is not None:
            whole[j] = g
    return wrap(whole.reshape(shape + x.shape))


def by_rows(
    outputs: tuple[Any, ...], inputs: tuple[Any, ...], create_graph: bool, strict: bool
) -> tuple[tuple[Any, ...], ...]:
    """The Jacobian of each output with respect to each input."""
    found: list[tuple[Any, ...]] = []
    for i, out in enumerate(outputs):
        table = jacobian_rows(out, inputs, create_graph)
        if strict:
            check_rows(table, i, create_graph)
        shape = tuple(out.shape)
        matrices = tuple(gather_rows([r[k] for r in table], t, shape) for k, t in enumerate(inputs))
        found.append(detach_results(matrices, create_graph))
    return tuple(found)


def check_rows(table: list[list[Any]], i: int, create_graph: bool) -> None:
    """What `strict` says of the rows of output `i`."""
    for row in table:
        for k, g in enumerate(row):
            if g is None:
                raise RuntimeError(
                    f"Output {i} of the user-provided function is independent of input {k}. This "
                    "is not allowed in strict mode."
                )
            if create_graph and not g.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {i}. This "
                    "is not allowed in strict mode when create_graph=True."
                )


def at_once(
    outputs: tuple[Any, ...], inputs: tuple[Any, ...], create_graph: bool
) -> tuple[tuple[Any, ...], ...]:
    """`by_rows` in one batched call: the unit vectors of all outputs, one below the other."""
    sizes = [y.numel() for y in outputs]
    total = sum(sizes)
    asked = [y for y in outputs if y.requires_grad]
    starts = [u for y, u in zip(outputs, units_of(outputs), strict=True) if y.requires_grad]
    found: tuple[Any, ...] = (None,) * len(inputs)
    if asked and total:
        found = grad(
            tuple(asked), inputs, tuple(starts), create_graph=create_graph, allow_unused=True,
            is_grads_batched=True,
        )  # fmt: skip
    columns: list[Any] = []
    for t, g in zip(inputs, found):
        if g is None:
            g = functions["zeros_like"](t).expand((total, *t.shape))
        columns.append(
            [
                part.reshape((*y.shape, *t.shape))
                for y, part in zip(outputs, functions["split"](g, sizes, 0))
            ]
        )
    return tuple(
        detach_results(tuple(column[i] for column in columns), create_graph)
        for i in range(len(outputs))
    )


# --- public ---------------------------------------------------------------------------------------
@readable
def vjp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of `func`, and `v` times its Jacobian: one backward pass.

    `v` has the shape of the outputs; it may be left out if that is one number.

    >>> x = torch.tensor([1., 2.])
    >>> torch.autograd.functional.vjp(lambda x: x * x, x, torch.tensor([1., 10.]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        several_in, xs = checked_tuple(inputs, "inputs", "vjp")
        xs = alias_inputs(xs, create_graph, True)
        several_out, ys = checked_tuple(func(*xs), OUTPUTS, "vjp")
        if strict:
            check_outputs_require_grad(ys)
        start: Any = None
        if v is not None:
            _, start = checked_tuple(v, "v", "vjp")
            start = alias_inputs(start, create_graph, False)
            check_direction(start, ys, several_out)
        elif len(ys) != 1 or ys[0].numel() != 1:
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single "
                "Tensor with a single element."
            )
        found = fill_zeros(
            gradients_or_none(ys, xs, start, create_graph), xs, strict, create_graph, "vjp"
        )
        ys, found = detach_results(ys, create_graph), detach_results(found, create_graph)
    return (ys if several_out else ys[0]), (found if several_in else found[0])


@readable
def jvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of `func`, and its Jacobian times `v`: see Note [Twice backward is forward].

    `v` has the shape of the inputs; it may be left out if that is one number.

    >>> x = torch.tensor([1., 2.])
    >>> torch.autograd.functional.jvp(lambda x: x * x, x, torch.tensor([1., 10.]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        several_in, xs = checked_tuple(inputs, "inputs", "jvp")
        xs = alias_inputs(xs, create_graph, True)
        t = checked_direction(v, "jvp", xs, several_in, create_graph)
        several_out, ys = checked_tuple(func(*xs), OUTPUTS, "jvp")
        if strict:
            check_outputs_require_grad(ys)
        zeros = tuple(functions["zeros_like"](y, requires_grad=True) for y in ys)
        once = gradients_or_none(ys, xs, zeros, True)
        if strict:
            check_connected(once, FIXED_GRADIENT)
        found = fill_zeros(
            gradients_or_none(once, zeros, t, create_graph), ys, strict, create_graph, "jvp"
        )
        ys, found = detach_results(ys, create_graph), detach_results(found, create_graph)
    return (ys if several_out else ys[0]), (found if several_out else found[0])


@readable
def jacobian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The Jacobian of `func`: for each output and each input a tensor of shape output + input.

    One tensor in, one out gives one tensor; tuples give tuples, outputs outside, inputs inside.

    >>> torch.autograd.functional.jacobian(lambda x: x ** 2, torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        if create_graph:
            raise NotImplementedError(
                "torch.autograd.functional.jacobian: `create_graph=True` and "
                '`strategy="forward-mode"` are not supported together (yet). Please either set '
                '`create_graph=False` or `strategy="reverse-mode"`.'
            )
        return forward_jacobian(func, inputs, strict, vectorize)
    with enable_grad():
        several_in, xs = checked_tuple(inputs, "inputs", "jacobian")
        xs = alias_inputs(xs, create_graph, True)
        several_out, ys = checked_tuple(func(*xs), OUTPUTS, "jacobian")
        if strict:
            check_outputs_require_grad(ys)
        if vectorize:
            if strict:
                raise RuntimeError(
                    "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are "
                    "not supported together. Please either set `strict=False` or "
                    "`vectorize=False`."
                )
            found = at_once(ys, xs, create_graph)
        else:
            found = by_rows(ys, xs, create_graph, strict)
    return unwrap_rows(found, several_out, several_in)


def forward_jacobian(func: Function, inputs: Any, strict: bool, vectorize: bool) -> Any:
    """The Jacobian forward: one run of `func`, whose tangents are a batch of unit vectors."""
    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are '
            "not supported together (yet). Please either set `strict=False` or "
            '`strategy="reverse-mode"`.'
        )
    several_in, xs = checked_tuple(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is"
            "only implemented for `vectorize=True`."
        )
    sizes = [x.numel() for x in xs]
    out, slopes = slopes_along(func, xs, units_of(xs), sum(sizes))
    several_out, ys = checked_tuple(out, OUTPUTS, "jacobian")
    found: list[tuple[Any, ...]] = []
    for y, t in zip(ys, slopes, strict=True):
        parts = functions["split"](t, sizes, 0)
        found.append(
            tuple(
                functions["movedim"](part, 0, -1).reshape((*y.shape, *x.shape))
                for x, part in zip(xs, parts, strict=True)
            )
        )
    return unwrap_rows(tuple(found), several_out, several_in)


def slopes_along(
    func: Function, xs: tuple[Any, ...], directions: list[Any], size: int
) -> tuple[Any, list[Any]]:
    """What one run of `func` gives, and for each tensor of it the derivatives along a batch of
    `size` directions (a tensor an input, the batch first); zeros where it does not depend on
    them."""
    from rushlight.arrays.batched import Batched
    from rushlight.core.transforms.forward_ad import LevelBlock
    from rushlight.core.transforms.stack import Transform
    from rushlight.core.transforms.vmap import BatchLevel, unbatch

    batch = BatchLevel(size, "error", True)
    with Transform("vmap", batch), LevelBlock(True) as inner:
        duals = [
            forward_ad.dual_at(x, inner, wrap(Batched(t, batch)))
            for x, t in zip(xs, directions, strict=True)
        ]
        out = func(*duals)
        ys = out if isinstance(out, tuple) else (out,)
        slopes = [forward_ad.tangent_at(y, inner) for y in ys]
    zeros = functions["zeros_like"]
    return out, [
        unbatch(zeros(y.detach()) if t is None else t, batch)
        for y, t in zip(ys, slopes, strict=True)
    ]


def units_of(xs: tuple[Any, ...]) -> list[Any]:
    """The unit vectors of several tensors taken as one, split into batches of their shapes."""
    total = sum(x.numel() for x in xs)
    made: list[Any] = []
    first = 0
    for x in xs:
        size = x.numel()
        units = vocabulary.full(x._array, (total, size), 0, x._array.dtype)
        for j in range(size):
            units[first + j, j] = 1
        made.append(wrap(vocabulary.reshape(units, (total, *x._array.shape))))
        first += size
    return made


@readable
def hessian(
    func: Function, inputs: Any, create_graph: bool = False, strict: bool = False,
    vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode",
) -> Any:  # fmt: skip
    """The second derivatives of a function with one number as its result.

    One tensor in gives one tensor; a tuple gives a tuple of tuples.

    >>> torch.autograd.functional.hessian(lambda x: (x ** 3).sum(), torch.tensor([1., 2.]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    several, xs = checked_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def first(*inside: Any) -> tuple[Any, ...]:
        with enable_grad():
            if outer_jacobian_strategy == "forward-mode":
                for t in inside:
                    if not t.requires_grad:
                        t._requires_grad = True  # it is ours
            y = single_number(func(*inside), "hessian", strict)
            found = fill_zeros(
                gradients_or_none((y,), inside, None, True), inside, False, True, "vjp"
            )
            if strict:
                check_connected(found, FIXED_JACOBIAN)
            return found

    found = jacobian(first, xs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return unwrap_rows(found, several, several)


def single_number(out: Any, name: str, strict: bool) -> Any:
    """The result of a function that must give one number."""
    several, ys = checked_tuple(out, OUTPUTS, name)
    if strict:
        check_outputs_require_grad(ys)
    if several:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if ys[0].numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single element"
        )
    return ys[0]


def hessian_product(
    name: str, func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    """`vhp`, or `hvp` by way of a second pass backward: see Note [Twice backward is forward]."""
    with enable_grad():
        several, xs = checked_tuple(inputs, "inputs", name)
        xs = alias_inputs(xs, create_graph, True)
        t = checked_direction(v, name, xs, several, create_graph)
        y = single_number(func(*xs), name, strict)
        first, at = gradients_or_none((y,), xs, None, True), xs
        if strict:
            check_connected(first, FIXED_JACOBIAN)
        if name == "hvp":
            at = tuple(functions["zeros_like"](x, requires_grad=True) for x in xs)
            first = gradients_or_none(first, xs, at, True)
        found = fill_zeros(
            gradients_or_none(first, at, t, create_graph), xs, strict, create_graph, name
        )
        (y,), found = detach_results((y,), create_graph), detach_results(found, create_graph)
    return y, (found if several else found[0])


@readable
def vhp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output of `func`, one number, and `v` times its Hessian.

    >>> x = torch.tensor([1., 2.])
    >>> torch.autograd.functional.vhp(lambda x: (x ** 3).sum(), x, torch.tensor([1., 10.]))
    (tensor(9.), tensor([  6., 120.]))
    """
    return hessian_product("vhp", func, inputs, v, create_graph, strict)


@readable
def hvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The output of `func`, one number, and its Hessian times `v`.

    The Hessian is symmetric, so `vhp` gives the same numbers, and is quicker.

    >>> x = torch.tensor([1., 2.])
    >>> torch.autograd.functional.hvp(lambda x: (x ** 3).sum(), x, torch.tensor([1., 10.]))
    (tensor(9.), tensor([  6., 120.]))
    """
    return hessian_product("hvp", func, inputs, v, create_graph, strict)


_describe_all(globals(), __all__)


# --- by PyTorch's names ---------------------------------------------------------------------------
# Programs that write their own products of Jacobians import these from here.


def _as_tuple_nocheck(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else tuple(x) if isinstance(x, list) else (x,)


def _as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> Any:
    if arg_name is None and fn_name is None:
        return _as_tuple_nocheck(inp)
    return checked_tuple(inp, str(arg_name), str(fn_name))


def _tuple_postprocess(res: Any, to_unpack: bool | tuple[bool, bool]) -> Any:
    if isinstance(to_unpack, tuple):
        if not to_unpack[1]:
            res = tuple(row[0] for row in res)
        return res if to_unpack[0] else res[0]
    return res if to_unpack else res[0]


def _grad_preprocess(inputs: Any, create_graph: bool, need_graph: bool) -> tuple[Any, ...]:
    return alias_inputs(tuple(inputs), create_graph, need_graph)


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    if inputs and isinstance(inputs[0], TensorBase):
        return inputs if create_graph else tuple(x.detach() for x in inputs)
    return tuple(_grad_postprocess(x, create_graph) for x in inputs)


def _validate_v(v: Any, other: Any, is_other_tuple: bool) -> None:
    check_direction(tuple(v), tuple(other), is_other_tuple)


def _autograd_grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, create_graph: bool = False,
    retain_graph: bool | None = None, is_grads_batched: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """`grad` of the outputs that have a history; None for inputs if none has."""
    given = (None,) * len(outputs) if grad_outputs is None else grad_outputs
    pairs = [(y, g) for y, g in zip(outputs, given, strict=True) if y.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return grad(
        [y for y, _ in pairs], inputs, [g for _, g in pairs], allow_unused=True,
        create_graph=create_graph, retain_graph=retain_graph, is_grads_batched=is_grads_batched,
    )  # fmt: skip
