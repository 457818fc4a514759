"""Convolution as modules."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.linear import new_parameter
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import _reverse_repeat_tuple, explain, several, unusual

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
]  # fmt: skip
__dir__ = __all__.copy

_MODES: Final = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions have: the kernels, the bias, and how windows move."""

    __constants__: ClassVar[Any] = [
        "stride", "padding", "dilation", "groups", "padding_mode", "output_padding", "in_channels",
        "out_channels", "kernel_size",
    ]  # fmt: skip

    bias: Any

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: tuple[int, ...],
        stride: tuple[int, ...], padding: Any, dilation: tuple[int, ...], transposed: bool,
        output_padding: tuple[int, ...], groups: int, bias: bool, padding_mode: str,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check(in_channels, out_channels, groups, padding, stride, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding: Any = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._both_sides()
        outer, inner = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self.weight = new_parameter(
            outer, inner // groups, *kernel_size, device=device, dtype=dtype
        )
        if bias:
            self.bias = new_parameter(out_channels, device=device, dtype=dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _both_sides(self) -> Any:
        """The padding as `functional.pad` takes it: from the last axis on, both sides of each."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        found = [0, 0] * len(self.kernel_size)
        if self.padding == "same":
            sizes = zip(self.dilation, self.kernel_size, strict=True)
            for at, (d, k) in enumerate(reversed(list(sizes))):
                total = d * (k - 1)
                found[2 * at] = total // 2
                found[2 * at + 1] = total - total // 2
        return found

    def reset_parameters(self) -> None:
        """Draw new values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in = math.prod(self.weight.shape[1:])
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        n = len(self.kernel_size)
        return (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
            + unusual(self, padding=(0,) * n, dilation=(1,) * n, output_padding=(0,) * n, groups=1)
            + (", bias=False" if self.bias is None else "")
            + unusual(self, padding_mode="zeros")
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("padding_mode", "zeros")  # older files lack it
        super().__setstate__(state)


def _check(
    in_channels: int, out_channels: int, groups: int, padding: Any, stride: Any, mode: str
) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}"
            )
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if mode not in _MODES:
        raise ValueError(
            f"padding_mode must be one of {set(_MODES)}, but got padding_mode='{mode}'"
        )


class _Forward(_ConvNd):
    """A convolution of `_n` dimensions, done by the function `_name`."""

    _n: ClassVar[int] = 0

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        n = self._n
        edge = padding if isinstance(padding, str) else several(padding, n)
        super().__init__(
            in_channels, out_channels, several(kernel_size, n), several(stride, n), edge,
            several(dilation, n), False, (0,) * n, groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Any, weight: Any, bias: Any) -> Any:
        conv = getattr(F, f"conv{self._n}d")
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        return conv(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Any) -> Any:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Forward):
    """Conv1d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
    bias=True, padding_mode='zeros'): convolution of signals.

    Windows of `kernel_size` places, `dilation` apart, move by `stride` over the input, which has
    `padding` places more on both sides; each output channel is the sum of a window of all channels
    of its group times a kernel, plus a bias.

    >>> m = torch.nn.Conv1d(16, 33, 3, stride=2)
    >>> m
    Conv1d(16, 33, kernel_size=(3,), stride=(2,))
    >>> m(torch.ones(20, 16, 50)).shape
    torch.Size([20, 33, 24])
    """

    _n = 1


class Conv2d(_Forward):
    """Conv2d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
    bias=True, padding_mode='zeros'): convolution of images; see `Conv1d`.

    >>> torch.nn.Conv2d(3, 8, 3, padding=1)(torch.ones(2, 3, 28, 28)).shape
    torch.Size([2, 8, 28, 28])
    """

    _n = 2


