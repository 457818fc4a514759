"""Resizing: `interpolate`, and `upsample` by its older names."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.resizing import resizing_taps
from rushlight.arrays.windows import resample
from rushlight.core.families import Linear
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, not_implemented, raw_dtype
from rushlight.ops.each_member import batch_leading
from rushlight.ops.registry import functional, namespaces, op
from rushlight.ops.sample_inputs import Draw
from rushlight.ops.vision import resample as _resample  # noqa: F401  # `resample` on tensors

Ints = tuple[int, ...]
_SIDES: Final = {1: ("",), 2: ("_h", "_w"), 3: ("_d", "_h", "_w")}


class Upsample(Linear):
    """An image in another size; `mode` says how, as `resizing_taps` has it."""

    output_size: Ints
    align_corners: bool
    mode: ClassVar[str] = ""
    vmap_rule = batch_leading
    lies = "channels"
    complex_too = False

    def __init__(self, output_size: Ints, align_corners: bool, *scales: Any) -> None:
        super().__init__(output_size, align_corners, *scales)
        self.given = scales  # the factors that the user gave, which PyTorch's nodes show by side

    def taps(self, axis: int, size: int, dtype: Any) -> Any:
        n = len(self.output_size)
        return resizing_taps(
            self.mode, size, self.output_size[axis + n], self.given[axis + n],
            self.align_corners, dtype.itemsize > 4,
        )  # fmt: skip

    def forward(self, x: Any) -> Any:
        n, dtype = len(self.output_size), raw_dtype(x)
        y = v.cast(x, dtypes.float32.numpy) if v.low_precision(dtype) else x
        for axis in range(-1, -n - 1, -1):
            y = resample(y, axis, self.taps(axis, x.shape[axis], dtype))
        return v.cast(y, dtype)

    def adjoint(self, g: Any, shape: Ints) -> Any:
        n, dtype = len(self.output_size), raw_dtype(g)
        y = v.cast(g, dtypes.float32.numpy) if v.low_precision(dtype) else g
        for axis in range(-n, 0):
            y = resample(y, axis, self.taps(axis, shape[axis], dtype).turned)
        return v.cast(y, dtype)


def _make(start: str, axes: int, how: str) -> Any:
    """The op of one mode and number of axes, which PyTorch's nodes tell apart."""
    smooth = how.startswith("smooth ")
    aligned = "" if how in ("nearest", "exact") else "align_corners "
    shown = " ".join(f"scales{side}" for side in _SIDES[axes])

    class Made(Upsample):
        name = f"upsample_{start}{axes}d{'_aa' if smooth else ''}"
        node = (
            "Upsample" + "".join(part.title() for part in start.split("_"))
            + f"{axes}D{'Aa' if smooth else ''}Backward0"
        )  # fmt: skip
        aten = f"_{name}.default" if smooth or how == "exact" else f"{name}.default"
        params = ("output_size", "align_corners", *shown.split())
        saved_names = f"{aligned}output_size {shown} self_sym_sizes=self.sizes"
        mode = how

        @staticmethod
        def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
            none = (None,) * axes
            yield Made((5,) * axes, False, *none), draw.real(1, *(3,) * axes)
            yield Made((2,) * axes, False, *(0.7,) * axes), draw.real(1, *(3,) * axes)
            if aligned:
                yield Made((4,) * axes, True, *none), draw.real(1, *(3,) * axes)

    Made.__name__ = Made.__qualname__ = Made.node.removesuffix("Backward0")
    Made.__doc__ = f"Resizing over {axes} axes: {how}."
    return op(Made)


_OPS: Final[dict[tuple[str, int], Any]] = {
    **{("nearest", n): _make("nearest", n, "nearest") for n in (1, 2, 3)},
    **{("nearest-exact", n): _make("nearest_exact", n, "exact") for n in (1, 2, 3)},
    ("linear", 1): _make("linear", 1, "linear"),
    ("bilinear", 2): _make("bilinear", 2, "linear"),
    ("trilinear", 3): _make("trilinear", 3, "linear"),
    ("bicubic", 2): _make("bicubic", 2, "cubic"),
}
_SMOOTH: Final[dict[str, Any]] = {
    "bilinear": _make("bilinear", 2, "smooth linear"),
    "bicubic": _make("bicubic", 2, "smooth cubic"),
    "lanczos": _make("lanczos", 2, "smooth lanczos"),
}
_NEEDS: Final = {"linear": 3, "bilinear": 4, "bicubic": 4, "lanczos": 4, "trilinear": 5}
_MODES: Final = ("nearest", "linear", "bilinear", "bicubic", "trilinear", "lanczos", "area",
                 "nearest-exact")  # fmt: skip


