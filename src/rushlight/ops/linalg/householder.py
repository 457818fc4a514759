"""Products of Householder's reflectors, as `geqrf` leaves them."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.families import conj
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, raw_dtype
from rushlight.ops.linalg.common import by_columns, eye, lapack_only, mh
from rushlight.ops.out import write_out
from rushlight.ops.registry import function, op
from rushlight.ops.sample_inputs import drawn


class Reflectors(Op):
    """An op of Q = H₁ H₂ …, where Hᵢ = 1 - τᵢ vᵢ vᵢᴴ, and vᵢ is below the diagonal of A."""

    def columns(self, a: Any, tau: Any) -> list[tuple[Any, Any]]:
        """The reflectors: each vᵢ as a column, and τᵢ."""
        m, n = a.shape[-2:]
        one = v.cast(eye(a, max(m, n)), raw_dtype(a))
        ones = v.window(one, (slice(0, m), slice(0, n)))
        below = v.triangle(a, -1, True) + ones
        return [
            (v.window(below, (..., slice(i, i + 1))), v.window(tau, (..., slice(i, i + 1), None)))
            for i in range(tau.shape[-1])
        ]

    def reflected(self, found: list[tuple[Any, Any]], x: Any, adjoint: bool = False) -> list[Any]:
        """Q x, and what it is before each reflection: [x, Hₖ x, Hₖ₋₁ Hₖ x, …, Q x]."""
        steps = [x]
        for w, t in found if adjoint else reversed(found):
            x = x - (conj(t) if adjoint else t) * (w @ (mh(w) @ x))
            steps.append(x)
        return steps

    def pulled(self, a: Any, tau: Any, x: Any, g: Any, adjoint: bool = False) -> tuple[Any, ...]:
        """The gradients of A, τ and x from that of Q x (Qᴴ x if `adjoint`)."""
        found = self.columns(a, tau)
        steps = self.reflected(found, x, adjoint)
        k = len(found)
        gvs, gts = [], []
        order = range(k - 1, -1, -1) if adjoint else range(k)
        for at, i in enumerate(order):  # the last reflection first
            w, t = found[i]
            before = steps[k - 1 - at]
            s = conj(t) if adjoint else t
            seen, back = mh(w) @ before, mh(w) @ g
            gs = -v.reduce_sum(back * conj(seen), (-1,), True)
            gts.append(conj(gs) if adjoint else gs)
            gvs.append(-(conj(s) * (g @ mh(seen)) + s * (before @ mh(back))))
            g = g - conj(s) * (w @ back)
        if adjoint:
            gvs, gts = gvs[::-1], gts[::-1]
        n = a.shape[-1]
        if k == 0:
            return a * 0, tau, g
        left = v.triangle(v.concat(gvs, -1), -1, True)
        if k < n:
            left = v.concat([left, v.window(a, (..., slice(k, n))) * 0], -1)
        return left, v.window(v.concat(gts, -2), (..., 0)), g

    def pushed(self, ts: tuple[Any, ...], xs: tuple[Any, ...], adjoint: bool) -> Any:
        """The tangent of Q x (Qᴴ x if `adjoint`) from those of A, τ and x."""
        (ta, ttau, tx), (a, tau, x) = ts, xs
        below = None if ta is None else v.triangle(ta, -1, True)
        found = list(enumerate(self.columns(a, tau)))
        t = x * 0 if tx is None else tx
        for i, (w, factor) in found if adjoint else reversed(found):
            part = (..., slice(i, i + 1))
            s = conj(factor) if adjoint else factor
            moved = w @ (mh(w) @ t)
            if below is not None:
                tw = v.window(below, part)
                moved = moved + tw @ (mh(w) @ x) + w @ (mh(tw) @ x)
            t = t - s * moved
            if ttau is not None:
                ts = v.window(ttau, (*part, None))
                t = t - (conj(ts) if adjoint else ts) * (w @ (mh(w) @ x))
            x = x - s * (w @ (mh(w) @ x))
        return t


def _reflectors(function: str, a: Any, tau: Any) -> None:
    if a.ndim < 2:
        raise RuntimeError(f"{function}: input must have at least 2 dimensions.")
    if a.dtype != tau.dtype:
        raise RuntimeError(
            f"{function}: tau dtype {dtypes.of(tau.dtype).scalar_type} does not match input dtype "
            f"{dtypes.of(a.dtype).scalar_type}"
        )


@op
class HouseholderProduct(Reflectors):
    """The first columns of Q."""

    name = "linalg_householder_product"
    inputs, saves = ("input", "tau"), ("input", "tau")

    def start(self, a: Any) -> Any:
        m, n = a.shape[-2:]
        one = v.cast(eye(a, m), raw_dtype(a))
        return v.broadcast(v.window(one, (v.ALL, slice(0, n))), a.shape)

    def forward(self, a: Any, tau: Any) -> Any:
        return by_columns(self.reflected(self.columns(a, tau), self.start(a))[-1], True)

    def vjp(self, node: Node, g: Any, a: Any, tau: Any) -> Any:
        return self.pulled(a, tau, self.start(a), g)[:2]

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.pushed((ts[0], ts[1], None), (*xs, self.start(xs[0])), False)

    samples = drawn(
        real=[((4, 3), (3,)), ((2, 3, 3), (2, 2)), ((3, 2), (0,))], complex=[((3, 2), (2,))]
    )


@function(method=False, free=False, namespace="linalg")
def householder_product(A: Any, tau: Any, *, out: Any = None) -> Any:
    """The first columns of the product of the reflectors that stand below the diagonal of A.

    >>> torch.linalg.householder_product(torch.ones(2, 1), torch.tensor([1.]))
    tensor([[ 0.],
            [-1.]])
    """
    a = check_tensor(A, "linalg_householder_product", "input")
    factors = check_tensor(tau, "linalg_householder_product", "tau", 2)
    title = "torch.linalg.householder_product"
    if a.ndim >= 2 and a.shape[-2] < a.shape[-1]:
        raise RuntimeError(
            f"{title}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if a.ndim >= 2 and a.shape[-1] < factors.shape[-1]:
        raise RuntimeError(
            f"{title}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    _reflectors(title, a, factors)
    lapack_only(a, "orgqr_cpu")
    what = HouseholderProduct()
    return write_out("linalg_householder_product", (A, tau), out, lambda: apply(what, A, tau))


@function()
def orgqr(input: Any, input2: Any, *, out: Any = None) -> Any:
    """Another name of `linalg.householder_product`.

    >>> a, tau = torch.geqrf(torch.tensor([[3.], [4.]]))
    >>> torch.orgqr(a, tau).abs()
    tensor([[0.6000],
            [0.8000]])
    """
    check_tensor(input, "orgqr", "input")
    return householder_product(input, input2, out=out)


@op
class Ormqr(Reflectors):
    """Q x (x Q unless `left`), or with Qᴴ if `transpose`."""

    name, params = "ormqr", ("left", "transpose")
    inputs, saves = ("self", "tau", "other"), ("self", "tau", "other")

    def __init__(self, left: bool = True, transpose: bool = False) -> None:
        super().__init__()
        self.left = left
        self.transpose = transpose
        self.adjoint = transpose == left  # x Q is (Qᴴ xᴴ)ᴴ

    def forward(self, a: Any, tau: Any, x: Any) -> Any:
        if not self.left:
            x = mh(x)
        y = self.reflected(self.columns(a, tau), x, self.adjoint)[-1]
        return by_columns(y if self.left else mh(y), True)

    def vjp(self, node: Node, g: Any, a: Any, tau: Any, x: Any) -> Any:
        if self.left:
            return self.pulled(a, tau, x, g, self.adjoint)
        ga, gt, gx = self.pulled(a, tau, mh(x), mh(g), self.adjoint)
        return ga, gt, mh(gx)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        a, tau, x = xs
        if self.left:
            return self.pushed(ts, xs, self.adjoint)
        t = None if ts[2] is None else mh(ts[2])
        return mh(self.pushed((ts[0], ts[1], t), (a, tau, mh(x)), self.adjoint))

    @staticmethod
    def samples(draw: Any) -> Any:
        for left in (True, False):
            shape = (3, 4) if left else (4, 3)
            for transpose in (False, True):
                yield Ormqr(left, transpose), draw.real(3, 2), draw.real(2), draw.real(*shape)
                xs = draw.complex(3, 2), draw.complex(2), draw.complex(*shape)
                yield Ormqr(left, transpose), *xs


@function()
def ormqr(
    input: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False,
    *, out: Any = None,
) -> Any:  # fmt: skip
    """The product of reflectors times a matrix (a matrix times it, unless `left`); the conjugate
    transpose of that product if `transpose`.

    Args:
        other: the matrix that Q is multiplied with.
        left: whether Q is on the left.
        transpose: whether Q is transposed first.

    >>> torch.ormqr(torch.ones(2, 1), torch.tensor([1.]), torch.eye(2))
    tensor([[ 0., -1.],
            [-1.,  0.]])
    """
    a = check_tensor(input, "ormqr", "input")
    factors, x = check_tensor(tau, "ormqr", "tau", 2), check_tensor(other, "ormqr", "other", 3)
    if a.ndim < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    side = -2 if left else -1
    if factors.shape[-1] != min(x.shape[side], a.shape[-1]):
        raise RuntimeError(
            f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
        )
    if x.shape[side] != a.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    _reflectors("torch.ormqr", a, factors)
    lapack_only(a, "ormqr_cpu")
    what = Ormqr(bool(left), bool(transpose))
    return write_out("ormqr", (input, tau, other), out, lambda: apply(what, input, tau, other))