class Conv3d(_Forward):
    """Conv3d(in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
    bias=True, padding_mode='zeros'): convolution of volumes; see `Conv1d`.

    >>> torch.nn.Conv3d(1, 2, (1, 2, 2))(torch.ones(1, 1, 3, 3, 3)).shape
    torch.Size([1, 2, 3, 2, 2])
    """

    _n = 3


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution of `_n` dimensions."""

    _n: ClassVar[int] = 0

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
        dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        n = self._n
        super().__init__(
            in_channels, out_channels, several(kernel_size, n), several(stride, n),
            several(padding, n), several(dilation, n), True, several(output_padding, n), groups,
            bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(
        self, input: Any, output_size: Any, stride: Any, padding: Any, kernel_size: Any,
        num_spatial_dims: int, dilation: Any = None,
    ) -> Any:  # fmt: skip
        """The padding that gives a result of `output_size`."""
        if output_size is None:
            return several(self.output_padding, num_spatial_dims)
        n = num_spatial_dims
        rank = n + 2 if input.dim() == n + 2 else n + 1
        if len(output_size) == rank:
            output_size = output_size[rank - n :]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {rank} "
                f"elements (got {len(output_size)})"
            )
        spread = (1,) * n if dilation is None else dilation
        least = [
            (input.size(d + rank - n) - 1) * stride[d]
            - 2 * padding[d]
            + spread[d] * (kernel_size[d] - 1)
            + 1
            for d in range(n)
        ]
        most = [size + stride[d] - 1 for d, size in enumerate(least)]
        for size, low, high in zip(output_size, least, most, strict=True):
            if size < low or size > high:
                raise ValueError(
                    f"requested an output size of {output_size}, but valid sizes range from "
                    f"{least} to {most} (for an input of {input.size()[2:]})"
                )
        return [size - low for size, low in zip(output_size, least, strict=True)]

    def forward(self, input: Any, output_size: Any = None) -> Any:
        conv = getattr(F, f"conv_transpose{self._n}d")
        more = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self._n, self.dilation
        )
        return conv(
            input, self.weight, self.bias, self.stride, self.padding, more, self.groups,
            self.dilation,
        )  # fmt: skip


class ConvTranspose1d(_ConvTransposeNd):
    """ConvTranspose1d(in_channels, out_channels, kernel_size, stride=1, padding=0,
    output_padding=0, groups=1, bias=True, dilation=1): each place of a signal puts a kernel into
    the result, `stride` apart. What `Conv1d` makes smaller, this makes larger.

    >>> torch.nn.ConvTranspose1d(4, 2, 3, stride=2)(torch.ones(1, 4, 5)).shape
    torch.Size([1, 2, 11])
    """

    _n = 1


class ConvTranspose2d(_ConvTransposeNd):
    """ConvTranspose2d(in_channels, out_channels, kernel_size, stride=1, padding=0,
    output_padding=0, groups=1, bias=True, dilation=1): of images; see `ConvTranspose1d`.

    >>> m = torch.nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1)
    >>> m(torch.ones(1, 4, 6, 6), output_size=(12, 12)).shape
    torch.Size([1, 2, 12, 12])
    """

    _n = 2


class ConvTranspose3d(_ConvTransposeNd):
    """ConvTranspose3d(in_channels, out_channels, kernel_size, stride=1, padding=0,
    output_padding=0, groups=1, bias=True, dilation=1): of volumes; see `ConvTranspose1d`.

    >>> torch.nn.ConvTranspose3d(1, 2, 2)(torch.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 2, 3, 3, 3])
    """

    _n = 3


_COMMON: Final = """
in_channels: channels of the input, which is [batch, channels, *sizes] or one of that batch.
out_channels: channels of the result, a kernel for each.
kernel_size: how large a window is: a number, or one for each dimension.
stride: how far the window moves each time.
groups: into how many parts the channels are divided; each sees its own part of the input.
bias: whether to learn a number for each output channel, which is added.
dilation: the distance of a window's places; more than 1 leaves gaps.
"""
explain(
    _COMMON
    + """padding: places put on both sides of each dimension, or 'same' (the result is as large as
    the input), or 'valid' (none).
padding_mode: what stands there: 'zeros', 'reflect', 'replicate' or 'circular'.
device, dtype: of the parameters.
""",
    Conv1d, Conv2d, Conv3d,
)  # fmt: skip
explain(
    _COMMON
    + """padding: places left out on both sides of the result.
output_padding: places added on one side, to choose among sizes that a stride makes the same.
padding_mode: 'zeros', the only one there is.
device, dtype: of the parameters.
""",
    ConvTranspose1d, ConvTranspose2d, ConvTranspose3d,
)  # fmt: skip
