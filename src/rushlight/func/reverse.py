"""Derivatives backward: `grad`, `grad_and_value`, `vjp`, `linearize`, `jacrev`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.core import engine
from rushlight.core.engine import Target
from rushlight.core.graph import TensorBase, asks, wrap
from rushlight.core.levels import close_level, open_level
from rushlight.core.modes import grad_enabled
from rushlight.core.packed import saving_now
from rushlight.core.record import normal
from rushlight.func.tracking import Source, plain, reaches_outside, released, root_of, track
from rushlight.func.batching import vmap
from rushlight.ops.table import functions
from rushlight.utils._pytree import (
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
    treespec_pprint,
)

__all__ = ["chosen", "grad", "grad_and_value", "jacrev", "linearize", "replaced", "vjp"]

Argnums = int | tuple[int, ...]
Function = Callable[..., Any]


# --- arguments ------------------------------------------------------------------------------------
def chosen(args: tuple[Any, ...], argnums: Any) -> Any:
    """The arguments that derivatives are taken of: one, or a tuple."""
    if isinstance(argnums, int):
        return args[place(argnums, len(args))]
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not argnums:
        raise RuntimeError("argnums must be non-empty")
    if not all(isinstance(a, int) for a in argnums):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    places = [place(a, len(args)) for a in argnums]
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return tuple([args[a] for a in places])


def place(argnum: int, count: int) -> int:
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def replaced(args: tuple[Any, ...], argnums: Any, new: Any) -> tuple[Any, ...]:
    """The arguments with those of `argnums` exchanged."""
    out = list(args)
    if isinstance(argnums, int):
        out[argnums] = new
    else:
        for a, value in zip(argnums, new, strict=True):
            out[a] = value
    return tuple(out)


def check_hooks() -> None:
    """Saved-tensor hooks would see values of a level that is gone when they are called."""
    saving = saving_now()
    if saving is not None and saving.pack is not None:
        raise RuntimeError(
            "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please "
            "open an issue with your use case."
        )


def tracked(tree: Any, level: Any) -> tuple[list[Source], Any]:
    """The tensors of a tree as inputs of a level, and the tree of their leaves."""
    flat, spec = tree_flatten(tree)
    sources = [track(x, level) for x in flat]
    return sources, tree_unflatten([s.leaf for s in sources], spec)


def split_aux(found: Any, who: str) -> tuple[Any, Any]:
    """Output and auxiliary value of a function that gives both."""
    if not (isinstance(found, tuple) and len(found) == 2):
        raise RuntimeError(
            f"{who}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return found


def check_aux(aux: Any) -> None:
    for x in tree_leaves(aux):
        if not isinstance(x, TensorBase):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(x)}")


# --- the pass -------------------------------------------------------------------------------------
def pull(
    outputs: list[Any], cotangents: list[Any], targets: list[Target], keep: bool, create: bool,
    sources: list[Source],
) -> list[Any]:  # fmt: skip
    """Gradients of the targets (None where nothing arrives): tensors, recorded if `create`."""
    starts = [(root_of(y, sources), y, g) for y, g in zip(outputs, cotangents, strict=True)]
    starts = [(end, y, g) for end, y, g in starts if end is not None]
    if not starts:
        return [None] * len(targets)
    tensors = create or engine.with_tangents()
    engine.backward(
        [end for end, _, _ in starts],
        [int(y.index) if not any(y is s.leaf for s in sources) else 0 for _, y, _ in starts],
        [g if tensors else g.array for _, _, g in starts],
        keep, create, targets, False, None, True,
    )  # fmt: skip
    found: list[Any] = []
    for t in targets:
        g = t.grad
        found.append(g if g is None or isinstance(g, TensorBase) else wrap(normal(g)))
    return found


def zeros_for(x: Any) -> Any:
    return functions["zeros_like"](plain(x))


# --- grad -----------------------------------------------------------------------------------------
def grad(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that computes the gradient of `func`, which gives a tensor of one element.

    `argnums` says of which arguments; an argument may be a tree of tensors, and its gradient is
    then a tree too. With `has_aux` the function gives `(output, aux)`, and the gradient comes as
    `(gradient, aux)`.

    >>> import rushlight as torch
    >>> from rushlight.func import grad
    >>> grad(lambda x: x ** 3)(torch.tensor(2.))
    tensor(12.)
    >>> grad(grad(lambda x: x ** 3))(torch.tensor(2.))
    tensor(12.)
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = gradient_and_value(func, argnums, has_aux, args, kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def grad_and_value(func: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """A function that computes the gradient of `func` and its value: `(gradient, value)`.

    >>> import rushlight as torch
    >>> torch.func.grad_and_value(lambda x: x ** 2)(torch.tensor(3.))
    (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return gradient_and_value(func, argnums, has_aux, args, kwargs)

    return wrapper


def gradient_and_value(
    func: Function, argnums: Any, has_aux: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    check_hooks()
    given = chosen(args, argnums)
    level = open_level("grad")
    try:
        sources, leaves = tracked(given, level)
        found = func(*replaced(args, argnums, leaves), **kwargs)
        aux: Any = None
        if has_aux:
            found, aux = split_aux(found, "grad_and_value(f)(*args)")
            check_aux(aux)
        check_scalar(found)
        outside = level.recording and reaches_outside([found, *tree_leaves(aux)], sources)
        targets = [Target(s.leaf, 0) for s in sources]
        start = one_like(found)
        grads = pull([found], [start], targets, outside, outside, [])
        flat_aux, aux_spec = tree_flatten(aux)
        results = released([found, *grads, *flat_aux], sources, outside)
    finally:
        close_level(level)
    value = results[0]
    gradients = [
        zeros_for(s.x) if g is None else g
        for s, g in zip(sources, results[1 : 1 + len(sources)], strict=True)
    ]
    gradient = tree_unflatten(gradients, tree_structure(given))
    if not has_aux:
        return gradient, value
    return gradient, (value, tree_unflatten(results[1 + len(sources) :], aux_spec))


def one_like(y: Any) -> Any:
    if y.array.dtype.kind == "c" and asks(y):
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {y.dtype}"
        )
    return wrap(v.full(y.array, y.array.shape, 1, y.array.dtype))


def check_scalar(y: Any) -> None:
    if not isinstance(y, TensorBase):
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(y)}"
        )
    if y.array.ndim != 0:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor "
            f"with {y.array.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


