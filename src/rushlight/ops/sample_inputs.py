"""Sample inputs of ops: every law in the tests draws from here, so a new op is tested by existing.

An op class says its parameters and the shapes of its inputs, or how to draw with a static method

    samples = drawn(real=[((-1,), False, (2, 3))], complex=[((-2,), True, (3, 2))])

    def samples(draw):
        yield Sum((-1,), False), draw.real(2, 3)        # the op, then its raw inputs

Element-wise ops need not: `domain` names where their inputs live. What is drawn in real numbers is
drawn in complex ones too, if the class says `complex_too = True`, as those that are linear do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rushlight.arrays.host import Sampler
from rushlight.core.families import Elementwise, Linear
from rushlight.core.graph import Op

Draw = Sampler


def drawn(**samples_by_kind: Sequence[tuple[Any, ...]]) -> Any:
    """The `samples` of an op with any number of parameters: these, then the shape of each input,
    which the method of `Draw` that is named draws. The shape alone will do for an op of one input
    and no parameters: `drawn(real=[(2, 3), ()], complex=[(2,)])`."""

    def samples(cls: Any, draw: Draw) -> Iterator[tuple[Any, ...]]:
        n = len(cls.inputs)
        for kind, cases in samples_by_kind.items():
            one = getattr(draw, kind)
            for case in cases:
                if n == 1 and not (case and isinstance(case[-1], tuple)):
                    case = (case,)
                yield (cls(*case[:-n]), *(one(*shape) for shape in case[-n:]))

    return classmethod(samples)


def samples_of(cls: type[Op], draw: Draw) -> Iterator[tuple[Any, ...]]:
    """Pairs of an op of class `cls` and raw inputs for it: `(op, x, ...)`."""
    own = getattr(cls, "samples", None)
    if own is not None:
        drawn = list(own(draw))
        yield from drawn
        if getattr(cls, "complex_too", issubclass(cls, Linear)):
            yield from _in_complex(drawn, draw)
    elif issubclass(cls, Elementwise):
        yield from _elementwise(cls, draw)


def _in_complex(drawn: list[tuple[Any, ...]], draw: Draw) -> Iterator[tuple[Any, ...]]:
    """The first of the samples, with complex numbers in the place of real ones; none if there are
    complex ones among them."""
    kinds = [[x.dtype.kind if hasattr(x, "dtype") else "" for x in xs] for _, *xs in drawn]
    if any("c" in row for row in kinds):
        return
    for (op, *xs), row in zip(drawn, kinds, strict=True):
        floats = [x for x, kind in zip(xs, row, strict=True) if kind == "f"]
        if floats and all(x.ndim and x.size for x in floats):
            both = zip(xs, row, strict=True)
            yield (op, *(x + 1j * draw.real(*x.shape) if k == "f" else x for x, k in both))
            return


def _elementwise(cls: Any, draw: Draw) -> Iterator[tuple[Any, ...]]:
    n = len(cls.inputs)
    one = getattr(draw, cls.domain)
    yield (cls(), *(one(2, 3) for _ in range(n)))
    yield (cls(), *(one() for _ in range(n)))
    yield (cls(), *(one(0, 2) for _ in range(n)))
    if n > 1:
        yield (cls(), one(2, 3), *(one(3) for _ in range(n - 1)))
        yield (cls(), one(1, 3), *(one(2, 1) for _ in range(n - 1)))
        if cls.params in (("alpha",), ("value",)):  # a factor, which is 1 if nobody says another
            yield (cls(0.5), *(one(2, 3) for _ in range(n)))
    if cls.complex_too:
        yield (cls(), *(draw.complex(2, 2) for _ in range(n)))
