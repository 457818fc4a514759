"""CuPy's arrays: the words of the vocabulary that NumPy's protocols do not carry over.

CuPy answers to NumPy's ufuncs and to most of its functions by itself (`__array_ufunc__`,
`__array_function__`), so most words of `vocabulary` run on its arrays as they stand. Here are the
others. `use_cupy` is called by `host.cupy` when CuPy is first used; `host` and `making` import the
functions on memory.

Note [What CuPy lacks]
    ufunc.reduce      add and multiply only
    ufunc.accumulate  add and multiply only
    ufunc.at          add, of 32 and 64 bits and float16; no complex numbers, no products.
                      float16 is added up in float32 all the same: it would stop at 2048
    as_strided        does not come through NumPy's function of that name, and has no `base`
    subok=, where=    refused
    host arrays       refused next to its own; index arrays and NumPy's scalars are taken
    bfloat16          arithmetic and copies; no where, no maximum, no scans
    repeated indices  in a write: any one of the values stays; an index out of range wraps round
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.layouts import lay_out_picked, like_clone
from rushlight.arrays.vocabulary import Kind, primitives, register

_words: Final[dict[str, Callable[..., Any]]] = {}
_state: Final[dict[str, Any]] = {}
_F32: Final = np.dtype(np.float32)
_ADDED: Final = frozenset("ilqILQfd")  # dtypes whose elements are added up as they are


def use_cupy(cupy: Any) -> None:
    """Make CuPy's arrays a kind of their own; a second call does nothing."""
    if _state.get("cupy") is cupy:
        return
    _state["cupy"] = cupy
    register(cupy.ndarray, Kind(5, _answer))


def is_cuda(x: Any) -> bool:
    """Whether `x` is one of CuPy's arrays; CuPy is not imported to find out."""
    cupy = _state.get("cupy")
    return cupy is not None and isinstance(x, cupy.ndarray)


