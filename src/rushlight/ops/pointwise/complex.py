"""Complex numbers: conjugates, parts as views, angles."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import is_array, is_sparse, put_off
from rushlight.core.dispatch import unary
from rushlight.core.families import Elementwise, ViewOp, conj, is_complex
from rushlight.core.graph import Node, TensorBase
from rushlight.core.views.views import apply_view
from rushlight.ops.apply import run_inplace
from rushlight.ops.checks import check_tensors, not_implemented, raw_dtype
from rushlight.ops.operands import zeros
from rushlight.ops.out import write_array
from rushlight.ops.pointwise.family import PI, Through, expose
from rushlight.ops.registry import function, functions, implements, methods, op
from rushlight.ops.sample_inputs import drawn


@op
class Conj(ViewOp):
    """The complex conjugate, as a view: it is computed when elements are read."""

    name, aten = "conj", "_conj.default"

    def forward(self, x: Any) -> Any:
        return v.conjugated(x)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return conj(g)  # computed at once: gradients have nothing put off, so leaves may keep them

    @staticmethod
    def samples(draw: Any) -> Any:
        yield Conj(), draw.complex(2, 2)
        yield Conj(), draw.complex()


@op
class NegView(ViewOp):
    """Numbers with the other sign, as a view."""

    name, aten = "neg_view", "_neg_view.default"

    def forward(self, x: Any) -> Any:
        return v.negated(x)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return -g

    samples = drawn(real=[(2, 3)], complex=[(2, 2), ()])


@op
class ConjPhysical(Through, Elementwise):
    """The complex conjugate, computed at once."""

    name = "conj_physical"

    def forward(self, x: Any) -> Any:
        return v.conjugate(x)

    def through(self, g: Any) -> Any:
        return conj(g)

    samples = drawn(real=[(2, 3)], complex=[(2, 2), ()])


class ConjPhysicalInplace(ConjPhysical):
    """`conj_physical_`, whose node PyTorch numbers 1."""

    node = "ConjPhysicalBackward1"


CONJ, NEG_VIEW, CONJ_PHYSICAL = Conj(), NegView(), ConjPhysical()


@function(name="conj")
@implements("conjugated", "conjugate")
def conj_of(input: Any) -> Any:
    """The complex conjugate, as a view: it is computed when elements are read, and what is written
    into it is written conjugated. A real tensor itself.

    >>> x = torch.tensor([1 + 2j])
    >>> y = torch.conj(x)
    >>> y, y.is_conj()
    (tensor([1.-2.j]), True)
    >>> y += 1
    >>> x
    tensor([2.+2.j])
    """
    check_tensors("conj", input=input)
    if not is_complex(input):
        return input
    if is_sparse(input._array):
        return unary(CONJ_PHYSICAL, input)
    return apply_view(CONJ, input)


@function(method=False)
@implements("negated")
def _neg_view(input: Any) -> Any:
    """The numbers with the other sign, as a view.

    >>> x = torch.tensor([1., 2.])
    >>> torch._neg_view(x), torch._neg_view(x).is_neg()
    (tensor([-1., -2.]), True)
    """
    check_tensors("_neg_view", input=input)
    if input._array.dtype.kind == "b":
        raise not_implemented("neg_cpu", input._array.dtype)
    return apply_view(NEG_VIEW, input)


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
    return run_inplace(ConjPhysicalInplace(), (input,)) if is_complex(input) else input


def _bits(input: Any) -> int:
    """What is put off of a tensor; see `put_off`."""
    raw = input._array
    return 0 if is_array(raw) else put_off(bottom(raw))


@function()
def resolve_conj(input: Any) -> Any:
    """A copy with the conjugates in memory; the tensor itself if no conjugation is put off.

    >>> y = torch.resolve_conj(torch.tensor([1 + 2j]).conj())
    >>> y, y.is_conj()
    (tensor([1.-2.j]), False)
    """
    check_tensors("resolve_conj", input=input)
    return functions["clone"](input) if _bits(input) & 1 else input


@function()
def resolve_neg(input: Any) -> Any:
    """A copy with its signs in memory; the tensor itself if no negation is put off.

    >>> y = torch.resolve_neg(torch.tensor([1 + 2j]).conj().imag)
    >>> y, y.is_neg()
    (tensor([-2.]), False)
    """
    check_tensors("resolve_neg", input=input)
    return functions["clone"](input) if _bits(input) & 2 else input


@function()
def is_conj(input: Any) -> bool:
    """Whether the tensor is a conjugate view: its memory holds the conjugates of its elements.

    >>> torch.is_conj(torch.tensor([1 + 2j]).conj())
    True
    """
    check_tensors("is_conj", input=input)
    return _bits(input) & 1 != 0


@function()
def is_neg(input: Any) -> bool:
    """Whether the tensor is a negated view: its memory holds its elements with the other sign.

    >>> torch.is_neg(torch.tensor([1 + 2j]).conj().imag)
    True
    """
    check_tensors("is_neg", input=input)
    return _bits(input) & 2 != 0


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
    if _bits(input) & 1:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate "
            "tensor so you can view it as real, use self.resolve_conj(); however, be warned that "
            "the resulting tensor will NOT alias the original."
        )
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
    if not is_complex(input):
        return input
    if _bits(input) & 1:
        input = conj_of(input)
    return functions["select"](view_as_real(input), -1, 0)


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
    if _bits(input) & 1:
        return functions["select"](_neg_view(view_as_real(conj_of(input))), -1, 1)
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