# --- vjp ------------------------------------------------------------------------------------------
def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value of `func` at `primals`, and a function that multiplies cotangents with its
    Jacobian there. With `has_aux`, also what `func` gave beside its output.

    >>> import rushlight as torch
    >>> y, vjp_fn = torch.func.vjp(torch.sin, torch.zeros(2))
    >>> vjp_fn(torch.tensor([1., 2.]))
    (tensor([1., 2.]),)
    """
    output, vjp_fn, aux = pulled(func, primals, has_aux)
    several = len(primals) != 1

    def call(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        return vjp_fn(cotangents, retain_graph, create_graph)

    del several
    return (output, call, aux) if has_aux else (output, call)


def pulled(func: Function, primals: Any, has_aux: bool) -> tuple[Any, Function, Any]:
    """Output, its product with cotangents as a function, and the auxiliary value."""
    check_hooks()
    level = open_level("grad")
    try:
        sources, leaves = tracked(primals, level)
        found = func(*leaves)
        aux: Any = None
        if has_aux:
            found, aux = split_aux(found, "vjp(f, *primals)")
            check_aux(aux)
        flat, spec = tree_flatten(found)
        check_outputs(flat, found)
        flat_aux, aux_spec = tree_flatten(aux)
        outside = level.recording and reaches_outside([*flat, *flat_aux], sources)
        ends = [root_of(y, sources) for y in flat]
        results = released([*flat, *flat_aux], sources, outside)
    finally:
        close_level(level)
    output = tree_unflatten(results[: len(flat)], spec)
    primal_spec = tree_structure(primals)

    def vjp_fn(cotangents: Any, retain_graph: bool, create_graph: bool | None) -> Any:
        given, given_spec = tree_flatten(cotangents)
        if given_spec != spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {treespec_pprint(given_spec)}, primal "
                f"output: {treespec_pprint(spec)}"
            )
        for i, (y, g) in enumerate(zip(flat, given, strict=True)):
            check_cotangent(i, y, g)
        create = grad_enabled() if create_graph is None else create_graph
        create = create and (outside or any(asks(g) for g in given))
        targets = [Target(s.node, 0) for s in sources]
        starts = [(e, y, g) for e, y, g in zip(ends, flat, given, strict=True) if e is not None]
        grads: list[Any] = [None] * len(sources)
        if starts:
            tensors = create or engine.with_tangents()
            engine.backward(
                [e for e, _, _ in starts],
                [0 if any(y is s.leaf for s in sources) else int(y.index) for _, y, _ in starts],
                [g if tensors else g.array for _, _, g in starts],
                retain_graph, create, targets, False, None, True,
            )  # fmt: skip
            grads = [t.grad for t in targets]
        made = [
            zeros_for(s.x) if g is None else g if isinstance(g, TensorBase) else wrap(normal(g))
            for s, g in zip(sources, grads, strict=True)
        ]
        return tree_unflatten(made, primal_spec)

    return output, vjp_fn, tree_unflatten(results[len(flat) :], aux_spec)


def check_outputs(flat: list[Any], found: Any) -> None:
    if not flat or found is None:
        raise RuntimeError(
            "vjp(f, *primals): Expected f to be a function that has non-empty output (got output = "
            f"{flat})"
        )
    for y in flat:
        if not isinstance(y, TensorBase):
            raise RuntimeError(
                "vjp(f, *primals): expected f(*primals) to return only tensors, got unsupported "
                f"type {type(y)}"
            )
        if y.array.dtype.kind not in "fcVW":
            raise RuntimeError(
                "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got "
                f"Tensor with dtype {y.dtype}"  # type: ignore[attr-defined]
            )


def check_cotangent(i: int, y: Any, g: Any) -> None:
    if tuple(g.shape) != tuple(y.shape):
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a "
            f"shape of {y.shape}."
        )


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The value of `func` at `primals`, and its linear part there: a function of tangents, which
    does not call `func` again.

    >>> import rushlight as torch
    >>> y, along = torch.func.linearize(lambda x: x ** 2, torch.tensor([1., 2.]))
    >>> along(torch.tensor([1., 1.]))
    tensor([2., 4.])
    """
    output, vjp_fn, _ = pulled(func, primals, False)
    flat, spec = tree_flatten(output)
    flat_in, spec_in = tree_flatten(primals)
    zeros = [functions["zeros_like"](plain(y)) for y in flat]
    # g -> J'g is linear, so its own derivative is J: taken once, at a g of zeros
    _, along, _ = pulled(
        lambda *gs: vjp_fn(tree_unflatten(list(gs), spec), True, True), tuple(zeros), False
    )

    def jvp_fn(*tangents: Any) -> Any:
        given, given_spec = tree_flatten(tangents)
        if given_spec != spec_in:
            raise RuntimeError(
                f"Expected the tangents {given_spec} to have the same argspec as the primals "
                f"{spec_in}"
            )
        for i, (t, x) in enumerate(zip(given, flat_in, strict=True)):
            if t.shape != x.shape:
                raise RuntimeError(
                    f"tangent:{i} with shape {t.shape} in flattened pytree doesn't match the shape "
                    f"{x.shape} of the corresponding primal."
                )
        return tree_unflatten(list(along(tangents, True, None)), spec)

    return output, jvp_fn


