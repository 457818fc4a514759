"""`matmul` and its like: products of any rank, made of `mm`, `bmm`, `mv`, `dot` and views.

PyTorch composes them so, and a graph shows it: the nodes of `a @ b` are those of the parts.
"""

from __future__ import annotations

import warnings
from typing import Any

from rushlight.arrays.vocabulary import swap
from rushlight.core.elementwise import operand
from rushlight.core.graph import TensorBase
from rushlight.core.operators import table as operators
from rushlight.core.record import apply, recording
from rushlight.ops.checks import check_tensors
from rushlight.ops.matmul.mm import DOT, MMS, bmm_of, dot_of, mm_of, mv_of
from rushlight.ops.numbers import python_number
from rushlight.ops.out import write_out
from rushlight.ops.registry import function, functions, implements
from rushlight.ops.view.expand import broadcast_shape
from rushlight.ops.view.reshape import UnsafeView


@function(settles=True)
def matmul(input: Any, other: Any, *, out: Any = None) -> Any:
    """The product of vectors, matrices or batches of matrices; batches broadcast.

    >>> torch.matmul(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([3., 7.])
    """
    check_tensors("matmul", input=input, other=other)
    if out is None:
        return matmul_product(input, other)
    return write_out("matmul", (input, other), out, lambda: matmul_product(input, other))


def matmul_product(a: Any, b: Any) -> Any:
    """`a @ b` of two tensors: one of the products above, with views around it."""
    m, n = a._array.ndim, b._array.ndim
    if m == 2 and n == 2:
        return mm_of(a, b)
    if m == 0 or n == 0:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D"
        )
    if m == 1 and n == 1:
        return dot_of(DOT, a, b)
    if m == 2 and n == 1:
        return mv_of(a, b)
    if m == 1 and n == 2:
        return mm_of(a.unsqueeze(0), b).squeeze_(0)
    if m == 3 and n == 3:
        # a batch of one that wants gradients: one product, not one a matrix
        k, p = a._array.shape[0], b._array.shape[0]
        if k > 1 and p == 1 and records_grad(b):
            return fold_batch(a, b.squeeze(0))
        if p > 1 and k == 1 and records_grad(a):
            return fold_batch(a.squeeze(0), b)
    return fold_batch(a, b) if folds(a, b) else multiply_batches(a, b)


def records_grad(t: Any) -> bool:
    return bool(t._requires_grad or t._node is not None) and recording()


def folds(a: Any, b: Any) -> bool:
    """Whether a batch times one matrix (or vector) is one product of a taller matrix.

    It is if the smaller wants a gradient, which would else be summed from a large expanded one;
    or if the batch can be seen as a taller matrix without a copy.
    """
    large, small = (a, b) if a._array.ndim >= b._array.ndim else (b, a)
    if large._array.ndim < 3 or small._array.ndim > 2:
        return False
    if records_grad(small):
        return True
    if a._array.ndim == 2:
        return False
    if large._array.size == 0:
        return True
    x = large._array if large is a else swap(large._array, -1, -2)
    return all(x.strides[d] == x.strides[d + 1] * x.shape[d + 1] for d in range(x.ndim - 2))


def fold_batch(a: Any, b: Any) -> Any:
    """A batch times one matrix or vector, as one product; if the batch stands right, transposed."""
    turned = a._array.ndim < b._array.ndim
    large, small = (b.mT, a) if turned else (a, b)
    vector = small._array.ndim == 1
    if turned and not vector:
        small = small.t()
    *lead, k = large._array.shape
    rows = 1
    for size in lead:
        rows *= size
    tall = large.reshape(rows, k)
    if vector:
        return reshape_fresh(mv_of(tall, small), tuple(lead))
    y = reshape_fresh(mm_of(tall, small), (*lead, small._array.shape[-1]))
    return y.mT.contiguous() if turned else y


def reshape_fresh(y: Any, shape: tuple[int, ...]) -> Any:
    """A fresh result in another shape: nobody else holds it, so it is not a view."""
    return apply(UnsafeView(shape), y)


