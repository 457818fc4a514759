"""`torch.linalg` made of other functions: inverses and systems of tensors, Vandermonde matrices,
products of vectors, and what is in `torch` too."""

from __future__ import annotations

import math
from typing import Any

from rushlight import dtypes
from rushlight.ops.checks import check_tensor, one_dim
from rushlight.ops.out import write_out
from rushlight.ops.registry import function, functions, namespaces


@function(method=False, free=False, namespace="linalg")
def tensorinv(A: Any, ind: int = 2, *, out: Any = None) -> Any:
    """The inverse of the map that a tensor is, from its last dimensions to the first `ind`.

    Args:
        A: the tensor; its first `ind` sizes and the others have the same product.
        ind: how many dimensions the result of the map has.

    >>> torch.linalg.tensorinv(torch.eye(4).reshape(2, 2, 4)).shape
    torch.Size([4, 2, 2])
    """
    array = check_tensor(A, "linalg_tensorinv")
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    to, back = array.shape[:ind], array.shape[ind:]
    rows, columns = math.prod(to), math.prod(back)
    if rows != columns:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {columns} != {rows}"
        )
    inv = namespaces["linalg"]["inv"]
    return write_out(
        "linalg_tensorinv", (A,), out,
        lambda: inv(A.reshape((rows, columns))).reshape((*back, *to)),
    )  # fmt: skip


@function(method=False, free=False, namespace="linalg")
def tensorsolve(A: Any, B: Any, dims: Any = None, *, out: Any = None) -> Any:
    """The X with tensordot(A, X, X.ndim) = B.

    Args:
        A: the tensor; the product of its first sizes, as many as B has, is that of the others.
        dims: dimensions of A to move to the end first.

    >>> torch.linalg.tensorsolve(torch.eye(4).reshape(2, 2, 4), torch.ones(2, 2))
    tensor([1., 1., 1., 1.])
    """
    a, b = check_tensor(A, "linalg_tensorsolve"), check_tensor(B, "linalg_tensorsolve", "B", 2)
    if dims is not None:
        given = [one_dim(d, a.ndim) + a.ndim for d in dims]
        A = A.permute([d for d in range(a.ndim) if d not in given] + given)
        a = A._array
    shape = a.shape[b.ndim :]
    n, m = math.prod(shape), b.size
    if n != m:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {n} != {m}"
        )
    solve = namespaces["linalg"]["solve"]
    return write_out(
        "linalg_tensorsolve", (A, B), out,
        lambda: solve(A.reshape((n, n)), B.flatten()).reshape(shape),
    )  # fmt: skip


@function(method=False, free=False, namespace="linalg")
def vander(x: Any, N: int | None = None) -> Any:
    """The powers 0 to N - 1 of each element, in rows.

    Args:
        N: how many powers; as many as there are elements if None.

    >>> torch.linalg.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    array = check_tensor(x, "linalg_vander", "x")
    kind = dtypes.of(array.dtype)
    low = (kind.is_floating_point and kind.itemsize < 4) or (kind.is_complex and kind.itemsize < 8)
    if kind is dtypes.bool_ or low:
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            f"{kind.scalar_type}"
        )
    x = x.unsqueeze(-1) if array.ndim == 0 else x
    shape = x._array.shape
    n = shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    column = x.unsqueeze(-1)
    powers = functions["cumprod"](column.expand((*shape, n - 1)), -1)
    ones = functions["ones"]((*shape, 1), dtype=powers.dtype, device=powers.device)
    return functions["cat"]([ones, powers], -1)


@function(method=False, free=False, namespace="linalg")
def vecdot(x: Any, y: Any, *, dim: int = -1, out: Any = None) -> Any:
    """The products of vectors along a dimension, conjugates of the first times the second, summed.

    Args:
        y: the other vectors.

    >>> torch.linalg.vecdot(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([3., 7.])
    """
    a, b = check_tensor(x, "linalg_vecdot", "x"), check_tensor(y, "linalg_vecdot", "y", 2)
    one, two = dtypes.of(a.dtype), dtypes.of(b.dtype)
    if not (one.is_floating_point or one.is_complex):
        raise RuntimeError(
            "linalg.vecdot: Expected a floating point or complex tensor as input. "
            f"Got {one.scalar_type}"
        )
    if one is not two:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{one.scalar_type} and y of type {two.scalar_type} instead"
        )
    if a.ndim == b.ndim == 1:
        return write_out("linalg_vecdot", (x, y), out, lambda: functions["vdot"](x, y))
    return write_out("linalg_vecdot", (x, y), out, lambda: (functions["conj"](x) * y).sum(dim))


@function(method=False, free=False, namespace="linalg")
def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """`torch.diagonal` of the last two dimensions.

    >>> torch.linalg.diagonal(torch.eye(2))
    tensor([1., 1.])
    """
    check_tensor(A, "linalg_diagonal", "A")
    return functions["diagonal"](A, offset, dim1, dim2)


@function(method=False, free=False, namespace="linalg", name="matmul")
def linalg_matmul(input: Any, other: Any, *, out: Any = None) -> Any:
    """See `torch.matmul`.

    >>> torch.linalg.matmul(torch.ones(2), torch.ones(2))
    tensor(2.)
    """
    return functions["matmul"](input, other, **({} if out is None else {"out": out}))
