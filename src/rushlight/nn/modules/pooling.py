"""Pooling as modules: each calls the function of its name in `nn.functional`."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import explain, several

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d",
    "FractionalMaxPool2d", "FractionalMaxPool3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d",
    "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip
__dir__ = __all__.copy


# --- the largest ----------------------------------------------------------------------------------
class _MaxPoolNd(Module):
    """The largest of each window."""

    __constants__: ClassVar[Any] = [
        "kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode",
    ]  # fmt: skip
    _n: ClassVar[int] = 0

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        return_indices: bool = False, ceil_mode: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        return getattr(F, f"max_pool{self._n}d")(
            input, self.kernel_size, self.stride, self.padding, self.dilation,
            ceil_mode=self.ceil_mode, return_indices=self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """MaxPool1d(kernel_size, stride=None, padding=0, dilation=1, return_indices=False,
    ceil_mode=False): the largest of each window of a signal.

    >>> torch.nn.MaxPool1d(2)(torch.tensor([[1., 5., 2., 3.]]))
    tensor([[5., 3.]])
    """

    _n = 1


class MaxPool2d(_MaxPoolNd):
    """MaxPool2d(kernel_size, stride=None, padding=0, dilation=1, return_indices=False,
    ceil_mode=False): the largest of each window of an image.

    >>> torch.nn.MaxPool2d(2)(torch.arange(8.).reshape(1, 1, 2, 4))
    tensor([[[[5., 7.]]]])
    """

    _n = 2


class MaxPool3d(_MaxPoolNd):
    """MaxPool3d(kernel_size, stride=None, padding=0, dilation=1, return_indices=False,
    ceil_mode=False): the largest of each window of a volume.

    >>> torch.nn.MaxPool3d(2)(torch.arange(8.).reshape(1, 2, 2, 2))
    tensor([[[[7.]]]])
    """

    _n = 3


class _MaxUnpoolNd(Module):
    """What `MaxPool` chose, back at its places."""

    _n: ClassVar[int] = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = several(kernel_size, self._n)
        self.stride = several(kernel_size if stride is None else stride, self._n)
        self.padding = several(padding, self._n)

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return getattr(F, f"max_unpool{self._n}d")(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """MaxUnpool1d(kernel_size, stride=None, padding=0): what `MaxPool1d` chose, at its places, and
    zeros elsewhere.

    >>> y, places = torch.nn.MaxPool1d(2, return_indices=True)(torch.tensor([[1., 5., 2., 3.]]))
    >>> torch.nn.MaxUnpool1d(2)(y, places)
    tensor([[0., 5., 0., 3.]])
    """

    _n = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """MaxUnpool2d(kernel_size, stride=None, padding=0): see `MaxUnpool1d`."""

    _n = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """MaxUnpool3d(kernel_size, stride=None, padding=0): see `MaxUnpool1d`."""

    _n = 3


# --- means ----------------------------------------------------------------------------------------
class _AvgPoolNd(Module):
    """The mean of each window."""

    __constants__: ClassVar[Any] = [
        "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad",
    ]  # fmt: skip

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """AvgPool1d(kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True): the
    mean of each window of a signal.

    >>> torch.nn.AvgPool1d(2)(torch.tensor([[1., 5., 2., 4.]]))
    tensor([[3., 3.]])
    """

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = several(kernel_size, 1)
        self.stride = several(kernel_size if stride is None else stride, 1)
        self.padding = several(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Any) -> Any:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad,
        )  # fmt: skip


class _AvgPoolWide(_AvgPoolNd):
    """The mean of each window of images or volumes."""

    __constants__: ClassVar[Any] = [*_AvgPoolNd.__constants__, "divisor_override"]
    _n: ClassVar[int] = 0

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Any) -> Any:
        return getattr(F, f"avg_pool{self._n}d")(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class AvgPool2d(_AvgPoolWide):
    """AvgPool2d(kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None): the mean of each window of an image.

    >>> torch.nn.AvgPool2d(2)(torch.tensor([[[1., 3.], [5., 7.]]]))
    tensor([[[4.]]])
    """

    _n = 2


class AvgPool3d(_AvgPoolWide):
    """AvgPool3d(kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None): the mean of each window of a volume; see `AvgPool2d`."""

    _n = 3


# --- windows at random distances ------------------------------------------------------------------
class _FractionalMaxPoolNd(Module):
    """The largest of windows at random distances."""

    __constants__: ClassVar[Any] = [
        "kernel_size", "return_indices", "output_size", "output_ratio",
    ]  # fmt: skip
    _n: ClassVar[int] = 0

    def __init__(
        self, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
        return_indices: bool = False, _random_samples: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        n, name = self._n, type(self).__name__
        self.kernel_size = several(kernel_size, n)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else several(output_size, n)
        self.output_ratio = None if output_ratio is None else several(output_ratio, n)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Any) -> Any:
        return getattr(F, f"fractional_max_pool{self._n}d")(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices,
            _random_samples=self._random_samples,
        )  # fmt: skip


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """FractionalMaxPool2d(kernel_size, output_size=None, output_ratio=None, return_indices=False):
    the largest of windows at random distances, so that their number is free.

    >>> torch.nn.FractionalMaxPool2d(2, output_ratio=0.7)(torch.ones(1, 10, 10)).shape
    torch.Size([1, 7, 7])
    """

    _n = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """FractionalMaxPool3d(kernel_size, output_size=None, output_ratio=None, return_indices=False):
    see `FractionalMaxPool2d`."""

    _n = 3


# --- norms ----------------------------------------------------------------------------------------
class _LPPoolNd(Module):
    """The norm of each window."""

    __constants__: ClassVar[Any] = ["norm_type", "kernel_size", "stride", "ceil_mode"]
    _n: ClassVar[int] = 0

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Any) -> Any:
        return getattr(F, f"lp_pool{self._n}d")(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """LPPool1d(norm_type, kernel_size, stride=None, ceil_mode=False): the norm of each window of a
    signal.

    >>> torch.nn.LPPool1d(2, 2)(torch.tensor([[3., 4.]]))
    tensor([[5.]])
    """

    _n = 1


class LPPool2d(_LPPoolNd):
    """LPPool2d(norm_type, kernel_size, stride=None, ceil_mode=False): see `LPPool1d`."""

    _n = 2


class LPPool3d(_LPPoolNd):
    """LPPool3d(norm_type, kernel_size, stride=None, ceil_mode=False): see `LPPool1d`."""

    _n = 3


# --- a number of windows --------------------------------------------------------------------------
class _AdaptiveMaxPoolNd(Module):
    """The largest of each of `output_size` windows."""

    __constants__: ClassVar[Any] = ["output_size", "return_indices"]
    _n: ClassVar[int] = 0

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Any) -> Any:
        return getattr(F, f"adaptive_max_pool{self._n}d")(
            input, self.output_size, self.return_indices
        )

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """AdaptiveMaxPool1d(output_size, return_indices=False): a signal divided into `output_size`
    windows, and the largest of each.

    >>> torch.nn.AdaptiveMaxPool1d(2)(torch.tensor([[1., 5., 2., 3.]]))
    tensor([[5., 3.]])
    """

    _n = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """AdaptiveMaxPool2d(output_size, return_indices=False): see `AdaptiveMaxPool1d`."""

    _n = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """AdaptiveMaxPool3d(output_size, return_indices=False): see `AdaptiveMaxPool1d`."""

    _n = 3


class _AdaptiveAvgPoolNd(Module):
    """The mean of each of `output_size` windows."""

    __constants__: ClassVar[Any] = ["output_size"]
    _n: ClassVar[int] = 0

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        return getattr(F, f"adaptive_avg_pool{self._n}d")(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """AdaptiveAvgPool1d(output_size): a signal divided into `output_size` windows, and the mean of
    each.

    >>> torch.nn.AdaptiveAvgPool1d(2)(torch.tensor([[1., 5., 2., 4.]]))
    tensor([[3., 3.]])
    """

    _n = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """AdaptiveAvgPool2d(output_size): see `AdaptiveAvgPool1d`. With size 1 the mean of the image.

    >>> torch.nn.AdaptiveAvgPool2d(1)(torch.ones(2, 3, 4, 4)).shape
    torch.Size([2, 3, 1, 1])
    """

    _n = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """AdaptiveAvgPool3d(output_size): see `AdaptiveAvgPool1d`."""

    _n = 3


_WINDOWS = """
kernel_size: how large a window is: a number, or one for each dimension.
stride: how far it moves each time; None: by its size, so that windows do not overlap.
padding: places put on both sides of each dimension, which count for nothing in a maximum.
ceil_mode: whether a window that sticks out at the end counts.
"""
explain(
    _WINDOWS
    + """dilation: the distance of a window's places.
return_indices: whether to give the places of the maxima, too, for `MaxUnpool`.
""",
    MaxPool1d, MaxPool2d, MaxPool3d,
)  # fmt: skip
_MEANS = _WINDOWS + "count_include_pad: whether padded places count as zeros in a mean.\n"
explain(_MEANS, AvgPool1d)
explain(_MEANS + "divisor_override: what sums are divided by instead.", AvgPool2d, AvgPool3d)
_SIZE = "output_size: how large the result is; None for a dimension that stays as it is.\n"
explain(_SIZE, AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d)
explain(
    _SIZE + "return_indices: whether to give the places of the maxima, too.",
    AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d,
)  # fmt: skip
