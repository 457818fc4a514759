"""What the words mean on batched arrays: making, shapes, reductions, products, linear algebra.

They fill `batched.rules`; indices and writes stand in `batch_index`. Rules are called with the
word, the level and the word's arguments.

Note [Memory to write into]
    What a word makes anew may be written into by the op that asked for it, so `full`, `empty`,
    `copy` and their like give each member of the batch its own, even where all are equal.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rushlight.arrays import lapack  # noqa: F401  # it has the words of linear algebra
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import (
    Batched,
    bottom,
    from_end,
    insert_axes,
    map_elementwise,
    matmul,
    members,
    outer,
    rule,
    rules,
    with_batch,
    wrap_result,
)


def _same(primitive: Any, level: Any, x: Any, *args: Any) -> Any:
    """Words that leave leading axes alone: the batch is one more of them."""
    inside, has_batch_dim = members(x, level)
    return wrap_result(primitive(inside, *args), level, has_batch_dim)


for _name in (
    "cast", "moved", "contiguous", "real", "imag", "as_pairs", "as_complex", "conjugated",
    "negated", "frexp", "polygamma", "bits",
    "turned", "unsqueezed", "triangle", "cholesky", "inv", "det", "slogdet", "cofactors",
    "eigh", "eig", "svd", "householder_qr", "lu", "row_order", "pinv", "fourier", "fourier_real",
    "fourier_half", "matrix_exp", "ldl",
):  # fmt: skip
    rules[_name] = _same


def _elements(primitive: Any, level: Any, *xs: Any) -> Any:
    return map_elementwise(primitive, xs)


rules["where"] = _elements


@rule
def complex_of(primitive: Any, level: Any, re: Any, im: Any) -> Any:
    return Batched(primitive(with_batch(re, level), with_batch(im, level)), level)


def _dynamic(primitive: Any, level: Any, *args: Any) -> Any:
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to "
        f"vmap over aten::{primitive.__name__}. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues if you need this feature."
    )


for _name in ("nonzero", "unique"):
    rules[_name] = _dynamic


@rule
def bincount(primitive: Any, level: Any, x: Any, weights: Any, least: int) -> Any:
    places = with_batch(x, level)
    extra = None if weights is None else with_batch(weights, level)
    found = [
        primitive(v.window(places, (i,)), None if extra is None else v.window(extra, (i,)), least)
        for i in range(level.size)
    ]
    if not found:
        kind = np.dtype(np.int64) if extra is None else bottom(extra).dtype
        return Batched(v.full(places, (0, least), 0, kind), level)
    if any(y.shape != (least,) for y in found):  # how long it is depends on the values
        _dynamic(primitive, level)
    return Batched(v.concat([v.window(y, (None,)) for y in found], 0), level)


@rule
def special(primitive: Any, level: Any, x: Any, name: str, *others: Any) -> Any:
    return map_elementwise(lambda x, *others: primitive(x, name, *others), (x, *others))


@rule
def qr(primitive: Any, level: Any, x: Any, mode: str) -> Any:
    inside, has_batch_dim = members(x, level)
    q, r = primitive(inside, mode)
    return wrap_result(q, level, has_batch_dim and mode != "r"), wrap_result(
        r, level, has_batch_dim
    )


def _matrices(primitive: Any, level: Any, a: Any, b: Any, *args: Any) -> Any:
    """Words of two batches of matrices that broadcast."""
    left, right = with_batch(a, level), with_batch(b, level)
    rank = max(left.ndim, right.ndim)
    left, right = insert_axes(left, rank - left.ndim), insert_axes(right, rank - right.ndim)
    return wrap_result(primitive(left, right, *args), level, True)


for _name in ("solve", "solve_triangular", "cholesky_solve", "least_squares"):
    rules[_name] = _matrices


@rule
def ldl_solve(primitive: Any, level: Any, a: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    parts = [with_batch(x, level) for x in (a, pivots, b)]
    return Batched(primitive(*parts, hermitian), level)


# --- making: see Note [Memory to write into] ------------------------------------------------------
@rule
def full(
    primitive: Any, level: Any, like: Any, shape: tuple[int, ...], value: Any, dtype: Any
) -> Any:
    inside, has_batch_dim = members(like, level)
    return Batched(
        primitive(inside, (level.size, *shape) if has_batch_dim else shape, value, dtype),
        level,
        has_batch_dim,
    )


@rule
def empty(primitive: Any, level: Any, like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    inside, has_batch_dim = members(like, level)
    return Batched(
        primitive(inside, (level.size, *shape) if has_batch_dim else shape, dtype),
        level,
        has_batch_dim,
    )


@rule
def empty_as(primitive: Any, level: Any, like: Any, dtype: Any) -> Any:
    inside, has_batch_dim = members(like, level)
    return Batched(primitive(inside, dtype), level, has_batch_dim)


@rule
def iota(primitive: Any, level: Any, like: Any, n: int, dtype: Any) -> Any:
    inside, _ = members(like, level)
    return Batched(primitive(inside, n, dtype), level, False)


@rule
def constant(primitive: Any, level: Any, like: Any, value: Any, dtype: Any) -> Any:
    inside, _ = members(like, level)
    return Batched(primitive(inside, value, dtype), level, False)


@rule
def copy(primitive: Any, level: Any, x: Any) -> Any:
    return Batched(primitive(with_batch(x, level)), level)


@rule
def laid_out(primitive: Any, level: Any, x: Any, order: tuple[int, ...] | None) -> Any:
    inside = with_batch(x, level)
    below = None if order is None else (0, *[d + 1 for d in order])
    return Batched(primitive(inside, below), level)


# --- shapes ---------------------------------------------------------------------------------------
@rule
def reshape(primitive: Any, level: Any, x: Any, shape: tuple[int, ...]) -> Any:
    inside, has_batch_dim = members(x, level)
    if not has_batch_dim:
        return Batched(primitive(inside, shape), level, False)
    if -1 in shape:
        known = -math.prod(shape)
        shape = tuple([x.size // known if n == -1 else n for n in shape])
    return Batched(primitive(inside, (level.size, *shape)), level)


@rule
def permute(primitive: Any, level: Any, x: Any, axes: tuple[int, ...]) -> Any:
    inside, has_batch_dim = members(x, level)
    if has_batch_dim:
        axes = (0, *[d % x.ndim + 1 for d in axes])
    return Batched(primitive(inside, axes), level, has_batch_dim)


@rule
def swap(primitive: Any, level: Any, x: Any, a: int, b: int) -> Any:
    inside, has_batch_dim = members(x, level)
    return Batched(
        primitive(inside, from_end(a, x.ndim), from_end(b, x.ndim)), level, has_batch_dim
    )


@rule
def broadcast(primitive: Any, level: Any, x: Any, shape: tuple[int, ...]) -> Any:
    inside, has_batch_dim = members(x, level)
    if has_batch_dim:
        inside = insert_axes(inside, len(shape) - x.ndim)
        shape = (level.size, *shape)
    return Batched(primitive(inside, shape), level, has_batch_dim)


@rule
def window(primitive: Any, level: Any, x: Any, index: Any) -> Any:
    inside, has_batch_dim = members(x, level)
    if has_batch_dim:
        index = (v.ALL, *(index if isinstance(index, tuple) else (index,)))
    return wrap_result(primitive(inside, index), level, has_batch_dim)


@rule
def diagonal(primitive: Any, level: Any, x: Any, offset: int, a: int, b: int) -> Any:
    inside, has_batch_dim = members(x, level)
    return Batched(
        primitive(inside, offset, from_end(a, x.ndim), from_end(b, x.ndim)), level, has_batch_dim
    )


@rule
def windows(primitive: Any, level: Any, x: Any, axis: int, size: int, step: int) -> Any:
    inside, has_batch_dim = members(x, level)
    return Batched(primitive(inside, from_end(axis, x.ndim), size, step), level, has_batch_dim)


def _span(shape: Any, inside: Any, other: Any, strides: Any, start: int) -> int:
    """How many elements of memory one member of a strided view may touch."""
    reach = sum((n - 1) * s for n, s in zip(shape, inside, strict=True) if n)
    there = start + sum((n - 1) * s for n, s in zip(other, strides, strict=True) if n)
    return int(max(reach, there, 0) + 1 + max(-start, 0))


@rule
def strided(primitive: Any, level: Any, x: Any, shape: Any, strides: Any, offset: int) -> Any:
    raise NotImplementedError("a batched array has no memory of its own to stride over")


@rule
def restrided(
    primitive: Any, level: Any, x: Any, shape: Any, strides: Any, start: int, inside: Any
) -> Any:
    array, has_batch_dim = members(x, level)
    if not has_batch_dim:
        return Batched(primitive(array, shape, strides, start, inside), level, False)
    size = x.dtype.itemsize
    step = outer(array).strides[0] // size
    if tuple(s // size for s in x.strides) != tuple(inside):
        step = _span(x.shape, inside, shape, strides, start)
    below = primitive(array, (level.size, *shape), (step, *strides), start, (step, *inside))
    return Batched(below, level)


@rule
def unstrided(
    primitive: Any, level: Any, g: Any, shape: Any, strides: Any, start: int, inside: Any
) -> Any:
    array, has_batch_dim = members(g, level)
    if has_batch_dim:
        step = _span(shape, inside, g.shape, strides, start)
        shape, strides, inside = (level.size, *shape), (step, *strides), (step, *inside)
    return Batched(primitive(array, shape, strides, start, inside), level, has_batch_dim)


@rule
def concat(primitive: Any, level: Any, xs: list[Any], axis: int) -> Any:
    rank = xs[0].ndim
    has_batch_dim = any(members(x, level)[1] for x in xs)
    parts = [with_batch(x, level) if has_batch_dim else members(x, level)[0] for x in xs]
    return Batched(primitive(parts, from_end(axis, rank)), level, has_batch_dim)


@rule
def pad(primitive: Any, level: Any, x: Any, widths: Any, value: Any) -> Any:
    inside, has_batch_dim = members(x, level)
    return Batched(
        primitive(inside, ((0, 0), *widths) if has_batch_dim else widths, value),
        level,
        has_batch_dim,
    )


@rule
def flip(primitive: Any, level: Any, x: Any, axes: Any) -> Any:
    inside, has_batch_dim = members(x, level)
    axes = range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    return Batched(
        primitive(inside, tuple([from_end(d, x.ndim) for d in axes])), level, has_batch_dim
    )


@rule
def roll(primitive: Any, level: Any, x: Any, shifts: Any, axes: Any) -> Any:
    inside, has_batch_dim = members(x, level)
    if axes is None:
        flat = reshape(v.reshape, level, x, (x.size,))
        return v.reshape(roll(primitive, level, flat, shifts, (-1,)), x.shape)
    axes = (axes,) if isinstance(axes, int) else axes
    return Batched(
        primitive(inside, shifts, tuple([from_end(d, x.ndim) for d in axes])), level, has_batch_dim
    )


@rule
def tile(primitive: Any, level: Any, x: Any, repeats: tuple[int, ...]) -> Any:
    inside, has_batch_dim = members(x, level)
    if has_batch_dim:
        inside = insert_axes(inside, len(repeats) - x.ndim)
        repeats = (1,) * (inside.ndim - len(repeats)) + tuple(repeats)
    return Batched(primitive(inside, repeats), level, has_batch_dim)


# --- along axes -----------------------------------------------------------------------------------
def _reduction(primitive: Any, level: Any, x: Any, axes: Any, keep: bool) -> Any:
    inside, has_batch_dim = members(x, level)
    if not has_batch_dim:
        return wrap_result(primitive(inside, axes, keep), level, False)
    rank = x.ndim
    if rank == 0:  # one element each; the word may still change the dtype
        return Batched(primitive(insert_axes(inside, 1), (-1,), False), level)
    if axes is None:
        axes = range(-rank, 0)
    elif isinstance(axes, int):
        axes = (axes,)
    return Batched(primitive(inside, tuple([from_end(d, rank) for d in axes]), keep), level)


for _name in (
    "reduce_sum",
    "deviations",
    "product",
    "reduce_max",
    "reduce_min",
    "reduce_any",
    "reduce_all",
):
    rules[_name] = _reduction


def _place(primitive: Any, level: Any, x: Any, axis: int | None, keep: bool) -> Any:
    inside, has_batch_dim = members(x, level)
    if not has_batch_dim:
        return wrap_result(primitive(inside, axis, keep), level, False)
    rank = x.ndim
    if axis is not None and rank:
        return Batched(primitive(inside, from_end(axis, rank), keep), level)
    flat = v.reshape(inside, (level.size, x.size))
    return Batched(
        v.reshape(primitive(flat, -1, False), (level.size, *([1] * rank if keep else ()))), level
    )


for _name in ("argmax", "argmin"):
    rules[_name] = _place


def _along_axis(primitive: Any, level: Any, x: Any, axis: int, *args: Any) -> Any:
    """Words that work along one axis and keep the shape."""
    inside, has_batch_dim = members(x, level)
    if not has_batch_dim:
        return wrap_result(primitive(inside, axis, *args), level, False)
    if x.ndim == 0:
        return Batched(v.window(primitive(insert_axes(inside, 1), -1, *args), (v.ALL, 0)), level)
    return Batched(primitive(inside, from_end(axis, x.ndim), *args), level)


for _name in ("cumsum", "cumprod", "running", "sort"):
    rules[_name] = _along_axis


@rule
def narrow_matmul(primitive: Any, level: Any, a: Any, b: Any) -> Any:
    return matmul(a, b, primitive)
