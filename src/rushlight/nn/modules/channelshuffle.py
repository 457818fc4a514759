"""Channels of all groups in turn, as a module."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module

__all__ = ["ChannelShuffle"]
__dir__ = __all__.copy


class ChannelShuffle(Module):
    """ChannelShuffle(groups): the channels divided into groups, and taken from all in turn.

    >>> torch.nn.ChannelShuffle(2)(torch.arange(4.).reshape(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    __constants__: ClassVar[Any] = ["groups"]
    groups: int

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Any) -> Any:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