def _answer(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    own = _words.get(name)
    return fn(*args) if own is None else own(_state["cupy"], *args)


def _on_cuda(fn: Callable[..., Any]) -> Callable[..., Any]:
    if fn.__name__ not in primitives:
        raise ValueError(f"{fn.__name__!r} is no word of the vocabulary")
    _words[fn.__name__] = fn
    return fn


def _wide(x: Any) -> Any:
    """bfloat16 as float32, for kernels that CuPy has not written for it; others as they are."""
    return x.astype(_F32) if x.dtype.kind == "V" else x


def _narrow(y: Any, like: Any) -> Any:
    return y if y.dtype == like.dtype else y.astype(like.dtype)


# --- memory ---------------------------------------------------------------------------------------
def _seen(x: Any, shape: tuple[int, ...], strides: tuple[int, ...], start: int = 0) -> Any:
    """A view by strides in bytes, beginning `start` bytes from the first element of `x`.

    An array made over memory claims to own it (its `base` is None); a view of that array does not.
    """
    return type(x)(shape, x.dtype, x.data + start, strides).view()


def memory_of(x: Any) -> tuple[int, int]:
    """Where the memory behind an array starts, and how many bytes it has."""
    memory = x.data.mem
    root = x if x.base is None else x.base
    if root.data.ptr == memory.ptr and root.flags.forc:
        return int(memory.ptr), int(root.nbytes)
    return int(memory.ptr), int(memory.size)  # as it was allocated: a few bytes more than asked for


def bytes_of(array: Any) -> Any:
    """All the memory behind an array as a flat array of bytes that shares it."""
    start, length = memory_of(array)
    there = array.data + (start - array.data.ptr)
    return type(array)((length,), np.uint8, there).view()


def over_memory(
    memory: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, offset: int
) -> Any:
    """An array over a flat array of bytes; strides in elements, `offset` in bytes."""
    steps = tuple(s * dtype.itemsize for s in strides)
    return type(memory)(shape, dtype, memory.data + offset, steps).view()


@_on_cuda
def unsqueezed(cupy: Any, x: Any, dim: int) -> Any:
    at = x.ndim + 1 + dim
    if x.flags.c_contiguous:
        return x.reshape((*x.shape[:at], 1, *x.shape[at:]))
    return x[(*[slice(None)] * at, None)]


@_on_cuda
def strided(
    cupy: Any, x: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> Any:
    size = x.dtype.itemsize
    start = offset * size - (x.data.ptr - x.data.mem.ptr)
    return _seen(x, shape, tuple(s * size for s in strides), start)


@_on_cuda
def windows(cupy: Any, x: Any, axis: int, size: int, step: int) -> Any:
    axis %= x.ndim
    shape, strides = [*x.shape, size], [*x.strides, x.strides[axis]]
    shape[axis] = (x.shape[axis] - size) // step + 1
    strides[axis] *= step
    return _seen(x, tuple(shape), tuple(strides))


@_on_cuda
def restrided(cupy: Any, x: Any, shape: Any, strides: Any, start: int, inside: Any) -> Any:
    size = x.dtype.itemsize
    if all(s == i * size for s, i, n in zip(x.strides, inside, x.shape, strict=True) if n > 1):
        return _seen(x, shape, tuple(s * size for s in strides), start * size)
    own, there, lowest, length = v._shared_cells(x.shape, inside, shape, strides, start)
    cells = cupy.zeros(length, x.dtype)
    cells[own - lowest] = x
    return cells[there - lowest]


@_on_cuda
def unstrided(cupy: Any, g: Any, shape: Any, strides: Any, start: int, inside: Any) -> Any:
    own, there, lowest, length = v._shared_cells(shape, inside, g.shape, strides, start)
    cells = cupy.zeros(length, g.dtype)  # `_add_at` keeps low precision in float32
    _add_at(cupy, cells, there - lowest, g)
    counts = np.bincount((own - lowest).reshape(-1), minlength=length)
    out = cells[own - lowest]
    if counts.size and counts.max() > 1:
        out = (out / cupy.asarray(counts[own - lowest], g.real.dtype)).astype(g.dtype)
    return out


@_on_cuda
def broadcast(cupy: Any, x: Any, shape: tuple[int, ...]) -> Any:
    return cupy.broadcast_to(x, shape)


# --- making ---------------------------------------------------------------------------------------
@_on_cuda
def full(cupy: Any, like: Any, shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
    with like.device:
        return cupy.full(shape, value, dtype)


@_on_cuda
def empty(cupy: Any, like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    with like.device:
        return cupy.empty(shape, dtype)


@_on_cuda
def empty_as(cupy: Any, like: Any, dtype: Any) -> Any:
    with like.device:
        return cupy.empty_like(like, dtype=dtype)


@_on_cuda
def iota(cupy: Any, like: Any, n: int, dtype: Any) -> Any:
    with like.device:
        return cupy.arange(n, dtype=dtype)


@_on_cuda
def constant(cupy: Any, like: Any, value: Any, dtype: Any) -> Any:
    with like.device:
        return cupy.asarray(value, dtype)


@_on_cuda
def complex_of(cupy: Any, re: Any, im: Any) -> Any:
    out = cupy.empty(re.shape, np.result_type(re.dtype, np.complex64))
    out.real = re
    out.imag = im
    return out


@_on_cuda
def pad(cupy: Any, x: Any, widths: tuple[tuple[int, int], ...], value: Any) -> Any:
    shape = tuple(n + low + high for n, (low, high) in zip(x.shape, widths, strict=True))
    out = cupy.full(shape, value, x.dtype)
    inside = tuple(slice(low, low + n) for n, (low, _) in zip(x.shape, widths, strict=True))
    out[inside] = x
    return out


@_on_cuda
def flip(cupy: Any, x: Any, axes: tuple[int, ...]) -> Any:
    turned = {a % x.ndim for a in axes} if x.ndim else set()
    steps = tuple(slice(None, None, -1 if d in turned else None) for d in range(x.ndim))
    return like_clone(x[steps].copy("C"), x)


@_on_cuda
def triangle(cupy: Any, x: Any, k: int, lower: bool) -> Any:
    rows, columns = x.shape[-2:]
    keep = cupy.arange(columns) - cupy.arange(rows)[:, None]
    return where(cupy, keep <= k if lower else keep >= k, x, cupy.zeros((), x.dtype))


# --- functions of one element ---------------------------------------------------------------------
def _function(name: str) -> Any:
    return getattr(importlib.import_module("cupyx.scipy.special"), name)


@_on_cuda
def special(cupy: Any, x: Any, name: str, *others: Any) -> Any:
    if v.low_precision(x.dtype):
        return _function(name)(x.astype(_F32), *others).astype(x.dtype)
    return _function(name)(x, *others)


@_on_cuda
def polygamma(cupy: Any, x: Any, n: int) -> Any:
    if n == 0:
        return special(cupy, x, "digamma")
    zeta = _function("zeta")
    if n == 1:
        left = x < 0.5
        right = zeta(x.dtype.type(2), cupy.where(left, 1 - x, x))
        return cupy.where(left, (math.pi / cupy.sin(math.pi * x)) ** 2 - right, right)
    return (float(math.factorial(n)) * (1 if n % 2 else -1)) * zeta(x.dtype.type(n + 1), x)


@_on_cuda
def where(cupy: Any, condition: Any, a: Any, b: Any) -> Any:
    condition = cupy.asarray(condition, np.bool_)
    low = next((x for x in (a, b) if getattr(x, "dtype", _F32).kind == "V"), None)
    a, b = (cupy.asarray(x) if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in (a, b))
    if low is None:
        return cupy.where(condition, a, b)
    a, b = (_wide(x) if hasattr(x, "dtype") else x for x in (a, b))
    return cupy.where(condition, a, b).astype(low.dtype)


# --- reductions -----------------------------------------------------------------------------------
def _one_by_one(x: Any, axes: tuple[int, ...] | None) -> bool:
    """Whether CuPy's threads each add a long row: they do over axes that are not the last."""
    if axes is None or x.ndim - 1 in axes or -1 in axes:
        return False
    return bool(math.prod([x.shape[d] for d in axes]) > 1024)


def _reduction(name: str, method: str, sums: bool) -> None:
    """A word that is a method of CuPy's arrays; `sums`: low precision is kept in float32."""

    def reduce(cupy: Any, x: Any, axes: tuple[int, ...] | None, keep: bool) -> Any:
        if axes == ():  # to CuPy, nothing to reduce over is an error
            x, axes = x[None], (0,)
            return getattr(_wide(x), method)(axis=axes)
        wide = x.astype(_F32) if sums and v.low_precision(x.dtype) else _wide(x)
        if method == "sum" and x.dtype.char in "fF" and _one_by_one(x, axes):
            wider = np.complex128 if x.dtype.kind == "c" else np.float64
            return x.sum(axis=axes, dtype=wider, keepdims=keep).astype(x.dtype)
        y = getattr(wide, method)(axis=axes, keepdims=keep)
        return y if wide is x or y.dtype.kind == "b" else y.astype(x.dtype)

    reduce.__name__ = name
    _on_cuda(reduce)


for _name, _method, _sums in (
    ("reduce_sum", "sum", True), ("product", "prod", True), ("reduce_max", "max", False),
    ("reduce_min", "min", False), ("reduce_any", "any", False), ("reduce_all", "all", False),
):  # fmt: skip
    _reduction(_name, _method, _sums)


@_on_cuda
def deviations(cupy: Any, x: Any, axes: tuple[int, ...] | None, keep: bool) -> Any:
    wide = _wide(x).astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    if axes == ():
        return cupy.zeros(x.shape)
    n = math.prod(x.shape if axes is None else [x.shape[d] for d in axes])
    if n:
        wide = wide - wide.sum(axis=axes, keepdims=True) / n
    squares = wide.real * wide.real
    if wide.dtype.kind == "c":
        squares += wide.imag * wide.imag
    return squares.sum(axis=axes, keepdims=keep)


@_on_cuda
def argmax(cupy: Any, x: Any, axis: int | None, keep: bool) -> Any:
    return cupy.argmax(_wide(x), axis=axis, keepdims=keep).astype(np.int64, copy=False)


@_on_cuda
def argmin(cupy: Any, x: Any, axis: int | None, keep: bool) -> Any:
    return cupy.argmin(_wide(x), axis=axis, keepdims=keep).astype(np.int64, copy=False)


@_on_cuda
def cumsum(cupy: Any, x: Any, axis: int) -> Any:
    return _running(cupy.cumsum, x, axis)


@_on_cuda
def cumprod(cupy: Any, x: Any, axis: int) -> Any:
    return _running(cupy.cumprod, x, axis)


def _running(scan: Any, x: Any, axis: int) -> Any:
    """Low precision in float32, as PyTorch does there; CuPy adds in a tree."""
    wide = x.astype(_F32) if v.low_precision(x.dtype) else x
    return _narrow(scan(wide, axis, dtype=wide.dtype), x)


@_on_cuda
def running(cupy: Any, x: Any, axis: int, most: bool) -> Any:
    better = cupy.maximum if most else cupy.minimum
    out = _wide(x).copy()
    ahead = cupy.moveaxis(out, axis, 0)  # a view of `out`
    step = 1
    while step < ahead.shape[0]:  # after each turn an element knows the best of 2 * step
        ahead[step:] = better(ahead[step:], ahead[:-step])
        step *= 2
    return _narrow(out, x)


@_on_cuda
def sort(cupy: Any, x: Any, axis: int, descending: bool, stable: bool) -> Any:
    x = _wide(x)
    if not descending:
        return cupy.argsort(x, axis=axis)  # always stable
    order = cupy.argsort(cupy.flip(x, axis).copy(), axis=axis)
    return cupy.flip(x.shape[axis] - 1 - order, axis).copy()


@_on_cuda
def unique(cupy: Any, x: Any) -> tuple[Any, Any, Any]:
    if x.size == 0:
        none = cupy.empty(0, np.int64)
        return cupy.empty(0, x.dtype), none.reshape(x.shape), none
    values, inverse, counts = cupy.unique(x, return_inverse=True, return_counts=True)
    return values, inverse.reshape(x.shape), counts


# --- gathering and scattering ---------------------------------------------------------------------
def _index(index: Any, arrays: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """An index with its arrays in place, none of them out of range: CuPy would wrap it round."""
    filled = v._filled(index, arrays)
    wide = sum(_width(item) for item in filled)
    axis = 0
    for item in filled:
        if item is Ellipsis:
            axis += len(shape) - wide
        elif hasattr(item, "dtype") and item.dtype.kind in "iu" and item.size:
            n = shape[axis]
            low, high = int(item.min()), int(item.max())
            if low < -n or high >= n:
                bad = high if high >= n else low
                raise IndexError(f"index {bad} is out of bounds for axis {axis} with size {n}")
        axis += _width(item)
    return filled


def _width(item: Any) -> int:
    """How many axes of the indexed array an item of an index stands for."""
    if item is None or item is Ellipsis:
        return 0
    return int(item.ndim) if hasattr(item, "dtype") and item.dtype.kind == "b" else 1


@_on_cuda
def pick(cupy: Any, x: Any, index: Any, *arrays: Any) -> Any:
    return lay_out_picked(x[_index(index, arrays, x.shape)], x, index, arrays)


def _add_at(cupy: Any, target: Any, index: Any, value: Any) -> None:
    """target[index] += value, repeated places included."""
    kind = target.dtype
    if kind.kind == "c":
        value = cupy.asarray(value)
        cupy.add.at(target.real, index, value.real)
        cupy.add.at(target.imag, index, value.imag)
    elif kind.char in _ADDED:
        cupy.add.at(target, index, value)
    else:
        inside = np.int32 if kind.kind in "biu" else _F32
        sums = target.astype(inside)
        cupy.add.at(sums, index, cupy.asarray(value).astype(inside))
        target[...] = sums.astype(kind)


def _along(cupy: Any, index: Any, axis: int, rank: int) -> tuple[Any, ...]:
    axis %= max(rank, 1)
    places: list[Any] = []
    for d in range(rank):
        shape = [1] * rank
        shape[d] = index.shape[d]
        places.append(index if d == axis else cupy.arange(index.shape[d]).reshape(shape))
    return tuple(places)


@_on_cuda
def ungather(cupy: Any, g: Any, shape: tuple[int, ...], axis: int, index: Any) -> Any:
    out = cupy.zeros(shape, g.dtype)
    _add_at(cupy, out, _along(cupy, index, axis, len(shape)), g)
    return out


@_on_cuda
def scatter(cupy: Any, x: Any, axis: int, index: Any, source: Any) -> Any:
    out = x.copy()
    out[_along(cupy, index, axis, x.ndim)] = source
    return out


@_on_cuda
def store_along(cupy: Any, target: Any, axis: int, index: Any, source: Any) -> None:
    target[_along(cupy, index, axis, target.ndim)] = source


@_on_cuda
def scatter_add(cupy: Any, x: Any, axis: int, index: Any, source: Any) -> Any:
    out = x.copy()
    _add_at(cupy, out, _along(cupy, index, axis, x.ndim), source)
    return out


@_on_cuda
def unpick(cupy: Any, g: Any, shape: tuple[int, ...], index: Any, *arrays: Any) -> Any:
    out = cupy.zeros(shape, g.dtype)
    store_add(cupy, out, g, index, *arrays)
    return out


@_on_cuda
def place_add(cupy: Any, x: Any, value: Any, index: Any, *arrays: Any) -> Any:
    out = x.copy()
    store_add(cupy, out, value, index, *arrays)
    return out


@_on_cuda
def store_add(cupy: Any, target: Any, value: Any, index: Any, *arrays: Any) -> None:
    _add_at(cupy, target, _index(index, arrays, target.shape), value)


@_on_cuda
def store(cupy: Any, target: Any, value: Any, index: Any, *arrays: Any) -> None:
    if isinstance(value, np.ndarray):
        value = cupy.asarray(value)
    target[_index(index, arrays, target.shape)] = value


@_on_cuda
def place(cupy: Any, x: Any, value: Any, index: Any, *arrays: Any) -> Any:
    out = x.copy()
    store(cupy, out, value, index, *arrays)
    return out


@_on_cuda
def reduce_along(
    cupy: Any, x: Any, axis: int, index: Any, source: Any, how: str, include: bool
) -> Any:
    if how == "sum" and include:
        return scatter_add(cupy, x, axis, index, source)
    # CuPy has no product, and no NaN, at repeated indices: NumPy computes
    host = [a.get() if isinstance(a, cupy.ndarray) else a for a in (x, index, source)]
    return cupy.asarray(v.reduce_along(host[0], axis, host[1], host[2], how, include))


# --- writing --------------------------------------------------------------------------------------
@_on_cuda
def overwrite(cupy: Any, target: Any, source: Any) -> None:
    if source.dtype.kind == "c" and target.dtype.kind not in "cb":
        source = source.real
    target[...] = cupy.asarray(source).astype(target.dtype, copy=False)
