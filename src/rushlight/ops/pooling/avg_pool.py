"""The mean of each window: `avg_pool`, `adaptive_avg_pool`, and the norms of `lp_pool`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import batch_windows  # noqa: F401  # the meaning of the primitives in batches
from rushlight.arrays import vocabulary as v
from rushlight.arrays.windows import mean_taps, resample, window_spread, window_sum
from rushlight.core.families import Linear
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, from_end, raw_dtype
from rushlight.ops.each_member import batch_leading
from rushlight.ops.pooling.family import (
    Ints,
    check_windows,
    one_or_each,
    refuse_pool_dtype,
    window_count,
)
from rushlight.ops.pooling.max_pool import check_rank, check_room, sizes_of
from rushlight.ops.registry import (
    describe,
    function,
    functional,
    functions,
    implements,
    op,
    variant,
)
from rushlight.ops.sample_inputs import Draw
from rushlight.ops.vision import resample as _resample_op  # noqa: F401  # `resample` on tensors

_FLOAT32: Final = dtypes.float32.numpy


# --- sums along one axis --------------------------------------------------------------------------
@op
class WindowSum(Linear):
    """Sums of windows along one axis (negative)."""

    name, aten, params = "window_sum", None, ("dim", "kernel", "stride", "padding", "out")
    dim: int
    kernel: int
    stride: int
    padding: int
    out: int
    vmap_rule = batch_leading

    def forward(self, x: Any) -> Any:
        return window_sum(x, self.dim, self.kernel, self.stride, self.padding, self.out)

    def adjoint(self, g: Any, shape: Ints) -> Any:
        return window_spread(g, self.dim, shape[self.dim], self.kernel, self.stride, self.padding)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield WindowSum(-1, 3, 2, 1, 2), draw.real(2, 4)
        yield WindowSum(-2, 2, 2, 0, 2), draw.real(4, 2)


@op
class WindowSpread(Linear):
    """The way back: each element to all places of its window, along an axis of `size`."""

    name, aten, params = "window_spread", None, ("dim", "size", "kernel", "stride", "padding")
    dim: int
    size: int
    kernel: int
    stride: int
    padding: int
    vmap_rule = batch_leading

    def forward(self, x: Any) -> Any:
        return window_spread(x, self.dim, self.size, self.kernel, self.stride, self.padding)

    def adjoint(self, g: Any, shape: Ints) -> Any:
        return window_sum(g, self.dim, self.kernel, self.stride, self.padding, shape[self.dim])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield WindowSpread(-1, 4, 3, 2, 1), draw.real(2, 2)


@implements("window_sum")
def _window_sum(x: Any, axis: int, *rest: int) -> Any:
    return apply(WindowSum(from_end(axis, x._array.ndim), *rest), x)


@implements("window_spread")
def _window_spread(g: Any, axis: int, *rest: int) -> Any:
    return apply(WindowSpread(from_end(axis, g._array.ndim), *rest), g)


def _in_wide(x: Any) -> Any:
    """Low precision in float32, to be rounded once."""
    return v.cast(x, _FLOAT32) if v.low_precision(raw_dtype(x)) else x


# --- means ----------------------------------------------------------------------------------------
class AvgPool(Linear):
    """The mean of windows of one size, at even distances, over the last `n` axes."""

    params = (
        "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override",
    )  # fmt: skip
    kernel_size: Ints
    stride: Ints
    padding: Ints
    ceil_mode: bool
    count_include_pad: bool
    divisor_override: int | None
    n: ClassVar[int] = 2
    vmap_rule = batch_leading
    lies = "channels"
    complex_too = False

    def along(self, sizes: Ints) -> list[tuple[int, int, int, int, int]]:
        """For each axis: its number, kernel, stride, padding, and how many windows it has."""
        return [
            (d - self.n, k, s, p, window_count(size, k, s, p, 1, self.ceil_mode))
            for d, (size, k, s, p) in enumerate(
                zip(sizes, self.kernel_size, self.stride, self.padding, strict=True)
            )
        ]

    def counts(self, like: Any, sizes: Ints) -> Any:
        """How many places each window has: a number, or an array of all windows."""
        if self.divisor_override is not None:
            return self.divisor_override
        found: list[list[int]] = []
        for (_, k, s, p, out), size in zip(self.along(sizes), sizes, strict=True):
            starts = [i * s - p for i in range(out)]
            ends = [min(a + k, size + p) for a in starts]
            if not self.count_include_pad:
                starts, ends = [max(a, 0) for a in starts], [min(b, size) for b in ends]
            found.append([b - a for a, b in zip(starts, ends, strict=True)])
        if all(len(set(row)) < 2 for row in found):
            return math.prod(row[0] for row in found if row)
        total: Any = 1
        for d, row in enumerate(found):
            kind = raw_dtype(like)
            each = v.constant(like, row, kind)
            total = total * v.reshape(each, (len(row), *(1,) * (self.n - 1 - d)))
        return total

    def forward(self, x: Any) -> Any:
        sizes, dtype = tuple(x.shape[-self.n :]), raw_dtype(x)
        y = _in_wide(x)
        for axis, k, s, p, out in self.along(sizes):
            y = window_sum(y, axis, k, s, p, out)
        count = self.counts(y, sizes)
        if dtype.kind in "iu":
            return v.cast(v.trunc(y / count), dtype)
        return v.cast(y / count, dtype)

    def adjoint(self, g: Any, shape: Ints) -> Any:
        sizes, dtype = shape[-self.n :], raw_dtype(g)
        g = _in_wide(g)
        g = g / self.counts(g, sizes)
        for axis, k, s, p, _ in self.along(sizes):
            g = window_spread(g, axis, sizes[axis], k, s, p)
        return v.cast(g, dtype)


class AdaptiveAvgPool(Linear):
    """The mean of windows that divide the last `n` axes into `output_size` parts."""

    params, saved_names = ("output_size",), "self_sym_sizes=self.sizes"
    output_size: Ints
    n: ClassVar[int] = 2
    vmap_rule = batch_leading
    lies = "channels"
    complex_too = False

    def forward(self, x: Any) -> Any:
        dtype = raw_dtype(x)
        y = _in_wide(x)
        for d, out in enumerate(self.output_size):
            axis = d - self.n
            size = y.shape[axis]
            if out and size % out == 0:
                k = size // out
                if k > 1:
                    y = window_sum(y, axis, k, k, 0, out) / k
            else:
                y = resample(y, axis, mean_taps(size, out))
        return v.copy(y) if y is x else v.cast(y, dtype)

    def adjoint(self, g: Any, shape: Ints) -> Any:
        dtype = raw_dtype(g)
        g = _in_wide(g)
        for d, out in enumerate(self.output_size):
            axis = d - self.n
            size = shape[axis]
            if out and size % out == 0:
                k = size // out
                if k > 1:
                    g = window_spread(g / k, axis, size, k, k, 0)
            else:
                g = resample(g, axis, mean_taps(size, out).turned)
        return v.cast(v.contiguous(g), dtype)  # spread over one window it is expanded


def _avg_ops(axes: int) -> tuple[Any, Any]:
    """The ops of two or three axes, which PyTorch's nodes tell apart."""
    zeros, ones, twos = (0,) * axes, (1,) * axes, (2,) * axes

    class Pool(AvgPool):
        name, node = f"avg_pool{axes}d", f"AvgPool{axes}DBackward0"
        n = axes
        lies = "channels" if axes == 2 else "rows"

        @staticmethod
        def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
            yield Pool(twos, twos, zeros, False, True, None), draw.real(2, *(4,) * axes)
            yield Pool(twos, twos, ones, True, False, None), draw.real(1, 2, *(4,) * axes)
            yield Pool((3,) * axes, twos, ones, True, True, None), draw.real(1, *(3,) * axes)
            yield Pool(twos, ones, zeros, False, True, 3), draw.real(1, *(3,) * axes)

    class Adaptive(AdaptiveAvgPool):
        name, node = f"adaptive_avg_pool{axes}d", f"AdaptiveAvgPool{axes}DBackward0"
        aten = f"_adaptive_avg_pool{axes}d.default"
        n = axes

        @staticmethod
        def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
            yield Adaptive(twos), draw.real(2, *(4,) * axes)
            yield Adaptive((3,) * axes), draw.real(1, 2, *(4,) * axes)

    for cls, title in ((Pool, "AvgPool"), (Adaptive, "AdaptiveAvgPool")):
        cls.__name__ = cls.__qualname__ = f"{title}{axes}d"
        cls.__doc__ = f"`{title}` over {('two', 'three')[axes - 2]} axes."
        op(cls)
    return Pool, Adaptive


