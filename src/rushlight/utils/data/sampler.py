"""Samplers: in which order a `DataLoader` asks for samples.

Random ones draw as PyTorch's do, so that one seed gives one order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from rushlight.dtypes import float64, int64
from rushlight.ops.registry import functions
from rushlight.random import Generator

__all__ = [
    "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
    "WeightedRandomSampler",
]  # fmt: skip
__dir__ = __all__.copy

_T_co = TypeVar("_T_co", covariant=True)


def draw_seed(generator: Generator | None = None) -> int:
    """A seed from the stream of random numbers: a fresh one for each pass over the data."""
    return int(functions["empty"]((), dtype=int64).random_(generator=generator).item())


def numbers(order: Any) -> Iterator[int]:
    """The numbers of a tensor, some thousands at a time: a million Python ints take 40 MB."""
    for start in range(0, len(order), 4096):
        yield from order[start : start + 4096].tolist()


class Sampler(Generic[_T_co]):
    """The base of samplers: give `__iter__`, over indices or lists of them, and if you can
    `__len__`.

    >>> class Backwards(torch.utils.data.Sampler):
    ...     def __init__(self, data): self.data = data
    ...     def __iter__(self): return iter(range(len(self.data) - 1, -1, -1))
    >>> list(Backwards("abc"))
    [2, 1, 0]
    """

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """SequentialSampler(data_source): 0, 1, 2 and so on.

    >>> list(torch.utils.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """RandomSampler(data_source, replacement=False, num_samples=None, generator=None)

    Each index once, in random order; with `replacement`, independent draws.

    >>> order = torch.utils.data.RandomSampler("abc", generator=torch.Generator().manual_seed(0))
    >>> list(order)
    [2, 0, 1]
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self, data_source: Sized, replacement: bool = False, num_samples: int | None = None,
        generator: Any = None,
    ) -> None:  # fmt: skip
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        _check_count(self.num_samples)

    @property
    def num_samples(self) -> int:
        # the dataset may grow while it is in use
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, generator = len(self.data_source), self.generator
        if generator is None:
            generator = Generator().manual_seed(draw_seed())
        if self.replacement:
            # PyTorch draws 32 at a time: the stream is the same
            for start in range(0, self.num_samples, 32):
                count = min(32, self.num_samples - start)
                drawn = functions["randint"](n, (count,), dtype=int64, generator=generator)
                yield from drawn.tolist()
            return
        for _ in range(self.num_samples // n):
            yield from numbers(functions["randperm"](n, generator=generator))
        # drawn even if there is nothing to take of it, as PyTorch does
        rest = functions["randperm"](n, generator=generator)
        yield from numbers(rest[: self.num_samples % n])

    def __len__(self) -> int:
        return self.num_samples


def _check_count(given: Any, refused: bool = False) -> None:
    if refused or not isinstance(given, int) or given <= 0:
        raise ValueError(
            f"num_samples should be a positive integer value, but got num_samples={given}"
        )


class SubsetRandomSampler(Sampler[int]):
    """SubsetRandomSampler(indices, generator=None): these indices, each once, in random order.

    >>> sorted(torch.utils.data.SubsetRandomSampler([7, 3, 5]))
    [3, 5, 7]
    """

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        order = functions["randperm"](len(self.indices), generator=self.generator)
        for i in numbers(order):
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """WeightedRandomSampler(weights, num_samples, replacement=True, generator=None)

    Indices of `weights`, drawn as often as their weights say.

    >>> list(torch.utils.data.WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    weights: Any
    num_samples: int
    replacement: bool

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True,
        generator: Any = None,
    ) -> None:  # fmt: skip
        _check_count(num_samples, isinstance(num_samples, bool))
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.weights = functions["as_tensor"](weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = functions["multinomial"](
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from numbers(drawn)

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """BatchSampler(sampler, batch_size, drop_last): the indices of another sampler, in lists.

    >>> list(torch.utils.data.BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    sampler: Iterable[int]
    batch_size: int
    drop_last: bool

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        count, size = len(self.sampler), self.batch_size  # type: ignore[arg-type]  # may raise
        return count // size if self.drop_last else -(-count // size)
