"""`torch.sparse`: products, sums and softmax whose gradients stay sparse; matrices of diagonals."""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import sparse as raw
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import is_sparse
from rushlight.core.graph import wrap
from rushlight.core.record import apply
from rushlight.errors import product_mismatch
from rushlight.ops.checks import one_dim
from rushlight.ops.numbers import Number
from rushlight.ops.registry import function, functions, shared_op
from rushlight.ops.sparse import making, parts, rules

_FULL: Final = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


def _fits(a: Any, b: Any) -> None:
    if a._array.ndim != 2 or b._array.ndim != 2:
        raise RuntimeError("mat1 and mat2 must be matrices")
    if a._array.shape[1] != b._array.shape[0]:
        raise RuntimeError(product_mismatch(a._array.shape, b._array.shape))


@function(method=False, free=False, namespace="sparse", name="mm")
def sparse_mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Any:
    """The product of two matrices, of which one at least is sparse. The gradient of a sparse one is
    sparse: that of the elements which are stored. It is dense with `torch.mm`.

    Args:
        mat1: the left factor.
        mat2: the right factor.
        reduce: of a CSR matrix and a dense one: 'sum', 'mean', 'amax' or 'amin' of the products
            that make an element, of those which are stored.

    >>> s = torch.sparse_coo_tensor([[0, 1], [1, 0]], [2., 3.], (2, 2), requires_grad=True)
    >>> y = torch.sparse.mm(s, torch.tensor([[1.], [10.]]))
    >>> y
    tensor([[20.],
            [ 3.]], grad_fn=<SparseAddmmBackward0>)
    >>> y.sum().backward()
    >>> s.grad.coalesce().values()
    tensor([10.,  1.])
    """
    _fits(mat1, mat2)
    if reduce is not None:
        return _reduced(mat1, mat2, reduce)
    first, second = is_sparse(mat1._array), is_sparse(mat2._array)
    if first and second:
        return apply(shared_op(rules.SparseSparseMatmul), mat1, mat2)
    if first:
        return apply(shared_op(rules.SparseAddmm, 0, 1), None, mat1, mat2)
    if not second:
        return mat1 @ mat2
    return sparse_mm(mat2.t(), mat1.t()).t()


def _reduced(a: Any, b: Any, how: str) -> Any:
    """A product in which another reduction stands for the sum."""
    if how not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {how}")
    x = a._array
    if getattr(x, "layout", None) is not dtypes.sparse_csr or is_sparse(b._array):
        raise RuntimeError("sparse.mm(): reduce needs a CSR matrix and a dense one")
    rows, columns = x.coo().indices
    each = parts.values(a).unsqueeze(1) * b[wrap(columns)]
    shape = (x.shape[0], b._array.shape[1])
    at = wrap(v.broadcast(v.reshape(rows, (-1, 1)), tuple(each.shape)))
    zeros = functions["zeros"](shape, dtype=each.dtype, device=each.device)
    return zeros.scatter_reduce(0, at, each, reduce=how, include_self=False)


@function(method=False, free=False, namespace="sparse", name="addmm")
def sparse_addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Number = 1.0, alpha: Number = 1.0) -> Any:
    """beta mat + alpha mat1 @ mat2, with a sparse `mat1`, whose gradient is sparse too.

    Args:
        mat: a dense matrix that is added.
        mat1: a sparse matrix.
        mat2: a dense matrix.

    >>> s = torch.eye(2).to_sparse()
    >>> torch.sparse.addmm(torch.ones(2, 2), s, torch.ones(2, 2))
    tensor([[2., 2.],
            [2., 2.]])
    """
    _fits(mat1, mat2)
    return apply(rules.SparseAddmm(beta, alpha), mat, mat1, mat2)


@function(method=False, free=False, namespace="sparse", name="sampled_addmm")
def sampled_addmm(
    input: Any, mat1: Any, mat2: Any, *, beta: Number = 1.0, alpha: Number = 1.0, out: Any = None
) -> Any:
    """beta input + alpha mat1 @ mat2, where the sparse `input` has elements, and nowhere else.

    Args:
        mat1: a dense matrix.
        mat2: a dense matrix.

    >>> s = torch.eye(2).to_sparse_csr()
    >>> torch.sparse.sampled_addmm(s, torch.ones(2, 3), torch.ones(3, 2)).values()
    tensor([4., 4.])
    """
    if not is_sparse(input._array):
        raise RuntimeError("Expected input to be a sparse tensor")
    if input.dtype not in _FULL:
        raise RuntimeError(
            "sparse_sampled_addmm: Expected self to be a floating-point or complex tensor, but got "
            f"{input.dtype.scalar_type}"
        )
    if not input.dtype.is_complex and (complex(alpha).imag or complex(beta).imag):
        name = "float" if input.dtype.itemsize == 4 else "double"
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    made = apply(shared_op(rules.Sampled), mat1, mat2, input.detach()) * alpha + input * beta
    return made if out is None else out.copy_(made)


