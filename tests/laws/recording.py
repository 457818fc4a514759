"""An array that only records: it knows its shape and dtype, and sees no number.

It answers to the closed vocabulary (`arrays/vocabulary.py`), to Python's operators and to `shape`,
`ndim`, `size`, `dtype`, `strides`: whatever an op or rule asks beyond that is an error, which is
how the vocabulary is kept closed. `replay` runs a recording on NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rushlight.arrays.vocabulary import Kind, register

__all__ = ["Recorded", "Tape"]


class Tape:
    """The calls made, in order. Slot numbers stand for arrays."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., Any], tuple[Any, ...], Any]] = []
        self.inputs: list[int] = []
        self.size = 0

    def slot(self, dummy: np.ndarray) -> Recorded:
        self.size += 1
        return Recorded(self, self.size - 1, dummy)

    def input(self, like: np.ndarray) -> Recorded:
        """A recorded array of the shape and dtype of `like`."""
        dummy = np.zeros_like(like) if like.dtype.kind in "iub" else np.ones_like(like)
        made = self.slot(dummy)
        self.inputs.append(made.number)
        return made

    def record(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        # shapes follow from running the function once on arrays of ones
        with np.errstate(all="ignore"):
            result = fn(*(_dummies(a) for a in args))
        if result is None:
            self.calls.append((fn, args, None))
            return None
        if isinstance(result, tuple):
            made: Any = tuple(self.slot(np.asarray(r)) for r in result)
        else:
            made = self.slot(np.asarray(result))
        self.calls.append((fn, args, made))
        return made

    def replay(self, values: list[np.ndarray], wanted: Any) -> Any:
        """The arrays behind `wanted` when the inputs have these values."""
        slots: dict[int, Any] = dict(zip(self.inputs, values, strict=True))

        def fill(a: Any) -> Any:
            if isinstance(a, Recorded):
                return slots[a.number]
            if isinstance(a, list):
                return [fill(x) for x in a]
            return a

        for fn, args, made in self.calls:
            result = fn(*(fill(a) for a in args))
            if isinstance(made, tuple):
                for m, r in zip(made, result, strict=True):
                    slots[m.number] = np.asarray(r)
            elif made is not None:
                slots[made.number] = np.asarray(result)
        if isinstance(wanted, (tuple, list)):
            return [fill(w) for w in wanted]
        return fill(wanted)


def _dummies(a: Any) -> Any:
    if isinstance(a, Recorded):
        return a._dummy
    if isinstance(a, list):
        return [_dummies(x) for x in a]
    return a


class Recorded(np.lib.mixins.NDArrayOperatorsMixin):
    """One array of a recording."""

    def __init__(self, tape: Tape, number: int, dummy: np.ndarray) -> None:
        self._tape = tape
        self.number = number
        self._dummy = dummy

    shape = property(lambda self: self._dummy.shape)
    ndim = property(lambda self: self._dummy.ndim)
    size = property(lambda self: self._dummy.size)
    dtype = property(lambda self: self._dummy.dtype)
    strides = property(lambda self: self._dummy.strides)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            raise TypeError(f"recorded arrays answer to plain calls, not {ufunc.__name__}.{method}")
        return self._tape.record(ufunc, inputs)

    def _refuse(self, *args: Any) -> Any:
        raise TypeError("a recorded array has no numbers to look at")

    __bool__ = __int__ = __float__ = __complex__ = __index__ = _refuse
    __iter__ = __len__ = __getitem__ = __array__ = _refuse
    __hash__ = object.__hash__


def _answer(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    tape = next(t for t in map(_tape_of, args) if t is not None)
    return tape.record(fn, args)


def _tape_of(a: Any) -> Tape | None:
    if isinstance(a, Recorded):
        return a._tape
    if isinstance(a, list):
        return next((x._tape for x in a if isinstance(x, Recorded)), None)
    return None


register(Recorded, Kind(7, _answer))