def _check(x: Any, mode: str, sizes: Ints, antialias: bool) -> None:
    n = len(sizes)
    if min(sizes) <= 0 or 0 in x.shape[2:]:
        letters = ("D", "H", "W")[-n:] if n > 1 else ("W",)

        def named(values: Any) -> str:
            return ", ".join(f"{s}: {value}" for s, value in zip(letters, values, strict=True))

        raise RuntimeError(
            "Input and output sizes should be greater than 0, but got input "
            f"({named(x.shape[2:])}) output ({named(sizes)})"
        )
    if x.shape[1] == 0:
        raise RuntimeError(
            f"Non-empty {x.ndim}D data tensor expected but got a tensor with sizes {list(x.shape)}"
        )
    kind = dtypes.of(x.dtype)
    bytes_too = mode not in ("linear", "trilinear")
    if not (kind.is_floating_point or (kind is dtypes.uint8 and bytes_too)):
        raise not_implemented(_kernel(mode, n, antialias), kind)


def _kernel(mode: str, n: int, antialias: bool) -> str:
    """What PyTorch calls the code that turns a dtype away."""
    if antialias:
        return "compute_index_ranges_weights"
    if n == 2 and mode != "bicubic":
        return f"upsample_{mode.removesuffix('-exact')}2d_channels_last"
    ways = {"linear": "linear", "trilinear": "linear", "bicubic": "cubic"}
    return f"compute_indices_weights_{ways.get(mode, 'nearest')}"


def _spread(given: Any, n: int) -> list[Any]:
    return list(given) if isinstance(given, (tuple, list)) else [given] * n


def _sizes(
    x: Any, size: Any, scale_factor: Any, mode: str, recompute: Any
) -> tuple[Ints, list[Any]]:
    """The sizes of the result, and the factors that the user gave, which count beside them."""
    n = x.ndim - 2
    spatial = list(x.shape[2:])
    for what, given, letter in (("output size", size, "o"), ("scale_factor", scale_factor, "s")):
        if isinstance(given, (tuple, list)) and len(given) != n:
            shape = " of shape" if letter == "s" else " of"
            raise ValueError(
                f"Input and {'output' if letter == 'o' else what} must have the same number of "
                f"spatial dimensions, but got input with spatial dimensions of {spatial} and "
                f"{what}{shape} {given}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
                f"format and {what} in ({letter}1, {letter}2, ...,{letter}K) format."
            )
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if recompute:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        return tuple(int(s) for s in _spread(size, n)), [None] * n
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = [float(f) for f in _spread(scale_factor, n)]
    sizes = tuple(math.floor(s * f) for s, f in zip(spatial, factors, strict=True))
    return sizes, [None] * n if recompute or mode == "area" else factors


@functional()
def interpolate(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:  # fmt: skip
    """Signals, images or volumes ([N, C, *sizes]) in another size.

    Args:
        size: the new size, one number or one an axis.
        scale_factor: instead of it, how many times as large.
        mode: 'nearest', 'nearest-exact', 'linear', 'bilinear', 'bicubic', 'trilinear', 'area'.
        align_corners: whether the corners of both images coincide, rather than their borders.
        recompute_scale_factor: whether the size, once rounded, decides the distances.
        antialias: whether to smooth what is made smaller.

    >>> torch.nn.functional.interpolate(torch.tensor([[[1., 2.]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    x = check_tensor(input, "interpolate")
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: "
                "linear | bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    if x.ndim not in (3, 4, 5) or mode not in _MODES:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported "
            f"(got {x.ndim}D) for the modes: {' | '.join(_MODES)} (got {mode})"
        )
    sizes, scales = _sizes(x, size, scale_factor, mode, recompute_scale_factor)
    if antialias and not (mode in _SMOOTH and x.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires "
            "a 4-D tensor as input"
        )
    if mode in _NEEDS and x.ndim != _NEEDS[mode]:
        raise NotImplementedError(
            f"Got {x.ndim}D input, but {mode} mode needs {_NEEDS[mode]}D input"
        )
    if mode == "area":
        return namespaces["nn.functional"][f"adaptive_avg_pool{x.ndim - 2}d"](input, sizes)
    if mode == "lanczos" and not antialias:
        raise ValueError("lanczos mode requires antialias=True")
    _check(x, mode, sizes, antialias)
    made = _SMOOTH[mode] if antialias else _OPS[mode, x.ndim - 2]
    return apply(made(sizes, bool(align_corners), *scales), input)


@functional()
def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None,
) -> Any:  # fmt: skip
    """`interpolate`, by an older name."""
    _warn("upsample", "nn.functional.interpolate")
    return interpolate(input, size, scale_factor, mode, align_corners)


@functional()
def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate` of the nearest place, by an older name."""
    _warn("upsample_nearest", "nn.functional.interpolate")
    return interpolate(input, size, scale_factor, "nearest")


@functional()
def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """`interpolate` between corners that coincide, by an older name."""
    _warn("upsample_bilinear", "nn.functional.interpolate")
    return interpolate(input, size, scale_factor, "bilinear", True)


def _warn(old: str, new: str) -> None:
    warnings.warn(f"`nn.functional.{old}` is deprecated. Use `{new}` instead.", stacklevel=4)
