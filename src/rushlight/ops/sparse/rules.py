"""The ops between sparse and dense tensors, with their derivatives.

A sparse tensor is a plain tensor over an array of `arrays.sparse`, so most functions need nothing
of their own: `sin`, `mul` or `mm` are the same ops as ever. Here stands what makes sparse tensors,
and what takes them apart. These ops are not in the table, whose laws draw dense samples and compare
element by element: `tests/ops/sparse` tests them.
"""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight import dtypes
from rushlight.arrays import sparse as raw
from rushlight.arrays import sparse_math
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import settled
from rushlight.arrays.sparse_rules import sampled, sparse_masked, sparse_of, stored, to_dense
from rushlight.core.families import conj, is_complex
from rushlight.core.graph import Node, Op, TensorBase
from rushlight.core.record import apply
from rushlight.ops.each_member import batch_leading
from rushlight.ops.registry import implements


def tangent(t: Any, y: Any) -> Any:
    """A tangent, or zeros where there is none."""
    return y * 0 if t is None else t


class SparseCoo(Op):
    """A sparse tensor of places and values."""

    name = "sparse_coo_tensor"
    aten = "_sparse_coo_tensor_with_dims_and_tensors.default"
    node = "SparseCooTensorWithDimsAndTensorsBackward0"
    inputs = ("indices", "values")
    saves = ("indices",)
    params = ("size", "coalesced")
    shown_edges = (1,)
    size: tuple[int, ...]
    coalesced: bool = False

    def forward(self, i: Any, x: Any) -> Any:
        return raw.Coo(i, settled(x), self.size, self.coalesced)

    def vjp(self, node: Node, g: Any, i: Any) -> Any:
        return None, _at_on_any(g, i)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return sparse_of(xs[0], ts[1], self.size, self.coalesced)


def _at(g: Any, i: Any) -> Any:
    dense = tuple(g.shape[i.shape[0] :])
    return sparse_math.stored_at(g, i, (i.shape[1], *dense))


def _at_on_any(g: Any, i: Any) -> Any:
    """`_at`, of an array or a tensor."""
    if not isinstance(g, TensorBase):
        return _at(g, i)
    return apply(StoredAt(isinstance(g._array, raw.Sparse)), g, i)


class StoredAt(Op):
    """The elements of a tensor at given places."""

    name = "stored_at"
    aten = None
    inputs = ("self", "indices")
    saves = ("indices",)
    params = ("of_sparse",)
    of_sparse: bool = True

    def forward(self, x: Any, i: Any) -> Any:
        return _at(x, i)

    def vjp(self, node: Node, g: Any, i: Any) -> Any:
        shapes = node._input_shapes
        assert shapes is not None
        gx = sparse_of(i, g, tuple(shapes[0]), False)
        return (gx if self.of_sparse else to_dense(gx)), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return _at_on_any(ts[0], xs[1])


class SparseCompressed(Op):
    """A tensor of rows or columns, one after the other."""

    name = "sparse_compressed_tensor"
    aten = "sparse_compressed_tensor.comp_plain_value_size"
    node = "SparseCompressedTensorBackward0"
    inputs = ("compressed_indices", "plain_indices", "values")
    saves = ("compressed_indices", "plain_indices")
    params = ("size", "layout")
    size: tuple[int, ...]
    layout: Any

    def forward(self, starts: Any, inner: Any, x: Any) -> Any:
        return raw.Compressed(self.layout, starts, inner, settled(x), self.size)

    def vjp(self, node: Node, g: Any, starts: Any, inner: Any) -> Any:
        like = v.full(starts if isinstance(g, TensorBase) else _parts(g), (), 0, dtypes.bool_.numpy)
        mask = raw.Compressed(self.layout, starts, inner, like, self.size)
        if isinstance(g, TensorBase):
            raise NotImplementedError("second derivatives of compressed sparse tensors")
        if isinstance(g, raw.Compressed) and g.layout is self.layout and g.nnz == mask.nnz:
            return None, None, g.values
        return None, None, sparse_math.masked(g, mask).values

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return apply(self, xs[0], xs[1], ts[2])


