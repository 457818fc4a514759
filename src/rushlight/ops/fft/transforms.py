"""Fourier transforms along axes: three linear ops, and `torch.fft` made of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import move
from rushlight.arrays.lapack import fourier, fourier_half, fourier_real
from rushlight.arrays.making import arange as count_up
from rushlight.arrays.vocabulary import pad, real, window
from rushlight.core.families import Linear
from rushlight.core.fp_warnings import quietly
from rushlight.core.graph import TensorBase
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, from_end, one_dim
from rushlight.ops.creation.tensor import check_plain, dtype_of, place_of, write_created
from rushlight.ops.each_member import batch_leading
from rushlight.ops.numbers import number
from rushlight.ops.out import write_out
from rushlight.ops.pointwise.complex import conj_of as conj
from rushlight.ops.registry import describe, function, implements, op, variant
from rushlight.ops.shape.flip import roll
from rushlight.ops.shape.pad import pad as padded

_ALL = slice(None)


def _at(axis: int, part: slice) -> tuple[Any, ...]:
    """An index of part of an axis, which counts from the end."""
    return (..., part, *[_ALL] * (-axis - 1))


def _lengthen(x: Any, axis: int, n: int) -> Any:
    """Zeros behind an axis, until it is `n` long."""
    missing = n - x.shape[axis]
    if missing <= 0:
        return x
    widths = [(0, 0)] * x.ndim
    widths[axis] = (0, missing)
    return pad(x, tuple(widths), 0)


class Transform(Linear):
    """A transform along `dims`, which count from the end, times `scale`."""

    dims: tuple[int, ...]
    scale: float
    vmap_rule = batch_leading

    def scaled(self, y: Any) -> Any:
        return y if self.scale == 1.0 else y * self.scale


@op
class FftC2C(Transform):
    """The transform of complex numbers, forward or back."""

    name, node, params = "_fft_c2c", "FftC2CBackward0", ("dims", "forwards", "scale")

    def __init__(
        self, dims: tuple[int, ...] = (-1,), forwards: bool = True, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.dims, self.forwards, self.scale = dims, forwards, scale

    def forward(self, x: Any) -> Any:
        return self.scaled(fourier(x, self.dims, not self.forwards))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return self.scaled(fourier(g, self.dims, self.forwards))

    @staticmethod
    def samples(draw: Any) -> Any:
        yield FftC2C(), draw.complex(5)
        yield FftC2C((-1,), False, 0.25), draw.complex(2, 4)
        yield FftC2C((-1, -3)), draw.complex(2, 3, 4)


@op
class FftR2C(Transform):
    """The transform of real numbers: its first half if `onesided` (the other is the conjugate)."""

    name, node, params = "_fft_r2c", "FftR2CBackward0", ("dims", "onesided", "scale")
    complex_too = False

    def __init__(
        self, dims: tuple[int, ...] = (-1,), onesided: bool = True, scale: float = 1.0
    ) -> None:
        super().__init__()
        self.dims, self.onesided, self.scale = dims, onesided, scale

    def forward(self, x: Any) -> Any:
        if self.onesided:
            return self.scaled(fourier_real(x, self.dims))
        return self.scaled(fourier(x, self.dims, False))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        last = self.dims[-1]
        return self.scaled(real(fourier(_lengthen(g, last, shape[last]), self.dims, True)))

    @staticmethod
    def samples(draw: Any) -> Any:
        yield FftR2C(), draw.real(5)
        yield FftR2C((-1,), True, 0.5), draw.real(2, 4)
        yield FftR2C((-1,), False), draw.real(4)
        yield FftR2C((-1, -3)), draw.real(4, 2, 3)


@op
class FftC2R(Transform):
    """Real numbers from the first half of their transform; `n` along the last of `dims`."""

    name, node, params = "_fft_c2r", "FftC2RBackward0", ("dims", "n", "scale")

    def __init__(self, dims: tuple[int, ...], n: int, scale: float = 1.0) -> None:
        super().__init__()
        self.dims, self.n, self.scale = dims, n, scale

    def forward(self, x: Any) -> Any:
        return self.scaled(fourier_half(x, self.dims, self.n))

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        """All but the ends of the half stand for two numbers."""
        y = fourier_real(g, self.dims)
        inside = _at(self.dims[-1], slice(1, (self.n + 1) // 2))
        return self.scaled(v.place(y, window(y, inside) * 2, inside))

    @staticmethod
    def samples(draw: Any) -> Any:
        yield FftC2R((-1,), 5), draw.complex(3)
        yield FftC2R((-1,), 4, 0.5), draw.complex(2, 3)
        yield FftC2R((-1, -2), 5), draw.complex(3, 2)


@implements("fourier")
def _fourier(x: Any, axes: tuple[int, ...], inverse: bool) -> Any:
    if x._array.dtype.kind != "c":
        x = x.to(dtypes.promote_types(dtypes.of(x._array.dtype), dtypes.complex64))
    return apply(FftC2C(axes, not inverse), x)


@implements("fourier_real")
def _fourier_real(x: Any, axes: tuple[int, ...]) -> Any:
    return apply(FftR2C(axes), x)


@implements("fourier_half")
def _fourier_half(x: Any, axes: tuple[int, ...], n: int) -> Any:
    return apply(FftC2R(axes, n), x)


# --- what users wrote -----------------------------------------------------------------------------
def _float_or_complex(x: Any, complex_too: bool) -> Any:
    """The input in a dtype that transforms take: integers in the default float."""
    kind = dtypes.of(x._array.dtype)
    if not (kind.is_floating_point or kind.is_complex):
        kind = dtypes.default
    if kind in (dtypes.float16, dtypes.bfloat16):
        raise RuntimeError(f"Unsupported dtype {kind.scalar_type}")
    if kind is dtypes.complex32:
        raise RuntimeError("MKL FFT doesn't support tensors of type: Half")
    if complex_too and not kind.is_complex:
        kind = dtypes.promote_types(kind, dtypes.complex64)
    return x if dtypes.of(x._array.dtype) is kind else x.to(kind)


def _scale(norm: str | None, count: int, forwards: bool) -> float:
    """By how much a transform of `count` numbers is scaled."""
    if norm is None or norm == "backward":
        return 1.0 if forwards else 1 / count
    if norm == "ortho":
        return 1 / math.sqrt(count)
    if norm == "forward":
        return 1 / count if forwards else 1.0
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _fit(x: Any, dims: tuple[int, ...], sizes: tuple[int, ...]) -> Any:
    """The input cut, or filled up with zeros, to the sizes of what is transformed."""
    for d, n in zip(dims, sizes, strict=True):
        have = x._array.shape[d]
        if n < have:
            x = x.narrow(d, 0, n)
        elif n > have:
            x = padded(x, [0, 0] * (-d - 1) + [0, n - have])
    return x


def _check_points(*sizes: int) -> None:
    for n in sizes:
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _axis(x: Any, dim: Any) -> int:
    if x._array.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return one_dim(dim, x._array.ndim)


def _integers(name: str, argument: str, position: int, given: Any) -> list[int] | None:
    """What was given as whole numbers: one, several, or None."""
    if given is None:
        return None
    start = f"fft_{name}(): argument '{argument}' (position {position}) must be tuple of ints"
    if not isinstance(given, (tuple, list)):
        one = NotImplemented if isinstance(given, TensorBase) else number(given, "int")
        if one is NotImplemented:
            raise TypeError(f"{start}, not {dtypes.type_name(given)}")
        return [one]
    found = [number(n, "int") for n in given]
    for at, n in enumerate(found):
        if n is NotImplemented:
            kind = dtypes.type_name(given[at])
            raise TypeError(f"{start}, but found element of type {kind} at pos {at}")
    return found


def _axes(name: str, x: Any, s: Any, dim: Any) -> tuple[tuple[int, ...], list[int]]:
    """The axes to transform, from the end, and the sizes asked for (-1: as they are)."""
    rank = x._array.ndim
    s = _integers(name, "s", 2, s)
    dim = _integers(name, "dim", 3, dim)
    if dim is not None:
        dims = tuple([_axis(x, d) for d in dim]) if rank or dim else ()
        if len(set(dims)) < len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > rank:
            raise RuntimeError(
                f"Got shape with {len(s)} values but input tensor only has {rank} dimensions."
            )
        dims = tuple(range(-len(s), 0))
    else:
        dims = tuple(range(-rank, 0))
    return dims, [-1] * len(dims) if s is None else s


def _sizes(x: Any, dims: tuple[int, ...], asked: list[int]) -> tuple[int, ...]:
    sizes = tuple([x._array.shape[d] if n == -1 else n for d, n in zip(dims, asked, strict=True)])
    _check_points(*sizes)
    return sizes


def _check_real(name: str, x: Any, words: str) -> None:
    kind = dtypes.of(x._array.dtype)
    if kind.is_complex:
        raise RuntimeError(f"{name} expects a {words} input tensor, but got {kind.scalar_type}")


def _check_axes(name: str, dims: tuple[int, ...]) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


# --- the transforms -------------------------------------------------------------------------------
# Each takes the input, sizes, dims and the norm; `one` says whether the user gave one axis.
def _complex(forwards: bool) -> Callable[..., Any]:
    def compute(name: str, x: Any, dims: tuple[int, ...], asked: list[int], norm: Any) -> Any:
        one = name in ("fft", "ifft")
        x = _float_or_complex(x, not one)
        sizes = _sizes(x, dims, asked)
        scale = _scale(norm, math.prod(sizes), forwards)
        x = _fit(x, dims, sizes)
        if not dims:
            return x.clone()
        if x._array.dtype.kind == "c":
            return apply(FftC2C(dims, forwards, scale), x)
        y = apply(FftR2C(dims, False, scale), x)
        return y if forwards else conj(y)

    return compute


def _real(name: str, x: Any, dims: tuple[int, ...], asked: list[int], norm: Any) -> Any:
    _check_real(
        "rfft" if name == "rfft" else "rfftn", x, "real" if name == "rfft" else "real-valued"
    )
    x = _float_or_complex(x, False)
    _check_axes("rfftn", dims)
    sizes = _sizes(x, dims, asked)
    return apply(FftR2C(dims, True, _scale(norm, math.prod(sizes), True)), _fit(x, dims, sizes))


def _half(x: Any, dims: tuple[int, ...], asked: list[int]) -> tuple[Any, tuple[int, ...]]:
    """The half that is needed of a transform, and the sizes of what it is of."""
    x = _float_or_complex(x, True)
    last = asked[-1]
    if last == -1:
        last = 2 * (x._array.shape[dims[-1]] - 1)
    sizes = _sizes(x, dims, [*asked[:-1], last if last != -1 else -2])
    return _fit(x, dims, (*sizes[:-1], sizes[-1] // 2 + 1)), sizes


def _real_back(name: str, x: Any, dims: tuple[int, ...], asked: list[int], norm: Any) -> Any:
    _check_axes("irfftn", dims)
    x, sizes = _half(x, dims, asked)
    return apply(FftC2R(dims, sizes[-1], _scale(norm, math.prod(sizes), False)), x)


def _hermitian(name: str, x: Any, dims: tuple[int, ...], asked: list[int], norm: Any) -> Any:
    _check_axes("hfftn", dims)
    x, sizes = _half(x, dims, asked)
    if len(dims) > 1:
        x = apply(FftC2C(dims[:-1], True, _scale(norm, math.prod(sizes[:-1]), True)), x)
    return apply(FftC2R(dims[-1:], sizes[-1], _scale(norm, sizes[-1], True)), conj(x))


def _hermitian_back(name: str, x: Any, dims: tuple[int, ...], asked: list[int], norm: Any) -> Any:
    kind = dtypes.of(x._array.dtype)
    if name == "ihfft":
        _check_real(name, x, "real")
    elif kind.is_complex:
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {kind.scalar_type}")
    _check_axes("ihfftn", dims)
    x = _float_or_complex(x, False)
    sizes = _sizes(x, dims, asked)
    x = _fit(x, dims, sizes)
    y = conj(apply(FftR2C(dims[-1:], True, _scale(norm, sizes[-1], False)), x))
    if len(dims) > 1:
        y = apply(FftC2C(dims[:-1], False, _scale(norm, math.prod(sizes[:-1]), False)), y)
    return y


# --- public functions -----------------------------------------------------------------------------
def _finish(name: str, input: Any, out: Any, compute: Callable[[], Any]) -> Any:
    if out is not None:
        want_real = name.startswith(("irfft", "hfft"))
        kind = dtypes.of(out._array.dtype)
        if kind.is_complex == want_real:
            wanted = "floating point" if want_real else "complex"
            raise RuntimeError(
                f"{name} expects a {wanted} output tensor, but got {kind.scalar_type}"
            )
    return write_out(f"fft_{name}", (input,), out, compute)


def _export_family(stem: str, compute: Callable[..., Any], text: str, examples: list[str]) -> None:
    """`stem`, `stem2` and `stemn`: along one axis, two and several."""

    def along_one(
        input: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None
    ) -> Any:
        check_tensor(input, f"fft_{stem}")
        dims = (_axis(input, dim),)
        if n is not None:
            _check_points(n)
        asked = [-1 if n is None else n]
        return _finish(stem, input, out, lambda: compute(stem, input, dims, asked, norm))

    def along_two(
        input: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None, *, out: Any = None
    ) -> Any:
        return several(f"{stem}2", input, s, dim, norm, out)

    def along_some(
        input: Any, s: Any = None, dim: Any = None, norm: str | None = None, *, out: Any = None
    ) -> Any:
        return several(f"{stem}n", input, s, dim, norm, out)

    def several(name: str, input: Any, s: Any, dim: Any, norm: Any, out: Any) -> Any:
        check_tensor(input, f"fft_{name}")
        dims, asked = _axes(name, input, s, dim)
        return _finish(name, input, out, lambda: compute(name, input, dims, asked, norm))

    one = "n: the length of the signal: cut, or filled up with zeros."
    some = "s: the sizes of the signal: cut, or filled up with zeros."
    norms = 'norm: "backward" (scale the way back), "ortho" (both ways) or "forward".'
    forms = (
        (stem, along_one, "", one),
        (f"{stem}2", along_two, ", along two dimensions", some),
        (f"{stem}n", along_some, ", along several dimensions (all, if none are given)", some),
    )
    for at, (name, fn, end, sizes) in enumerate(forms):
        words = f"{text}{end}.\n\nArgs:\n    {sizes}\n    {norms}"
        call, shown = examples[2 * at : 2 * at + 2]
        made = variant(fn, name, describe(words, f"torch.fft.{name}({call})", shown))
        function(method=False, free=False, namespace="fft")(made)


_export_family(
    "fft", _complex(True), "The discrete Fourier transform",
    ["torch.tensor([1., 2.])", "tensor([ 3.+0.j, -1.+0.j])",
     "torch.ones(2, 2)", "tensor([[4.+0.j, 0.+0.j],\n        [0.+0.j, 0.+0.j]])",
     "torch.ones(2)", "tensor([2.+0.j, 0.+0.j])"],
)  # fmt: skip
_export_family(
    "ifft", _complex(False), "The inverse of the discrete Fourier transform",
    ["torch.tensor([3., -1.])", "tensor([1.-0.j, 2.-0.j])",
     "torch.tensor([[4., 0.], [0., 0.]])", "tensor([[1.+0.j, 1.+0.j],\n        [1.+0.j, 1.+0.j]])",
     "torch.tensor([2., 0.])", "tensor([1.+0.j, 1.+0.j])"],
)  # fmt: skip
_export_family(
    "rfft", _real,
    "The first half of the Fourier transform of real numbers; the rest are conjugates",
    ["torch.tensor([1., 2., 3., 4.])", "tensor([10.+0.j, -2.+2.j, -2.+0.j])",
     "torch.ones(2, 2)", "tensor([[4.+0.j, 0.+0.j],\n        [0.+0.j, 0.+0.j]])",
     "torch.ones(4)", "tensor([4.+0.j, 0.+0.j, 0.+0.j])"],
)  # fmt: skip
_export_family(
    "irfft", _real_back, "The way back from `rfft`, to real numbers",
    ["torch.tensor([10., -2. + 2.j, -2.])", "tensor([1., 2., 3., 4.])",
     "torch.tensor([[4., 0.], [0., 0.]])", "tensor([[1., 1.],\n        [1., 1.]])",
     "torch.tensor([4., 0., 0.])", "tensor([1., 1., 1., 1.])"],
)  # fmt: skip
_export_family(
    "hfft", _hermitian,
    "The Fourier transform of a signal of which the first half is given, the rest being "
    "conjugates: real numbers",
    ["torch.tensor([1., 2., 3.])", "tensor([ 8., -2.,  0., -2.])",
     "torch.ones(2, 2)", "tensor([[4., 0.],\n        [0., 0.]])",
     "torch.ones(3)", "tensor([4., 0., 0., 0.])"],
)  # fmt: skip
_export_family(
    "ihfft", _hermitian_back, "The way back from `hfft`",
    ["torch.tensor([8., -2., 0., -2.])", "tensor([1.-0.j, 2.-0.j, 3.-0.j])",
     "torch.tensor([[4., 0.], [0., 0.]])", "tensor([[1.+0.j, 1.+0.j],\n        [1.+0.j, 1.+0.j]])",
     "torch.tensor([4., 0., 0., 0.])", "tensor([1.-0.j, 1.-0.j, 1.-0.j])"],
)  # fmt: skip


# --- frequencies and shifts -----------------------------------------------------------------------
def _frequencies(
    name: str, n: int, d: float, out: Any, dtype: Any, layout: Any, device: Any,
    pin_memory: bool, requires_grad: bool, half: bool,
) -> Any:  # fmt: skip
    check_plain(name, layout, pin_memory, requires_grad)
    want = dtype_of(dtype, name)
    kind = (
        dtypes.of(out._array.dtype) if want is None and out is not None else want or dtypes.default
    )
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    whole = count_up(0, n // 2 + 1 if half else n, 1, kind.numpy)
    if not half:
        whole[(n + 1) // 2 :] -= n
    length = n * d
    rate = 1 / length if length else math.copysign(math.inf, length)
    array = quietly(operator.mul, whole, rate)
    array = move(v.cast(array, kind.numpy), place_of(device, name))
    return write_created(name, out, array, want, requires_grad)


@function(method=False, free=False, namespace="fft")
def fftfreq(
    n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The frequencies of `fft`, in its order.

    Args:
        n: the length of the signal.
        d: the time between two samples.

    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _frequencies(
        "fftfreq", n, d, out, dtype, layout, device, pin_memory, requires_grad, False
    )


@function(method=False, free=False, namespace="fft")
def rfftfreq(
    n: int, d: float = 1.0, *, out: Any = None, dtype: Any = None, layout: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    """The frequencies of `rfft`, in its order.

    Args:
        n: the length of the signal.
        d: the time between two samples.

    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies(
        "rfftfreq", n, d, out, dtype, layout, device, pin_memory, requires_grad, True
    )


def _shift(x: Any, dim: Any, back: bool) -> Any:
    rank = x._array.ndim
    given = _integers("ifftshift" if back else "fftshift", "dim", 2, dim)
    axes = [from_end(one_dim(d, rank), rank) for d in (range(rank) if given is None else given)]
    by = [(x._array.shape[d] + back) // 2 for d in axes]
    return roll(x, by, axes)


@function(method=False, free=False, namespace="fft")
def fftshift(input: Any, dim: Any = None) -> Any:
    """What `fft` gives, with the frequency 0 in the middle.

    >>> torch.fft.fftshift(torch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    check_tensor(input, "fft_fftshift")
    return _shift(input, dim, False)


@function(method=False, free=False, namespace="fft")
def ifftshift(input: Any, dim: Any = None) -> Any:
    """The way back from `fftshift`.

    >>> torch.fft.ifftshift(torch.tensor([-2, -1, 0, 1]))
    tensor([ 0,  1, -2, -1])
    """
    check_tensor(input, "fft_ifftshift")
    return _shift(input, dim, True)