def multiply_batches(a: Any, b: Any) -> Any:
    """Batches that broadcast: expanded to one another, then one product a matrix."""
    xa, xb = a._array, b._array
    rows, k = (xa.shape[-2] if xa.ndim > 1 else 1), xa.shape[-1]
    m, columns = (xb.shape[-2], xb.shape[-1]) if xb.ndim > 1 else (xb.shape[-1], 1)
    lead = broadcast_shape(xa.shape[:-2], xb.shape[:-2])
    if xb.ndim == 1:
        b = b.unsqueeze(1)
    count = 1
    for size in lead:
        count *= size
    wide_a = a.expand((*lead, rows, k)).reshape(count, rows, k)
    wide_b = b.expand((*lead, m, columns)).reshape(count, m, columns)
    shape = list(lead)
    if xa.ndim > 1:
        shape.append(rows)
    if xb.ndim > 1:
        shape.append(columns)
    return reshape_fresh(bmm_of(wide_a, wide_b), tuple(shape))


operators.mm = MMS
operators.matmul = functions["matmul"]  # `a @ b` that is not two plain matrices


@function(name="__rmatmul__", free=False)
def _at_right(self: Any, other: Any) -> Any:
    """other @ self"""
    if not isinstance(other, TensorBase):
        return operators.foreign("__rmatmul__", self, other)
    return matmul_product(other, self)


@implements("turned")
def _turned(x: Any) -> Any:
    return x.transpose(-1, -2)


@implements("matmul", "narrow_matmul")
def _matmul(a: Any, b: Any) -> Any:
    return matmul_product(operand(a), operand(b))


# --- over chosen dimensions -----------------------------------------------------------------------
@function()
def inner(input: Any, other: Any, *, out: Any = None) -> Any:
    """Sums of products over the last dimension of both; a 0-d input multiplies.

    >>> torch.inner(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([3., 7.])
    """
    check_tensors("inner", input=input, other=other)
    a, b = input._array, other._array
    if a.ndim == 0 or b.ndim == 0:
        return write_out("inner", (input, other), out, lambda: input * other)
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(a.shape)} and {list(b.shape)}"
        )
    return write_out("inner", (input, other), out, lambda: contract(input, other, [-1], [-1]))


