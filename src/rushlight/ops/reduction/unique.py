"""Distinct values, where values fall among bounds, and how many fall where. None of it has a
derivative.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import asarray, from_host
from rushlight.core.elementwise import result_dtype
from rushlight.core.graph import Node, Op, TensorBase, wrap
from rushlight.core.record import apply
from rushlight.core.transforms.vmap import WORDS
from rushlight.ops.checks import check_tensor, is_batched, not_implemented, refuse_complex
from rushlight.ops.each_member import one_by_one
from rushlight.ops.numbers import Number, Operand
from rushlight.ops.reduction.family import check_dim, widen
from rushlight.ops.registry import function, op
from rushlight.ops.sample_inputs import drawn

_INT64: Final = dtypes.int64.numpy


# --- unique ---------------------------------------------------------------------------------------
class Distinct(Op):
    """Distinct values, where each element went, and how many there were of each."""

    outputs = ("result0", "result1", "result2")
    differentiable = False
    dynamic = True  # the shape of the result depends on values


class Refused(Op):
    """A result that PyTorch connects to its input though it has no derivative for it: the node
    raises an error when a backward pass reaches it."""

    reason: ClassVar[str] = ""

    def __init__(self, result: Any) -> None:
        super().__init__()
        self.result = result

    def forward(self, x: Any) -> Any:
        return self.result

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        return WORDS  # the result is there, batched as it is

    def vjp(self, node: Node, g: Any) -> Any:
        raise NotImplementedError(self.reason)


def _refused_op(name: str, reason: str, **facts: Any) -> type[Refused]:
    """A subclass of `Refused` with a name and a reason."""
    return type(name.title(), (Refused,), {"name": name, "reason": reason, **facts})


Unique2 = _refused_op(
    "unique2", "the derivative for '_unique2' is not implemented.", aten="_unique2.default"
)
UniqueRuns = _refused_op(
    "unique_consecutive", "the derivative for 'unique_consecutive' is not implemented."
)
UniqueSlices = _refused_op("unique_dim", "the derivative for 'unique_dim' is not implemented.")
WeightedCount = _refused_op(
    "bincount", "derivative for aten::bincount is not implemented", node="NotImplemented"
)


def connect_refused(cls: type[Refused], result: Any, input: Any) -> Any:
    """`result` as PyTorch gives it: it requires a gradient if `input` does."""
    if not (input._requires_grad or input._node is not None):
        return result
    what = cls(result._array)
    y = apply(what, input)
    what.result = None  # the node need not keep it
    return y


def runs(fresh: Any) -> tuple[Any, Any, Any]:
    """Runs of equal elements, from a vector that is True where a run starts (and at the first
    place): the starts of the runs, the run of each place, and the lengths of the runs."""
    fresh = v.cast(fresh, _INT64)
    (starts,) = v.nonzero(fresh)
    which = v.cumsum(fresh, -1) - 1
    return starts, which, v.bincount(which, None, 0)


def changes(x: Any) -> Any:
    """Where an element of a vector, or a row of a matrix, differs from the one before; True at the
    first."""
    differs = v.not_equal(v.window(x, (slice(1, None),)), v.window(x, (slice(0, -1),)))
    if x.ndim == 2:
        differs = v.reduce_any(differs, (-1,), False)
    return v.concat([v.full(x, (min(1, x.shape[0]),), True, dtypes.bool_.numpy), differs], 0)


@op
class Unique(Distinct):
    """The distinct values, in order."""

    name = "unique"
    aten = "_unique2.default"
    profile_name = "_unique"

    def forward(self, x: Any) -> Any:
        line = v.reshape(x, (x.size,))
        order = v.sort(widen(line), -1, False, True)
        line = v.gather(line, -1, order)
        starts, which, lengths = runs(changes(line))
        back = v.gather(which, -1, v.sort(order, -1, False, True))
        return v.pick(line, (v.SLOT,), starts), v.reshape(back, x.shape), lengths

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Unique(), draw.ints(0, 3, 2, 3)
        yield Unique(), draw.real(0)
        yield Unique(), draw.real()


@op
class UniqueConsecutive(Distinct):
    """The values with repetitions in a row left out; along `dim`, the slices."""

    name, params = "unique_consecutive", ("dim",)
    dim: Any

    def forward(self, x: Any) -> Any:
        if self.dim is None or x.ndim == 0:
            line = v.reshape(x, (x.size,))
            starts, which, lengths = runs(changes(line))
            return v.pick(line, (v.SLOT,), starts), v.reshape(which, x.shape), lengths
        rows = as_rows(x, self.dim)
        starts, which, lengths = runs(changes(rows))
        return from_rows(v.pick(rows, (v.SLOT,), starts), x.shape, self.dim), which, lengths

    @staticmethod
    def samples(draw: Any) -> Any:
        yield UniqueConsecutive(None), draw.ints(0, 2, 6)
        yield UniqueConsecutive(-2), draw.ints(0, 2, 6, 1)


@op
class UniqueDim(UniqueConsecutive):
    """The distinct slices along `dim`, in order."""

    name = "unique_dim"

    def forward(self, x: Any) -> Any:
        rows = as_rows(x, self.dim)
        order = lexical(rows)
        rows = v.pick(rows, (v.SLOT,), order)
        starts, which, lengths = runs(changes(rows))
        back = v.gather(which, -1, v.sort(order, -1, False, True))
        return from_rows(v.pick(rows, (v.SLOT,), starts), x.shape, self.dim), back, lengths

    @staticmethod
    def samples(draw: Any) -> Any:
        yield UniqueDim(-1), draw.ints(0, 2, 2, 6)
        yield UniqueDim(-2), draw.ints(0, 2, 5, 2)


def as_rows(x: Any, dim: int) -> Any:
    """The slices along `dim` as the rows of a matrix."""
    at = dim % x.ndim
    x = v.permute(x, (at, *[d for d in range(x.ndim) if d != at]))
    return v.reshape(x, (x.shape[0], math.prod(x.shape[1:])))


def from_rows(rows: Any, shape: tuple[int, ...], dim: int) -> Any:
    """The inverse of `as_rows`, for as many rows as there are now."""
    at = dim % len(shape)
    rest = [n for d, n in enumerate(shape) if d != at]
    x = v.reshape(rows, (rows.shape[0], *rest))
    return v.contiguous(v.permute(x, (*range(1, at + 1), 0, *range(at + 1, len(shape)))))


def lexical(rows: Any) -> Any:
    """The order of rows by their first element, then the second, and so on."""
    n = rows.shape[0]
    order = v.sort(v.full(rows, (n,), 0, _INT64), -1, False, True)
    for j in reversed(range(rows.shape[1])):
        column = v.gather(v.window(rows, (slice(None), j)), -1, order)
        order = v.gather(order, -1, v.sort(widen(column), -1, False, True))
    return order


def _select_outputs(op: Any, node: type[Refused], input: Any, inverse: bool, counts: bool) -> Any:
    values, *others = apply(op, input)
    values = connect_refused(node, values, input)
    if not (inverse or counts):
        return values
    return (values, *[r for r, wanted in zip(others, (inverse, counts)) if wanted])


@function()
def unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,
    dim: Any = None,
) -> Any:  # fmt: skip
    """The distinct elements (along `dim`: the distinct slices), in order; if asked, also where each
    element of the input went, and how many there were of each.

    >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    array = check_tensor(input, "unique")
    refuse_complex("unique" if dim is None else "unique_dim", array)
    if dim is None:
        return _select_outputs(Unique(), Unique2, input, return_inverse, return_counts)
    at = check_dim("unique", dim, array.ndim)
    if array.ndim == 0 or any(n == 0 for d, n in enumerate(array.shape) if d - array.ndim != at):
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied"
        )
    return _select_outputs(UniqueDim(at), UniqueSlices, input, return_inverse, return_counts)