# --- jacrev ---------------------------------------------------------------------------------------
def jacrev(
    func: Function, argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:  # fmt: skip
    """A function that computes the Jacobian of `func` backward: all rows at once, or `chunk_size`
    rows at a time.

    >>> import rushlight as torch
    >>> torch.func.jacrev(torch.sin)(torch.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = chosen(args, argnums)
        check_real(given, "jacrev")
        flat_in, spec_in = tree_flatten(given)

        def inner(*leaves: Any) -> Any:
            return func(*replaced(args, argnums, tree_unflatten(list(leaves), spec_in)), **kwargs)

        output, vjp_fn, aux = pulled(inner, tuple(flat_in), has_aux)
        flat, spec = tree_flatten(output)
        rows = vmap(lambda *gs: vjp_fn(tree_unflatten(list(gs), spec), True, None),
                    chunk_size=chunk_size)(*basis(flat))  # fmt: skip
        parts: list[list[Any]] = []  # of each output, one an input
        start = 0
        for y in flat:
            count = y.numel()
            parts.append([
                functions["reshape"](functions["narrow"](r, 0, start, count), (*y.shape, *x.shape))
                for r, x in zip(rows, flat_in, strict=True)
            ])  # fmt: skip
            start += count
        found = tree_unflatten([tree_unflatten(p, spec_in) for p in parts], spec)
        return (found, aux) if has_aux else found

    return wrapper


def check_real(tree: Any, name: str) -> None:
    for i, x in enumerate(tree_leaves(tree)):
        if isinstance(x, TensorBase) and x.array.dtype.kind == "c":
            raise RuntimeError(
                f"{name}: Expected all inputs to be real but received complex tensor at flattened "
                f"input idx: {i}"
            )


def basis(flat: list[Any]) -> tuple[Any, ...]:
    """For each of several tensors, a batch of its shape: together the unit vectors of them all."""
    total = sum(y.numel() for y in flat)
    eye = functions["eye"]
    found: list[Any] = []
    start = 0
    for y in flat:
        count = y.numel()
        block = eye(total, dtype=y.dtype, device=y.device)
        part = functions["narrow"](block, 1, start, count)
        found.append(functions["reshape"](part, (total, *y.shape)))
        start += count
    return tuple(found)


_ = tree_map
