"""What the files of reductions share: axes, low precision, arguments."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeVar

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Reduce
from rushlight.ops.checks import axes_of, mismatch, one_dim, raw_dtype, some_dims
from rushlight.ops.registry import describe, function, variant

F = TypeVar("F", bound=Callable[..., Any])
_FLOAT32: Final = dtypes.float32.numpy
_NAMES: Final = {"axis": "dim", "keepdims": "keepdim"}


# --- in rules -------------------------------------------------------------------------------------
def widen(x: Any) -> Any:
    """Low precision as float32, to compute in; anything else as it is."""
    return v.cast(x, _FLOAT32) if v.low_precision(raw_dtype(x)) else x


def narrow(y: Any, x: Any) -> Any:
    """What was computed from `widen(x)`, rounded once to the dtype of `x`."""
    dtype = raw_dtype(x)
    return v.cast(y, dtype) if v.low_precision(dtype) else y


def reduced_count(shape: tuple[int, ...], dims: tuple[int, ...] | None) -> int:
    """How many elements go into one result."""
    return math.prod(shape) if dims is None else math.prod([shape[d] for d in dims])


def fold(x: Any, dims: tuple[int, ...] | None) -> Any:
    """`x` with the axes `dims` as one, the last."""
    rest, axes = _split(dims, x.ndim)
    shape = x.shape
    if axes != tuple(range(len(rest), x.ndim)):
        x = v.permute(x, (*rest, *axes))
    return v.reshape(x, (*[shape[d] for d in rest], math.prod([shape[d] for d in axes])))


def unfold(z: Any, dims: tuple[int, ...] | None, shape: tuple[int, ...]) -> Any:
    """The inverse of `fold`, for an `x` of `shape`."""
    rest, axes = _split(dims, len(shape))
    order = (*rest, *axes)
    z = v.reshape(z, tuple([shape[d] for d in order]))
    if axes == tuple(range(len(rest), len(shape))):
        return z
    return v.permute(z, tuple([order.index(d) for d in range(len(shape))]))


def _split(dims: tuple[int, ...] | None, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    axes = tuple(sorted(d % rank for d in axes_of(dims, rank)))
    return tuple(d for d in range(rank) if d not in axes), axes


def shift(x: Any, by: int, value: Any) -> Any:
    """`x` moved along its last axis by `by` places (at most its length), `value` coming in."""
    cut = v.window(x, (..., slice(0, x.shape[-1] - by)))
    return v.pad(cut, (*[(0, 0)] * (x.ndim - 1), (by, 0)), value)


def equal_with_nan(x: Any, y: Any) -> Any:
    """Where `x` equals `y`, a NaN being equal to a NaN."""
    return v.where(v.isnan(y), v.isnan(x), v.equal(x, y))


class Fold(Reduce):
    """A reduction whose rules bring results back into the shape of the input."""

    params: ClassVar[tuple[str, ...]] = ("dims", "keepdim")

    def back(self, g: Any, shape: tuple[int, ...]) -> Any:
        """`g`, of the output's shape, with the reduced axes as size 1 (a 0-d one as it is)."""
        if self.keepdim or self.dims is None:
            return g
        return v.reshape(g, self.expanded(g, shape))


class InDtype(Fold):
    """A reduction in `dtype` (a raw one; None: that of the input)."""

    params = ("dims", "keepdim", "dtype")

    def __init__(
        self, dims: tuple[int, ...] | None = None, keepdim: bool = False, dtype: Any = None
    ) -> None:
        super().__init__(dims, keepdim)
        self.dtype = dtype

    def convert(self, x: Any) -> Any:
        """The input in the dtype to compute in."""
        return x if self.dtype is None else v.cast(x, self.dtype)


# --- in public functions --------------------------------------------------------------------------
def declare(
    fn: Callable[..., Any], name: str, text: str, example: str, gives: str,
    **how: Any,
) -> None:  # fmt: skip
    """Export `fn`, which the members of a family share, under a name of its own, and with NumPy's
    names for parameters. `how` are arguments of `function`."""
    function(settles=True, **how)(numpy_names(variant(fn, name, describe(text, example, gives))))


def numpy_names(fn: F) -> F:
    """Let a function take NumPy's `axis` and `keepdims` too, as PyTorch does."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            for theirs, ours in _NAMES.items():
                if theirs in kwargs:
                    kwargs[ours] = kwargs.pop(theirs)
        return fn(*args, **kwargs)

    return call  # type: ignore[return-value]  # the same function under more names


def dims_of(function: str, dim: Any, rank: int) -> tuple[int, ...] | None:
    """Several dimensions, as an op wants them."""
    try:
        return some_dims(dim, rank)
    except TypeError:
        raise mismatch(function, dim) from None


def check_dim(function: str, dim: Any, rank: int) -> int:
    """One dimension, as an op wants it."""
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(
            f"{function}(): argument 'dim' (position 1) must be int, not {dtypes.type_name(dim)}"
        )
    return one_dim(dim, rank)


def axes_from_end(axes: tuple[int, ...] | int | None, rank: int) -> tuple[int, ...] | None:
    """The axes a word was given, as an op wants them."""
    if axes is None:
        return None
    if isinstance(axes, int):
        axes = (axes,)
    return tuple(a - rank if a >= 0 else a for a in axes)
