"""The exponential of matrices.

Its derivative along T is the upper right block of exp([[A, T], [0, A]]).
"""

from __future__ import annotations

from typing import Any

from rushlight.arrays import lapack
from rushlight.arrays import vocabulary as v
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor
from rushlight.ops.linalg import common
from rushlight.ops.linalg.common import mh
from rushlight.ops.registry import function, implements, namespaces, op


def _along(x: Any, t: Any) -> Any:
    """The derivative of the exponential at `x`, along `t`."""
    n = x.shape[-1]
    top, low = v.concat([x, t], -1), v.concat([x * 0, x], -1)
    return v.window(lapack.matrix_exp(v.concat([top, low], -2)), (..., slice(0, n), slice(n, None)))


@op
class MatrixExp(Op):
    """exp(A) = 1 + A + A A / 2 + ..."""

    name, node, saves = "linalg_matrix_exp", "LinalgMatrixExpBackward0", ("self",)
    lies = "rows"

    def forward(self, x: Any) -> Any:
        return lapack.matrix_exp(x)

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        return (_along(mh(x), g),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return _along(xs[0], ts[0])

    @staticmethod
    def samples(draw: Any) -> Any:
        yield MatrixExp(), draw.real(3, 3)
        yield MatrixExp(), draw.real(2, 2, 2)
        yield MatrixExp(), draw.complex(2, 2)
        yield MatrixExp(), draw.real(0, 0)


@implements("matrix_exp")
def _word(x: Any) -> Any:
    return apply(MatrixExp(), x)


@function()
def matrix_exp(input: Any) -> Any:
    """The exponential of square matrices: 1 + A + A A / 2 + ...

    >>> torch.matrix_exp(torch.tensor([[0., 1.], [0., 0.]]))
    tensor([[1., 1.],
            [0., 1.]])
    """
    array = check_tensor(input, "linalg_matrix_exp")
    common.check_square(array, "linalg.matrix_exp")
    kind = array.dtype.kind
    if kind in "biu":
        common.floating(array, "linalg.matrix_exp")
    return apply(MatrixExp(), input)


def _in_linalg() -> None:
    from rushlight.ops.registry import functions

    namespaces["linalg"]["matrix_exp"] = functions["matrix_exp"]


_in_linalg()
