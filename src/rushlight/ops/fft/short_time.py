"""The short-time Fourier transform, and the way back."""

from __future__ import annotations

import math
import warnings
from typing import Any

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.core.graph import wrap
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor
from rushlight.ops.fft.transforms import FftC2C, FftC2R, FftR2C
from rushlight.ops.pointwise.complex import view_as_real
from rushlight.ops.registry import function
from rushlight.ops.shape.pad import pad as padded


def _pad_window(function: str, kind: Any, width: int, n_fft: int, given: Any) -> Any:
    """The window as wide as the transform, zeros around it; None for ones throughout."""
    if given is None:
        if width == n_fft:
            return None
        given = kind.new_ones((width,))
    elif given._array.shape != (width,):
        raise RuntimeError(
            f"{function} : expected a 1D window tensor of size equal to win_length={width}, but "
            f"got window with size {list(given._array.shape)}"
        )
    left = (n_fft - width) // 2
    return padded(given, (left, n_fft - width - left)) if width < n_fft else given


def _describe(name: str, x: Any, **given: Any) -> str:
    """A call as PyTorch's errors of these functions show it."""
    parts = []
    for key, value in given.items():
        if key == "window" and value is not None:
            kind = dtypes.of(value._array.dtype).scalar_type
            value = f"torch.{kind}Tensor{{{list(value._array.shape)}}}"
        parts.append(f"{key}={int(value) if isinstance(value, bool) else value}")
    kind = dtypes.of(x._array.dtype).scalar_type
    return f"{name}(torch.{kind}Tensor{list(x._array.shape)}, {', '.join(parts)})"


