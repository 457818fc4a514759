"""Padding as modules: a border of a constant, or of the input's own elements."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.nn import functional as F
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import several

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
    "ConstantPad3d", "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d",
    "ReplicationPad2d", "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip
__dir__ = __all__.copy


class _PadNd(Module):
    """A border of `_n` dimensions, of the kind `_mode`."""

    __constants__: ClassVar[Any] = ["padding"]
    _n: ClassVar[int] = 0
    _mode: ClassVar[str] = "constant"
    padding: Any

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = several(padding, 2 * self._n)

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    """A border of one value."""

    __constants__: ClassVar[Any] = ["padding", "value"]

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """ConstantPad1d(padding, value): a border of `value` at both ends of a signal. `padding` is one
    number, or one for each side.

    >>> torch.nn.ConstantPad1d((1, 2), 7.)(torch.tensor([[1., 2.]]))
    tensor([[7., 1., 2., 7., 7.]])
    """

    _n = 1


class ConstantPad2d(_ConstantPadNd):
    """ConstantPad2d(padding, value): a border of `value`; `padding` is one number, or one for each
    side: left, right, top, bottom.

    >>> torch.nn.ConstantPad2d((0, 1, 1, 0), 7.)(torch.tensor([[[1.]]]))
    tensor([[[7., 7.],
             [1., 7.]]])
    """

    _n = 2


class ConstantPad3d(_ConstantPadNd):
    """ConstantPad3d(padding, value): a border of `value`; see `ConstantPad2d`."""

    _n = 3


class _Zero(_ConstantPadNd):
    """A border of zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad1d(_Zero, ConstantPad1d):
    """ZeroPad1d(padding): a border of zeros; see `ConstantPad1d`.

    >>> torch.nn.ZeroPad1d(1)(torch.tensor([[1.]]))
    tensor([[0., 1., 0.]])
    """


class ZeroPad2d(_Zero, ConstantPad2d):
    """ZeroPad2d(padding): a border of zeros; see `ConstantPad2d`."""


class ZeroPad3d(_Zero, ConstantPad3d):
    """ZeroPad3d(padding): a border of zeros; see `ConstantPad2d`."""


class _ReflectionPadNd(_PadNd):
    """A border that mirrors the input."""

    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """ReflectionPad1d(padding): a border that mirrors the signal, without repeating its ends.

    >>> torch.nn.ReflectionPad1d(1)(torch.tensor([[1., 2., 3.]]))
    tensor([[2., 1., 2., 3., 2.]])
    """

    _n = 1


class ReflectionPad2d(_ReflectionPadNd):
    """ReflectionPad2d(padding): a border that mirrors the image; see `ReflectionPad1d`."""

    _n = 2


class ReflectionPad3d(_ReflectionPadNd):
    """ReflectionPad3d(padding): a border that mirrors the volume; see `ReflectionPad1d`."""

    _n = 3


class _ReplicationPadNd(_PadNd):
    """A border that repeats the edge of the input."""

    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """ReplicationPad1d(padding): a border that repeats the ends of the signal.

    >>> torch.nn.ReplicationPad1d(1)(torch.tensor([[1., 2.]]))
    tensor([[1., 1., 2., 2.]])
    """

    _n = 1


class ReplicationPad2d(_ReplicationPadNd):
    """ReplicationPad2d(padding): a border that repeats the edge; see `ReplicationPad1d`."""

    _n = 2


class ReplicationPad3d(_ReplicationPadNd):
    """ReplicationPad3d(padding): a border that repeats the edge; see `ReplicationPad1d`."""

    _n = 3


class _CircularPadNd(_PadNd):
    """A border that goes on at the other end."""

    _mode = "circular"


class CircularPad1d(_CircularPadNd):
    """CircularPad1d(padding): a border that goes on at the other end of the signal.

    >>> torch.nn.CircularPad1d(1)(torch.tensor([[1., 2., 3.]]))
    tensor([[3., 1., 2., 3., 1.]])
    """

    _n = 1


class CircularPad2d(_CircularPadNd):
    """CircularPad2d(padding): a border that goes on at the other end; see `CircularPad1d`."""

    _n = 2


class CircularPad3d(_CircularPadNd):
    """CircularPad3d(padding): a border that goes on at the other end; see `CircularPad1d`."""

    _n = 3
