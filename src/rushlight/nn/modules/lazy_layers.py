"""Layers that find the size of their input when they are first called: `LazyLinear` and its kin.

Each becomes an ordinary layer then.
"""

from __future__ import annotations

import sys
from typing import Any

from rushlight import dtypes
from rushlight.autograd.grad_mode import no_grad
from rushlight.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from rushlight.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from rushlight.nn.modules.instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from rushlight.nn.modules.lazy import LazyModuleMixin
from rushlight.nn.modules.linear import Linear
from rushlight.nn.parameter import UninitializedBuffer, UninitializedParameter
from rushlight.ops.registry import functions

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
    "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear",
]  # fmt: skip
__dir__ = __all__.copy


class LazyLinear(LazyModuleMixin, Linear):
    """LazyLinear(out_features, bias=True): a `Linear` that takes its `in_features` from the first
    input.

    >>> m = torch.nn.LazyLinear(3)
    >>> m(torch.ones(2, 5)).shape
    torch.Size([2, 3])
    >>> m
    Linear(in_features=5, out_features=3, bias=True)
    """

    cls_to_become = Linear
    weight: Any
    bias: Any

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new values, once there are shapes."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Any) -> None:
        """Take `in_features` from an input."""
        if self.has_uninitialized_params():
            with no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        elif self.in_features == 0:  # the values were loaded
            self.in_features = self.weight.shape[-1]


# --- convolution ----------------------------------------------------------------------------------
class _LazyConv(LazyModuleMixin):
    """What lazy convolutions share; their ordinary class stands behind this one."""

    def _begin(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        me: Any = self
        me.weight = UninitializedParameter(device=device, dtype=dtype)
        me.out_channels = out_channels
        if bias:
            me.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new values, once there are shapes."""
        me: Any = self
        if not self.has_uninitialized_params() and me.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Any, *args: Any, **kwargs: Any) -> None:
        """Take `in_channels` from an input."""
        me: Any = self
        if self.has_uninitialized_params():
            me.in_channels = self._get_in_channels(input)
            if me.in_channels % me.groups != 0:
                raise ValueError("in_channels must be divisible by groups")
            outer, inner = me.out_channels, me.in_channels
            if me.transposed:
                outer, inner = inner, outer
            me.weight.materialize((outer, inner // me.groups, *me.kernel_size))
            if me.bias is not None:
                me.bias.materialize((me.out_channels,))
            self.reset_parameters()
        elif me.in_channels == 0:  # the values were loaded
            me.in_channels = self._get_in_channels(input)

    def _get_in_channels(self, input: Any) -> int:
        n = self._get_num_spatial_dims()
        if input.ndim not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return int(input.shape[input.ndim - n - 1])

    def _get_num_spatial_dims(self) -> int:
        return int(self._n)  # type: ignore[attr-defined]


class _LazyForward(_LazyConv):
    def __init__(
        self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype
        )
        self._begin(out_channels, bias, device, dtype)


class _LazyTransposed(_LazyConv):
    def __init__(
        self, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, bias: bool = True, dilation: Any = 1,
        padding_mode: str = "zeros", device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation,
            padding_mode, device, dtype,
        )  # fmt: skip
        self._begin(out_channels, bias, device, dtype)


class LazyConv1d(_LazyForward, Conv1d):
    """LazyConv1d(out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
    padding_mode="zeros"): a `Conv1d` that takes its `in_channels` from the first input.

    >>> torch.nn.LazyConv1d(4, 3)(torch.ones(1, 2, 5)).shape
    torch.Size([1, 4, 3])
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyForward, Conv2d):
    """LazyConv2d(out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
    padding_mode="zeros"): a `Conv2d` that takes its `in_channels` from the first input.

    >>> torch.nn.LazyConv2d(4, 3)(torch.ones(1, 2, 5, 5)).shape
    torch.Size([1, 4, 3, 3])
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyForward, Conv3d):
    """LazyConv3d(out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
    padding_mode="zeros"): a `Conv3d` that takes its `in_channels` from the first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyTransposed, ConvTranspose1d):
    """LazyConvTranspose1d(out_channels, kernel_size, stride=1, padding=0, output_padding=0,
    groups=1, bias=True, dilation=1): a `ConvTranspose1d` that takes its `in_channels` from the
    first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposed, ConvTranspose2d):
    """LazyConvTranspose2d(out_channels, kernel_size, stride=1, padding=0, output_padding=0,
    groups=1, bias=True, dilation=1): a `ConvTranspose2d` that takes its `in_channels` from the
    first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposed, ConvTranspose3d):
    """LazyConvTranspose3d(out_channels, kernel_size, stride=1, padding=0, output_padding=0,
    groups=1, bias=True, dilation=1): a `ConvTranspose3d` that takes its `in_channels` from the
    first input."""

    cls_to_become = ConvTranspose3d


