"""Quasirandom points: Sobol's sequence, which fills the unit cube evenly."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.arrays import sobol
from rushlight.core.graph import wrap
from rushlight.core.record import finish
from rushlight.ops.registry import functions
from rushlight.random import Generator

__all__ = ["SobolEngine"]
__dir__ = __all__.copy


class SobolEngine:
    """SobolEngine(dimension, scramble=False, seed=None)

    Draws points of Sobol's sequence in up to 21201 dimensions. Scrambled ones are random points
    that are as even; `seed` says which.

    >>> torch.quasirandom.SobolEngine(2).draw(4)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500],
            [0.2500, 0.7500]])
    """

    MAXBIT = sobol.BITS
    MAXDIM = sobol.MAX_DIMENSION

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = _tensor(sobol.direction_numbers(dimension))
        self.shift = functions["zeros"](dimension, dtype=dtypes.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """The next `n` points, of shape [n, dimension].

        Args:
            n: how many points.
            out: a tensor to write them into.
            dtype: theirs; the default dtype if None.
        """
        if dtype is None:
            dtype = dtypes.get_default_dtype()
        first = self.num_generated == 0
        count = n - 1 if first else n
        if count < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {count}: "
                f"[{count}, {self.dimension}]"
            )
        points = self._advance(count).to(dtype) / 2**self.MAXBIT
        if first:
            points = functions["cat"]((self._first_point.to(dtype), points), 0)
        self.num_generated += n
        if out is None:
            return points
        out.resize_as_(points).copy_(points)
        return out

    def _advance(self, count: int) -> Any:
        generated = max(self.num_generated - 1, 0)
        points = sobol.advance(self.sobolstate._array, self.quasi._array, count, generated)
        if count:
            self.quasi = _tensor(points[-1].copy())
        return _tensor(points)

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Any:
        """The next 2**m points: as many in all as is a power of two, for evenness.

        >>> torch.quasirandom.SobolEngine(1).draw_base2(1)
        tensor([[0.0000],
                [0.5000]])
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begin again with the first point."""
        self.quasi = self.shift.clone()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave `n` points out."""
        self._advance(n - 1 if self.num_generated == 0 else n)
        self.num_generated += n
        return self

    def _scramble(self) -> None:
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        bits, size = self.MAXBIT, self.dimension
        draw = functions["randint"]
        shift = draw(2, (size, bits), generator=generator)
        matrices = draw(2, (size, bits, bits), generator=generator).tril()
        self.shift = _tensor(sobol.to_number(shift._array))
        self.sobolstate = _tensor(sobol.scramble(self.sobolstate._array, matrices._array))

    def __repr__(self) -> str:
        text = f"dimension={self.dimension}"
        if self.scramble:
            text += ", scramble=True"
        if self.seed is not None:
            text += f", seed={self.seed}"
        return f"{type(self).__name__}({text})"


def _tensor(array: Any) -> Any:
    return finish(wrap(array))