@function(method=False)
def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Sum of products over several dimensions: the last `dims` of `a` and the first of `b`, or two
    lists that name them.

    >>> torch.tensordot(torch.ones(2, 3, 4), torch.ones(3, 4), dims=2)
    tensor([12., 12.])
    """
    if isinstance(dims, TensorBase):
        dims = dims._array.tolist() if dims._array.size > 1 else int(dims._array.item())
    dims = python_number(dims)
    if not isinstance(dims, (int, tuple, list)) or isinstance(dims, bool):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
            f"containing two lists, but got dims={dims}"
        )
    if isinstance(dims, (tuple, list)):
        if len(dims) == 1 and isinstance(dims[0], int):
            dims = dims[0]
        else:
            left, right = dims
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._array.ndim, b._array.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = list(range(-dims, 0)), list(range(dims))
    for position, side in enumerate((left, right)):
        if not isinstance(side, (tuple, list)):
            name = "dims_other" if position else "dims_self"
            raise TypeError(
                f"tensordot(): argument '{name}' (position {3 + position}) must be tuple of ints, "
                f"not {type(side).__name__}"
            )
    return write_out("tensordot", (a, b), out, lambda: contract(a, b, list(left), list(right)))


def contract(a: Any, b: Any, left: list[int], right: list[int]) -> Any:
    """The sum of products over dimensions `left` of `a` and `right` of `b`, as one product."""
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    if a._array.dtype != b._array.dtype:
        raise RuntimeError("both inputs should have same dtype")
    m, n = a._array.ndim, b._array.ndim
    size = 1
    for i, j in zip(left, right):
        one, two = a._array.shape[i], b._array.shape[j]
        if one == 1 and two != 1:
            b = b.sum(j, keepdim=True, dtype=b.dtype)
        elif two == 1 and one != 1:
            a = a.sum(i, keepdim=True, dtype=a.dtype)
        elif one != two:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {one} in dim {i} and "
                f"second has size {two} in dim {j}"
            )
        size *= a._array.shape[i]
    gone = [d % m for d in left], [d % n for d in right]
    for dims in gone:
        for d in dims:
            if dims.count(d) > 1:
                raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    keep_a = [d for d in range(m) if d not in gone[0]]
    keep_b = [d for d in range(n) if d not in gone[1]]
    shape = [a._array.shape[d] for d in keep_a] + [b._array.shape[d] for d in keep_b]
    rows = cols = 1
    for d in keep_a:
        rows *= a._array.shape[d]
    for d in keep_b:
        cols *= b._array.shape[d]
    if not keep_a and not keep_b and m == 1:
        return dot_of(DOT, a.permute(gone[0]), b.permute(gone[1])).view(())
    tall = a.permute(keep_a + gone[0]).reshape(rows, size)
    flat = b.permute(gone[1] + keep_b).reshape(size, cols)
    return mm_of(tall, flat).reshape(shape)


# --- chains ---------------------------------------------------------------------------------------
@function(method=False, free=False, namespace="linalg")
def multi_dot(tensors: Any, *, out: Any = None) -> Any:
    """The product of a chain of matrices, in the order that multiplies fewest numbers. The first
    and the last may be vectors.

    >>> torch.linalg.multi_dot([torch.ones(1, 2), torch.ones(2, 3), torch.ones(3)])
    tensor([6.])
    """
    xs = list(tensors)
    n = len(xs)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    for position, x in enumerate(xs):
        rank = x._array.ndim
        end = position in (0, n - 1)
        if rank != 2 and not (end and rank == 1):
            where = ("the first tensor" if position == 0 else "the last tensor") if end else ""
            if end:
                raise RuntimeError(f"multi_dot(): {where} must be 1D or 2D but got {rank}D")
            raise RuntimeError(f"multi_dot(): tensor {position} must be 2D but got {rank}D")
    first, last = xs[0]._array.ndim == 1, xs[-1]._array.ndim == 1
    shape = ([] if first else [xs[0]._array.shape[0]]) + ([] if last else [xs[-1]._array.shape[1]])
    shapes = [list(x._array.shape) for x in xs]
    if first:
        xs[0] = xs[0].unsqueeze(0)
    if last:
        xs[-1] = xs[-1].unsqueeze(-1)
    for i in range(n - 1):
        if xs[i]._array.shape[1] != xs[i + 1]._array.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {shapes[i]} and {shapes[i + 1]} "
                "cannot be multiplied"
            )
    return write_out("linalg_multi_dot", tuple(xs), out, lambda: multiply_chain(xs).reshape(shape))


def multiply_chain(xs: list[Any]) -> Any:
    """The product of matrices, by the cheapest order of multiplying (Cormen et al., chapter 15)."""
    n = len(xs)
    sizes = [x._array.shape[0] for x in xs] + [xs[-1]._array.shape[1]]
    cost = [[0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            ways = [
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            ]
            # of three with a tie PyTorch multiplies the first two first, of more the last
            last = n == 3
            cost[i][j], cut[i][j] = min(ways, key=lambda way: (way[0], -way[1] if last else way[1]))

    def part(i: int, j: int) -> Any:
        if i == j:
            return xs[i]
        return mm_of(part(i, cut[i][j]), part(cut[i][j] + 1, j))

    return part(0, n - 1)


@function(method=False)
def chain_matmul(*matrices: Any, out: Any = None) -> Any:
    """The product of matrices, in the order that multiplies fewest numbers. Deprecated, in PyTorch
    too: write `linalg.multi_dot`.

    >>> import rushlight as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.chain_matmul(torch.ones(1, 2), torch.ones(2, 3))
    tensor([[2., 2., 2.]])
    """
    warnings.warn(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use "
        "torch.linalg.multi_dot instead, which accepts a list of two or more tensors rather than "
        "multiple parameters.",
        stacklevel=2,
    )
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    if len(matrices) == 1:
        return matrices[0]
    return multi_dot(matrices, out=out)
