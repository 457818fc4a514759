"""QR: orthonormal columns times an upper triangle. Products of its reflectors are in
`linalg/householder.py`.
"""

from __future__ import annotations

from typing import Any

from rushlight import return_types
from rushlight.arrays import lapack
from rushlight.arrays import vocabulary as v
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor
from rushlight.ops.each_member import batch_leading
from rushlight.ops.linalg import common
from rushlight.ops.linalg.common import half_diagonal, lower_solve, mh, mt, upper_solve
from rushlight.ops.out import write_outs
from rushlight.ops.registry import function, op
from rushlight.ops.sample_inputs import drawn


@op
class Qr(Op):
    """A = Q R with orthonormal columns in Q and an upper triangle R.

    Note [Wide matrices]
        With fewer rows than columns, A = [X Y] and R = [U V]: X = Q U is square, and V = Qᴴ Y.
    """

    name = "linalg_qr"
    word = "qr"
    inputs, outputs, saves = ("A",), ("Q", "R"), ("Q", "R")
    params = ("mode",)
    mode: str = "reduced"
    vmap_rule = batch_leading

    def forward(self, x: Any) -> Any:
        return lapack.qr(x, self.mode)

    def refuse(self, shape: tuple[int, ...]) -> None:
        m, n = shape[-2:]
        if self.mode == "r":
            raise RuntimeError(
                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
                "Please use linalg.qr(A, mode='reduced') if you are going to differentiate "
                "through linalg.qr."
            )
        if self.mode == "complete" and m > n:
            raise RuntimeError(
                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."
            )

    def vjp(self, node: Any, g: Any, q: Any, r: Any) -> Any:
        shapes = node._input_shapes
        self.refuse(shapes[0])
        gq, gr = g
        m, n = shapes[0][-2:]
        if m >= n:
            return (_qr_back(gq, gr, q, r),)
        gv, gu = v.window(gr, (..., slice(m, n))), v.window(gr, (..., slice(0, m)))
        right, u = v.window(r, (..., slice(m, n))), v.window(r, (..., slice(0, m)))
        return (v.concat([_qr_back(gq + q @ right @ mh(gv), gu, q, u), q @ gv], -1),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        self.refuse(xs[0].shape)
        (q, r), t = y, ts[0]
        m, n = t.shape[-2:]
        if m >= n:
            return _qr_forth(t, q, r)
        right, u = v.window(r, (..., slice(m, n))), v.window(r, (..., slice(0, m)))
        tq, tu = _qr_forth(v.window(t, (..., slice(0, m))), q, u)
        tv = mh(q) @ (v.window(t, (..., slice(m, n))) - tq @ right)
        return tq, v.concat([tu, tv], -1)

    samples = drawn(
        square=[(3, 3), ("complete", (2, 2, 2))],
        real=[(4, 2), (2, 4), ("complete", (2, 3)), (0, 2)],
        complex=[(3, 2), (2, 3)],
    )


def _qr_back(gq: Any, gr: Any, q: Any, r: Any) -> Any:
    """The gradient of a matrix that is no wider than tall."""
    middle = half_diagonal(v.triangle(gr @ mh(r) - mh(q) @ gq, 0, False))
    whole = gq + q @ (middle + mh(middle))
    return mh(upper_solve(r, mh(whole)))


def _qr_forth(t: Any, q: Any, r: Any) -> Any:
    """The tangents of Q and R for such a matrix."""
    step = mt(lower_solve(mt(r), mt(t)))
    inside = mh(q) @ step
    upper = half_diagonal(v.triangle(inside + mh(inside), 0, False))
    return step - q @ upper, upper @ r


def _compute_qr(A: Any, mode: str) -> Any:
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), "
            "'r', or 'complete'"
        )
    common.check_matrices(A._array, "linalg.qr")
    if A._array.dtype.kind not in "fc" and A._array.dtype.kind != "V":
        common.floating(A._array, "linalg.qr")
    common.lapack_only(A._array, "geqrf_cpu")
    return apply(Qr(mode), A)


@function(method=False, free=False, namespace="linalg", name="qr")
def linalg_qr(A: Any, mode: str = "reduced", *, out: Any = None) -> Any:
    """Orthonormal columns Q and an upper triangle R with A = Q R. `mode`: "reduced", "complete" (Q
    is square) or "r" (Q is empty).

    Args:
        mode: 'reduced'; 'complete' for a square Q; 'r' for R alone.

    >>> Q, R = torch.linalg.qr(torch.tensor([[3.], [4.]]))
    >>> R.abs()
    tensor([[5.]])
    """
    check_tensor(A, "linalg_qr", "A")
    return write_outs("linalg_qr", return_types.linalg_qr, _compute_qr(A, mode), out)


@function()
def qr(input: Any, some: bool = True, *, out: Any = None) -> Any:
    """The older form of `linalg.qr`. Deprecated, in PyTorch too.

    >>> import rushlight as torch, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.qr(torch.tensor([[3.], [4.]])).R.abs()
    tensor([[5.]])
    """
    common.warn_outdated("qr", "qr")
    check_tensor(input, "qr", "input")
    results = _compute_qr(input, "reduced" if some else "complete")
    return write_outs("qr", return_types.qr, results, out)


class Geqrf(Op):
    """QR as LAPACK leaves it. It has no derivative, in PyTorch neither, so the laws of the table
    are not for it."""

    name, outputs = "geqrf", ("a", "tau")

    def forward(self, x: Any) -> Any:
        return lapack.householder_qr(x)

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        raise NotImplementedError("the derivative for 'geqrf' is not implemented.")

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


@function()
def geqrf(input: Any, *, out: Any = None) -> Any:
    """QR as LAPACK leaves it: R with the reflectors below its diagonal, and their factors. It has
    no derivative.

    >>> a, tau = torch.geqrf(torch.tensor([[3.], [4.]]))
    >>> a[0].abs()
    tensor([5.])
    """
    array = check_tensor(input, "geqrf", "input")
    if array.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    common.lapack_only(array, "geqrf_cpu")
    return write_outs("geqrf", return_types.geqrf, apply(Geqrf(), input), out)
