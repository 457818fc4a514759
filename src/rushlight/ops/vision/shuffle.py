"""Channels into pixels and back, and channels among groups: `pixel_shuffle` and its like."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor
from rushlight.ops.each_member import batch_leading
from rushlight.ops.registry import function, op
from rushlight.ops.sample_inputs import Draw


def _moved(x: Any, split: tuple[int, ...], order: tuple[int, ...], joined: tuple[int, ...]) -> Any:
    """The axes behind the leading ones split, put in order, and joined again."""
    lead = tuple(x.shape[: x.ndim - len(joined)])
    n = len(lead)
    parts = v.reshape(x, (*lead, *split))
    turned = v.permute(parts, (*range(n), *[n + d for d in order]))
    return v.reshape(turned, (*lead, *joined))


def _to_pixels(x: Any, r: int) -> Any:
    c, h, w = x.shape[-3:]
    split = (c // (r * r), r, r, h, w)
    return _moved(x, split, (0, 3, 1, 4, 2), (c // (r * r), h * r, w * r))


def _to_channels(x: Any, r: int) -> Any:
    c, h, w = x.shape[-3:]
    split = (c, h // r, r, w // r, r)
    return _moved(x, split, (0, 2, 4, 1, 3), (c * r * r, h // r, w // r))


@op
class PixelShuffle(Linear):
    """[*, C·r², H, W] as [*, C, H·r, W·r]."""

    name, params = "pixel_shuffle", ("upscale_factor",)
    upscale_factor: int
    vmap_rule = batch_leading
    lies = "channels"

    def forward(self, x: Any) -> Any:
        # by 1 nothing moves, and the result is a copy all the same
        return _to_pixels(x, self.upscale_factor) if self.upscale_factor > 1 else v.copy(x)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return _to_channels(g, self.upscale_factor)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield PixelShuffle(2), draw.real(1, 8, 2, 1)


@op
class PixelUnshuffle(Linear):
    """[*, C, H·r, W·r] as [*, C·r², H, W]."""

    name, params = "pixel_unshuffle", ("downscale_factor",)
    downscale_factor: int
    vmap_rule = batch_leading
    lies = "channels"

    def forward(self, x: Any) -> Any:
        return _to_channels(x, self.downscale_factor) if self.downscale_factor > 1 else v.copy(x)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return _to_pixels(g, self.downscale_factor)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield PixelUnshuffle(2), draw.real(1, 2, 4, 2)


def _exchange(x: Any, groups: int, rank: int) -> Any:
    c, *sizes = x.shape[x.ndim - rank + 1 :]
    last = tuple(range(2, 2 + len(sizes)))
    return _moved(x, (groups, c // groups, *sizes), (1, 0, *last), (c, *sizes))


@op
class ChannelShuffle(Linear):
    """The channels of all groups in turn; `rank` is that of the input."""

    name, params, saved_names = "channel_shuffle", ("groups", "rank"), "groups"
    groups: int
    rank: int
    vmap_rule = batch_leading
    lies = "channels"

    def forward(self, x: Any) -> Any:
        return _exchange(x, self.groups, self.rank)

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return _exchange(g, shape[len(shape) - self.rank + 1] // self.groups, self.rank)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield ChannelShuffle(2, 3), draw.real(2, 6, 2)


def _check(name: str, input: Any, factor: int, what: str) -> Any:
    x = check_tensor(input, name)
    if x.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {x.ndim} "
            "dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {what}, but got {factor}")
    return x


@function(method=False, namespace="nn.functional")
def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """[*, C·r², H, W] as [*, C, H·r, W·r]: r² channels become the pixels of a block.

    Args:
        upscale_factor: r, by which height and width grow.

    >>> torch.pixel_shuffle(torch.arange(4.).reshape(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    x = _check("pixel_shuffle", input, upscale_factor, "upscale_factor")
    square = upscale_factor**2
    if x.shape[-3] % square:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={x.shape[-3]} is not divisible by {square}"
        )
    return apply(PixelShuffle(upscale_factor), input)


@function(method=False, namespace="nn.functional")
def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """[*, C, H·r, W·r] as [*, C·r², H, W]: the pixels of a block become r² channels.

    Args:
        downscale_factor: r, by which height and width shrink.

    >>> torch.pixel_unshuffle(torch.arange(4.).reshape(1, 2, 2), 2).flatten()
    tensor([0., 1., 2., 3.])
    """
    x = _check("pixel_unshuffle", input, downscale_factor, "downscale_factor")
    for d, side in ((-2, "height"), (-1, "width")):
        if x.shape[d] % downscale_factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {side} to be divisible by downscale_factor, but "
                f"input.size({d})={x.shape[d]} is not divisible by {downscale_factor}"
            )
    return apply(PixelUnshuffle(downscale_factor), input)


@function(method=False, namespace="nn.functional", aliases=("native_channel_shuffle",))
def channel_shuffle(input: Any, groups: int) -> Any:
    """The channels (dimension 1) divided into groups, and taken from all of them in turn.

    Args:
        groups: how many groups there are.

    >>> torch.channel_shuffle(torch.arange(4.).reshape(1, 4, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    x = check_tensor(input, "channel_shuffle")
    if x.ndim < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(x.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if x.shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {x.shape[1]} channels and "
            f"{groups} groups."
        )
    return apply(ChannelShuffle(groups, x.ndim), input)