def _parts(g: Any) -> Any:
    return g.values if isinstance(g, raw.Sparse) else g


class ToDense(Op):
    """A sparse tensor as a dense one. The gradient is that of the elements which are stored, unless
    `masked` says otherwise: zeros that are not stored stay zeros."""

    name = "_to_dense"
    node = "ToDenseBackward0"
    saves = ("self",)
    params = ("masked",)
    masked: bool = True
    vmap_rule = batch_leading

    def forward(self, x: Any) -> Any:
        return to_dense(x)

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        if self.masked:
            return (sparse_masked(g, _settled(x)),)
        kept = x._array if isinstance(x, TensorBase) else x
        block = kept.block if isinstance(kept, raw.Compressed) else None
        dims = kept.sparse_dim if isinstance(kept, raw.Coo) else None
        back = ToSparse(kept.layout, dims, block)
        return (apply(back, g) if isinstance(g, TensorBase) else back.forward(g),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return to_dense(ts[0])


def _settled(x: Any) -> Any:
    """A mask in which each place stands once."""
    if isinstance(x, TensorBase):
        return x.detach().coalesce() if x._array.layout is dtypes.sparse_coo else x  # type: ignore[attr-defined]  # Tensor's methods
    return x.coalesce() if isinstance(x, raw.Coo) else x


class ToSparse(Op):
    """A tensor in another layout: what is zero is left out."""

    name = "_to_sparse"
    saves = ("self",)
    params = ("layout", "sparse_dim", "blocksize", "dense_dim")
    node = "ToSparseBackward1"
    layout: Any = dtypes.sparse_coo
    sparse_dim: int | None = None
    blocksize: Any = None
    dense_dim: int = 0

    def forward(self, x: Any) -> Any:
        x = settled(x)
        if self.layout is dtypes.sparse_coo:
            if isinstance(x, raw.Sparse):
                return x.coo()
            return raw.dense_to_coo(x, x.ndim if self.sparse_dim is None else self.sparse_dim)
        if isinstance(x, raw.Sparse):
            if isinstance(x, raw.Compressed) and x.batch:
                return raw.compress_dense(x.dense(), self.layout, self.blocksize, self.dense_dim)
            return raw.compress(x.coo(), self.layout, self.blocksize)
        return raw.compress_dense(x, self.layout, self.blocksize, self.dense_dim)

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        kept = x._array if isinstance(x, TensorBase) else x
        return (sparse_masked(g, _settled(x)) if isinstance(kept, raw.Sparse) else to_dense(g),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return sparse_masked(ts[0], y)


class ToSparseDims(ToSparse):
    """`ToSparse` with some dimensions left dense."""

    node = "ToSparseBackward0"


class ToSparseCsr(ToSparse):
    """`ToSparse` row by row."""

    node = "ToSparseCsrBackward0"


class ToSparseCsc(ToSparse):
    """`ToSparse` column by column."""

    node = "ToSparseCscBackward0"


class ToSparseBsr(ToSparse):
    """`ToSparse` in blocks, row by row."""

    node = "ToSparseBsrBackward0"


class ToSparseBsc(ToSparse):
    """`ToSparse` in blocks, column by column."""

    node = "ToSparseBscBackward0"


class Values(Op):
    """The elements that are stored."""

    name = "values"
    saves = ("self",)

    def forward(self, x: Any) -> Any:
        return stored(x)

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        if isinstance(x, TensorBase):
            return (apply(WithValues(), g, x.detach()),)  # type: ignore[attr-defined]  # Tensor's methods
        return (x.with_values(g),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return stored(ts[0])


class WithValues(Op):
    """Other values in the places of a sparse tensor."""

    name = "with_values"
    aten = None
    inputs = ("values", "like")
    saves = ("like",)

    def forward(self, x: Any, like: Any) -> Any:
        return like.with_values(x)

    def vjp(self, node: Node, g: Any, like: Any) -> Any:
        return stored(sparse_masked(g, like)), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        like = xs[1]
        return apply(self, ts[0], like) if isinstance(like, TensorBase) else like.with_values(ts[0])


class Coalesce(Op):
    """Every place once, in order."""

    name = "_coalesce"
    node = "CoalesceBackward0"

    def forward(self, x: Any) -> Any:
        return x.coalesce()

    def vjp(self, node: Node, g: Any) -> Any:
        return (g,)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return ts[0]


class SparseMask(Op):
    """The elements of a tensor in the places of a sparse one."""

    name = "sparse_mask"
    inputs = ("self", "mask")
    saves = ("self", "mask")

    def forward(self, x: Any, mask: Any) -> Any:
        return sparse_masked(x, mask)

    def vjp(self, node: Node, g: Any, x: Any, mask: Any) -> Any:
        kept = x._array if isinstance(x, TensorBase) else x
        g = sparse_masked(g, mask)
        return (g if isinstance(kept, raw.Sparse) else to_dense(g)), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return sparse_masked(ts[0], xs[1])


class SparseAddmm(Op):
    """beta self + alpha mat1 @ mat2, where `mat1` is sparse: its gradient is that of the elements
    which are stored."""

    name = "_sparse_addmm"
    inputs = ("self", "mat1", "mat2")
    saves = ("mat1", "mat2")
    reads: ClassVar = {1: ("mat1", "mat2"), 2: ("mat1",)}
    params = ("beta", "alpha")
    node = "SparseAddmmBackward0"
    saved_names = "alpha beta mat2_sym_sizes=mat2.sizes"
    beta: Any = 1
    alpha: Any = 1

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        shared = flags == (False, False, True) and (xs[0] is None or xs[0].ndim == 2)
        return (self, xs) if shared else None

    def forward(self, x: Any, a: Any, b: Any) -> Any:
        y = _times_each(a, b)
        if self.alpha != 1:
            y = y * self.alpha
        if x is None or self.beta == 0:
            return y
        return y + (x if self.beta == 1 else x * self.beta)

    def vjp(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        gx = ga = gb = None
        if node._needs_grad(0):
            gx = g if self.beta == 1 else g * self.beta
        if node._needs_grad(1):
            other = conj(b) if is_complex(b) else b
            ga = sampled(_side_by_side(g), v.swap(_side_by_side(other), -1, -2), _settled(a))
            ga = ga if self.alpha == 1 else ga * self.alpha
        if node._needs_grad(2):
            other = conj(a) if is_complex(a) else a
            gb = _times_each(v.swap(other, -1, -2), g)
            gb = gb if self.alpha == 1 else gb * self.alpha
        return gx, ga, gb

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        found = y * 0 if ts[0] is None else ts[0] * self.beta
        if ts[1] is not None:
            found = found + _times_each(ts[1], xs[2]) * self.alpha
        if ts[2] is not None:
            found = found + _times_each(xs[1], ts[2]) * self.alpha
        return found


def _side_by_side(b: Any) -> Any:
    """The matrices of a batch as one; a matrix as it is."""
    if b.ndim == 2:
        return b
    count, n, p = b.shape
    return v.reshape(v.permute(b, (1, 0, 2)), (n, count * p))


def _times_each(a: Any, b: Any) -> Any:
    """A sparse matrix times a matrix, or times each of a batch, in one product."""
    y = v.matmul(a, _side_by_side(b))
    if b.ndim == 2:
        return y
    return v.permute(v.reshape(y, (y.shape[0], b.shape[0], b.shape[2])), (1, 0, 2))


class Sampled(Op):
    """The elements of a product of dense matrices in the places of a sparse one."""

    name = "sampled_mm"
    aten = None
    inputs = ("mat1", "mat2", "mask")
    saves = ("mat1", "mat2", "mask")

    def forward(self, a: Any, b: Any, mask: Any) -> Any:
        return sampled(a, b, mask)

    def vjp(self, node: Node, g: Any, a: Any, b: Any, mask: Any) -> Any:
        g = sparse_masked(g, mask)
        if is_complex(a):
            a, b = conj(a), conj(b)
        ga = v.matmul(g, v.swap(b, -1, -2)) if node._needs_grad(0) else None
        gb = v.matmul(v.swap(a, -1, -2), g) if node._needs_grad(1) else None
        return ga, gb, None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        a, b, mask = xs
        found = None if ts[0] is None else sampled(ts[0], b, mask)
        if ts[1] is None:
            return found
        other = sampled(a, ts[1], mask)
        return other if found is None else found + other


class SparseSparseMatmul(Op):
    """The product of two sparse matrices."""

    name = "_sparse_sparse_matmul"
    inputs = ("self", "other")
    saves = ("self", "other")
    node = "SparseSparseMatmulBackward0"

    def forward(self, a: Any, b: Any) -> Any:
        return v.matmul(a, b)

    def vjp(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        if is_complex(g):
            a, b = conj(a), conj(b)
        ga = gb = None
        if node._needs_grad(0):
            ga = sparse_masked(v.matmul(g, v.swap(b, -1, -2)), _settled(a))
        if node._needs_grad(1):
            gb = sparse_masked(v.matmul(v.swap(a, -1, -2), g), _settled(b))
        return ga, gb

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        a, b = xs
        found = None if ts[0] is None else v.matmul(ts[0], b)
        if ts[1] is None:
            return found
        other = v.matmul(a, ts[1])
        return other if found is None else found + other


class SparseSum(Op):
    """The sum over some dimensions of a sparse tensor; its gradient is that of the elements which
    are stored."""

    name = "_sparse_sum"
    node = "SparseSumBackward0"
    saves = ("self",)
    params = ("dim",)
    dim: tuple[int, ...]

    def forward(self, x: Any) -> Any:
        return v.reduce_sum(x, self.dim, False)

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        if isinstance(g, TensorBase):
            raise NotImplementedError("derivative for _sparse_sum_backward is not implemented")
        return (_spread(g, x, self.dim),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return v.reduce_sum(ts[0], self.dim, False)


def _spread(g: Any, x: Any, dims: tuple[int, ...]) -> Any:
    """A gradient of a sum at each stored element of what was summed."""
    c = x.coo().coalesce()
    full = g.dense() if isinstance(g, raw.Sparse) else g
    gone = {d % x.ndim for d in dims}
    shape = tuple(1 if d in gone else n for d, n in enumerate(x.shape))
    wide = v.broadcast(v.reshape(full, shape), x.shape)
    return sparse_math.masked(wide, x if isinstance(x, raw.Compressed) else c)


class SparseSoftmax(Op):
    """Softmax over the stored elements of each line."""

    name = "_sparse_softmax"
    node = "SparseSoftmaxBackward0"
    saves = ("self", "result")
    params = ("dim",)
    dim: int
    logarithm: ClassVar[bool] = False

    def forward(self, x: Any) -> Any:
        return sparse_math.softmax_of(x, self.dim, self.logarithm)

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        if isinstance(g, TensorBase):
            raise NotImplementedError("derivative for _sparse_softmax_backward is not implemented")
        return (sparse_math.softmax_slope(x, y, g, self.dim, self.logarithm),)


class SparseLogSoftmax(SparseSoftmax):
    """The logarithm of `SparseSoftmax`."""

    name = "_sparse_log_softmax"
    node = "SparseLogSoftmaxBackward0"
    logarithm = True


# --- the words of `arrays.sparse_rules`, on tensors -----------------------------------------------
@implements("sparse_of")
def _sparse_of(i: Any, x: Any, shape: Any, coalesced: bool) -> Any:
    return apply(SparseCoo(tuple(shape), coalesced), i, x)


@implements("to_dense")
def _to_dense(x: Any) -> Any:
    return apply(ToDense(), x) if isinstance(x._array, raw.Sparse) else x


@implements("sparse_masked")
def _sparse_masked(x: Any, mask: Any) -> Any:
    return apply(SparseMask(), x, mask)


@implements("sampled")
def _sampled(a: Any, b: Any, mask: Any) -> Any:
    return apply(Sampled(), a, b, mask)


@implements("stored")
def _stored(x: Any) -> Any:
    return apply(Values(), x)