OPS: Final = {2: _avg_ops(2), 3: _avg_ops(3)}
_WHAT: Final = {1: "signals", 2: "images", 3: "volumes"}


def _averaged(
    title: str, n: int, input: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
    count_include_pad: bool, divisor_override: Any,
) -> Any:  # fmt: skip
    x = check_tensor(input, title)
    kernel = one_or_each(title, "kernel_size", kernel_size, n)
    given = stride is not None and not (isinstance(stride, (tuple, list)) and not stride)
    steps = one_or_each(title, "stride", stride, n) if given else kernel
    edge = one_or_each(title, "padding", padding, n)
    if divisor_override is not None and divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    if n == 2 and x.ndim < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(x.ndim, 1)}, "
            f"{max(x.ndim, 1) - 1}], but got {-n - 1})"
        )
    if n == 2 and x.ndim > 4:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(x.shape)}"
        )
    check_windows(x.shape, kernel, steps, edge, (1,) * n, ceil_mode)
    refuse_pool_dtype("avg_pool3d_out_frame" if n == 3 else "avg_pool2d", x, "int64")
    what = OPS[n][0](
        kernel, steps, edge, bool(ceil_mode), bool(count_include_pad), divisor_override
    )
    return apply(what, input)


_ARGS: Final = """

Args:
    kernel_size: how large windows are.
    stride: how far they are apart; as large as they are, if it is not given.
    padding: zeros on both sides.
    ceil_mode: whether the last window may stand out.
    count_include_pad: whether zeros of the padding count."""


