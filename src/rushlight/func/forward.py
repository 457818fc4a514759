"""Derivatives forward: `jvp` and `jacfwd`. Tangents travel beside the values (`core.tangents`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight.autograd.forward_ad import dual_at, enter_jvp_level, primal_at, tangent_at
from rushlight.core.graph import TensorBase
from rushlight.core.levels import close_level, open_level
from rushlight.func.reverse import basis, check_aux, check_real, chosen, replaced, split_aux
from rushlight.func.tracking import at_level, plain
from rushlight.func.batching import vmap
from rushlight.ops.table import functions
from rushlight.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["jacfwd", "jvp"]

Argnums = int | tuple[int, ...]
Function = Callable[..., Any]
WHO = "jvp(f, primals, tangents)"


def jvp(
    func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """The value of `func` at `primals`, and its derivative along `tangents`.

    Both arguments are tuples: `func(*primals)` must be valid. With `strict` a function that does
    not depend on its inputs is an error; otherwise its derivative is zero.

    >>> import rushlight as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.),), (torch.tensor(2.),))
    (tensor(0.), tensor(2.))
    """
    check_primals(primals, tangents)
    flat, spec = tree_flatten(primals)
    directions, other = tree_flatten(tangents)
    if spec != other:
        raise RuntimeError(
            f"{WHO}: Expected primals and tangents to have the same python structure. For example, "
            "if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{spec} and tangents with structure {other}"
        )
    check_tensors(flat, "primals")
    check_tensors(directions, "tangents")
    output, along, aux = pushed(func, flat, spec, directions, strict, has_aux)
    return (output, along, aux) if has_aux else (output, along)


def pushed(
    func: Function, flat: list[Any], spec: Any, directions: list[Any], strict: bool, has_aux: bool
) -> tuple[Any, Any, Any]:
    """Value, derivative along the directions, and auxiliary value."""
    for x in flat:
        if x.array.dtype.kind not in "fcVW":
            raise ValueError(f"Expected primal to be floating point or complex, but got: {x.dtype}")
    level = open_level("jvp")
    try:
        for x in flat:
            level.given.add(id(x.memory))
        flat = [at_level(x, level) for x in flat]
        inner = enter_jvp_level()
        try:
            duals = [dual_at(x, inner, t) for x, t in zip(flat, directions, strict=True)]
            found = func(*tree_unflatten(duals, spec))
            aux: Any = None
            if has_aux:
                found, aux = split_aux(found, WHO)
                check_aux(aux)
            values, out_spec = tree_flatten(found)
            check_outputs(values)
            slopes = [slope_of(y, inner, strict) for y in values]
            values = [primal_at(y, inner) for y in values]
            flat_aux, aux_spec = tree_flatten(aux)
            rest = [primal_at(y, inner) if isinstance(y, TensorBase) else y for y in flat_aux]
        finally:
            inner.close()
    finally:
        close_level(level)
    return (
        tree_unflatten(values, out_spec),
        tree_unflatten(slopes, out_spec),
        tree_unflatten(rest, aux_spec),
    )


def slope_of(y: Any, level: Any, strict: bool) -> Any:
    """The tangent of an output; zeros where it does not depend on the inputs."""
    found = tangent_at(y, level)
    if found is not None:
        return found
    if strict:
        raise RuntimeError(
            f"{WHO[:-1]}, strict=True): The output of f is independent of the inputs. This is not "
            "allowed with strict=True."
        )
    return functions["zeros_like"](plain(y))


def check_primals(primals: Any, tangents: Any) -> None:
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{WHO}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    flat, _ = tree_flatten(primals)
    if not any(isinstance(x, TensorBase) for x in flat):
        raise RuntimeError(f"{WHO}: Expected primals to contain at least one Tensor.")


def check_tensors(flat: list[Any], what: str) -> None:
    for x in flat:
        if not isinstance(x, TensorBase):
            raise RuntimeError(
                f"{WHO}: Expected {what} to be a tuple of Tensors, got unsupported type {type(x)}"
            )


def check_outputs(values: list[Any]) -> None:
    for y in values:
        if not isinstance(y, TensorBase):
            raise RuntimeError(
                f"{WHO}: expected f(*primals) to return only tensors, got unsupported type "
                f"{type(y)}"
            )


def jacfwd(
    func: Function, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Function:
    """A function that computes the Jacobian of `func` forward: all columns at once.

    >>> import rushlight as torch
    >>> torch.func.jacfwd(lambda x: x ** 2)(torch.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = chosen(args, argnums)
        check_real(given, "jacfwd")
        flat, spec = tree_flatten(given)
        check_tensors(flat, "primals")

        def inner(leaves: Any) -> Any:
            return func(*replaced(args, argnums, leaves), **kwargs)

        def along(*directions: Any) -> Any:
            _, slopes, aux = pushed(
                lambda *leaves: inner(tree_unflatten(list(leaves), spec)),
                flat, tree_of(flat), list(directions), False, has_aux,
            )  # fmt: skip
            return slopes, aux

        columns, aux = vmap(along, out_dims=(0, None) if has_aux else (0, None), randomness=randomness)(
            *basis(flat)
        )
        outs, out_spec = tree_flatten(columns)
        found: list[Any] = []
        for rows in outs:
            shape = tuple(rows.shape[1:])
            parts: list[Any] = []
            start = 0
            for x in flat:
                count = x.numel()
                block = functions["movedim"](functions["narrow"](rows, 0, start, count), 0, -1)
                parts.append(functions["reshape"](block, (*shape, *x.shape)))
                start += count
            found.append(tree_unflatten(parts, spec))
        result = tree_unflatten(found, out_spec)
        return (result, aux) if has_aux else result

    return wrapper


def tree_of(flat: list[Any]) -> Any:
    return tree_flatten(tuple(flat))[1]
