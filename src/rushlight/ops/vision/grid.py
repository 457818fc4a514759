"""Images sampled at any place: `grid_sample`, and the grids of affine maps.

A result is a sum over few places around a point: for each axis a list of taps, each a place, its
weight, and the weight's derivative by the coordinate; all combinations of them count.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, not_implemented, raw_dtype
from rushlight.ops.pooling.family import flat
from rushlight.ops.registry import describe, function, functional, op, variant
from rushlight.ops.sample_inputs import Draw
from rushlight.size import Size

Ints = tuple[int, ...]
_INT64: Final = dtypes.int64.numpy
_MODES: Final = ("bilinear", "nearest", "bicubic")
_EDGES: Final = ("zeros", "border", "reflection")


def _cubic(t: Any) -> list[tuple[Any, Any]]:
    """The weights of four places around a point, and their derivatives; `t` is the distance from
    the second of them."""
    a = -0.75
    found: list[tuple[Any, Any]] = []
    for k in range(4):
        d = t + 1 if k == 0 else t if k == 1 else 1 - t if k == 2 else 2 - t
        sign = 1 if k < 2 else -1
        if k in (1, 2):
            weight = ((a + 2) * d - (a + 3)) * d * d + 1
            slope = (3 * (a + 2) * d - 2 * (a + 3)) * d
        else:
            weight = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
            slope = (3 * a * d - 10 * a) * d + 8 * a
        found.append((weight, sign * slope))
    return found


class GridSampler(Op):
    """[N, C, *sizes] at the points of a grid [N, *outs, n], whose last axis counts from the last
    of the image."""

    inputs, saves = ("input", "grid"), ("input", "grid")
    params = ("interpolation_mode", "padding_mode", "align_corners")
    interpolation_mode: int
    padding_mode: int
    align_corners: bool
    n: ClassVar[int] = 2
    lies = "rows"

    # --- coordinates --------------------------------------------------------------------------
    def point(self, c: Any, size: int) -> tuple[Any, float]:
        """A coordinate of the grid (-1 to 1) in places, and how much faster that runs."""
        if self.align_corners:
            return (c + 1) * ((size - 1) / 2), (size - 1) / 2
        return ((c + 1) * size - 1) / 2, size / 2

    def inside(self, c: Any, size: int) -> tuple[Any, Any]:
        """A coordinate taken back into the image as the padding says, and the derivative."""
        if self.padding_mode == 0:
            return c, 1
        slope: Any = 1
        if self.padding_mode == 2:
            c, slope = self.reflected(c, size)
        middle = v.logical_and(c > 0, c < size - 1)
        clipped = v.minimum(v.maximum(v.where(v.isnan(c), 0, c), 0), size - 1)
        return clipped, v.where(middle, slope, 0)

    def reflected(self, c: Any, size: int) -> tuple[Any, Any]:
        low, high = (0.0, size - 1.0) if self.align_corners else (-0.5, size - 0.5)
        span = high - low
        if span == 0:
            return c * 0, 0
        away = c - low
        sign = v.where(away < 0, -1, 1)
        away = v.absolute(away)
        turns = v.floor(away / span)
        rest = away - turns * span
        odd = v.equal(turns - 2 * v.floor(turns / 2), 1)
        return v.where(odd, span - rest, rest) + low, sign * v.where(odd, -1, 1)

    def taps(self, c: Any, size: int) -> list[tuple[Any, Any, Any, Any]]:
        """For each tap of an axis: its place, whether it is inside, its weight, its slope."""
        c, factor = self.point(c, size)
        found: list[tuple[Any, Any, Any]] = []
        if self.interpolation_mode == 2:
            base = v.floor(c)
            for k, (weight, slope) in enumerate(_cubic(c - base)):
                place, _ = self.inside(base + (k - 1), size)
                place = v.floor(place) if self.padding_mode else place
                found.append((place, weight, slope * factor))
        else:
            c, slope = self.inside(c, size)
            slope = slope * factor
            if self.interpolation_mode == 1:
                found.append((v.rint(c), 1, 0))
            else:
                base = v.floor(c)
                share = c - base
                found.append((base, 1 - share, -slope))
                found.append((base + 1, share, slope))
        taps = []
        for place, weight, slope in found:
            fits = v.logical_and(place >= 0, place <= size - 1)
            taps.append((v.cast(v.where(fits, place, 0), _INT64), fits, weight, slope))
        return taps

    def combinations(self, sizes: Ints, grid: Any) -> Iterator[tuple[Any, Any, list[Any]]]:
        """For each combination of taps, over [N, L]: the place in row order of the image, whether
        it is inside, and (weight, slope) for each axis."""
        n = self.n
        points = v.reshape(grid, (grid.shape[0], math.prod(grid.shape[1:-1]), n))
        axes = [self.taps(v.window(points, (..., n - 1 - d)), sizes[d]) for d in range(n)]
        for tap in itertools.product(*axes):
            place, fits = tap[0][0], tap[0][1]
            for d in range(1, n):
                place = place * sizes[d] + tap[d][0]
                fits = v.logical_and(fits, tap[d][1])
            yield place, fits, [(weight, slope) for _, _, weight, slope in tap]

    # --- rules --------------------------------------------------------------------------------
    def looked_up(self, x: Any, place: Any, shape: Ints) -> Any:
        """The image at places [N, L] of all channels."""
        return v.gather(x, -1, self.each_channel(place, shape))

    def each_channel(self, place: Any, shape: Ints) -> Any:
        count, length = place.shape
        return v.broadcast(v.reshape(place, (count, 1, length)), (count, shape[1], length))

    def over_channels(self, weight: Any) -> Any:
        """[N, L] as [N, 1, L], which broadcasts over channels."""
        return v.reshape(weight, (weight.shape[0], 1, weight.shape[1]))

    def forward(self, x: Any, grid: Any) -> Any:
        dtype = raw_dtype(x)
        if v.low_precision(dtype):
            wide = dtypes.float32.numpy
            return v.cast(self.forward(v.cast(x, wide), v.cast(grid, wide)), dtype)
        shape = tuple(x.shape)
        rows = v.reshape(x, flat(x, self.n))
        y: Any = None
        for place, fits, axes in self.combinations(shape[2:], grid):
            weight = self.over_channels(v.where(fits, _product(axes), 0))
            part = self.looked_up(rows, place, shape) * weight
            y = part if y is None else y + part
        return v.cast(v.reshape(y, (*shape[:2], *grid.shape[1:-1])), dtype)

    def vjp(self, node: Node, g: Any, x: Any, grid: Any) -> Any:
        shape = tuple(x.shape)
        rows = v.reshape(x, flat(x, self.n))
        g = v.reshape(g, flat(g, self.n))
        gx: Any = None
        sides: list[Any] = [None] * self.n
        for place, fits, axes in self.combinations(shape[2:], grid):
            if node._needs_grad(0):
                weight = self.over_channels(v.where(fits, _product(axes), 0))
                part = v.ungather(g * weight, flat(x, self.n), -1, self.each_channel(place, shape))
                gx = part if gx is None else gx + part
            if node._needs_grad(1):
                seen = v.reduce_sum(g * self.looked_up(rows, place, shape), (-2,), False)
                for d in range(self.n):
                    slope = v.where(fits, seen * _product(axes, d), 0)
                    sides[d] = slope if sides[d] is None else sides[d] + slope
        if gx is not None:
            gx = v.reshape(gx, shape)
        if not node._needs_grad(1):
            return gx, None
        parts = [v.reshape(side, (*side.shape, 1)) for side in reversed(sides)]
        return gx, v.reshape(v.concat(parts, -1), grid.shape)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        x, grid = xs
        shape = tuple(x.shape)
        rows = v.reshape(x, flat(x, self.n))
        out: Any = None
        tangent = None if ts[0] is None else v.reshape(ts[0], flat(x, self.n))
        moves: Any = None
        if ts[1] is not None:
            moves = v.reshape(ts[1], (shape[0], math.prod(grid.shape[1:-1]), self.n))
        for place, fits, axes in self.combinations(shape[2:], grid):
            if tangent is not None:
                weight = self.over_channels(v.where(fits, _product(axes), 0))
                part = self.looked_up(tangent, place, shape) * weight
                out = part if out is None else out + part
            if moves is not None:
                seen = self.looked_up(rows, place, shape)
                for d in range(self.n):
                    move = v.window(moves, (..., self.n - 1 - d))
                    part = seen * self.over_channels(v.where(fits, _product(axes, d) * move, 0))
                    out = part if out is None else out + part
        return v.reshape(out, y.shape)

    @classmethod
    def samples(cls, draw: Draw) -> Iterator[tuple[Any, ...]]:
        n = cls.n
        for mode in (0, 1, 2) if n == 2 else (0, 1):
            for edge in (0, 1, 2):
                grid = 1.4 * draw.unit(1, *(2,) * n, n)
                yield cls(mode, edge, edge != 1), draw.real(1, 2, *(3,) * n), grid


def _product(axes: list[Any], at: int = -1) -> Any:
    """The product of weights; for axis `at` its slope instead."""
    found: Any = None
    for d, (weight, slope) in enumerate(axes):
        factor = slope if d == at else weight
        found = factor if found is None else found * factor
    return found


@op
class GridSampler2d(GridSampler):
    """`GridSampler` of images."""

    name, node, n = "grid_sampler_2d", "GridSampler2DBackward0", 2


@op
class GridSampler3d(GridSampler):
    """`GridSampler` of volumes."""

    name, node, n = "grid_sampler_3d", "GridSampler3DBackward0", 3


_OPS: Final[dict[int, Any]] = {2: GridSampler2d, 3: GridSampler3d}


def _sampled(input: Any, grid: Any, mode: int, edge: int, align: bool) -> Any:
    x, points = check_tensor(input, "grid_sampler"), check_tensor(grid, "grid_sampler", "grid", 2)
    if x.dtype != points.dtype:
        have, want = dtypes.of(points.dtype).scalar_type, dtypes.of(x.dtype).scalar_type
        raise RuntimeError(f"expected scalar type {want} but found {have}")
    both = f"but got input with sizes {list(x.shape)} and grid with sizes {list(points.shape)}"
    if x.shape[:1] != points.shape[:1]:
        raise RuntimeError(
            f"grid_sampler(): expected grid and input to have same batch size, {both}"
        )
    if points.shape[-1] != x.ndim - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {x.ndim - 2} in last dimension, but got "
            f"grid with sizes {list(points.shape)}"
        )
    for d in range(2, x.ndim):
        if x.shape[d] == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input "
                f"has sizes {list(x.shape)} with dimension {d} being empty"
            )
    if x.ndim not in (4, 5) or points.ndim != x.ndim:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, "
            + both
        )
    if mode == 2 and x.ndim == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if x.dtype.kind not in "fV":
        kernel = "grid_sampler_2d_cpu_kernel_impl" if x.ndim == 4 else "grid_sampler3d_cpu"
        raise not_implemented(kernel, x.dtype)
    return apply(_OPS[x.ndim - 2](mode, edge, bool(align)), input, grid)


@functional()
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:  # fmt: skip
    """Images at the points of a grid: [N, C, H, W] and [N, h, w, 2] give [N, C, h, w].

    Args:
        grid: the points, as (x, y) or (x, y, z) from -1 to 1.
        mode: 'bilinear', 'nearest' or 'bicubic'.
        padding_mode: what is outside of the image: 'zeros', 'border' or 'reflection'.
        align_corners: whether -1 and 1 are the centers of the corner pixels, not their outer edges.

    >>> x = torch.tensor([[[[1., 3.]]]])
    >>> torch.nn.functional.grid_sample(x, torch.zeros(1, 1, 1, 2), align_corners=True)
    tensor([[[[2.]]]])
    """
    name = "nn.functional.grid_sample()"
    if mode not in _MODES:
        raise ValueError(
            f"{name}: expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _EDGES:
        raise ValueError(
            f"{name}: expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        _warn("grid_sample and affine_grid behavior", "grid_sample")
        align_corners = False
    return _sampled(input, grid, _MODES.index(mode), _EDGES.index(padding_mode), align_corners)


def _warn(start: str, name: str) -> None:
    warnings.warn(
        f"Default {start} has changed to align_corners=False since 1.3.0. Please specify "
        f"align_corners=True if the old behavior is desired. See the documentation of {name} for "
        "details.",
        stacklevel=4,
    )


def _export(name: str) -> None:
    def sampler(
        input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool
    ) -> Any:
        return _sampled(input, grid, interpolation_mode, padding_mode, align_corners)

    text = (
        "`nn.functional.grid_sample`, its modes by number.\n\nArgs:\n"
        "    grid: the points, from -1 to 1.\n"
        "    interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic.\n"
        "    padding_mode: 0 zeros, 1 border, 2 reflection.\n"
        "    align_corners: whether -1 and 1 are the centers of the corner pixels."
    )
    function(method=False)(variant(sampler, name, describe(text)))


for _name in ("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"):
    _export(_name)


# --- affine maps ----------------------------------------------------------------------------------
@op
class AffineGridGenerator(Linear):
    """The points of an image of `size`, mapped by matrices [N, n, n+1]."""

    name, params = "affine_grid_generator", ("size", "align_corners")
    size: Ints
    align_corners: bool
    complex_too = False
    lies = "rows"

    def points(self, like: Any) -> Any:
        """[L, n+1]: each point, and 1."""
        sizes = self.size[2:]
        n = len(sizes)
        kind = raw_dtype(like)
        parts: list[Any] = []
        for d in range(n - 1, -1, -1):
            count = sizes[d]
            step = 2 / (count - 1) if count > 1 else 0.0
            shrink = 1.0 if self.align_corners else (count - 1) / count
            values = [(-1 + i * step) * shrink if count > 1 else 0.0 for i in range(count)]
            line = v.reshape(v.constant(like, values, kind), (count, *(1,) * (n - 1 - d), 1))
            parts.append(v.broadcast(line, (*sizes, 1)))
        parts.append(v.full(like, (*sizes, 1), 1, kind))
        return v.reshape(v.concat(parts, -1), (math.prod(sizes), n + 1))

    def forward(self, theta: Any) -> Any:
        n = len(self.size) - 2
        found = v.matmul(self.points(theta), v.swap(theta, -1, -2))
        return v.reshape(found, (self.size[0], *self.size[2:], n))

    def adjoint(self, g: Any, shape: Ints) -> Any:
        n = len(self.size) - 2
        rows = v.reshape(g, (self.size[0], math.prod(self.size[2:]), n))
        return v.matmul(v.swap(rows, -1, -2), self.points(g))

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield AffineGridGenerator((2, 1, 2, 3), False), draw.real(2, 2, 3)
        yield AffineGridGenerator((1, 1, 2, 1, 3), True), draw.real(1, 3, 4)


@functional()
def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """The grid of an affine map, for `grid_sample`.

    Args:
        theta: a matrix for each image, of shape [N, 2, 3], or [N, 3, 4] for volumes.
        size: the size of the images to sample: [N, C, H, W].
        align_corners: whether -1 and 1 are the centers of the corner pixels, not their outer edges.

    >>> theta = torch.tensor([[[1., 0., 0.], [0., 1., 0.]]])
    >>> torch.nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=True)
    tensor([[[[-1.,  0.],
              [ 1.,  0.]]]])
    """
    array = check_tensor(theta, "affine_grid")
    if align_corners is None:
        _warn("grid_sample and affine_grid behavior", "grid_sample")
        align_corners = False
    if array.dtype.kind not in "fV":
        raise ValueError(
            f"Expected theta to have floating point type, but got {dtypes.of(array.dtype)!r}"
        )
    sizes = tuple(int(s) for s in size)
    n = len(sizes) - 2
    shown = tuple(size) if not isinstance(size, Size) else size
    if n in (2, 3):
        if array.ndim != 3 or array.shape[-2] != n or array.shape[-1] != n + 1:
            raise ValueError(
                f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {shown}."
                f" Got {Size(array.shape)}."
            )
    else:
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {shown}."
        )
    if min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {shown}")
    return _affine(theta, sizes, align_corners)


def _affine(theta: Any, sizes: Ints, align_corners: bool) -> Any:
    n = len(sizes) - 2
    if theta._array.shape[0] != sizes[0]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{sizes[0]}, {n + 1}] but got: [{theta._array.shape[0]}, {n + 1}]."
        )
    return apply(AffineGridGenerator(sizes, bool(align_corners)), theta)


@function(method=False)
def affine_grid_generator(theta: Any, size: Any, align_corners: bool) -> Any:
    """`nn.functional.affine_grid`."""
    check_tensor(theta, "affine_grid_generator", "theta")
    return _affine(theta, tuple(int(s) for s in size), align_corners)
