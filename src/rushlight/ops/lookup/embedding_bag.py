"""`embedding_bag`: sums, means or maxima over bags of rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import has_values
from rushlight.core.graph import Node, Op, wrap
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, is_batched, raw_dtype
from rushlight.ops.nn.embedding import outside, shorten_rows, sparse_rows
from rushlight.ops.reduction.family import narrow, widen
from rushlight.ops.registry import function, functional, functions, op, shared_op
from rushlight.ops.sample_inputs import Draw
from rushlight.size import Size

SUM, MEAN, MAX = 0, 1, 2
MODES: Final = {"sum": SUM, "mean": MEAN, "max": MAX}
_INT64: Final = dtypes.int64.numpy
_INF: Final = float("inf")


class Bag(Op):
    """What bags of all modes share. `bags` says to which of `count` bags each index belongs; the
    row `padding_idx` (-1: none) counts as absent, and gets no gradient."""

    aten = "_embedding_bag.default"
    node = "EmbeddingBagBackward0"
    shown_edges = (0, 3)
    inputs = ("weight", "indices", "offsets", "per_sample_weights")
    lies = "rows"
    count: int
    padding_idx: int

    def present(self, i: Any) -> Any:
        """Where an index counts; None if all do."""
        return None if self.padding_idx < 0 else v.not_equal(i, self.padding_idx)


@op
class EmbeddingBagSum(Bag):
    """The sum or the mean of the rows in each bag, each times its weight if there are weights."""

    name = "embedding_bag"
    saves = ("weight", "indices", "offsets", "per_sample_weights")
    reads: ClassVar = {
        0: ("indices", "offsets", "per_sample_weights"), 3: ("weight", "indices", "offsets"),
    }  # fmt: skip
    params = ("mode", "count", "padding_idx", "scale_grad_by_freq", "sparse")
    mode: int
    scale_grad_by_freq: bool
    sparse: bool = False

    def factors(self, i: Any, bags: Any, s: Any, like: Any) -> Any:
        """What each row is multiplied by, as a column; None if all count 1."""
        f = s
        here = self.present(i)
        if here is not None:
            f = v.where(here, 1 if f is None else f, 0)
        if self.mode == MEAN:
            ones = v.full(i, i.shape, 1, _INT64) if here is None else v.cast(here, _INT64)
            sizes = v.unpick(ones, (self.count,), (v.SLOT,), bags)
            share = 1 / v.cast(v.maximum(v.pick(sizes, (v.SLOT,), bags), 1), raw_dtype(like))
            f = share if f is None else f * share
        return None if f is None else v.window(v.cast(f, raw_dtype(like)), (..., None))

    def forward(self, w: Any, i: Any, bags: Any, s: Any) -> Any:
        rows = widen(v.pick(w, (v.SLOT,), i))
        f = self.factors(i, bags, s, rows)
        if f is not None:
            rows = rows * f
        return narrow(v.unpick(rows, (self.count, w.shape[-1]), (v.SLOT,), bags), w)

    def vjp(self, node: Node, g: Any, w: Any, i: Any, bags: Any, s: Any) -> Any:
        shapes = node._input_shapes
        assert shapes is not None
        rows = v.pick(g, (v.SLOT,), bags)
        gw = gs = None
        if node._needs_grad(0):
            f = self.factors(i, bags, s, g)
            each = rows if f is None else rows * f
            if self.scale_grad_by_freq:
                times = v.unpick(v.full(i, i.shape, 1, _INT64), shapes[0][:1], (v.SLOT,), i)
                each = each / v.window(v.pick(times, (v.SLOT,), i), (..., None))
            if self.sparse:
                gw = sparse_rows(each, i, shapes[0], self.padding_idx)
            else:
                gw = v.unpick(each, shapes[0], (v.SLOT,), i)
        if node._needs_grad(3):
            gs = v.reduce_sum(rows * v.pick(w, (v.SLOT,), i), (-1,), False)
            here = self.present(i)
            if here is not None:
                gs = v.where(here, gs, 0)
        return gw, None, None, gs

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        w, i, bags, s = xs
        out = y * 0 if ts[0] is None else self.forward(ts[0], i, bags, s)
        return out if ts[3] is None else out + self.forward(w, i, bags, ts[3])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        i = draw.ints(0, 4, 5)
        bags = v.cumsum(draw.ints(0, 2, 5), 0)
        yield EmbeddingBagSum(SUM, 7, -1, False), draw.real(4, 3), i, bags, None
        yield EmbeddingBagSum(SUM, 7, -1, False), draw.real(4, 3), i, bags, draw.real(5)
        yield EmbeddingBagSum(MEAN, 7, 1, False), draw.real(4, 3), i, bags, None
        yield EmbeddingBagSum(SUM, 2, -1, False), draw.real(4, 3), i[:0], bags[:0], None


@op
class EmbeddingBagMax(Bag):
    """The largest element of each column, over the rows in each bag; 0 if there are none.

    The indices come as a matrix, a row a bag, as wide as the largest; `offsets` says how many of
    each row count.
    """

    name = "embedding_bag_max"
    saves = ("weight", "indices", "offsets")
    params = ("count", "padding_idx")

    def chosen(self, w: Any, i: Any, sizes: Any) -> tuple[Any, Any]:
        """For each bag and column the row that is largest there; and whether a bag has any."""
        place = v.iota(i, i.shape[-1], _INT64)
        real = v.less(place, v.window(sizes, (..., None)))
        here = self.present(i)
        if here is not None:
            real = v.logical_and(real, here)
        some = v.reduce_any(real, (-1,), True)
        rows = v.where(v.window(real, (..., None)), v.pick(w, (v.SLOT,), i), -_INF)
        at = v.argmax(rows, -2, False)  # (bags, columns): which of the bag
        found = v.gather(i, -1, at)
        return v.where(some, found, 0), some

    def forward(self, w: Any, i: Any, sizes: Any, s: Any) -> Any:
        if i.shape[-1] == 0:
            return v.full(w, (self.count, w.shape[-1]), 0, raw_dtype(w))
        found, some = self.chosen(w, i, sizes)
        return v.where(some, v.gather(w, 0, found), 0)

    def vjp(self, node: Node, g: Any, w: Any, i: Any, sizes: Any) -> Any:
        if i.shape[-1] == 0:
            return w * 0, None, None, None
        found, some = self.chosen(w, i, sizes)
        return v.ungather(v.where(some, g, 0), tuple(w.shape), 0, found), None, None, None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        w, i, sizes, _ = xs
        if i.shape[-1] == 0:
            return y * 0
        found, some = self.chosen(w, i, sizes)
        return v.where(some, v.gather(ts[0], 0, found), 0)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        i, sizes = draw.ints(0, 4, 3, 2), draw.ints(0, 3, 3)
        yield EmbeddingBagMax(3, -1), draw.real(4, 3), i, sizes, None
        yield EmbeddingBagMax(3, 2), draw.real(4, 3), i, sizes, None


# --- arguments ------------------------------------------------------------------------------------
def _check(weight: Any, indices: Any, offsets: Any, samples: Any, padding: int) -> None:
    i, o, w = indices._array, offsets._array, weight._array
    for x in (i, o):
        if x.dtype.kind != "i" or x.dtype.itemsize < 4:
            raise _wrong_kind("indices", "Long, Int", x)
    if not dtypes.of(w.dtype).is_floating_point:
        raise _wrong_kind("weight", "Half, BFloat16, Float, Double", w)
    rows = w.shape[0]
    if not -rows <= padding < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but "
            f"got {padding}"
        )
    _check_offsets(o, i.shape[0])
    if outside(i, rows):
        found = bottom(i)
        bad = ((found < 0) | (found >= rows)).argmax() if has_values(found) else 0
        what = int(found.reshape(-1)[int(bad)]) if has_values(found) else ""
        raise RuntimeError(
            f"Index {int(bad)} of input takes value {what} which is not in the valid range "
            f"[0, {rows})"
        )
    if samples is not None and samples._array.dtype != w.dtype:
        names = [f"torch.{dtypes.of(x.dtype).scalar_type}Tensor" for x in (w, samples._array)]
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument "
            f"#1 'per_sample_weights'; but type {names[0]} does not equal {names[1]} (while "
            "checking arguments for embedding_bag)"
        )


def _wrong_kind(name: str, kinds: str, x: Any) -> RuntimeError:
    return RuntimeError(
        f"Expected tensor for argument #1 '{name}' to have one of the following scalar types: "
        f"{kinds}; but got torch.{dtypes.of(x.dtype).scalar_type}Tensor instead (while checking "
        "arguments for embedding_bag)"
    )


def _bag(
    weight: Any, indices: Any, offsets: Any, by_freq: bool, mode: int, samples: Any, last: bool,
    padding: int, sparse: bool = False,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """The bags, the bag of each index, the sizes of the bags, and the largest indices."""
    if last and offsets._array.shape[0] < 1:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    _check(weight, indices, offsets, samples, padding if padding != -1 else 0)
    i = v.cast(indices._array, _INT64)
    o = v.cast(offsets._array, _INT64)
    n = i.shape[0]
    if last:
        n, o = int(o[-1]), v.window(o, (slice(0, o.shape[0] - 1),))
        indices = indices[:n]
        i = v.window(i, (slice(0, n),))
        samples = None if samples is None else samples[:n]
    count = o.shape[0]
    place = v.iota(i, n, _INT64)
    bags = v.searchsorted(o, place, True) - 1 if count else place
    if mode != MAX:
        what = shared_op(EmbeddingBagSum, mode, count, padding, by_freq, bool(sparse))
        y = apply(what, weight, wrap(i), wrap(bags), samples)
        nothing = wrap(v.full(i, (offsets._array.shape[0],), 0, _INT64))
        if mode == SUM:
            none = wrap(v.full(i, (0,), 0, _INT64))
            return y, (none if padding < 0 else wrap(bags)), nothing, nothing
    ends = v.concat([v.window(o, (slice(1, None),)), v.full(o, (1,), n, _INT64)], 0)
    sizes = ends - o if count else o
    counted = _counted(i, bags, sizes, padding)
    if mode == MEAN:
        return y, wrap(bags), wrap(counted), wrap(counted)
    widest = int(v.reduce_max(sizes, None, False)) if count else 0
    matrix = v.window(o, (slice(None), None)) + v.iota(i, widest, _INT64)
    if n:
        matrix = v.pick(i, (v.SLOT,), v.minimum(matrix, n - 1))
    top = shared_op(EmbeddingBagMax, count, padding)
    y = apply(top, weight, wrap(matrix), wrap(sizes), None)
    chosen = (
        top.chosen(weight._array, matrix, sizes)[0]
        if widest
        else v.full(i, (count, weight._array.shape[1]), 0, _INT64)
    )
    return y, wrap(bags), wrap(counted), wrap(chosen)


def _counted(i: Any, bags: Any, sizes: Any, padding: int) -> Any:
    if padding < 0:
        return sizes
    real = v.cast(v.not_equal(i, padding), _INT64)
    return v.unpick(real, sizes.shape, (v.SLOT,), bags)


def _check_offsets(offsets: Any, count: int) -> None:
    """Refuse bags that do not begin at the first index, or begin behind the last."""
    known = bottom(offsets)
    if not has_values(known) or not known.size:
        return
    starts, ends = known[..., 0], known[..., -1]
    if (starts != 0).any():
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {int(starts[starts != 0][0])}"
        )
    if (ends > count).any():
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of "
            f"{int(ends[ends > count][0])}"
        )


def _by_places(
    weight: Any, input: Any, offsets: Any, mode: str, samples: Any, last: bool, padding: int
) -> Any:
    """Bags that begin elsewhere in each member of a batch: each index is told its bag, and its row
    is added there. Padding goes to a bag of its own, which is dropped."""
    (count,) = input._array.shape
    bags = offsets._array.shape[0] - last
    _check_offsets(offsets._array, count)
    starts = offsets.contiguous().to(dtypes.int64)
    places = functions["arange"](count, device=input.device)
    bag = functions["searchsorted"](starts, places, right=True) - 1
    if padding >= 0:
        bag = functions["where"](input == padding, bags, bag)
    rows = functions["embedding"](weight, input)
    if samples is not None:
        rows = rows * samples.unsqueeze(-1)
    room = rows.new_zeros((bags + 1, rows._array.shape[-1]))
    if mode == "max":
        return room.index_reduce(0, bag, rows, "amax", include_self=False)[:bags]
    found = room.index_add(0, bag, rows)[:bags]
    if mode == "sum":
        return found
    held = rows.new_zeros((bags + 1,)).index_add(0, bag, rows.new_ones((count,)))[:bags]
    return found / held.clamp(min=1).unsqueeze(-1)


@functional()
def embedding_bag(
    input: Any, weight: Any, offsets: Any = None, max_norm: float | None = None,
    norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean",
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """The mean, sum or maximum of the rows of `weight` that each bag of indices names.

    Args:
        input: the indices: a row a bag, or all in one row, cut by `offsets`.
        weight: the table, a row for each index.
        offsets: where each bag begins.
        mode: 'mean', 'sum' or 'max'.
        per_sample_weights: what each index counts, in mode 'sum'.
        include_last_offset: `offsets` has one more, where the last bag ends.
        padding_idx: an index that counts as absent.

    >>> table = torch.tensor([[0., 1.], [2., 3.], [4., 5.]])
    >>> torch.nn.functional.embedding_bag(torch.tensor([[0, 2], [1, 1]]), table)
    tensor([[2., 3.],
            [2., 3.]])
    """
    check_tensor(input, "embedding_bag")
    check_tensor(weight, "embedding_bag", "weight", 2)
    samples, shape = per_sample_weights, Size(input._array.shape)
    if samples is not None and samples._array.shape != shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({Size(samples._array.shape)}) is not None, "
            f"then it must have the same shape as the input ({shape})"
        )
    if weight._array.ndim != 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight._array.ndim}"
        )
    if len(shape) == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {type(offsets)}"
            )
        if shape[1] == 0:
            raise RuntimeError("step must be nonzero")
        starts = v.iota(input._array, shape[0], _INT64) * shape[1]
        offsets, input = wrap(starts), input.reshape(-1)
        samples = None if samples is None else samples.reshape(-1)
        include_last_offset = False
    elif len(shape) == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets._array.ndim != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {len(shape)}"
        )
    if mode not in MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if samples is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    if max_norm is not None:
        shorten_rows(weight, input, max_norm, norm_type)
    padding = _settle(weight, padding_idx)
    if is_batched(offsets):
        if scale_grad_by_freq:
            raise RuntimeError(
                "Batching rule not implemented for aten::_embedding_bag where `offsets` is batched "
                "and `scale_grad_by_freq` is set"
            )
        return _by_places(weight, input, offsets, mode, samples, include_last_offset, padding)
    return _bag(
        weight, input, offsets, scale_grad_by_freq, MODES[mode], samples, include_last_offset,
        padding, sparse,
    )[0]  # fmt: skip


def _settle(weight: Any, padding: int | None) -> int:
    """A padding index that counts from the start; -1 if there is none."""
    if padding is None:
        return -1
    rows: int = weight._array.shape[0]
    if not -rows <= padding < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but "
            f"got {padding}"
        )
    return padding % rows


@function(name="embedding_bag", method=False, returns="tuple[Tensor, Tensor, Tensor, Tensor]")
def _free_embedding_bag(
    weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:  # fmt: skip
    """`nn.functional.embedding_bag`, with the table first and the mode as a number (0 sum, 1 mean,
    2 max); and the bag of each index, the size of each bag, and the largest indices.

    Args:
        weight: the table, a row for each index.
        offsets: where each bag begins.
        mode: 0 sum, 1 mean, 2 max.
        per_sample_weights: what each index counts, in mode 0.
        include_last_offset: `offsets` has one more, where the last bag ends.
        padding_idx: an index that counts as absent.

    >>> table = torch.tensor([[0., 1.], [2., 3.]])
    >>> torch.embedding_bag(table, torch.tensor([0, 1]), torch.tensor([0]))[0]
    tensor([[2., 4.]])
    """
    return _bag(
        weight, indices, offsets, scale_grad_by_freq, mode, per_sample_weights,
        include_last_offset, _settle(weight, padding_idx), sparse,
    )  # fmt: skip


@function(method=False)
def embedding_renorm_(input: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Scale the rows that `indices` names to a norm of at most `max_norm`, in place.

    Args:
        max_norm: the largest norm that stays as it is.
        norm_type: the order of the norm.

    >>> torch.embedding_renorm_(torch.tensor([[3., 4.], [6., 8.]]), torch.tensor([1]), 1., 2.)
    tensor([[3.0000, 4.0000],
            [0.6000, 0.8000]])
    """
    check_tensor(input, "embedding_renorm_")
    shorten_rows(input, indices, max_norm, norm_type)
    return input
