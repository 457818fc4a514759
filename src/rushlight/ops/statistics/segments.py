"""Reductions of runs of elements: `segment_reduce`."""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, not_implemented, raw_dtype
from rushlight.ops.numbers import Number
from rushlight.ops.registry import function, functions

_STARTS: Final = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": float("-inf"), "min": float("inf")}
_WORDS: Final = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}


class SegmentReduce(Op):
    """Runs along the axis `axis` (from the end), joined. `places` says which run an element belongs
    to, and is as long as the axis; there are `count` runs, of the lengths `lengths`."""

    name, node = "segment_reduce", "SegmentReduceBackward0"
    inputs, saves = ("data", "places", "lengths"), ("data", "places", "lengths", "result")
    params = ("reduce", "axis", "count", "initial")
    shown_edges = (0,)
    reduce: str
    axis: int
    count: int
    initial: Any = None

    def forward(self, x: Any, places: Any, lengths: Any) -> Any:
        shape = list(x.shape)
        shape[self.axis] = self.count
        start = _STARTS[self.reduce] if self.initial is None else self.initial
        base = v.full(x, tuple(shape), start, raw_dtype(x))
        index = v.broadcast(self.with_axes_behind(places, x), x.shape)
        y = v.reduce_along(base, self.axis, index, x, _WORDS[self.reduce], True)
        if self.reduce != "mean":
            return y
        number = v.cast(self.with_axes_behind(lengths, x), raw_dtype(x))
        if self.initial is None:
            return y / number  # of no elements: NaN
        return v.where(v.equal(number, 0), y, y / v.where(v.equal(number, 0), 1, number))

    def with_axes_behind(self, places: Any, x: Any) -> Any:
        """An array of the leading axes with new ones behind them, to broadcast with `x`."""
        return v.window(places, (..., *[None] * (-self.axis - 1)))

    def spread(self, y: Any, places: Any, x: Any) -> Any:
        """What each element's run has."""
        return v.gather(y, self.axis, v.broadcast(self.with_axes_behind(places, x), x.shape))

    def others(self, x: Any, places: Any) -> Any:
        """The product of all other elements of an element's run, zeros among them."""
        kind = raw_dtype(x)
        zero = v.equal(x, 0)
        safe = v.where(zero, 1, x)
        product = SegmentReduce("prod", self.axis, self.count, self.initial)
        whole = self.spread(product.forward(safe, places, places), places, x)
        counted = SegmentReduce("sum", self.axis, self.count)
        zeros = self.spread(counted.forward(v.cast(zero, kind), places, places), places, x)
        return v.where(v.equal(zeros, v.cast(zero, kind)), whole / safe, 0)

    def vjp(self, node: Node, g: Any, x: Any, places: Any, lengths: Any, y: Any) -> Any:
        back = self.spread(g, places, x)
        if self.reduce == "sum":
            return back, None, None
        if self.reduce == "mean":
            number = v.cast(self.with_axes_behind(lengths, x), raw_dtype(x))
            return back / self.spread(v.broadcast(number, y.shape), places, x), None, None
        if self.reduce == "prod":
            return back * self.others(x, places), None, None
        chosen = v.cast(v.equal(x, self.spread(y, places, x)), raw_dtype(x))
        index = v.broadcast(self.with_axes_behind(places, x), x.shape)
        ties = v.scatter_add(v.full(y, y.shape, 0, raw_dtype(y)), self.axis, index, chosen)
        return (
            back * chosen / self.spread(v.where(v.equal(ties, 0), 1, ties), places, x),
            None,
            None,
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        raise NotImplementedError(
            "Trying to use forward AD with segment_reduce that does not support it because it has "
            "not been implemented yet."
        )


def _check(data: Any, reduce: str, runs: Any, axis: int) -> None:
    if reduce not in _STARTS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    if axis != runs._array.ndim - 1:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of lengths but got {axis}."
        )
    if dtypes.of(data._array.dtype) not in (
        dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16
    ):  # fmt: skip
        raise not_implemented("_segment_reduce_cpu", data._array.dtype)


@function(method=False)
def segment_reduce(
    data: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None,
    axis: int = 0, unsafe: bool = False, initial: Number | None = None,
) -> Any:  # fmt: skip
    """Runs of elements along an axis, each reduced to one.

    Args:
        data: the elements.
        reduce: "sum", "mean", "prod", "max" or "min".
        lengths: how long the runs are; for each row apart, if it has more dimensions.
        offsets: where the runs begin, and where the last one ends: instead of `lengths`.
        axis: along which dimension: the last of `lengths`.
        unsafe: whether to leave out the check that all elements belong to a run.
        initial: what a run begins with.

    >>> torch.segment_reduce(torch.tensor([1., 2., 3.]), "sum", lengths=torch.tensor([1, 2]))
    tensor([1., 5.])
    """
    array = check_tensor(data, "segment_reduce", "data")
    axis = axis + array.ndim if axis < 0 else axis
    if array.ndim == 0 or array.size == 0:
        raise RuntimeError("Expected data.numel() > 0 to be true, but got false.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if lengths is None:
        _check(data, reduce, offsets, axis)
        lengths = offsets[..., 1:] - offsets[..., :-1]
    else:
        _check(data, reduce, lengths, axis)
        if not unsafe:
            if not bool((lengths >= 0).all()):
                raise RuntimeError("lengths contains negative value!")
            if not bool((lengths.sum(-1) == array.shape[axis]).all()):
                raise RuntimeError(
                    "segment_reduce(): Expected all rows of lengths along axis to sum to "
                    "data.size(lengths.dim()-1) when !unsafe."
                )
    ends = lengths.cumsum(-1).contiguous()
    at = functions["arange"](array.shape[axis], device=data.device)
    at = at.expand((*ends._array.shape[:-1], array.shape[axis])).contiguous()
    places = functions["searchsorted"](ends, at, right=True)
    count = lengths._array.shape[-1]
    if not unsafe or bool((places < count).all()):
        what = SegmentReduce(reduce, axis - array.ndim, count, initial)
        return apply(what, data, places, lengths)
    # elements behind the last run make one more, which is cut off
    rest = functions["ones_like"](lengths[..., :1])
    what = SegmentReduce(reduce, axis - array.ndim, count + 1, initial)
    whole = apply(what, data, places, functions["cat"]([lengths, rest], -1))
    return whole.narrow(axis, 0, count)
