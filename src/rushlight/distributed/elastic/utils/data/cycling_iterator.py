"""`CyclingIterator`: several epochs as one iterator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["CyclingIterator"]
__dir__ = __all__.copy

T = TypeVar("T")


class CyclingIterator(Iterator[T], Generic[T]):
    """CyclingIterator(n, generator_fn, start_epoch=0): `generator_fn(epoch)` for each epoch below
    `n`, one after the other.

    >>> from rushlight.distributed.elastic.utils.data import CyclingIterator
    >>> list(CyclingIterator(2, lambda epoch: iter([epoch, 10])))
    [0, 10, 1, 10]
    """

    def __init__(
        self, n: int, generator_fn: Callable[[int], Iterator[T]], start_epoch: int = 0
    ) -> None:
        self._n = n
        self._epoch = start_epoch
        self._generator_fn = generator_fn
        self._iter = generator_fn(start_epoch)

    def __iter__(self) -> CyclingIterator[T]:
        return self

    def __next__(self) -> T:
        while True:
            for value in self._iter:
                return value
            if self._epoch >= self._n - 1:
                raise StopIteration
            self._epoch += 1
            self._iter = self._generator_fn(self._epoch)
