"""LDL: A = L D Lᴴ of symmetric or Hermitian matrices, and systems solved with it.

PyTorch defines no derivatives of them.
"""

from __future__ import annotations

from typing import Any

from rushlight import dtypes, return_types
from rushlight.arrays import lapack
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor
from rushlight.ops.linalg import common
from rushlight.ops.out import write_out, write_outs
from rushlight.ops.registry import function
from rushlight.ops.view.expand import broadcast_shape


class _Unfinished(Op):
    node = "NotImplemented"

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{self.name} is not implemented")


class LdlFactor(_Unfinished):
    """The packed factors, the exchanges, and what went wrong."""

    name, params = "linalg_ldl_factor_ex", ("hermitian",)
    outputs = ("LD", "pivots", "info")
    hermitian: bool = False

    def forward(self, x: Any) -> Any:
        return lapack.ldl(x, self.hermitian)


class LdlSolve(_Unfinished):
    """The solutions of A X = B from the packed factors of A."""

    name, params = "linalg_ldl_solve", ("hermitian",)
    inputs = ("LD", "pivots", "B")
    hermitian: bool = False

    def forward(self, factors: Any, pivots: Any, b: Any) -> Any:
        return lapack.ldl_solve(factors, pivots, b, self.hermitian)


def _factor(name: str, A: Any, hermitian: bool, check: bool) -> tuple[Any, Any, Any]:
    array = check_tensor(A, f"linalg_{name}")
    common.check_square(array, "torch.linalg.ldl_factor_ex")
    common.lapack_only(array, "ldl_factor_kernel_cpu")
    factors, pivots, info = apply(LdlFactor(bool(hermitian)), A)
    if check and bool((info != 0).any()):
        at = int(info.flatten().nonzero()[0])
        raise RuntimeError(
            f"torch.linalg.{name}: Unknown error code: {int(info.flatten()[at])}.\n"
            f"Matrix {at} is singular. `ldl_factor_ex` gives its factors all the same."
        )
    return factors, pivots, info


@function(method=False, free=False, namespace="linalg")
def ldl_factor(A: Any, *, hermitian: bool = False, out: Any = None) -> Any:
    """The factors of symmetric matrices (Hermitian ones, if so told), packed: D on the diagonal and
    L below it; and the exchanges of rows.

    Args:
        A: the matrices; their lower triangles are read.

    >>> torch.linalg.ldl_factor(torch.tensor([[4., 2.], [2., 3.]])).LD
    tensor([[4.0000, 0.0000],
            [0.5000, 2.0000]])
    """
    found = _factor("ldl_factor", A, hermitian, True)
    return write_outs("linalg_ldl_factor", return_types.linalg_ldl_factor, found[:2], out)


@function(method=False, free=False, namespace="linalg")
def ldl_factor_ex(
    A: Any, *, hermitian: bool = False, check_errors: bool = False, out: Any = None
) -> Any:
    """`ldl_factor`, with LAPACK's word on what went wrong.

    Args:
        A: the matrices; their lower triangles are read.

    >>> torch.linalg.ldl_factor_ex(torch.eye(2)).info
    tensor(0, dtype=torch.int32)
    """
    found = _factor("ldl_factor_ex", A, hermitian, check_errors)
    return write_outs("linalg_ldl_factor_ex", return_types.linalg_ldl_factor_ex, found, out)


@function(method=False, free=False, namespace="linalg")
def ldl_solve(LD: Any, pivots: Any, B: Any, *, hermitian: bool = False, out: Any = None) -> Any:
    """The X of A X = B, from what `ldl_factor` gave of A.

    Args:
        LD: the packed factors.
        pivots: the exchanges of rows.
        B: the right sides, in columns.

    >>> A = torch.tensor([[4., 2.], [2., 3.]])
    >>> torch.linalg.ldl_solve(*torch.linalg.ldl_factor(A), torch.tensor([[6.], [5.]]))
    tensor([[1.],
            [1.]])
    """
    title = "torch.linalg.ldl_solve"
    a, p = (
        check_tensor(LD, "linalg_ldl_solve", "LD"),
        check_tensor(pivots, "linalg_ldl_solve", "pivots", 2),
    )
    b = check_tensor(B, "linalg_ldl_solve", "B", 3)
    common.check_square(a, title, "LD")
    if p.dtype.kind not in "iu":
        raise RuntimeError(
            f"{title}: Expected pivots to be integers. Got {dtypes.of(p.dtype).scalar_type}"
        )
    if a.shape[:-1] != p.shape:
        raise RuntimeError(
            f"{title}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with "
            f"shape {list(p.shape)} instead"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            "linalg.ldl_solve: Expected LD and B to have the same dtype, but found LD of type "
            f"{dtypes.of(a.dtype).scalar_type} and B of type {dtypes.of(b.dtype).scalar_type} "
            "instead"
        )
    common.check_sides(a, b, True, title)
    batch = broadcast_shape(b.shape[:-2], a.shape[:-2])
    ready = (
        LD.expand((*batch, *a.shape[-2:])), pivots.expand((*batch, p.shape[-1])),
        B.expand((*batch, *b.shape[-2:])),
    )  # fmt: skip
    return write_out(
        "linalg_ldl_solve", (LD, B), out, lambda: apply(LdlSolve(bool(hermitian)), *ready)
    )
