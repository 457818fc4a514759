"""Embedding and one-hot vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight import dtypes
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import has_values
from rushlight.core.graph import Op, TensorBase, wrap
from rushlight.core.observer import observer
from rushlight.core.record import apply, recording
from rushlight.core.views.inplace import lift_operands
from rushlight.errors import sentence
from rushlight.ops.checks import check_tensor, is_batched
from rushlight.ops.each_member import each_member
from rushlight.ops.registry import function, functional, op, shared_op
from rushlight.ops.sample_inputs import Draw


# --- embedding ------------------------------------------------------------------------------------
@op
class Embedding(Op):
    """Rows of a table by index. The row `padding_idx` gets no gradient (-1: there is none): that is
    no derivative, so samples have none."""

    name = "embedding"
    shown_edges = (0,)
    inputs = ("weight", "indices")
    saves = ("indices",)
    params = ("padding_idx", "scale_grad_by_freq", "sparse")
    saved_names = "padding_idx scale_grad_by_freq sparse weight_sym_argsize_0=weight.0"
    padding_idx: int = -1
    scale_grad_by_freq: bool = False
    sparse: bool = False
    complex_too = True
    lies = "rows"

    def mover(self, rule: str) -> Any:
        return kernels.looked_up if rule == "forward" else None

    def forward(self, w: Any, i: Any) -> Any:
        if outside(i, w.shape[-2]):
            raise _no_row(i, w.shape[-2])
        return v.pick(w, (v.SLOT,), i)

    def vjp(self, node: Any, g: Any, i: Any) -> Any:
        shape = node._input_shapes[0]
        if self.sparse:
            return sparse_rows(g, i, shape, self.padding_idx), None
        column = v.reshape(i, (*i.shape, 1))
        if self.padding_idx >= 0:
            g = v.where(column == self.padding_idx, 0, g)
        if self.scale_grad_by_freq:
            flat = v.reshape(i, (-1,))
            counts = v.unpick(flat * 0 + 1, shape[:1], (v.SLOT,), flat)
            g = g / v.pick(counts, (v.SLOT,), column)
        return v.unpick(g, shape, (v.SLOT,), i), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return v.pick(ts[0], (v.SLOT,), xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Embedding(), draw.real(4, 3), draw.ints(0, 4, 2, 2)
        yield Embedding(-1, False), draw.real(4, 3), draw.ints(0, 4, 5)
        yield Embedding(), draw.real(4, 3), draw.ints(0, 4, 0)


def sparse_rows(g: Any, i: Any, shape: tuple[int, ...], padding_idx: int) -> Any:
    """The gradient of a table whose rows `i` were read, as a sparse array: a row for each index,
    except for those that are `padding_idx`."""
    from rushlight.arrays.sparse_rules import sparse_of  # late: few programs use it

    i, g = v.reshape(i, (1, -1)), v.reshape(g, (-1, *shape[1:]))
    if padding_idx >= 0:
        tensors = isinstance(i, TensorBase)
        keep = v.nonzero((i._array if tensors else i)[0] != padding_idx)[0]
        if tensors:
            keep = wrap(keep)
        i, g = v.pick(i, (v.ALL, v.SLOT), keep), v.pick(g, (v.SLOT,), keep)
    return sparse_of(i, g, tuple(shape), False)


def _embed(weight: Any, indices: Any, padding_idx: int, by_freq: bool, sparse: bool = False) -> Any:
    i, w = indices._array, weight._array
    if i.dtype.kind != "i" or i.dtype.itemsize < 4:
        kind = dtypes.of(i.dtype).scalar_type
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got torch.{kind}Tensor instead (while checking arguments for "
            "embedding)\nThe input holds numbers of rows: `input.long()`."
        )
    if w.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if sparse and by_freq and (weight._requires_grad or weight._node is not None):
        observer.keep_nothing()  # another time gradients may be recorded, or not
        if recording():
            raise RuntimeError(
                "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
            )
    return apply(shared_op(Embedding, padding_idx, by_freq, bool(sparse)), weight, indices)


def _no_row(i: Any, n: int) -> IndexError:
    """The error for an index that names no row of a table of `n`."""
    i = bottom(i)
    where = ""
    if has_values(i):
        wrong = i[(i < 0) | (i >= n)]
        where = f"index {int(wrong[0])}, and the table has {n} rows: 0 to {n - 1}"
    return IndexError(
        sentence(
            "index out of range in self",
            where,
            "Make the table larger (`num_embeddings`), or look where the indices come from.",
        )
    )


def outside(i: Any, n: int) -> bool:
    """Whether some index is not in [0, n): read as unsigned, negative ones are the largest."""
    if kernels.within(0, n, i):
        return False
    i = bottom(i)
    if i.size == 0 or not has_values(i):
        return False
    unsigned = dtypes.uint64.numpy if i.dtype.itemsize == 8 else dtypes.uint32.numpy
    return bool(v.reduce_max(v.bits(i, unsigned), None, False) >= n)


@functional(settles=True)
def embedding(
    input: Any, weight: Any, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Any:  # fmt: skip
    """The rows of `weight` that `input` names. With `max_norm` rows that are longer are first
    shortened, in place.

    Args:
        weight: the table, a row for each index.

    >>> table = torch.tensor([[0., 1.], [2., 3.], [4., 5.]])
    >>> torch.nn.functional.embedding(torch.tensor([2, 0]), table)
    tensor([[4., 5.],
            [0., 1.]])
    """
    check_tensor(input, "embedding")
    check_tensor(weight, "embedding", "weight", 2)
    if weight._array.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    rows = weight._array.shape[0]
    if padding_idx is None:
        padding_idx = -1
    else:
        assert -rows <= padding_idx < rows, "Padding_idx must be within num_embeddings"
        padding_idx %= rows
    if max_norm is not None:
        shorten_rows(weight, input, max_norm, norm_type)
    return _embed(weight, input, padding_idx, scale_grad_by_freq, sparse)


def shorten_rows(weight: Any, indices: Any, max_norm: float, p: float) -> None:
    """Scale the named rows of a table to a norm of at most `max_norm`, in place."""
    if is_batched(weight) or is_batched(indices):
        for one, places in each_member((weight, lift_operands(weight, (indices,))[0]))[1]:
            shorten_rows(one, places, max_norm, p)
        weight._storage.written()
        return
    if outside(indices._array, weight._array.shape[0]):
        raise _no_row(indices._array, weight._array.shape[0])
    i = v.unique(v.reshape(indices._array, (-1,)))[0]
    rows = v.pick(weight._array, (v.SLOT,), i)
    table: Any = wrap(rows)
    size = table.norm(p, 1, keepdim=True)._array
    scaled = rows * (max_norm / (v.maximum(size, max_norm) + v.where(size > max_norm, 1e-7, 0.0)))
    kept = v.where(size > max_norm, scaled, rows)
    v.overwrite(weight._array, v.place(weight._array, v.cast(kept, rows.dtype), (v.SLOT,), i))
    weight._storage.written()


@function(name="embedding", method=False)
def _free_embedding(
    weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:  # fmt: skip
    """`nn.functional.embedding`, with the table first.

    Args:
        weight: the table, a row for each index.

    >>> torch.embedding(torch.tensor([[0., 1.], [2., 3.]]), torch.tensor([1]))
    tensor([[2., 3.]])
    """
    return _embed(weight, indices, padding_idx, scale_grad_by_freq, sparse)


@functional()
def one_hot(tensor: Any, num_classes: int = -1) -> Any:
    """Each class index as a vector that is 1 there and 0 elsewhere.

    Args:
        tensor: the classes, as whole numbers.

    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    check_tensor(tensor, "one_hot", "tensor")
    i = tensor._array
    if i.dtype != dtypes.int64.numpy:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if num_classes <= 0 and is_batched(tensor):
        raise RuntimeError(
            "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive "
            "num_classes argument."
        )
    known = bottom(i)
    if known.size == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return wrap(v.full(i, (*i.shape, num_classes), 0, i.dtype))
    if outside(i, 1 << 63):
        raise RuntimeError("Class values must be non-negative.")
    top = int(v.reduce_max(known, None, False))
    if num_classes == -1:
        num_classes = top + 1
    elif num_classes <= top:
        raise RuntimeError("Class values must be smaller than num_classes.")
    column = v.reshape(i, (*i.shape, 1))
    return wrap(v.contiguous(v.cast(column == v.iota(i, num_classes, i.dtype), i.dtype)))
