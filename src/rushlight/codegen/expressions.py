"""What a kernel computes: a graph of words, each element (or row) from those before it.

Note [Roles]
    A kernel sees arrays as rows of numbers. A value is one of: `each` element's own; one a `row`,
    which is a reduction over the row, or made from some; one a `column`, the same in all rows;
    `one` for the whole call. Where no row is ever reduced there is but one long row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

EACH, ROW, COLUMN, ONE = "each", "row", "column", "one"
REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "product", "wide_sum", "squares_from")
ANY, NONE = "any", "none"  # roles of inputs that a kernel does not read, and that must be None


class Expr:
    """One value: a word applied to others; or an input, a parameter, a constant, by `value`.

    There is one object for each value: expressions that are equal are the same.
    """

    __slots__ = ("args", "role", "truth", "value", "word")
    _all: ClassVar[dict[tuple[Any, ...], Expr]] = {}

    word: str
    args: tuple[Expr, ...]
    value: Any
    role: str
    truth: bool  # a bool, not a number

    def __new__(
        cls, word: str, args: tuple[Expr, ...] = (), value: Any = None, role: str = EACH,
        truth: bool = False,
    ) -> Expr:  # fmt: skip
        key = (word, args, repr(value), role, truth)  # by its text a NaN is itself, and -0 not 0
        found = cls._all.get(key)
        if found is None:
            found = cls._all[key] = object.__new__(cls)
            found.word, found.args, found.value = word, args, value
            found.role, found.truth = role, truth
        return found

    @property
    def is_reduction(self) -> bool:
        return self.word in REDUCTIONS


@dataclass(frozen=True)
class Kernel:
    """A function of arrays: `outputs` in terms of `inputs` and of `params`, which are numbers."""

    name: str
    inputs: tuple[Expr, ...]
    params: int
    outputs: tuple[Expr, ...]
    keeps_axis: tuple[bool, ...]  # for outputs of one number a row: whether the axis stays, as 1
    text: str = ""  # what it is, for a reader of the C
    whole: bool = False  # the whole array is the row
    above: int | None = None  # the parameter that a row must have more elements than

    @property
    def by_rows(self) -> bool:
        """Whether rows count, or the elements are one long row."""
        return any(e.role in (ROW, COLUMN) for e in in_order(self.outputs))

    @property
    def by_columns(self) -> bool:
        """Whether the rows may be columns: the C then goes over many of them side by side."""
        values = in_order(self.outputs)
        return self.by_rows and not any(
            e.role == COLUMN or (e.truth and e.word == "input") for e in values
        )


def in_order(wanted: tuple[Expr, ...]) -> list[Expr]:
    """Every value that `wanted` are made of, each behind those it is made of."""
    seen: dict[Expr, None] = {}
    stack: list[tuple[Expr, bool]] = [(e, False) for e in reversed(wanted)]
    while stack:
        e, ready = stack.pop()
        if e in seen:
            continue
        if ready:
            seen[e] = None
            continue
        stack.append((e, True))
        stack.extend((a, False) for a in reversed(e.args) if a not in seen)
    return list(seen)


def with_number(kernel: Kernel) -> list[Kernel]:
    """Of an op that is one word of two operands, element by element, the kernels in which one of
    them is a number that all elements meet: the second, then the first. It comes as the second
    argument in both."""
    kinds = [(e.role, e.truth) for e in kernel.inputs]
    words = [e.word for e in in_order(kernel.outputs) if e.word != "input"]
    if kinds != [(EACH, False)] * 2 or len(words) != 1 or not kernel.name.endswith(".forward"):
        return []
    array, number = Expr("input", (), 0), Expr("input", (), 1, ONE)
    found = []
    for given in ((array, number), (number, array)):
        made = dict(zip(kernel.inputs, given, strict=True))
        for e in in_order(kernel.outputs):
            if e not in made:
                args = tuple(made[a] for a in e.args)
                role = e.role if not args else EACH if any(a.role == EACH for a in args) else ONE
                made[e] = Expr(e.word, args, e.value, role, e.truth)
        outputs = tuple(made[e] for e in kernel.outputs)
        found.append(replace(kernel, inputs=(array, number), outputs=outputs))
    return found
