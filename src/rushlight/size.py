"""`Size`: the shape of a tensor, a tuple of ints that prints as PyTorch's.

In the lowest layer, as `dtypes`.
"""

from collections.abc import Iterable
from math import prod
from operator import index
from typing import Any, SupportsIndex, overload

from .dtypes import type_name


class Size(tuple[int, ...]):
    """The shape of a tensor.

    >>> torch.Size([2, 3]) + (4,)
    torch.Size([2, 3, 4])
    >>> torch.Size([2, 3]).numel()
    6
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[SupportsIndex] = (), /) -> "Size":
        return unchecked([_integer(size, i) for i, size in enumerate(sizes)])

    def numel(self) -> int:
        """The number of elements of a tensor of this shape.

        >>> torch.Size([2, 3, 4]).numel()
        24
        """
        return prod(self)

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> "Size": ...
    def __getitem__(self, key: SupportsIndex | slice, /) -> "int | Size":
        if isinstance(key, slice):
            return unchecked(tuple.__getitem__(self, key))
        return tuple.__getitem__(self, key)

    def __add__(self, other: tuple[Any, ...], /) -> "Size":
        return Size(tuple.__add__(self, other)) if isinstance(other, tuple) else _refuse(other)

    def __radd__(self, other: tuple[int, ...], /) -> "Size":
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: SupportsIndex, /) -> "Size":
        if not hasattr(times, "__index__"):
            raise TypeError(f"can't multiply sequence by non-int of type {type_name(times)!r}")
        return unchecked(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __reduce__(self) -> tuple[type["Size"], tuple[tuple[int, ...]]]:
        return Size, (tuple(self),)


def unchecked(sizes: Iterable[int]) -> Size:
    """A Size of what is known to be ints, such as an array's shape; four times as fast."""
    return tuple.__new__(Size, sizes)


def _integer(size: SupportsIndex, i: int) -> int:
    try:
        return index(size)
    except TypeError:
        raise TypeError(
            f"torch.Size() takes an iterable of 'int' (item {i} is {type_name(size)!r})"
        ) from None


def _refuse(other: object) -> Any:
    """What `Size + other` is where the other is no tuple."""
    if hasattr(other, "__array__"):  # an array adds itself to any sequence
        return NotImplemented
    # To return NotImplemented would let tuple's own `+` answer, in other words than PyTorch's.
    raise TypeError(f"can only concatenate tuple (not {type_name(other)}) to torch.Size")
