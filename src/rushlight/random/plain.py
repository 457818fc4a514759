"""The twister where there is no compiled one: NumPy's, which gives the same words.

It answers as `codegen.draws`' does, but fills no arrays: `random.draw` and its neighbours then make
the numbers from the words.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from rushlight.locks import renew

if TYPE_CHECKING:
    import numpy.typing as npt

# Up to here `random_raw` (a uint64 a word, but hardly any overhead) beats `integers`.
RAW_LIMIT = 4096

# Twisters that their generators left behind. NumPy takes 100 us to make one, which programs that
# make a generator for each draw would pay every time; to seed one takes 4.
_spare: list[np.random.MT19937] = []
_SPARES = 8

MASK64 = (1 << 64) - 1
THIRTY_TWO = np.array(32, np.uint64)


class PlainTwister:
    """PlainTwister(seed): words of 32 bits, a normal kept for later, and whether any was drawn."""

    busy = False  # a draw of several steps goes on

    def __init__(self, seed: int) -> None:
        try:
            self._bits = _spare.pop()
        except IndexError:
            # loading numpy.random takes a fifth as long as all the rest of NumPy
            self._bits = np.random.MT19937(0)
            renew(self._bits.lock)  # which NumPy takes for every draw
        self.normal: float | None = None  # the second of a pair, drawn but not used
        self.seed(seed)

    # what it needs is bound here: when the interpreter leaves, the module's names are gone first
    def __del__(
        self,
        spare: list[np.random.MT19937] = _spare,
        most: int = _SPARES,
        references: Callable[[object], int] = sys.getrefcount,
    ) -> None:
        bits = self.__dict__.pop("_bits", None)
        self.__dict__.pop("_integers", None)
        if bits is not None and len(spare) < most and references(bits) == 2:
            spare.append(bits)

    @functools.cached_property
    def _integers(self) -> Callable[..., Any]:
        return np.random.Generator(self._bits).integers

    def seed(self, seed: int) -> None:
        """Start over, from 32 bits."""
        np.random.RandomState(self._bits).seed(seed)
        self.drawn = False  # a fresh state and an exhausted one differ in `next` alone
        self.normal = None

    def get(self) -> tuple[Any, int, bool, float | None]:
        """The words, the place of the next, whether any was taken, and a normal kept or None."""
        twister: Any = self._bits.state["state"]
        return twister["key"], int(twister["pos"]), self.drawn, self.normal

    def set(self, key: Any, pos: int, drawn: bool, normal: float | None) -> None:
        """Go on from there."""
        self.drawn, self.normal = drawn, normal
        self._bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": pos}}

    def take32(self, n: int) -> npt.NDArray[Any]:
        """The next n words, as uint64 or uint32 (whichever is cheaper to make)."""
        if n == 0:
            return np.empty(0, np.uint32)
        self.drawn = True
        if n <= RAW_LIMIT:
            return self._bits.random_raw(n)
        words: npt.NDArray[Any] = self._integers(0, 1 << 32, n, np.uint32)
        return words

    def take64(self, n: int) -> npt.NDArray[np.uint64]:
        """The next n pairs of words, the first of a pair on top."""
        if n == 0:
            return np.empty(0, np.uint64)
        self.drawn = True
        if 2 * n <= RAW_LIMIT:
            words = self._bits.random_raw(2 * n)
            high = np.left_shift(words[::2], THIRTY_TWO)
            return np.bitwise_or(high, words[1::2], high)
        pairs: npt.NDArray[np.uint64] = self._integers(0, MASK64, n, np.uint64, True)
        return pairs

    # It fills nothing: see the module's docstring.

    def uniform(self, *given: Any) -> bool:
        """Whether it could."""
        return False

    normals = keeps = keeps_by = exponentials = integers = gammas = poissons = binomials = uniform

    def new_uniform(self, *given: Any) -> None:
        """What it made: nothing."""

    new_normals = new_integers = shuffled = new_uniform
