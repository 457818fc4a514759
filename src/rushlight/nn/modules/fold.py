"""Patches of images as columns, and back, as modules."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["Fold", "Unfold"]
__dir__ = __all__.copy


class Fold(Module):
    """Fold(output_size, kernel_size, dilation=1, padding=0, stride=1): columns of patches back into
    images; where patches overlap, they are added.

    >>> torch.nn.Fold((1, 3), (1, 2))(torch.ones(1, 2, 2))
    tensor([[[[1., 2., 1.]]]])
    """

    __constants__: ClassVar[Any] = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0,
        stride: Any = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Any) -> Any:
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.__constants__)


class Unfold(Module):
    """Unfold(kernel_size, dilation=1, padding=0, stride=1): patches of images as columns.

    >>> torch.nn.Unfold((1, 2))(torch.ones(1, 1, 2, 2)).shape
    torch.Size([1, 2, 2])
    """

    __constants__: ClassVar[Any] = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Any) -> Any:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.__constants__)
