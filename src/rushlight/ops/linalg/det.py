"""Determinants, and their signs and logarithms."""

from __future__ import annotations

import math
from typing import Any

from rushlight import return_types
from rushlight.arrays import lapack
from rushlight.arrays import vocabulary as v
from rushlight.core.families import conj, is_complex
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor
from rushlight.ops.each_member import batch_leading
from rushlight.ops.linalg.common import check_square, floating, mh, mt, row_scale
from rushlight.ops.out import write_out, write_outs
from rushlight.ops.pointwise.comparison import where
from rushlight.ops.registry import function, op
from rushlight.ops.sample_inputs import drawn


@op
class Cofactors(Op):
    """The derivative of the determinant by each element."""

    name, saves = "linalg_cofactors", ("self", "result")
    word = "cofactors"
    aten = None

    def forward(self, x: Any) -> Any:
        return lapack.cofactors(x)

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        turned = mh(lapack.inv(x)[0])
        whole = v.reduce_sum(conj(y) * g, (-2, -1), True)
        return (turned * whole - conj(y) @ mt(g) @ turned,)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        turned = mt(lapack.inv(xs[0])[0])
        return y * v.reduce_sum(turned * ts[0], (-2, -1), True) - turned @ mt(ts[0]) @ y

    samples = drawn(square=[(3, 3)], real=[(1, 1)], complex_square=[(2, 2, 2)])


# --- determinants ---------------------------------------------------------------------------------
@op
class Det(Op):
    """The determinant; its gradient is right for matrices without inverse too."""

    name = "linalg_det"
    word = "det"
    inputs, saves = ("A",), ("A",)
    vmap_rule = batch_leading

    def forward(self, x: Any) -> Any:
        return lapack.det(x)

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        return (row_scale(row_scale(g)) * conj(lapack.cofactors(x)),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return v.reduce_sum(lapack.cofactors(xs[0]) * ts[0], (-2, -1), False)

    samples = drawn(square=[(3, 3), (2, 1, 2, 2)], real=[(0, 0)], complex_square=[(2, 2)])


def _compute_det(A: Any) -> Any:
    check_square(A._array, "linalg.det")
    floating(A._array, "linalg.det", "lu_cpu")
    return apply(Det(), A)


@function(method=False, free=False, namespace="linalg", name="det")
def linalg_det(A: Any, *, out: Any = None) -> Any:
    """The determinant of a square matrix, or of each of a batch.

    >>> torch.linalg.det(torch.tensor([[2., 1.], [0., 4.]]))
    tensor(8.)
    """
    return write_out("linalg_det", (A,), out, lambda: _compute_det(A))


@function()
def det(input: Any) -> Any:
    """The determinant of a square matrix, or of each of a batch.

    >>> torch.det(torch.tensor([[2., 1.], [0., 4.]]))
    tensor(8.)
    """
    return _compute_det(input)


# --- signs and logarithms -------------------------------------------------------------------------
@op
class Slogdet(Op):
    """The sign of the determinant and the logarithm of its magnitude."""

    name = "linalg_slogdet"
    word = "slogdet"
    inputs, outputs, saves = ("A",), ("sign", "logabsdet"), ("A", "sign")
    vmap_rule = batch_leading

    def forward(self, x: Any) -> Any:
        return lapack.slogdet(x)

    def vjp(self, node: Node, g: Any, x: Any, sign: Any) -> Any:
        step = g[1]
        if is_complex(sign):  # a phase moves; a sign of 1 or -1 does not
            step = step - 1j * v.imag(conj(g[0]) * sign)
        return (row_scale(row_scale(step)) * mh(lapack.inv(x)[0]),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        step = v.reduce_sum(mt(lapack.inv(xs[0])[0]) * ts[0], (-2, -1), False)
        if is_complex(step):
            return 1j * v.imag(step) * y[0], v.real(step)
        return step * 0, step

    samples = drawn(square=[(3, 3), (2, 1, 2, 2)], real=[(0, 0)], complex_square=[(2, 2)])


def _compute_slogdet(A: Any, function: str) -> Any:
    check_square(A._array, function)
    floating(A._array, function)
    return apply(Slogdet(), A)


@function(method=False, free=False, namespace="linalg", name="slogdet")
def linalg_slogdet(A: Any, *, out: Any = None) -> Any:
    """The sign of the determinant and the logarithm of its magnitude.

    >>> torch.linalg.slogdet(torch.tensor([[-1., 0.], [0., 1.]]))
    torch.return_types.linalg_slogdet(
    sign=tensor(-1.),
    logabsdet=tensor(0.))
    """
    results = _compute_slogdet(A, "linalg.slogdet")
    return write_outs("linalg_slogdet", return_types.linalg_slogdet, results, out)


@function()
def slogdet(input: Any, *, out: Any = None) -> Any:
    """Another name of `linalg.slogdet`.

    >>> torch.slogdet(torch.tensor([[-1., 0.], [0., 1.]])).sign
    tensor(-1.)
    """
    return write_outs(
        "slogdet", return_types.slogdet, _compute_slogdet(input, "linalg.slogdet"), out
    )


@function()
def logdet(input: Any) -> Any:
    """The logarithm of the determinant: NaN where that is below zero.

    >>> torch.logdet(torch.eye(2))
    tensor(0.)
    """
    array = check_tensor(input, "logdet", "input")
    sign, size = _compute_slogdet(input, "logdet")
    if array.dtype.kind == "c":
        return sign.log() + size
    return where(sign == -1.0, math.nan, size)