@function()
def stft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Any = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
    onesided: bool | None = None, return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:  # fmt: skip
    """The Fourier transforms of overlapping pieces of a signal: (..., frequency, piece).

    >>> window = torch.ones(4)
    >>> torch.stft(torch.ones(8), 4, window=window, center=False, return_complex=True)[:, 0].real
    tensor([4., 0., 0.])
    """
    check_tensor(input, "stft")
    if align_to_window is not None and center:
        raise RuntimeError("stft: align_to_window should only be set when center = false.")
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    x = input
    if center:
        side = n_fft // 2
        rank = x._array.ndim
        flat = x.reshape((1,) * (3 - rank) + x._array.shape) if rank < 3 else x
        x = padded(flat, (side, side), pad_mode).reshape((*x._array.shape[:-1], -1))
    kind = dtypes.of(x._array.dtype)
    complex_in = kind.is_complex or (window is not None and window._array.dtype.kind == "c")
    if return_complex is None and not complex_in:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will "
            "further require that return_complex=True in a future PyTorch release."
        )
    called = _describe(
        "stft", x, n_fft=n_fft, hop_length=hop, win_length=width, window=window,
        normalized=bool(normalized), onesided=onesided, return_complex=return_complex,
        align_to_window=align_to_window,
    )  # fmt: skip
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(f"{called} : expected a tensor of floating point or complex values")
    if x._array.ndim not in (1, 2):
        raise RuntimeError(f"{called} : expected a 1D or 2D tensor")
    length = x._array.shape[-1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"{called} : expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(f"{called} : expected hop_length > 0, but got hop_length={hop}")
    if not 0 < width <= n_fft:
        raise RuntimeError(
            f"{called} : expected 0 < win_length <= n_fft, but got win_length={width}"
        )
    single = x._array.ndim == 1
    if single:
        x = x.unsqueeze(0)
    if window is None:
        warnings.warn(
            "A window was not provided. A rectangular window will be applied,which is known to "
            "cause spectral leakage. Give `window=torch.ones(n_fft)` if that is what you want.",
            stacklevel=2,
        )
    if return_complex is False:
        warnings.warn(
            "stft with return_complex=False is deprecated. In a future pytorch release, stft will "
            "return complex tensors for all inputs: see `view_as_real`.",
            stacklevel=2,
        )
    shape = _pad_window(called, x.detach(), width, n_fft, window)
    half = not complex_in if onesided is None else bool(onesided)
    pieces = x.unfold(-1, n_fft, hop)
    if shape is not None:
        pieces = pieces * shape
    scale = 1 / math.sqrt(n_fft) if normalized else 1.0
    if complex_in:
        if half:
            raise RuntimeError(
                f"{called} : Cannot have onesided output if window or input is complex"
            )
        y = apply(FftC2C((-1,), True, scale), pieces)
    else:
        y = apply(FftR2C((-1,), half, scale), pieces)
    y = y.transpose_(-1, -2)
    if single:
        y = y.squeeze_(0)
    return y if return_complex or (return_complex is None and complex_in) else view_as_real(y)


@function()
def istft(
    input: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Any = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: int | None = None, return_complex: bool = False,
) -> Any:  # fmt: skip
    """The signal whose short-time Fourier transform is nearest to `input`.

    Args:
        length: the length of the result; what follows from the frames if None.

    >>> x = torch.arange(8.)
    >>> torch.istft(torch.stft(x, 4, window=torch.ones(4), return_complex=True), 4).round()
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    check_tensor(input, "istft")
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    called = _describe(
        "istft", input, n_fft=n_fft, hop_length=hop, win_length=width, window=window,
        center=bool(center), normalized=bool(normalized), onesided=onesided, length=length,
        return_complex=bool(return_complex),
    )  # fmt: skip
    if input._array.dtype.kind != "c":
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    y, single = input, input._array.ndim == 2
    if input._array.size == 0:
        raise RuntimeError(f"{called} : input tensor cannot be empty.")
    if input._array.ndim not in (2, 3):
        raise RuntimeError(
            f"{called} : expected a tensor with 2 or 3 dimensions, but got {input._array.ndim + 1}"
        )
    if single:
        y = y.unsqueeze(0)
    _, bins, count = y._array.shape
    half = bins != n_fft if onesided is None else bool(onesided)
    expected = n_fft // 2 + 1 if half else n_fft
    if bins != expected:
        kind = "match n_fft / 2 + 1" if half else "be equal to n_fft"
        raise RuntimeError(
            f"{called} : expected the frequency dimension (3rd to the last) of the input tensor "
            f"to {kind} when onesided={half}, but got {bins}"
        )
    if not 0 < hop <= width:
        raise RuntimeError(f"{called} : expected 0 < hop_length <= win_length")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{called} : expected 0 < win_length <= n_fft")
    scale = 1 / math.sqrt(n_fft) if normalized else 1 / n_fft
    pieces = y.transpose(-1, -2)
    if return_complex:
        pieces = apply(FftC2C((-1,), False, scale), pieces)
    else:
        if not half:
            pieces = pieces[..., : n_fft // 2 + 1]
        pieces = apply(FftC2R((-1,), n_fft, scale), pieces)
    like = pieces.detach().real if return_complex else pieces.detach()
    shape = _pad_window(called, like, width, n_fft, window)
    shape = like.new_ones((n_fft,)) if shape is None else shape
    full = n_fft + hop * (count - 1)
    signal = _add_overlapping(pieces * shape, hop, full)
    weight = _add_overlapping((shape * shape).expand((1, count, n_fft)), hop, full)
    start = n_fft // 2 if center else 0
    stop = start + length if length is not None else full - n_fft // 2 if center else full
    signal, weight = signal[..., start : min(stop, full)], weight[..., start : min(stop, full)]
    sums = bottom(weight._array)
    if sums.size and float(abs(sums).min()) < 1e-11:
        raise RuntimeError(f"{called} : window overlap add min: 1")
    signal = signal / weight
    if stop > full:
        signal = padded(signal, (0, stop - full))
    return signal.squeeze(0) if single else signal


def _add_overlapping(pieces: Any, hop: int, full: int) -> Any:
    """Overlapping pieces added up to one signal."""
    batch, count, n = pieces._array.shape
    like = bottom(pieces._array)
    places = v.iota(like, count, dtypes.int64.numpy)[:, None] * hop
    index = wrap((places + v.iota(like, n, dtypes.int64.numpy)).reshape(-1))
    zeros = pieces.detach().new_zeros((batch, full))
    return zeros.index_add(1, index, pieces.reshape(batch, count * n))
