"""Values as plain data that a page can show: small ones in full, large ones as a heat map with
statistics. NaN, infinities, empty, complex and sparse tensors are all shown as what they are."""

from __future__ import annotations

import cmath
import math
from typing import Any

from rushlight import dtypes
from rushlight.autograd.grad_mode import no_grad
from rushlight.core.graph import TensorBase, normal, wrap
from rushlight.core.saved.packed import Packed

SMALL = 64  # elements that are shown in full
SIDE = 28  # cells along a side of a heat map
_LARGEST = 1 << 20  # elements that statistics look at; of more, they are picked evenly


def describe(value: Any) -> dict[str, Any] | None:
    """A tensor, a raw array, a number, or None, as data for JSON."""
    if value is None:
        return None
    if isinstance(value, (bool, int, float, complex)):
        return {"number": number(value)}
    if isinstance(value, Packed):
        return {"note": "packed by a saved-tensor hook"}
    t = value if isinstance(value, TensorBase) else wrap(normal(value))
    found = _head(t)
    try:
        with no_grad():
            found.update(_numbers_of(t))
    except Exception as error:  # batched arrays, arrays without memory: the rest is shown
        found["note"] = f"its numbers cannot be shown: {type(error).__name__}"
    return found


def _head(t: Any) -> dict[str, Any]:
    array = t._array
    try:
        dtype = str(dtypes.of(array.dtype)).removeprefix("torch.")
    except (KeyError, TypeError, ValueError):
        dtype = str(array.dtype)
    return {"shape": list(array.shape), "dtype": dtype}


def _numbers_of(t: Any) -> dict[str, Any]:
    if t.device.type == "meta":
        return {"note": "a meta tensor has no numbers"}
    found: dict[str, Any] = {}
    if str(t.layout) != "torch.strided":
        found["layout"] = str(t.layout).removeprefix("torch.")
        if t.numel() <= _LARGEST:
            t = t.to_dense()
        else:
            found["note"] = "the elements that are stored"
            t = t.to_sparse().coalesce().values()
    t = t.detach().cpu().resolve_conj().resolve_neg()
    count = t.numel()
    if count == 0:
        return {**found, "note": "empty"}
    if count <= SMALL:
        found["values"] = _nested(t.tolist())
        found["heat"] = _levels(t, t.shape[-1] if t.ndim else 1)
    else:
        found["heat"] = heat_map(t)
    if count > _LARGEST:
        step = -(-count // _LARGEST)
        t = t.reshape(-1)[::step]
        found["note"] = f"statistics of one in {step} of {count} elements"
    return {**found, "stats": statistics(t)}


def number(x: Any) -> str:
    """A number with four digits."""
    if isinstance(x, bool):
        return str(x)
    if isinstance(x, complex):
        parts = number(x.real), number(abs(x.imag))
        sign = "-" if math.copysign(1, x.imag) < 0 else "+"
        return f"{parts[0]}{sign}{parts[1]}j"
    if isinstance(x, float):
        return f"{x:.4g}"
    return str(x)


def _nested(x: Any) -> Any:
    return [_nested(y) for y in x] if isinstance(x, list) else number(x)


def _real(t: Any) -> Any:
    """The sizes of complex numbers; others as float64."""
    return t.abs().double() if t.is_complex() else t.double()


def statistics(t: Any) -> dict[str, str]:
    """What is worth knowing of a tensor's numbers, as texts."""
    x = _real(t).reshape(-1)
    finite = x[x.isfinite()]
    found: dict[str, str] = {}
    if finite.numel():
        found["min"] = number(finite.min().item())
        found["max"] = number(finite.max().item())
        found["mean"] = number(finite.mean().item())
        if finite.numel() > 1:
            found["std"] = number(finite.std().item())
        found["norm"] = number(finite.norm().item())
    zeros = int((x == 0).sum().item())
    for name, count in (("zeros", zeros), ("NaN", int(x.isnan().sum().item())),
                        ("inf", int(x.isinf().sum().item()))):  # fmt: skip
        if count:
            found[name] = f"{count} of {x.numel()}"
    return found


def heat_map(t: Any) -> list[list[int | None]]:
    """At most SIDE rows and columns of a large tensor, picked evenly."""
    if t.ndim == 1:
        columns = math.isqrt(t.shape[0] - 1) + 1 if t.shape[0] > 4 * SIDE else t.shape[0]
        rows = t.shape[0] // columns
        grid = t[: rows * columns].reshape(rows, columns)
    else:
        grid = t.reshape(-1, t.shape[-1])
    for axis in (0, 1):
        n = grid.shape[axis]
        if n > SIDE:
            keep = [i * n // SIDE for i in range(SIDE)]
            grid = grid[keep] if axis == 0 else grid[:, keep]
    return _levels(grid, grid.shape[-1])


def _levels(t: Any, columns: int) -> list[list[int | None]]:
    """Each number between -100 and 100, by the largest; None for NaN, 101 and -101 for infinite."""
    values = [_size(v) for v in t.reshape(-1).tolist()]
    top = max((abs(v) for v in values if math.isfinite(v)), default=0.0) or 1.0
    levels = [_level(v, top) for v in values]
    step = max(columns, 1)
    return [levels[i : i + step] for i in range(0, len(levels), step)]


def _size(v: Any) -> float:
    if isinstance(v, complex):
        return abs(v) if not cmath.isnan(v) else math.nan
    return float(v)


def _level(v: float, top: float) -> int | None:
    if math.isnan(v):
        return None
    if math.isinf(v):
        return 101 if v > 0 else -101
    return round(100 * v / top)
