"""Complex numbers: conjugates, parts as views, angles."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.dispatch import unary
from rushlight.core.families import Elementwise, ViewOp, conj, is_complex
from rushlight.core.graph import Node, TensorBase
from rushlight.core.views.views import apply_view
from rushlight.ops.apply import run_inplace
from rushlight.ops.checks import check_tensors, raw_dtype
from rushlight.ops.operands import zeros
from rushlight.ops.out import write_array
from rushlight.ops.pointwise.family import PI, Through, expose, register_impl
from rushlight.ops.registry import function, functions, implements, methods, op
from rushlight.ops.sample_inputs import drawn


@op
class Conj(Through, Elementwise):
    """The complex conjugate."""

    name = "conj"

    def forward(self, x: Any) -> Any:
        return v.conjugate(x)

    def through(self, g: Any) -> Any:
        return conj(g)

    samples = drawn(real=[(2, 3)], complex=[(2, 2), ()])


@op
class ConjPhysical(Conj):
    """The complex conjugate, computed at once."""

    name = "conj_physical"


CONJ, CONJ_PHYSICAL = Conj(), ConjPhysical()
register_impl("conjugate", CONJ)


@function(name="conj")
def conj_of(input: Any) -> Any:
    """The complex conjugate; a real tensor itself.

    >>> torch.conj(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    check_tensors("conj", input=input)
    return unary(CONJ, input) if is_complex(input) else input


@function()
def conj_physical(input: Any, *, out: Any = None) -> Any:
    """The complex conjugate, in memory of its own; a real tensor itself.

    >>> torch.conj_physical(torch.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    check_tensors("conj_physical", input=input)
    result = unary(CONJ_PHYSICAL, input) if is_complex(input) else input
    return result if out is None else write_array(out, result._array)


@function()
def conj_physical_(input: Any) -> Any:
    """In-place version of `conj_physical`."""
    return run_inplace(CONJ_PHYSICAL, (input,)) if is_complex(input) else input


@function(aliases=("resolve_neg",))
def resolve_conj(input: Any) -> Any:
    """The tensor itself: conjugation is never put off here.

    >>> torch.resolve_conj(torch.tensor([1 + 2j]).conj())
    tensor([1.-2.j])
    """
    return input


@function(aliases=("is_neg",))
def is_conj(input: Any) -> bool:
    """Whether conjugation was put off: never, here.

    >>> torch.is_conj(torch.tensor([1 + 2j]).conj())
    False
    """
    return False


@op
class ViewAsReal(ViewOp):
    """Complex numbers as pairs of real ones, in a last dimension of two."""

    name = "view_as_real"

    def forward(self, x: Any) -> Any:
        return v.as_pairs(x)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.complex_of(v.window(g, (..., 0)), v.window(g, (..., 1)))

    samples = drawn(complex=[(2, 2), (), (0, 2)])


@op
class ViewAsComplex(ViewOp):
    """Pairs of real numbers, the last dimension, as complex ones."""

    name = "view_as_complex"
    complex_too = False

    def forward(self, x: Any) -> Any:
        return v.as_complex(x)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return v.as_pairs(g)

    samples = drawn(real=[(3, 2), (2,)])


VIEW_AS_REAL, VIEW_AS_COMPLEX = ViewAsReal(), ViewAsComplex()


@function(method=False)
@implements("as_pairs")
def view_as_real(input: Any) -> Any:
    """A view of complex numbers as pairs of real ones, in a last dimension of two.

    >>> torch.view_as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    check_tensors("view_as_real", input=input)
    if not is_complex(input):
        raise RuntimeError("view_as_real is only supported for complex tensors")
    return apply_view(VIEW_AS_REAL, input)


@function(method=False)
@implements("as_complex")
def view_as_complex(input: Any) -> Any:
    """A view of pairs of real numbers, the last dimension, as complex ones.

    >>> torch.view_as_complex(torch.tensor([[1., 2.]]))
    tensor([1.+2.j])
    """
    raw = input._array
    if raw.dtype.kind != "f":
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a "
            f"tensor of scalar type: {dtypes.of(raw.dtype).scalar_type}"
        )
    if raw.ndim == 0:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if raw.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if raw.strides[-1] != raw.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % (2 * raw.itemsize) for s in raw.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    return apply_view(VIEW_AS_COMPLEX, input)


@function(method=False)
@implements("real")
def real(input: Any) -> Any:
    """The real part, as a view; a real tensor itself.

    >>> torch.real(torch.tensor([1 + 2j]))
    tensor([1.])
    """
    check_tensors("real", input=input)
    return functions["select"](view_as_real(input), -1, 0) if is_complex(input) else input


@function(method=False)
@implements("imag")
def imag(input: Any) -> Any:
    """The imaginary part, as a view.

    >>> torch.imag(torch.tensor([1 + 2j]))
    tensor([2.])
    """
    check_tensors("imag", input=input)
    if not is_complex(input):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return functions["select"](view_as_real(input), -1, 1)


def _write_part(part: Any) -> Any:
    def write(self: Any, value: Any) -> None:
        view = part(self)
        view.copy_(value) if isinstance(value, TensorBase) else view.fill_(value)

    return write


methods["real"] = property(real, _write_part(real))  # type: ignore[assignment]
methods["imag"] = property(imag, _write_part(imag))  # type: ignore[assignment]


@op
class Angle(Elementwise):
    """The angle of complex numbers; π for negative numbers."""

    name, saves, promotion = "angle", ("self",), "float"

    def forward(self, x: Any) -> Any:
        if is_complex(x):
            return v.arctan2(v.imag(x), v.real(x))
        return v.where(v.isnan(x), x, v.cast(x < 0, raw_dtype(x)) * PI)

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        if not is_complex(x):
            return (zeros(g),)
        re, im, over = self.parts(x)
        return (v.complex_of(-g * im * over, g * re * over),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        if not is_complex(xs[0]):
            return zeros(y)
        re, im, over = self.parts(xs[0])
        return (v.imag(ts[0]) * re - v.real(ts[0]) * im) * over

    def parts(self, x: Any) -> tuple[Any, Any, Any]:
        """Real part, imaginary part, and one over the squared size (0 at zero)."""
        re, im = v.real(x), v.imag(x)
        square = re * re + im * im
        return re, im, v.where(square == 0, 0, 1 / square)

    samples = drawn(real=[(2, 3)], complex=[(2, 2), ()])


expose(Angle, "[1j, -1 + 0j]", "[1.5708, 3.1416]", inplace=False)
