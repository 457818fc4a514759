"""Tensors in a few words: small ones in full, large ones as shape and size."""

from __future__ import annotations

import math
from typing import Any, Final

from rushlight.core.grad_mode import within
from rushlight.core.graph import TensorBase

SMALL: Final = 6  # elements that are written out


def number(x: Any) -> str:
    """A number with four digits: '0.25', '1.5e-07', '3'.

    >>> number(0.25), number(3.0), number(-1234567.0)
    ('0.25', '3', '-1.235e+06')
    """
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        return str(x)
    if isinstance(x, float) and not math.isfinite(x):
        return {math.inf: "inf", -math.inf: "-inf"}.get(x, "nan")
    return f"{x:.4g}"


def nested(values: Any) -> str:
    """Lists of numbers, as `number` writes them."""
    if isinstance(values, list):
        return "[" + ", ".join(map(nested, values)) + "]"
    if isinstance(values, complex):
        return f"{number(values.real)}{'+' if values.imag >= 0 else ''}{number(values.imag)}j"
    return number(values)


def size_of(t: Any) -> float | None:
    """The Euclidean norm of a tensor; None where there is none (integers, no numbers)."""
    if not (t.dtype.is_floating_point or t.dtype.is_complex) or t.device.type == "meta":
        return None
    with within(False, False):
        x = t.detach()
        x = x if str(x.layout) == "torch.strided" else x.to_dense()
        return float((x.abs() if x.dtype.is_complex else x).double().flatten().norm().item())


def counted(t: Any) -> str:
    """How many elements are NaN or infinite, if some are: ', 3 NaN'."""
    if not t.dtype.is_floating_point:
        return ""
    with within(False, False):
        x = t.detach().double()
        bad = int(x.isnan().sum().item())
        infinite = int(x.isinf().sum().item())
    said = (f", {bad} NaN" if bad else "") + (f", {infinite} infinite" if infinite else "")
    return f"{said} of {t.numel()}" if said else ""


def short(t: Any) -> str:
    """A tensor in a few words.

    >>> short(torch.tensor([1., 2.]))
    '[1, 2]'
    >>> short(torch.ones(2, 2))
    '2x2, all 1'
    >>> short(torch.ones(8, 8))
    '8x8, norm 8'
    """
    if t is None:
        return "None"
    if not isinstance(t, TensorBase):
        return str(t)
    x: Any = t
    shape = "x".join(map(str, x.shape)) or "scalar"
    if x.device.type == "meta" or str(x.layout) != "torch.strided":
        return f"{shape}, {x.dtype}".replace("torch.", "")
    values = x.detach().flatten().tolist() if x.numel() <= SMALL else []
    if len(values) > 2 and all(value == values[0] for value in values):
        return f"{shape}, all {nested(values[0])}"
    if x.numel() <= SMALL:
        return nested(x.detach().tolist())
    norm = size_of(x)
    return shape + ("" if norm is None else f", norm {number(norm)}") + counted(x)
