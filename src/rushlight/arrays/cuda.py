"""CuPy's arrays: the words of the vocabulary that NumPy's protocols do not carry over.

CuPy answers to NumPy's ufuncs and to most of its functions by itself (`__array_ufunc__`,
`__array_function__`), so the words of `vocabulary` run on its arrays as they stand. Here are the
others. `prepare` is called by `host.cupy` when CuPy is first used.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from rushlight.arrays.kinds import Kind, register

__all__ = ["prepare"]

_words: Final[dict[str, Callable[..., Any]]] = {}
_state: Final[dict[str, Any]] = {}


def prepare(cupy: Any) -> None:
    """Make CuPy's arrays a kind of their own; a second call does nothing."""
    if "cupy" in _state:
        return
    _state["cupy"] = cupy
    register(cupy.ndarray, Kind(5, _answer))


def _answer(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    own = _words.get(name)
    return fn(*args) if own is None else own(_state["cupy"], *args)


def _on_cuda(fn: Callable[..., Any]) -> Callable[..., Any]:
    _words[fn.__name__.strip("_")] = fn
    return fn


@_on_cuda
def special(cupy: Any, x: Any, name: str, *others: Any) -> Any:
    fn = getattr(importlib.import_module("cupyx.scipy.special"), name)
    return fn(x, *others)


@_on_cuda
def full(cupy: Any, like: Any, shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
    return cupy.full(shape, value, dtype)


@_on_cuda
def empty(cupy: Any, like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return cupy.empty(shape, dtype)


@_on_cuda
def empty_as(cupy: Any, like: Any, dtype: Any) -> Any:
    return cupy.empty_like(like, dtype=dtype)


@_on_cuda
def iota(cupy: Any, like: Any, n: int, dtype: Any) -> Any:
    return cupy.arange(n, dtype=dtype)


@_on_cuda
def constant(cupy: Any, like: Any, value: Any, dtype: Any) -> Any:
    return cupy.asarray(value, dtype)


@_on_cuda
def broadcast(cupy: Any, x: Any, shape: tuple[int, ...]) -> Any:
    return cupy.broadcast_to(x, shape)


@_on_cuda
def complex_of(cupy: Any, re: Any, im: Any) -> Any:
    out = cupy.empty(re.shape, np.result_type(re.dtype, np.complex64))
    out.real = re
    out.imag = im
    return out


@_on_cuda
def scatter_add(cupy: Any, x: Any, axis: int, index: Any, source: Any) -> Any:
    out = x.copy()
    cupy.add.at(out, _along(cupy, index, axis, x.ndim), source)
    return out


@_on_cuda
def scatter(cupy: Any, x: Any, axis: int, index: Any, source: Any) -> Any:
    out = x.copy()
    out[_along(cupy, index, axis, x.ndim)] = source
    return out


def _along(cupy: Any, index: Any, axis: int, rank: int) -> tuple[Any, ...]:
    axis %= max(rank, 1)
    places: list[Any] = []
    for d in range(rank):
        shape = [1] * rank
        shape[d] = index.shape[d]
        places.append(index if d == axis else cupy.arange(index.shape[d]).reshape(shape))
    return tuple(places)


@_on_cuda
def overwrite(cupy: Any, target: Any, source: Any) -> None:
    if source.dtype.kind == "c" and target.dtype.kind not in "cb":
        source = source.real
    target[...] = cupy.asarray(source).astype(target.dtype, copy=False)
