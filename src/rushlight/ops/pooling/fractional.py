"""`fractional_max_pool`: the largest of windows at random distances."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, raw_dtype
from rushlight.ops.pooling.family import Ints, flat, one_or_each, refuse_pool_dtype
from rushlight.ops.pooling.max_pool import Largest
from rushlight.ops.registry import describe, functional, functions, op, variant
from rushlight.ops.sample_inputs import Draw

_INT64: Final = dtypes.int64.numpy


class FractionalMaxPool(Largest):
    """The largest of windows whose starts follow from a random number for each plane and axis."""

    inputs = ("self", "random_samples")
    params = ("kernel_size", "output_size")
    shown_edges = (0,)
    kernel_size: Ints
    output_size: Ints
    lies = "rows"

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        return None

    def starts(self, sample: Any, size: int, kernel: int, out: int) -> Any:
        """[*planes, out]: where windows begin, from a number of each plane."""
        if out == 1:
            return v.full(sample, (*sample.shape, 1), size - kernel, _INT64)
        # an array: in low precision PyTorch rounds it, and every step after it
        alpha = v.full(sample, (), (size - kernel) / (out - 1), raw_dtype(sample))
        sample = v.reshape(sample, (*sample.shape, 1))
        steps = v.iota(sample, out - 1, raw_dtype(sample))
        begin = v.cast(v.trunc((steps + sample) * alpha), _INT64)
        begin = begin - v.cast(v.trunc(sample * alpha), _INT64)
        last = v.full(begin, (*begin.shape[:-1], 1), size - kernel, _INT64)
        return v.concat([begin, last], -1)

    def forward(self, x: Any, samples: Any) -> Any:  # type: ignore[override]  # and the numbers
        n = self.n
        sizes = tuple(x.shape[-n:])
        samples = v.reshape(samples, (*x.shape[:-n], n))
        begins: list[Any] = []
        for d in range(n):
            at = 1 - d if n == 2 else d  # of two, the first number is that of the width
            sample = v.window(samples, (..., at))
            begin = self.starts(sample, sizes[d], self.kernel_size[d], self.output_size[d])
            shape = (*begin.shape[:-1], *(1,) * d, begin.shape[-1], *(1,) * (n - 1 - d))
            begins.append(v.reshape(begin, shape) * math.prod(sizes[d + 1 :]))
        first = begins[0]
        for begin in begins[1:]:
            first = first + begin
        rows = v.reshape(x, flat(x, n))
        best: Any = None
        where: Any = None
        for tap in itertools.product(*[range(k) for k in self.kernel_size]):
            places = first + sum(k * math.prod(sizes[d + 1 :]) for d, k in enumerate(tap))
            shape = places.shape
            value = v.reshape(v.gather(rows, -1, v.reshape(places, flat(places, n))), shape)
            if best is None:
                best, where = value, places
                continue
            better = v.logical_or(value > best, v.isnan(value))
            best, where = v.where(better, value, best), v.where(better, places, where)
        return best, where

    @classmethod
    def samples(cls, draw: Draw) -> Iterator[tuple[Any, ...]]:
        n = cls.n
        yield cls((2,) * n, (2,) * n), draw.real(1, 2, *(5,) * n), draw.probability(1, 2, n)
        yield cls((2,) * n, (1,) * n), draw.real(2, *(3,) * n), draw.probability(1, 2, n)


@op
class FractionalMaxPool2d(FractionalMaxPool):
    """`FractionalMaxPool` over two axes."""

    name, node, n = "fractional_max_pool2d", "FractionalMaxPool2DBackward0", 2


@op
class FractionalMaxPool3d(FractionalMaxPool):
    """`FractionalMaxPool` over three axes."""

    name, node, n = "fractional_max_pool3d", "FractionalMaxPool3DBackward0", 3


_OPS: Final[dict[int, Any]] = {2: FractionalMaxPool2d, 3: FractionalMaxPool3d}
_SIDES: Final = {2: ("height", "width"), 3: ("time", "height", "width")}


def _fractional(
    n: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any
) -> Any:
    title = f"fractional_max_pool{n}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{title} requires specifying either an output_size or an output_ratio")
    x = check_tensor(input, title)
    kernel = one_or_each(title, "kernel_size", kernel_size, n)
    if output_size is None:
        if len(output_ratio) > n:
            raise ValueError(
                f"{title} requires output_ratio to either be a single Int or tuple of Ints."
            )
        sizes: Ints = tuple(
            int(x.shape[d - n] * ratio) for d, ratio in zip(range(n), output_ratio, strict=True)
        )
    else:
        sizes = one_or_each(title, "output_size", output_size, n)
    if x.ndim < n + 1:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(x.ndim, 1)}, "
            f"{max(x.ndim, 1) - 1}], but got {-n - 1})"
        )
    count = 1 if x.ndim == n + 1 else x.shape[0]
    if samples is None:
        samples = functions["rand"](
            count, x.shape[-n - 1], n, dtype=input.dtype, device=input.device
        )
    _check_samples(samples._array, count, x.shape[-n - 1], n)
    name = title if n == 2 else f"{title}_out"
    for side, size, k, out in zip(_SIDES[n], x.shape[-n:], kernel, sizes, strict=True):
        if out + k - 1 > size - (n - 2):  # of volumes PyTorch asks for one place more
            raise RuntimeError(
                f"{name}(): pool {side} {k} too large relative to input {side} {size}"
            )
    refuse_pool_dtype(f"{title}_out_frame", x)
    return apply(_OPS[n](kernel, sizes), input, samples)


def _check_samples(array: Any, count: int, channels: int, n: int) -> None:
    if array.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {array.ndim}")
    if array.shape[0] < count:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if array.shape[1] != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if array.shape[2] != n:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {n} got {array.shape[2]}.")


def _export(n: int) -> None:
    title = f"fractional_max_pool{n}d"

    def fractional(
        input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Any = None,
    ) -> Any:  # fmt: skip
        found = _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)
        return found if return_indices else found[0]

    def with_indices(
        input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Any = None,
    ) -> Any:  # fmt: skip
        return _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)

    text = (
        "The largest of each window; the windows are at random distances, so that their number is "
        "free.\n\nArgs:\n"
        "    kernel_size: how large windows are.\n"
        "    output_size: how many windows, one number or one an axis.\n"
        "    output_ratio: instead of it, their number as a part of the places.\n"
        "    return_indices: whether to give the places of the largest, too."
    )
    example = (
        f"torch.nn.functional.{title}(torch.ones({', '.join('1' * (n - 1))}, 4, 4), 2, 2).shape"
    )
    if n == 3:
        example = f"torch.nn.functional.{title}(torch.ones(1, 4, 4, 4), 2, 2).shape"
    shown = f"torch.Size([1, {', '.join('2' * n)}])"
    functional()(variant(fractional, title, describe(text, example, shown)))
    brief = describe(f"`{title}`, with the places of the largest.")
    functional()(variant(with_indices, f"{title}_with_indices", brief))


_export(2)
_export(3)
