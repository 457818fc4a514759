"""What sparse arrays answer to the words of the vocabulary, and the words that only they need.

Everything that makes a sparse array imports this file, so that the answers are known by then.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import move
from rushlight.arrays.sparse import Compressed, Coo, Sparse, count_up_to, refused
from rushlight.arrays.sparse_math import (
    is_single_number,
    joined,
    masked,
    permuted,
    sampled_product,
    selected,
    sparse_matmul,
    summed,
    taken,
)
from rushlight.arrays.vocabulary import Array, Kind, primitive, register


# --- words for rules: on sparse and dense arrays alike, and on tensors ----------------------------
@primitive
def sparse_of(indices: Array, values: Array, shape: tuple[int, ...], coalesced: bool) -> Array:
    """A `Coo`."""
    return Coo(indices, values, shape, coalesced)


@primitive
def to_dense(x: Array) -> Array:
    """As an ordinary array."""
    return x


@primitive
def sparse_masked(x: Array, mask: Array) -> Array:
    """The elements of `x` in the places of `mask`."""
    return masked(x, mask)


@primitive
def sampled(a: Array, b: Array, mask: Array) -> Array:
    """The elements of the product `a @ b` in the places of `mask`."""
    return sampled_product(a, b, mask)


@primitive
def stored(x: Array) -> Array:
    """The values."""
    return x


# --- the words of the vocabulary ------------------------------------------------------------------
_rules: Final[dict[str, Callable[..., Any]]] = {
    "sparse_of": Coo,
    "to_dense": lambda x: x.dense() if isinstance(x, Sparse) else x,
    "sparse_masked": masked,
    "sampled": sampled_product,
    "stored": lambda x: x.values,
    "cast": lambda x, dtype: x if x.dtype == dtype else x.astype(dtype),
    "copy": lambda x: x.copy(),
    "narrow_matmul": sparse_matmul,
    "matrices": sparse_matmul,
    "permute": permuted,
    "turned": lambda x: permuted(x, (1, 0)),
    "concat": joined,
    "reduce_sum": summed,
}


def _rule(fn: Callable[..., Any]) -> Callable[..., Any]:
    _rules[fn.__name__.removesuffix("_word")] = fn
    return fn


@_rule
def swap(x: Any, a: int, b: int) -> Any:
    axes = list(range(x.ndim))
    if isinstance(x, Coo):
        low, high = sorted((a % x.ndim, b % x.ndim))
        if low < x.sparse_dim <= high:
            raise RuntimeError(
                f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: "
                f"{x.sparse_dim}, d0: {a % x.ndim}, d1: {b % x.ndim}"
            )
    axes[a], axes[b] = axes[b], axes[a]
    return permuted(x, tuple(axes))


@_rule
def moved(x: Any, where: Any) -> Any:
    if isinstance(x, Coo):
        return Coo(move(x.indices, where), move(x.values, where), x.shape, x.coalesced)
    return Compressed(
        x.layout, move(x.starts, where), move(x.inner, where), move(x.values, where), x.shape
    )


@_rule
def constant(like: Any, value: Any, dtype: Any) -> Any:
    return v.constant(like.values, value, dtype)


@_rule
def full(like: Any, shape: Any, value: Any, dtype: Any) -> Any:
    if isinstance(value, (int, float)) and value == 0 and tuple(shape) == like.shape:
        return like.emptied(dtype)
    return v.full(like.values, shape, value, dtype)


@_rule
def empty(like: Any, shape: Any, dtype: Any) -> Any:
    return v.empty(like.values, shape, dtype)


@_rule
def empty_as(like: Any, dtype: Any) -> Any:
    return like.emptied(dtype)


@_rule
def laid_out(x: Any, order: Any) -> Any:
    return x


@_rule
def contiguous(x: Any) -> Any:
    return x


@_rule
def overwrite(target: Any, source: Any) -> None:
    if not isinstance(target, Sparse):
        target[...] = source.dense()
    elif is_single_number(source):
        target.fill(source)
    elif isinstance(source, Sparse):
        if source.dtype != target.dtype:
            source = source.astype(target.dtype)
        target.become(
            target.as_this(source.coo()) if source.layout is not target.layout else source
        )
    else:
        raise refused("copy_", target)


@_rule
def unsqueezed(x: Any, dim: int) -> Any:
    c = x.coo()
    at = x.ndim + 1 + dim if dim < 0 else dim
    shape = (*x.shape[:at], 1, *x.shape[at:])
    if at <= c.sparse_dim:
        row = np.zeros_like(c.indices, shape=(1, c.nnz))
        indices = np.concatenate((c.indices[:at], row, c.indices[at:]))
        return Coo(indices, c.values, shape, c.coalesced)
    values = c.values.reshape((c.nnz, *shape[c.sparse_dim :]))
    return Coo(c.indices, values, shape, c.coalesced)


@_rule
def window(x: Any, index: Any) -> Any:
    """Basic indexing: integers and slices, from the left or around an ellipsis."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        given = sum(p is not None for p in parts) - 1
        parts[at : at + 1] = [slice(None)] * (x.ndim - given)
    dim = 0
    for part in parts:
        if not isinstance(x, Sparse):
            x, dim = x[(slice(None),) * dim + (part,)], dim + (not isinstance(part, int))
        elif isinstance(part, int):
            x = selected(x, dim, part)
        elif part is None:
            x, dim = unsqueezed(x, dim), dim + 1
        else:
            start, stop, step = part.indices(x.shape[dim])
            if (start, stop, step) != (0, x.shape[dim], 1):
                chosen = count_up_to(x.values, len(range(start, stop, step))) * step + start
                x = taken(x, dim, chosen)
            dim += 1
    return x


