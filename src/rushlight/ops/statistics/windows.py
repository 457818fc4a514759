"""Windows of signals: `torch.hann_window` and its kin, and `torch.signal.windows`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from rushlight import dtypes
from rushlight.ops.creation.tensor import check_plain, dtype_of
from rushlight.ops.numbers import Number
from rushlight.ops.registry import describe, function, functions, variant


# --- of old ---------------------------------------------------------------------------------------
def _window(
    name: str, length: int, periodic: bool, dtype: Any, layout: Any, device: Any,
    pin_memory: bool, requires_grad: bool, compute: Callable[[Any, int], Any],
) -> Any:  # fmt: skip
    """A window of `length` numbers, by `compute(0, 1, ..., count - 1; count)`; a periodic one is
    one of a number more, without its last."""
    kind = dtype_of(dtype, name) or dtypes.default
    if layout not in (None, dtypes.strided):
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {layout}")
    check_plain(name, layout, pin_memory, requires_grad)
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(f"{name} expects floating point dtypes, got: {kind}")
    if length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    if length <= 1:
        made = functions["ones"]((length,), dtype=kind, device=device)
    else:
        count = length + 1 if periodic else length
        steps = functions["arange"](count, dtype=kind, device=device)
        made = compute(steps, count)[:length]
        made = made.clone() if periodic else made
    return made.requires_grad_() if requires_grad else made


def _bartlett(x: Any, n: int) -> Any:
    x = x * (2.0 / (n - 1))
    half = ((n - 1) >> 1) + 1
    return functions["cat"]([x[:half], x[half:] * -1 + 2])


def _blackman(x: Any, n: int) -> Any:
    x = x * (math.pi / (n - 1))
    return (x * 4).cos() * 0.08 - (x * 2).cos() * 0.5 + 0.42


def _cosine_of(alpha: float, beta: float) -> Callable[[Any, int], Any]:
    return lambda x, n: (x * (2.0 * math.pi / (n - 1))).cos() * -beta + alpha


def _kaiser_of(beta: float) -> Callable[[Any, int], Any]:
    def compute(x: Any, n: int) -> Any:
        middle = (n - 1) / 2.0
        bow = beta * (1 - ((x - middle) / middle) ** 2).clamp(0).sqrt()
        top = functions["tensor"](float(beta), dtype=x.dtype, device=x.device)
        return functions["i0"](bow) / functions["i0"](top)

    return compute


def _plain(compute: Callable[[Any, int], Any], title: str) -> Any:
    def made(
        window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None,
        device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    ) -> Any:  # fmt: skip
        return _window(
            title, window_length, periodic, dtype, layout, device, pin_memory, requires_grad,
            compute,
        )  # fmt: skip

    return made


def _hamming(
    window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
    dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    return _window(
        "hamming_window", window_length, periodic, dtype, layout, device, pin_memory, requires_grad,
        _cosine_of(alpha, beta),
    )  # fmt: skip


def _kaiser(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
) -> Any:  # fmt: skip
    return _window(
        "kaiser_window", window_length, periodic, dtype, layout, device, pin_memory, requires_grad,
        _kaiser_of(beta),
    )  # fmt: skip


_ARGS: Final = (
    "\n\nArgs:\n    window_length: how many numbers.\n"
    "    periodic: whether the window is one period of a repeating one, as for transforms; else it "
    "is\n        symmetric."
)


def _export_old() -> None:
    for name, fn, text, more, gives in (
        ("bartlett", _plain(_bartlett, "bartlett_window"), "Bartlett's window: a triangle.", "",
         "[0.0000, 0.5000, 1.0000, 0.5000]"),
        ("blackman", _plain(_blackman, "blackman_window"),
         "Blackman's window: a sum of two cosines.", "", ""),
        ("hann", _plain(_cosine_of(0.5, 0.5), "hann_window"), "Hann's window: a raised cosine.",
         "", "[0.0000, 0.5000, 1.0000, 0.5000]"),
        ("hamming", _hamming, "Hamming's window: a raised cosine that does not reach 0.",
         "\n    alpha: how far the cosine is raised.\n    beta: its height.",
         "[0.0800, 0.5400, 1.0000, 0.5400]"),
        ("kaiser", _kaiser, "Kaiser's window, made of Bessel functions.",
         "\n    beta: how steep it is.", "[5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01]"),
    ):  # fmt: skip
        title = f"{name}_window"
        words = text + _ARGS + more
        shown = (
            (f"torch.{title}(4)", f"tensor({gives})")
            if gives
            else (f"torch.{title}(4).shape", "torch.Size([4])")
        )
        function(method=False)(variant(fn, title, describe(words, *shown)))


_export_old()


# --- torch.signal.windows -------------------------------------------------------------------------
def _check(name: str, M: int, dtype: Any, layout: Any) -> Any:
    kind = dtype_of(dtype, name) or dtypes.default
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout not in (None, dtypes.strided):
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if kind not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {kind}")
    return kind


def _line(
    name: str, M: int, dtype: Any, layout: Any, device: Any, requires_grad: bool,
    compute: Callable[[Callable[[float, float], Any]], Any],
) -> Any:  # fmt: skip
    """A window of M numbers, by `compute(line)`, where `line(start, end)` has M even steps."""
    kind = _check(name, M, dtype, layout)
    if M <= 1:
        made = functions["ones"]((M,), dtype=kind, device=device)
    else:
        made = compute(
            lambda start, end: functions["linspace"](start, end, M, dtype=kind, device=device)
        )
    return made.requires_grad_() if requires_grad else made


def _span(M: int, sym: bool) -> int:
    return M - 1 if sym or M <= 1 else M


def _general_cosine(
    M: int, *, a: Any, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    name = "general_cosine"
    _check(name, M, dtype, layout)
    if not isinstance(a, (tuple, list)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")

    def compute(line: Any) -> Any:
        k = line(0.0, (M - 1) * (2 * math.pi / (M if not sym else M - 1)))
        weights = functions["tensor"](
            [(-1) ** i * w for i, w in enumerate(a)], dtype=k.dtype, device=k.device
        )
        order = functions["arange"](len(a), dtype=k.dtype, device=k.device)
        return (weights.unsqueeze(-1) * (order.unsqueeze(-1) * k).cos()).sum(0)

    return _line(name, M, dtype, layout, device, requires_grad, compute)


def _general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    return _general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
        requires_grad=requires_grad,
    )  # fmt: skip


def _cosines(weights: Sequence[float], name: str = "general_cosine") -> Any:
    def made(
        M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
        requires_grad: bool = False,
    ) -> Any:  # fmt: skip
        _check(name, M, dtype, layout)
        return _general_cosine(
            M, a=list(weights), sym=sym, dtype=dtype, layout=layout, device=device,
            requires_grad=requires_grad,
        )  # fmt: skip

    return made


def _signal_bartlett(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    def compute(line: Any) -> Any:
        return 1 - functions["abs"](line(-1.0, -1 + (M - 1) * (2 / (M if not sym else M - 1))))

    return _line("bartlett", M, dtype, layout, device, requires_grad, compute)


def _signal_cosine(
    M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False,
) -> Any:  # fmt: skip
    def compute(line: Any) -> Any:
        step = math.pi / (M + 1 if not sym and M > 1 else M)
        return functions["sin"](line(0.5 * step, (0.5 + (M - 1)) * step))

    return _line("cosine", M, dtype, layout, device, requires_grad, compute)


def _signal_exponential(
    M: int, *, center: float | None = None, tau: Number = 1.0, sym: bool = True, dtype: Any = None,
    layout: Any = None, device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    _check("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = _span(M, sym) / 2.0 if center is None else center

    def compute(line: Any) -> Any:
        step = 1 / tau
        return functions["exp"](-functions["abs"](line(-middle * step, (-middle + (M - 1)) * step)))

    return _line("exponential", M, dtype, layout, device, requires_grad, compute)


def _signal_gaussian(
    M: int, *, std: Number = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    _check("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def compute(line: Any) -> Any:
        start, step = -_span(M, sym) / 2.0, 1 / (std * math.sqrt(2))
        return functions["exp"](-(line(start * step, (start + (M - 1)) * step) ** 2))

    return _line("gaussian", M, dtype, layout, device, requires_grad, compute)


def _signal_kaiser(
    M: int, *, beta: Number = 12.0, sym: bool = True, dtype: Any = None, layout: Any = None,
    device: Any = None, requires_grad: bool = False,
) -> Any:  # fmt: skip
    _check("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def compute(line: Any) -> Any:
        step = 2.0 * beta / (M if not sym else M - 1)
        k = line(-beta, min(beta, -beta + (M - 1) * step))
        top = functions["tensor"](float(beta), dtype=k.dtype, device=k.device)
        return functions["i0"]((top * top - k**2).sqrt()) / functions["i0"](top)

    return _line("kaiser", M, dtype, layout, device, requires_grad, compute)


def _export_new() -> None:
    for name, fn, text, more, at, gives in (
        ("bartlett", _signal_bartlett, "Bartlett's window: a triangle.", "", "3", "[0., 1., 0.]"),
        ("blackman", _cosines([0.42, 0.5, 0.08], "blackman"),
         "Blackman's window: a sum of two cosines.", "", "3", ""),
        ("cosine", _signal_cosine, "Half a period of a sine.", "", "3", "[0.5000, 1.0000, 0.5000]"),
        ("exponential", _signal_exponential, "An exponential that falls to both sides.",
         "center: where it is highest; the middle if None.\n    tau: how slowly it falls.", "3",
         "[0.3679, 1.0000, 0.3679]"),
        ("gaussian", _signal_gaussian, "A normal curve.", "std: its deviation.", "3",
         "[0.6065, 1.0000, 0.6065]"),
        ("general_cosine", _general_cosine, "A sum of cosines.", "a: their weights.",
         "3, a=[0.5, 0.5]", "[0., 1., 0.]"),
        ("general_hamming", _general_hamming, "A raised cosine.",
         "alpha: how far it is raised; its height is the rest.", "3", "[0.0800, 1.0000, 0.0800]"),
        ("hamming", _cosines([0.54, 1.0 - 0.54]),
         "Hamming's window: a raised cosine that does not reach 0.", "", "3",
         "[0.0800, 1.0000, 0.0800]"),
        ("hann", _cosines([0.5, 0.5]), "Hann's window: a raised cosine.", "", "3",
         "[0., 1., 0.]"),
        ("kaiser", _signal_kaiser, "Kaiser's window, made of Bessel functions.",
         "beta: how steep it is.", "3", "[5.2773e-05, 1.0000e+00, 5.2773e-05]"),
        ("nuttall", _cosines([0.3635819, 0.4891775, 0.1365995, 0.0106411]),
         "Nuttall's window: a sum of four cosines.", "", "3", ""),
    ):  # fmt: skip
        words = (
            f"{text}\n\nArgs:\n    M: how many numbers.\n    sym: whether the window is symmetric;"
        )
        words += " else it is one period of a repeating one."
        words += f"\n    {more}" if more else ""
        call = f"torch.signal.windows.{name}({at})"
        shown = (call, f"tensor({gives})") if gives else (f"{call}.shape", "torch.Size([3])")
        function(method=False, free=False, namespace="signal.windows")(
            variant(fn, name, describe(words, *shown))
        )


_export_new()