# --- normalisation --------------------------------------------------------------------------------
class _LazyNorm(LazyModuleMixin):
    """What lazy normalisations share; their ordinary class stands behind this one."""

    def __init__(
        self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device: Any = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(0, eps, momentum, False, False, device, dtype)
        self._begin(affine, track_running_stats, bias, device, dtype)

    def _begin(
        self, affine: bool, track_running_stats: bool, bias: bool, device: Any, dtype: Any
    ) -> None:
        me: Any = self
        kind = {"device": device, "dtype": dtype}
        me.affine, me.track_running_stats = affine, track_running_stats
        if affine:
            me.weight = UninitializedParameter(**kind)
            if bias:
                me.bias = UninitializedParameter(**kind)
        if track_running_stats:
            me.running_mean = UninitializedBuffer(**kind)
            me.running_var = UninitializedBuffer(**kind)
            me.num_batches_tracked = functions["tensor"](0, dtype=dtypes.int64, device=device)

    def reset_parameters(self) -> None:
        """Set the values, once there are shapes."""
        me: Any = self
        if not self.has_uninitialized_params() and me.num_features != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Any) -> None:
        """Take `num_features` from an input."""
        me: Any = self
        if not self.has_uninitialized_params():
            return
        me.num_features = input.shape[1]
        for name in ("weight", "bias", "running_mean", "running_var"):
            part = getattr(self, name)
            if part is not None:
                part.materialize((me.num_features,))
        self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """LazyBatchNorm1d(eps=1e-05, momentum=0.1, affine=True, track_running_stats=True): a
    `BatchNorm1d` that takes its `num_features` from the first input.

    >>> m = torch.nn.LazyBatchNorm1d()
    >>> m(torch.ones(2, 3)).shape, m.num_features
    (torch.Size([2, 3]), 3)
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """LazyBatchNorm2d(eps=1e-05, momentum=0.1, affine=True, track_running_stats=True): a
    `BatchNorm2d` that takes its `num_features` from the first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """LazyBatchNorm3d(eps=1e-05, momentum=0.1, affine=True, track_running_stats=True): a
    `BatchNorm3d` that takes its `num_features` from the first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """LazyInstanceNorm1d(eps=1e-05, momentum=0.1, affine=True, track_running_stats=True): an
    `InstanceNorm1d` that takes its `num_features` from the first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """LazyInstanceNorm2d(eps=1e-05, momentum=0.1, affine=True, track_running_stats=True): an
    `InstanceNorm2d` that takes its `num_features` from the first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """LazyInstanceNorm3d(eps=1e-05, momentum=0.1, affine=True, track_running_stats=True): an
    `InstanceNorm3d` that takes its `num_features` from the first input."""

    cls_to_become = InstanceNorm3d


def _place() -> None:
    """Let each be found, by pickles too, in the file of the module that it becomes."""
    for name in __all__:
        cls = globals()[name]
        # which may say "torch." already, see Note [Who we are]
        home = "rushlight." + cls.cls_to_become.__module__.partition(".")[2]
        cls.__module__ = home
        setattr(sys.modules[home], name, cls)


_place()
