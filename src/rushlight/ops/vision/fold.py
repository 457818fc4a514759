"""Patches of images as columns, and back: `unfold` and `fold`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

from rushlight.arrays import batch_windows  # noqa: F401  # the meaning of the primitives in batches
from rushlight.arrays.windows import columns, out_size, uncolumns
from rushlight.core.families import Linear
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, not_implemented
from rushlight.ops.each_member import batch_leading
from rushlight.ops.registry import functional, implements, op
from rushlight.ops.sample_inputs import Draw

Ints = tuple[int, ...]


class Windowed(Linear):
    """A linear map between images and the columns of their windows."""

    kernel_size: Ints
    dilation: Ints
    padding: Ints
    stride: Ints
    vmap_rule = batch_leading
    lies = "rows"

    def geometry(self) -> Any:
        """How windows lie, as `columns` and `uncolumns` take it."""
        return self.kernel_size, self.stride, self.padding, self.dilation


@op
class Im2Col(Windowed):
    """Windows of [*lead, C, H, W] as columns: [*lead, C·taps, places]."""

    name, node = "im2col", "Im2ColBackward0"
    params: ClassVar[tuple[str, ...]] = ("kernel_size", "dilation", "padding", "stride")

    def forward(self, x: Any) -> Any:
        return columns(x, *self.geometry())

    def adjoint(self, g: Any, shape: Ints) -> Any:
        return uncolumns(g, tuple(shape[-len(self.kernel_size) :]), *self.geometry())

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Im2Col((2, 2), (1, 1), (0, 0), (1, 1)), draw.real(2, 3, 3)
        yield Im2Col((2, 3), (2, 1), (1, 0), (1, 2)), draw.real(1, 2, 4, 5)


@op
class Col2Im(Windowed):
    """The adjoint of `Im2Col`: columns back into images; where windows overlap, they are added."""

    name, node = "col2im", "Col2ImBackward0"
    params: ClassVar[tuple[str, ...]] = (
        "output_size", "kernel_size", "dilation", "padding", "stride",
    )  # fmt: skip
    saved_names = "dilation kernel_size padding stride"
    output_size: Ints

    def forward(self, x: Any) -> Any:
        return uncolumns(x, self.output_size, *self.geometry())

    def adjoint(self, g: Any, shape: Ints) -> Any:
        return columns(g, *self.geometry())

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Col2Im((3, 3), (2, 2), (1, 1), (0, 0), (1, 1)), draw.real(8, 4)
        yield Col2Im((4, 5), (2, 3), (2, 1), (1, 0), (1, 2)), draw.real(1, 6, 8)


@implements("columns")
def _columns(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Any:
    return apply(Im2Col(kernel, dilation, padding, stride), x)


@implements("uncolumns")
def _uncolumns(
    g: Any, sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints
) -> Any:
    return apply(Col2Im(sizes, kernel, dilation, padding, stride), g)


def _pair(name: str, given: Any) -> Ints:
    if isinstance(given, (tuple, list)):
        found = tuple(int(i.__index__()) for i in given)
        if len(found) == 1:
            return found * 2
        if len(found) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(found)}")
        return found
    return (int(given.__index__()),) * 2


def _check_pairs(kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> None:
    for what, name, values, least in (
        ("kernel size", "kernel", kernel, 1), ("dilation", "dilation", dilation, 1),
        ("padding", "pad", padding, 0), ("stride", "stride", stride, 1),
    ):  # fmt: skip
        if min(values) < least:
            be = "greater than zero" if least else "non-negative"
            raise RuntimeError(
                f"{what} should be {be}, but got {name}_height: {values[0]} {name}_width: "
                f"{values[1]}"
            )


@functional()
def unfold(
    input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Any:
    """Windows of images as columns: [N, C, H, W] gives [N, C·taps, places].

    Args:
        kernel_size: how large windows are, one number or two.
        dilation: the distance of the places of a window.
        padding: zeros on both sides.
        stride: how far windows are apart.

    >>> torch.nn.functional.unfold(torch.arange(4.).reshape(1, 1, 2, 2), (1, 2))
    tensor([[[0., 2.],
             [1., 3.]]])
    """
    x = check_tensor(input, "unfold")
    kernel, spread = _pair("kernel_size", kernel_size), _pair("dilation", dilation)
    edge, step = _pair("padding", padding), _pair("stride", stride)
    if x.ndim < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(x.ndim, 1)}, "
            f"{max(x.ndim, 1) - 1}], but got 2)"
        )
    _check_pairs(kernel, spread, edge, step)
    if x.ndim not in (3, 4) or 0 in x.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(x.shape)}"
        )
    counts = tuple(map(out_size, x.shape[-2:], kernel, step, edge, spread))
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(x.shape[-2:])}, kernel_size={kernel}, "
            f"dilation={spread}, padding={edge}, calculated shape of the array of sliding blocks "
            f"as {counts}, but its components must be at least one."
        )
    if x.dtype.kind in "iu":
        raise not_implemented("im2col_out_cpu", x.dtype)
    return apply(Im2Col(kernel, spread, edge, step), input)


@functional()
def fold(
    input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
    stride: Any = 1,
) -> Any:  # fmt: skip
    """Columns back into images, as `unfold` made them; where windows overlap, they are added.

    Args:
        output_size: the height and width of the images.
        kernel_size: how large windows are, one number or two.
        dilation: the distance of the places of a window.
        padding: zeros on both sides.
        stride: how far windows are apart.

    >>> torch.nn.functional.fold(torch.ones(1, 2, 2), (1, 3), (1, 2))
    tensor([[[[1., 2., 1.]]]])
    """
    x = check_tensor(input, "fold")
    sizes, kernel = _pair("output_size", output_size), _pair("kernel_size", kernel_size)
    spread, edge = _pair("dilation", dilation), _pair("padding", padding)
    step = _pair("stride", stride)
    _check_pairs(kernel, spread, edge, step)
    if x.ndim not in (2, 3) or 0 in x.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {list(x.shape)}"
        )
    rows = x.ndim - 2
    if x.shape[-2] % math.prod(kernel):
        raise RuntimeError(
            f"Expected size of input's dimension {rows} to be divisible by the product of "
            f"kernel_size, but got input.size({rows})={x.shape[-2]} and kernel_size={kernel}."
        )
    counts = tuple(map(out_size, sizes, kernel, step, edge, spread))
    if x.shape[-1] != math.prod(counts) or min(counts) < 0:
        raise RuntimeError(
            f"Given output_size={sizes}, kernel_size={kernel}, dilation={spread}, padding={edge}, "
            f"stride={step}, expected size of input's dimension {rows + 1} to match the calculated "
            f"number of sliding blocks {counts[0]} * {counts[1]} = {math.prod(counts)}, but got "
            f"input.size({rows + 1})={x.shape[-1]}."
        )
    if x.dtype.kind in "iu":
        raise not_implemented("col2im_out_cpu", x.dtype)
    return apply(Col2Im(sizes, kernel, spread, edge, step), input)
