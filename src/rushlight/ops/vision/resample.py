"""A linear map along one axis, which takes each result from few places: what resizing and uneven
means are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight.arrays import batch_windows  # noqa: F401  # the meaning of the primitives in batches
from rushlight.arrays.windows import Taps, mean_taps, resample
from rushlight.core.families import Linear
from rushlight.core.record import apply
from rushlight.ops.checks import from_end
from rushlight.ops.each_member import batch_leading
from rushlight.ops.registry import implements, op
from rushlight.ops.sample_inputs import Draw


@op
class Resample(Linear):
    """The map of `taps` along an axis (negative)."""

    name, aten, params = "resample", None, ("dim", "taps")
    dim: int
    taps: Taps
    vmap_rule = batch_leading

    def forward(self, x: Any) -> Any:
        return resample(x, self.dim, self.taps)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return resample(g, self.dim, self.taps.turned)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Resample(-1, mean_taps(5, 3)), draw.real(2, 5)
        yield Resample(-2, mean_taps(23, 2)), draw.real(23, 2)


@implements("resample")
def _resample(x: Any, axis: int, taps: Any) -> Any:
    return apply(Resample(from_end(axis, x._array.ndim), taps), x)
