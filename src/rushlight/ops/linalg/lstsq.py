"""The pseudo-inverse, and least squares."""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes, return_types
from rushlight.arrays import lapack
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import has_values
from rushlight.core.families import conj, is_complex
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, invalid, raw_dtype
from rushlight.ops.linalg.common import check_square, column_scale, is_per_matrix, mh, row_scale
from rushlight.ops.linalg.eigh_svd import describe_failure
from rushlight.ops.numbers import Operand
from rushlight.ops.out import write_out
from rushlight.ops.registry import function, implements, op


# --- pseudo-inverse -------------------------------------------------------------------------------
def tolerances(array: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """What counts as zero among singular values, as ops take it: `atol`, and `rtol` times the
    largest, which is the longer side times eps unless one of the two is given."""
    if rtol is None:
        eps = dtypes.finfo(dtypes.of(array.dtype)).eps * max(array.shape[-2:])
        if is_per_matrix(atol):
            # where atol is zero it counts as not given
            rtol = (atol == 0).to(dtypes.of(v.real(array).dtype)) * eps
        else:
            rtol = 0.0 if atol else eps
    return 0.0 if atol is None else atol, rtol


@op
class Pinv(Op):
    """The pseudo-inverse. Singular values up to max(atol, rtol · the largest) count as zero."""

    name = "linalg_pinv"
    inputs, saves = ("self", "atol", "rtol"), ("self", "result")
    params = ("hermitian",)
    hermitian: bool = False

    def forward(self, x: Any, atol: Any, rtol: Any) -> Any:
        m, n = x.shape[-2:]
        if m == 0 or n == 0:
            return v.full(x, (*x.shape[:-2], n, m), 0, raw_dtype(x))
        if self.hermitian:
            values, u = lapack.eigh(x, True)
            sizes, vh = v.absolute(values), mh(u)
        else:
            u, values, vh = lapack.svd(x, False)
            sizes = values
        # tolerances may be arrays, one number a matrix
        atol = row_scale(atol) if hasattr(atol, "shape") else atol
        rtol = row_scale(rtol) if hasattr(rtol, "shape") else rtol
        least = v.maximum(atol, rtol * v.reduce_max(sizes, (-1,), True))
        kept = v.greater(sizes, least)
        inverse = v.where(kept, 1 / v.where(kept, values, 1), 0)
        return mh(vh) @ (row_scale(inverse) * mh(u))

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        return describe_failure("linalg.eigh" if self.hermitian else "linalg.svd", error, xs[0])

    def vjp(self, node: Node, g: Any, x: Any, y: Any) -> Any:
        return pinv_back(g, x, y), None, None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return pinv_forth(ts[0], xs[0], y)

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Pinv(), draw.square(3, 3), 0.0, 1e-15
        yield Pinv(), draw.real(4, 2), 0.0, 1e-15
        yield Pinv(), draw.real(2, 2, 3), 0.0, 1e-15
        yield Pinv(), draw.real(0, 2), 0.0, 1e-15
        yield Pinv(), draw.complex(3, 2), 0.0, 1e-15


# What `tol` and `rcond` are where they were not given: None is no number there, as in PyTorch.
LEFT_OUT: Final[Any] = object()


def old_form(function: str, A: Any, name: str, given: Any, atol: Any, rtol: Any) -> None:
    """Refuse what the older form of a function, with one tolerance, does not take."""
    more = [x for x in (atol, rtol) if x is not None]
    if more:
        raise invalid(
            function, (A, given, *more),
            "(Tensor input, *, Tensor atol = None, Tensor rtol = None, bool hermitian = False)",
            "(Tensor input, *, float atol = None, float rtol = None, bool hermitian = False)",
            f"(Tensor input, Tensor {name}, bool hermitian = False)",
            f"(Tensor input, float {name}, bool hermitian = False)",
        )  # fmt: skip


def pinv_back(g: Any, x: Any, y: Any) -> Any:
    """The gradient of a matrix `x` from that of its pseudo-inverse `y`, of whatever rank."""
    gh, yh = mh(g), mh(y)
    found = -(yh @ g @ yh)
    left = gh @ y @ yh
    right = yh @ y @ gh
    return found + (left - x @ (y @ left)) + (right - (right @ y) @ x)


def pinv_forth(t: Any, x: Any, y: Any) -> Any:
    """The tangent of the pseudo-inverse."""
    th, yh = mh(t), mh(y)
    left, right = y @ yh @ th, th @ yh @ y
    return -(y @ t @ y) + (left - (left @ x) @ y) + (right - y @ (x @ right))


@implements("pinv")
def _pinv(x: Any) -> Any:
    longest = max(x.shape[-2:])
    return apply(Pinv(), x, 0.0, longest * dtypes.finfo(dtypes.of(x._array.dtype)).eps)


@function(method=False, free=False, namespace="linalg")
def pinv(
    A: Any, rcond: Operand = LEFT_OUT, hermitian: bool = False, *, atol: Operand | None = None,
    rtol: Operand | None = None,
    out: Any = None,
) -> Any:  # fmt: skip
    """The pseudo-inverse. Singular values up to max(atol, rtol times the largest) count as zero.

    >>> torch.linalg.pinv(torch.tensor([[2., 0.], [0., 0.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    array = check_tensor(A, "linalg_pinv", "input")
    if array.ndim < 2 or array.dtype.kind not in "fc" or array.dtype.itemsize < 4:
        raise RuntimeError(
            f"linalg.pinv({dtypes.of(array.dtype).scalar_type}{{{list(array.shape)}}}): expected "
            "a tensor with 2 or more dimensions of float, double, cfloat or cdouble types"
        )
    if hermitian:
        check_square(array, "linalg.eigh")
    if rcond is not LEFT_OUT:
        old_form("linalg_pinv", A, "rcond", rcond, atol, rtol)
        atol, rtol = 0.0, rcond
    if array.size:
        atol, rtol = tolerances(array, atol, rtol)
    atol, rtol = (t.detach() if t is not None and is_per_matrix(t) else t for t in (atol, rtol))
    what = Pinv(bool(hermitian))
    return write_out("linalg_pinv", (A,), out, lambda: apply(what, A, atol, rtol))


@function()
def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """The older form of `linalg.pinv`.

    >>> torch.pinverse(torch.tensor([[2.], [0.]]))
    tensor([[0.5000, 0.0000]])
    """
    check_tensor(input, "pinverse", "input")
    return pinv(input, rcond)


# --- least squares --------------------------------------------------------------------------------
_SOME: Final = ("gels", "gelsd", "gelss")  # the drivers of `lstsq` that tell the residuals


@op
class Lstsq(Op):
    """The X that makes A X - B shortest: its solution, residuals, and the rank of A."""

    name = "linalg_lstsq"
    inputs = ("self", "b")
    outputs = ("solution", "residuals", "rank", "singular_values")
    saves, params = ("self", "b", "solution"), ("rcond", "driver", "vector")
    rcond: float
    driver: str
    vector: bool = False

    def wide(self, b: Any) -> Any:
        return row_scale(b) if self.vector else b

    def slim(self, x: Any) -> Any:
        return v.window(x, (..., 0)) if self.vector else x

    def tells(self, a: Any) -> bool:
        """Whether residuals are told: they are of an overdetermined system of full rank."""
        return self.driver in _SOME and bool(a.shape[-2] > a.shape[-1])

    def forward(self, a: Any, b: Any) -> Any:
        b = self.wide(b)
        x, rank, values = lapack.least_squares(a, b, self.rcond, self.driver == "gelsd")
        nothing = v.full(values, (0,), 0, raw_dtype(values))
        residuals = nothing
        if self.tells(a):
            gap = v.absolute(a @ x - b)
            residuals = v.reduce_sum(gap * gap, (-2,), False)
        told = values if self.driver in ("gelsd", "gelss") else nothing
        return self.slim(x), residuals, rank, told

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        if isinstance(error, lapack.Unfit):
            # as LAPACK numbers the arguments of each driver
            at = (5 if self.driver == "gels" else 4) + 2 * error.which
            return RuntimeError(
                f"torch.linalg.lstsq: Argument {at} has illegal value: "
                f"{'B' if error.which else 'A'} contains numbers that are not finite."
            )
        return describe_failure("torch.linalg.lstsq", error, xs[0])

    def vjp(self, node: Node, g: Any, a: Any, b: Any, x: Any) -> Any:
        gx, b, x = self.wide(g[0]), self.wide(b), self.wide(x)
        y = lapack.pinv(a)
        ga = pinv_back(gx @ mh(b), a, y)
        gb = mh(y) @ gx
        if self.tells(a):
            gap = 2 * column_scale(g[1]) * (a @ x - b)
            ga, gb = ga + gap @ mh(x), gb - gap
        return ga, self.slim(gb)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        (a, b), (ta, tb) = xs, ts
        ta, tb = a * 0 if ta is None else ta, b * 0 if tb is None else tb
        x, residuals, rank, values = y
        b, tb, x = self.wide(b), self.wide(tb), self.wide(x)
        p = lapack.pinv(a)
        t = pinv_forth(ta, a, p) @ b + p @ tb
        if self.tells(a):
            step = conj(a @ x - b) * (ta @ x - tb)
            residuals = 2 * v.reduce_sum(v.real(step) if is_complex(step) else step, (-2,), False)
        return self.slim(t), residuals, rank * 0, values * 0

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Lstsq(1e-15, "gelsy"), draw.real(4, 2), draw.real(4, 3)
        yield Lstsq(1e-15, "gelsy"), draw.real(2, 3), draw.real(2, 1)
        yield Lstsq(1e-15, "gels"), draw.real(2, 4, 2), draw.real(2, 4, 1)
        yield Lstsq(1e-15, "gels", True), draw.real(3, 2), draw.real(3)
        yield Lstsq(1e-15, "gels"), draw.complex(3, 2), draw.complex(3, 1)


def lacks_full_rank(rank: Any, full: int) -> bool:
    """Whether a matrix of a batch has less than full rank: then residuals are told of none."""
    raw = bottom(rank._array)
    return has_values(raw) and not bool(v.reduce_all(raw == full, None, False))


@function(
    method=False,
    free=False,
    namespace="linalg",
    name="lstsq",
)
def linalg_lstsq(A: Any, B: Any, rcond: float | None = None, *, driver: str | None = None) -> Any:
    """The X that makes A X - B shortest; the squared lengths of the columns that are left, the rank
    and the singular values of A, each where PyTorch's `driver` tells it. All drivers compute the
    same here.

    >>> torch.linalg.lstsq(torch.tensor([[1.], [1.]]), torch.tensor([[1.], [3.]])).solution.round()
    tensor([[2.]])
    """
    a, b = check_tensor(A, "linalg_lstsq", "input"), check_tensor(B, "linalg_lstsq", "B", 2)
    title = "torch.linalg.lstsq"
    if a.ndim < 2:
        raise RuntimeError(f"{title}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{title}: other must have at least 1 dimension.")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{title}: Expected input and other to have the same dtype, but got input's dtype "
            f"{dtypes.of(a.dtype).scalar_type} and other's dtype {dtypes.of(b.dtype).scalar_type}"
        )
    if driver is not None and driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"{title}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    vector = a.ndim - 1 == b.ndim
    if b.shape[-1 if vector else -2] != a.shape[-2]:
        side = "-1" if vector else "-2"
        raise RuntimeError(f"{title}: input.size(-2) should match other.size({side})")
    if a.dtype.kind not in "fc" or a.dtype.itemsize < 4:
        raise RuntimeError("This function doesn't handle types other than float and double")
    if rcond is None:
        rcond = dtypes.finfo(dtypes.of(a.dtype)).eps * max(a.shape[-2:])
    how = driver or "gelsy"
    x, residuals, rank, values = apply(Lstsq(float(rcond), how, vector), A, B)
    if how == "gels":
        rank = rank.new_empty((0,))
    elif how != "gelsy" and residuals._array.size and lacks_full_rank(rank, a.shape[-1]):
        residuals = residuals.new_empty((0,))
    return return_types.linalg_lstsq((x, residuals, rank, values.detach()))