@function(method=False, free=False, namespace="sparse", name="sum")
def sparse_sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of a sparse tensor over all dimensions, or over some: sparse, if a sparse dimension
    is left. Its gradient is that of the elements which are stored.

    >>> s = torch.tensor([[1., 0.], [2., 3.]]).to_sparse()
    >>> torch.sparse.sum(s)
    tensor(6.)
    >>> torch.sparse.sum(s, 0).to_dense()
    tensor([3., 3.])
    """
    if dtype is not None:
        input = input.to(dtype)
    if dim is None:
        if isinstance(input._array, raw.Coo):
            return parts.coalesce(input).values().sum()
        return input.values().sum() if is_sparse(input._array) else input.sum()
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    ndim = input._array.ndim
    return apply(rules.SparseSum(tuple(one_dim(d, ndim) for d in dims)), input)


def _softmax(cls: Any, input: Any, dim: int, dtype: Any) -> Any:
    if dtype is not None:
        input = input.to(dtype)
    if not isinstance(input._array, raw.Coo):
        raise NotImplementedError(
            f"Could not run 'aten::{cls.name}' with arguments from the 'CPU' backend. It is for "
            "sparse COO tensors."
        )
    return apply(cls(one_dim(dim, input._array.ndim)), input)


@function(method=False, free=False, namespace="sparse", name="softmax")
def sparse_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Softmax along a dimension, in which only the stored elements count.

    >>> s = torch.sparse_coo_tensor([[0, 0], [0, 2]], [1., 1.], (1, 3))
    >>> torch.sparse.softmax(s, 1).to_dense()
    tensor([[0.5000, 0.0000, 0.5000]])
    """
    return _softmax(rules.SparseSoftmax, input, dim, dtype)


@function(method=False, free=False, namespace="sparse", name="log_softmax")
def sparse_log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of `sparse.softmax`.

    >>> s = torch.sparse_coo_tensor([[0, 0], [0, 2]], [1., 1.], (1, 3))
    >>> torch.sparse.log_softmax(s, 1).values()
    tensor([-0.6931, -0.6931])
    """
    return _softmax(rules.SparseLogSoftmax, input, dim, dtype)


@function(method=False, free=False, namespace="sparse")
def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Any:
    """A sparse matrix with the rows of `diagonals` as its diagonals.

    Args:
        diagonals: a row a diagonal; element j of a row stands in column j.
        offsets: which diagonal each row is: 0 the main one, 1 that above it.
        shape: the shape of the matrix.
        layout: `torch.sparse_coo` (default), `sparse_csr` or `sparse_csc`.

    >>> torch.sparse.spdiags(torch.tensor([[1., 2.]]), torch.tensor([1]), (2, 2)).to_dense()
    tensor([[0., 2.],
            [0., 0.]])
    """
    d = diagonals._array
    if d.ndim == 1:
        d = v.reshape(d, (1, d.shape[0]))
    k = v.reshape(v.cast(offsets._array, dtypes.int64.numpy), (-1,))
    if d.ndim != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if k.shape[0] != d.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({d.shape[0]}) does not match the number of offsets "
            f"({k.shape[0]})"
        )
    if v.unique(k)[0].shape[0] != k.shape[0]:
        raise RuntimeError("Offset tensor contains duplicate values")
    rows, columns = (int(n) for n in shape)
    width = min(d.shape[1], columns)
    column = v.iota(k, width, k.dtype) + v.reshape(k * 0, (-1, 1))
    row = column - v.reshape(k, (-1, 1))
    real = v.nonzero(v.logical_and(row >= 0, row < rows))
    at = wrap(v.concat([v.reshape(x[real], (1, -1)) for x in (row, column)], 0))
    values = diagonals if diagonals._array.ndim == 2 else diagonals.unsqueeze(0)
    values = values[tuple(wrap(x) for x in real)]
    made = making.sparse_coo_tensor(at, values, (rows, columns))
    return made if layout is None else making.to_sparse(made, layout=layout)


def _product_only(input: Any) -> None:
    if not isinstance(input._array, raw.Coo):
        raise RuntimeError("tensor.sspaddmm(...) can only be called on sparse tensors")


@function()
def smm(input: Any, mat2: Any) -> Any:
    """A sparse matrix times a dense one, as a sparse matrix.

    >>> torch.smm(torch.eye(2).to_sparse(), torch.ones(2, 1)).to_dense()
    tensor([[1.],
            [1.]])
    """
    _product_only(input)
    _fits(input, mat2)
    return making.to_sparse(input @ mat2)


@function()
def sspaddmm(
    input: Any, mat1: Any, mat2: Any, *, beta: Number = 1, alpha: Number = 1, out: Any = None
) -> Any:
    """beta input + alpha mat1 @ mat2, of a sparse `input` and a sparse `mat1`, as a sparse matrix.

    Args:
        mat1: a sparse matrix.
        mat2: a dense matrix.

    >>> s = torch.eye(2).to_sparse()
    >>> torch.sspaddmm(s, s, torch.eye(2)).to_dense()
    tensor([[2., 0.],
            [0., 2.]])
    """
    _product_only(mat1)
    _fits(mat1, mat2)
    made = making.to_sparse(mat1 @ mat2 * alpha) + making.to_sparse(input) * beta
    return made if out is None else out.copy_(made)


@function(method=False)
def hspmm(mat1: Any, mat2: Any, *, out: Any = None) -> Any:
    """A sparse matrix times a dense one: rows that are not empty, as a sparse tensor with one
    sparse dimension.

    Args:
        mat1: a sparse matrix.
        mat2: a dense matrix.

    >>> torch.hspmm(torch.eye(2).to_sparse(), torch.ones(2, 1)).sparse_dim()
    1
    """
    _product_only(mat1)
    _fits(mat1, mat2)
    rows = v.unique(mat1._array.coalesce().indices[0])[0]
    made = (mat1 @ mat2)[wrap(rows)]
    found = making.sparse_coo_tensor(
        wrap(v.reshape(rows, (1, -1))), made, (mat1._array.shape[0], mat2._array.shape[1])
    )
    return found if out is None else out.copy_(found)


# Older names of the same, which graph networks use.
functions["spmm"] = functions["dsmm"] = functions["mm"]
functions["hsmm"], functions["saddmm"] = functions["hspmm"], functions["sspaddmm"]