@_rule
def pick(x: Any, index: Any, *arrays: Any) -> Any:
    parts = [p for p in index if p is not Ellipsis]
    if len(arrays) != 1 or not all(p is v.SLOT or p == slice(None) for p in parts):
        raise refused("index.Tensor", x)
    dim = parts.index(v.SLOT)
    if index[0] is Ellipsis:
        dim -= len(parts)
    if arrays[0].ndim != 1:
        raise refused("index.Tensor", x)
    return taken(x, dim, arrays[0])


@_rule
def broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    if tuple(shape) == x.shape:
        return x
    raise refused("expand", x)


@_rule
def reshape(x: Any, shape: tuple[int, ...]) -> Any:
    shape = tuple(shape)
    if shape == x.shape:
        return x
    c = x.coo()
    if -1 in shape:
        known = math.prod(n for n in shape if n != -1)
        shape = tuple(x.size // known if n == -1 else n for n in shape)
    dense = x.shape[c.sparse_dim :]
    if dense and shape[len(shape) - len(dense) :] != dense:
        raise refused("view", x)
    flat, rows = c.places(), []
    for n in reversed(shape[: len(shape) - len(dense)]):
        rows.append(flat % n)
        flat = flat // n
    return Coo(np.stack(rows[::-1]), c.values, shape, c.coalesced)


@_rule
def real(x: Any) -> Any:
    return x.with_values(v.real(x.values))


@_rule
def imag(x: Any) -> Any:
    return x.with_values(v.imag(x.values))


@_rule
def conjugated(x: Any) -> Any:
    return v.conjugate(x)  # their elements stand elsewhere: no view


@_rule
def special(x: Any, name: str, *others: Any) -> Any:
    if name not in ("erf", "erfinv") or others:
        raise refused(name, x)
    c = x.coalesce() if isinstance(x, Coo) else x
    return c.with_values(v.special(c.values, name))


@_rule
def where(condition: Any, a: Any, b: Any) -> Any:
    """With a sparse condition, and `b` zero wherever that stores nothing."""
    if not isinstance(condition, Sparse) or not (isinstance(b, Sparse) or _is_zero(b)):
        raise refused("where.self", next(x for x in (condition, a, b) if isinstance(x, Sparse)))
    parts = [_aligned(x, condition) for x in (condition, a, b)]
    return condition.with_values(v.where(*parts))


def _is_zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0


def _aligned(x: Any, like: Sparse) -> Any:
    """The values of `x` in the places of `like`."""
    if not isinstance(x, Sparse):
        return x if is_single_number(x) else masked(x, like).values
    return x.values if x.values.shape == like.values.shape else masked(x, like).values


@_rule
def reduce_any(x: Any, axes: Any, keep: bool) -> Any:
    if axes is not None or keep:
        raise refused("any.dim", x)
    return v.reduce_any(x.values, None, False)


def _answer(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    rule = _rules.get(name)
    if rule is None:
        raise refused(name, next(x for x in args if isinstance(x, Sparse)))
    return rule(*args)


register(Sparse, Kind(7, _answer))