def _export(n: int) -> None:
    title = f"avg_pool{n}d"

    def avg_pool(
        input: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
        ceil_mode: bool = False, count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Any:  # fmt: skip
        return _averaged(
            title, n, input, kernel_size, stride, padding, ceil_mode, count_include_pad,
            divisor_override,
        )  # fmt: skip

    text = (
        f"The mean of each window of {_WHAT[n]}.{_ARGS}\n"
        "    divisor_override: what sums are divided by, instead."
    )
    example = f"torch.nn.functional.{title}(torch.ones({', '.join('1' * (n - 1))}, 2, 2), 2)"
    if n == 3:
        example = f"torch.nn.functional.{title}(torch.ones(1, 2, 2, 2), 2)"
    shown = "tensor(" + "[" * (n + 1) + "1." + "]" * (n + 1) + ")"
    functional()(variant(avg_pool, title, describe(text, example, shown)))


_export(2)
_export(3)


def _one(title: str, what: str, given: Any) -> int:
    if isinstance(given, (tuple, list)):
        if len(given) != 1:
            raise RuntimeError(
                f"{title}() argument '{what}' should contain one int (got {len(given)})"
            )
        given = given[0]
    return one_or_each(title, what, given, 1)[0]


@function(method=False, namespace="nn.functional")
def avg_pool1d(
    input: Any, kernel_size: Any, stride: Any = (), padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:  # fmt: skip
    """The mean of each window of signals.

    Args:
        kernel_size: how large windows are.
        stride: how far they are apart; as large as they are, if it is not given.
        padding: zeros on both sides.
        ceil_mode: whether the last window may stand out.
        count_include_pad: whether zeros of the padding count.

    >>> torch.avg_pool1d(torch.tensor([[1., 3., 5., 7.]]), 2)
    tensor([[2., 6.]])
    """
    x = check_tensor(input, "avg_pool1d")
    check_rank("avg_pool1d", x, 1)
    kernel = _one("avg_pool1d", "kernel_size", kernel_size)
    given = stride is not None and not (isinstance(stride, (tuple, list)) and not stride)
    step = _one("avg_pool1d", "stride", stride) if given else kernel
    y = _averaged(
        "avg_pool1d", 2, input.unsqueeze(-2), (1, kernel), (1, step),
        (0, _one("avg_pool1d", "padding", padding)), ceil_mode, count_include_pad, None,
    )  # fmt: skip
    return y.squeeze(-2)


# --- adaptive -------------------------------------------------------------------------------------
def _adaptive(title: str, n: int, input: Any, output_size: Any) -> Any:
    x = check_tensor(input, title)
    sizes = sizes_of(output_size, x.shape, n)
    if len(sizes) != n:
        raise RuntimeError(f"{title}: output_size must be {n}")
    if min(sizes) < 0:
        shown = ", ".join(str(s) for s in sizes)
        raise RuntimeError(
            f"{title}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{shown}}}"
        )
    if x.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"{title}(): Expected {n + 1}D or {n + 2}D tensor, but got {list(x.shape)}"
        )
    for d in range(-n, 0):
        if x.shape[d] == 0:
            raise RuntimeError(
                f"{title}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"input has sizes {list(x.shape)} with dimension {d + x.ndim} being empty"
            )
    check_room(x, sizes)
    if all(s == 1 for s in sizes) and x.dtype.kind not in "biu":
        return input.mean(tuple(range(-n, 0)), keepdim=True)
    refuse_pool_dtype(f"{title}_cpu" if n == 3 else title, x)
    return apply(OPS[n][1](sizes), input)


def _export_adaptive(n: int) -> None:
    title = f"adaptive_avg_pool{n}d"

    def adaptive(input: Any, output_size: Any) -> Any:
        return _adaptive(title, n, input, output_size)

    text = (
        f"The mean of each window of {_WHAT[n]}, which are divided into `output_size` windows.\n"
        "\nArgs:\n    output_size: how many windows, one number or one an axis; None: as many as "
        "places."
    )
    example = f"torch.nn.functional.{title}(torch.ones({', '.join('1' * n)}, 4), 1)"
    shown = "tensor(" + "[" * (n + 1) + "1." + "]" * (n + 1) + ")"
    functional()(variant(adaptive, title, describe(text, example, shown)))


_export_adaptive(2)
_export_adaptive(3)


@function(method=False, namespace="nn.functional")
def adaptive_avg_pool1d(input: Any, output_size: Any) -> Any:
    """The mean of each window of signals, which are divided into `output_size` windows.

    Args:
        output_size: how many windows.

    >>> torch.adaptive_avg_pool1d(torch.tensor([[1., 3., 5.]]), 2)
    tensor([[2., 4.]])
    """
    x = check_tensor(input, "adaptive_avg_pool1d")
    check_rank("adaptive_avg_pool1d", x, 1)
    size = _one("adaptive_avg_pool1d", "output_size", output_size)
    return _adaptive("adaptive_avg_pool2d", 2, input.unsqueeze(-2), (1, size)).squeeze(-2)


# --- norms ----------------------------------------------------------------------------------------
def _export_norm(n: int) -> None:
    title = f"lp_pool{n}d"

    def lp_pool(
        input: Any, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Any:
        p = norm_type
        if n == 1:
            count = _one(title, "kernel_size", kernel_size)
            mean = avg_pool1d(input.pow(p), kernel_size, stride, 0, ceil_mode)
        else:
            count = math.prod(one_or_each(title, "kernel_size", kernel_size, n))
            mean = _averaged(
                f"avg_pool{n}d", n, input.pow(p), kernel_size, stride, 0, ceil_mode, True, None
            )
        relu = functions["relu"]
        return (functions["sign"](mean) * relu(mean.abs())).mul(count).pow(1.0 / p)

    text = (
        f"The norm of each window of {_WHAT[n]}: (Σ x^p)^(1/p).\n\nArgs:\n"
        "    norm_type: the exponent p.\n"
        "    kernel_size: how large windows are.\n"
        "    stride: how far they are apart; as large as they are, if it is not given.\n"
        "    ceil_mode: whether the last window may stand out."
    )
    x = f"torch.tensor({'[' * (n + 1)}3., 4.{']' * (n + 1)})"
    kernel = "2" if n == 1 else f"({'1, ' * (n - 1)}2)"
    example = f"torch.nn.functional.{title}({x}, 2, {kernel})"
    shown = "tensor(" + "[" * (n + 1) + "5." + "]" * (n + 1) + ")"
    functional()(variant(lp_pool, title, describe(text, example, shown)))


for _n in (1, 2, 3):
    _export_norm(_n)
