"""Channels into pixels, and back, as modules."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle"]
__dir__ = __all__.copy


class PixelShuffle(Module):
    """PixelShuffle(upscale_factor): [*, C·r², H, W] as [*, C, H·r, W·r].

    >>> torch.nn.PixelShuffle(2)(torch.ones(1, 8, 3, 3)).shape
    torch.Size([1, 2, 6, 6])
    """

    __constants__: ClassVar[Any] = ["upscale_factor"]

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Any) -> Any:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """PixelUnshuffle(downscale_factor): [*, C, H·r, W·r] as [*, C·r², H, W].

    >>> torch.nn.PixelUnshuffle(2)(torch.ones(1, 2, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    __constants__: ClassVar[Any] = ["downscale_factor"]

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Any) -> Any:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