@function()
def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None
) -> Any:
    """The elements (along `dim`: the slices) without those that repeat the one before.

    >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    array = check_tensor(input, "unique_consecutive")
    refuse_complex("unique" if dim is None else "unique_dim", array)
    at = None if dim is None else check_dim("unique_consecutive", dim, array.ndim)
    return _select_outputs(UniqueConsecutive(at), UniqueRuns, input, return_inverse, return_counts)


# --- where values fall ----------------------------------------------------------------------------
@op
class SearchSorted(Op):
    """The index at which each value would stand in the sorted last axis of `sorted_sequence`."""

    name, differentiable = "searchsorted", False
    aten = "searchsorted.Tensor"
    inputs, params = ("sorted_sequence", "self"), ("right", "dtype")
    right: bool
    dtype: Any

    def forward(self, bounds: Any, x: Any) -> Any:
        if bounds.ndim == 1:
            return v.cast(v.searchsorted(bounds, x, self.right), self.dtype)
        rows = math.prod(bounds.shape[:-1])
        lines = v.reshape(bounds, (rows, bounds.shape[-1]))
        values = v.reshape(x, (rows, x.shape[-1]))
        found = [
            v.reshape(
                v.searchsorted(v.window(lines, (i,)), v.window(values, (i,)), self.right), (1, -1)
            )
            for i in range(rows)
        ]
        if not found:
            return v.full(x, x.shape, 0, self.dtype)
        return v.cast(v.reshape(v.concat(found, 0), x.shape), self.dtype)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield SearchSorted(False, _INT64), asarray([-1.0, 0.0, 1.0]), draw.real(2, 3)
        yield SearchSorted(True, _INT64), asarray([[-1.0, 1.0], [0.0, 1.0]]), draw.real(2, 3)


def _search(bounds: Any, x: Any, right: bool, int32: bool) -> Any:
    if not isinstance(x, TensorBase):
        x = wrap(from_host(asarray(x, dtypes.of_scalar(x).numpy), bounds._array))
    common = result_dtype((bounds, x)).numpy
    if common.kind == "c":
        raise not_implemented("searchsorted_out_cpu", common)
    if dtypes.is_low_precision(common):
        common = dtypes.float32.numpy
    what = SearchSorted(right, (dtypes.int32 if int32 else dtypes.int64).numpy)
    return what, (wrap(v.cast(bounds._array, common)), wrap(v.cast(x._array, common)))


@function(out=True, method=False)
def searchsorted(
    sorted_sequence: Any, input: Operand, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, sorter: Any = None,
) -> Any:  # fmt: skip
    """The index at which each value would have to be put into a sorted sequence to keep it sorted.

    >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([2, 3]))
    tensor([1, 1])
    """
    bounds = check_tensor(sorted_sequence, "searchsorted")
    if side is not None:
        if side not in ("left", "right"):
            raise RuntimeError(
                f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
            )
        if right and side == "left":
            raise RuntimeError(
                "torch.searchsorted(): side and right can't be set to opposites, got side of left "
                "while right was True"
            )
        right = side == "right"
    shape = input._array.shape if isinstance(input, TensorBase) else ()
    if bounds.ndim == 0 and shape:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
            "dimension"
        )
    if bounds.ndim != 1 and (shape == () or shape[:-1] != bounds.shape[:-1]):
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(bounds.shape)} and input value tensor {list(shape)}"
        )
    if sorter is not None:
        if sorter._array.dtype != dtypes.int64.numpy:
            raise RuntimeError(
                "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
                f"{dtypes.of(sorter._array.dtype).scalar_type}"
            )
        if sorter._array.shape != bounds.shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got "
                f"boundary tensor {list(bounds.shape)}and got sorter tensor "
                f"{list(sorter._array.shape)}"
            )
        sorted_sequence = wrap(v.gather(bounds, -1, sorter._array))
    return _search(sorted_sequence, input, right, out_int32)


@function(out=True, method=False)
def bucketize(
    input: Operand, boundaries: Any, *, out_int32: bool = False, right: bool = False
) -> Any:
    """The index of the bucket that each value falls into; `boundaries` are sorted.

    >>> torch.bucketize(torch.tensor([1, 3, 6]), torch.tensor([2, 4]))
    tensor([0, 1, 2])
    """
    if boundaries._array.ndim != 1:
        raise RuntimeError(
            f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})"
        )
    return _search(boundaries, input, right, out_int32)


# --- how many fall where --------------------------------------------------------------------------
@op
class BinCount(Op):
    """How often each of 0, 1, ... occurs, or the sum of the weights there."""

    name, differentiable, dynamic = "bincount", False, True
    inputs, params = ("self", "weights"), ("minlength",)
    minlength: int

    def forward(self, x: Any, weights: Any) -> Any:
        if weights is None or x.size == 0:
            return v.bincount(v.cast(x, _INT64), None, self.minlength)
        y = v.bincount(v.cast(x, _INT64), weights, self.minlength)
        return v.cast(y, weights.dtype) if weights.dtype == dtypes.float32.numpy else y

    @staticmethod
    def samples(draw: Any) -> Any:
        yield BinCount(0), draw.ints(0, 4, 5), None
        yield BinCount(6), draw.ints(0, 4, 5), draw.real(5)


@function()
def bincount(input: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each non-negative integer occurs in a line of them.

    >>> torch.bincount(torch.tensor([1, 3, 3]))
    tensor([0, 1, 0, 2])
    """
    array = check_tensor(input, "bincount")
    if array.dtype.kind not in "iu":
        raise not_implemented("bincount_cpu", array.dtype)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    known = bottom(array)
    if array.ndim != 1 or (known.size and int(known.min()) < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights._array.shape != array.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    what = BinCount(int(minlength))
    if is_batched(input) or is_batched(weights):
        y = one_by_one("bincount", lambda *xs: apply(what, *xs), input, weights)
    else:
        y = apply(what, input, weights)
    return y if weights is None else connect_refused(WeightedCount, y, weights)


@op
class Histc(Op):
    """How many elements fall into each of `bins` equal parts of [low, high], its end included."""

    name, differentiable, params = "histc", False, ("bins", "low", "high")
    bins: int
    low: float | None
    high: float | None

    def range(self, line: Any) -> tuple[Any, Any]:
        """The ends: if none are given those of the numbers, which differ inside `vmap`."""
        if self.low is not None and self.high is not None:
            return self.low, self.high
        low, high = v.reduce_min(line, (-1,), True), v.reduce_max(line, (-1,), True)
        one = v.cast(v.equal(low, high), line.dtype)
        return low - one, high + one

    def forward(self, x: Any) -> Any:
        line = widen(v.reshape(x, (x.size,)))
        low, high = self.range(line)
        outside = v.logical_or(v.isnan(line), v.logical_or(line < low, line > high))
        line = v.where(outside, low, line)
        part = v.floor((line - low) * (self.bins / (high - low)))
        part = v.cast(v.where(part >= self.bins, self.bins - 1, part), _INT64)
        counts = v.bincount(v.where(outside, self.bins, part), None, self.bins + 1)
        return v.cast(v.window(counts, (slice(0, self.bins),)), x.dtype)

    samples = drawn(real=[(4, -1.0, 1.0, (2, 3)), (4, None, None, (5,))])


@function(out=True)
def histc(input: Any, bins: int = 100, min: Number = 0, max: Number = 0) -> Any:
    """How many elements fall into each of `bins` equal parts between `min` and `max` (if they are
    equal: between the smallest and the largest element).

    Args:
        min: where the first bin begins.
        max: where the last bin ends; with both 0, the range of `input` is taken.

    >>> torch.histc(torch.tensor([1., 2., 1.]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    array = check_tensor(input, "histc")
    if not dtypes.of(array.dtype).is_floating_point:
        raise not_implemented("histogram_cpu", array.dtype)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    low, high = float(min), float(max)
    known = bottom(array)
    if low == high and known.size:
        low, high = float(known.min()), float(known.max())
        if is_batched(input) and math.isfinite(low) and math.isfinite(high):
            return Histc(int(bins), None, None), (input,)
    if low == high:
        low, high = low - 1, high + 1
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    return Histc(int(bins), low, high), (input,)
