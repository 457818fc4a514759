"""Whether a kernel is one that can be written: every word known, with as many operands as it takes,
and every value of the role and type that follow from those it is made of.

The emitter takes this for granted, and would write C that compiles and computes something else; so
each kernel is looked at before it is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rushlight.codegen.expressions import (
    ANY,
    COLUMN,
    EACH,
    NONE,
    ONE,
    REDUCTIONS,
    ROW,
    Expr,
    Kernel,
    in_order,
)
from rushlight.codegen.language import COUNT, TRUTHS, WORDS
from rushlight.codegen.numpy_loops import LOOPS

_LEAVES = ("input", "param", "const", "count")
_COMPARED = (
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "isnan",
    "isinf",
)


class IllFormed(Exception):
    """A kernel that no C can be written for, with the reason."""


def verify(kernel: Kernel) -> None:
    """Raise `IllFormed` unless the kernel can be written."""
    for trouble in _troubles(kernel):
        raise IllFormed(f"{kernel.name}: {trouble}")


def _troubles(kernel: Kernel) -> Iterator[str]:
    yield from _of_the_whole(kernel)
    values = in_order(kernel.outputs)
    behind_sums = {a for e in values for a in e.args if a.word == "sum_rows"}
    for e in values:
        if e in behind_sums:
            yield "a sum over rows is known when all rows are done: nothing can be made of it"
        if e.word in _LEAVES:
            yield from _of_leaf(e, kernel)
        else:
            yield from _of_value(e)


def _of_the_whole(kernel: Kernel) -> Iterator[str]:
    if not kernel.outputs or len(kernel.outputs) != len(kernel.keeps_axis):
        yield f"{len(kernel.outputs)} results, of which {len(kernel.keeps_axis)} are described"
    if max(len(kernel.inputs), len(kernel.outputs), kernel.params) > COUNT:
        yield f"more than {COUNT} inputs, results or parameters"
    for i, e in enumerate(kernel.inputs):
        if e.word != "input" or e.value != i:
            yield f"input {i} is {e.word} {e.value}"
        if e.role not in (EACH, ROW, COLUMN, ONE, ANY, NONE):
            yield f"input {i} is of the role {e.role}"
    for e in kernel.outputs:
        if e.role not in (EACH, ROW, COLUMN):
            yield f"a result of the role {e.role}"
        if e.role == COLUMN and e.word != "sum_rows":
            yield "a result a column that is no sum over rows"
    if kernel.above is not None and not 0 <= kernel.above < kernel.params:
        yield f"rows must be longer than parameter {kernel.above} of {kernel.params}"


def _of_leaf(e: Expr, kernel: Kernel) -> Iterator[str]:
    if e.args:
        yield f"{e.word} of something"
    if e.word == "input":
        if e not in kernel.inputs:
            yield f"input {e.value} is read as what it is not"
        elif e.role in (ANY, NONE):
            yield f"input {e.value} is read, which may be anything"
        return
    if e.role != ONE:
        yield f"{e.word} of the role {e.role}"
    if e.word == "param" and not (isinstance(e.value, int) and 0 <= e.value < kernel.params):
        yield f"parameter {e.value} of {kernel.params}"
    if e.word == "const" and type(e.value) is not (bool if e.truth else float):
        yield f"a constant {e.value!r}"


def _of_value(e: Expr) -> Iterator[str]:
    if e.word not in WORDS and e.word not in REDUCTIONS and e.word not in (*LOOPS, "sum_rows"):
        yield f"there is no word {e.word}"
        return
    if len(e.args) != operands_of(e.word):
        yield f"{e.word} of {len(e.args)} operands"
        return
    if e.role != role_of(e):
        yield f"{e.word} of the role {e.role}, which is {role_of(e)}"
    if e.truth != _is_truth(e):
        yield f"{e.word} is {'a truth' if e.truth else 'a number'}"


def operands_of(word: str) -> int:
    """How many operands a word takes."""
    if word in WORDS:
        return len(set(re.findall(r"\{(\d)\}", WORDS[word])))
    return 2 if word == "squares_from" else 1


def role_of(e: Expr) -> str:
    """The role that a value has by its operands; "" if they do not go together."""
    roles = [a.role for a in e.args]
    if e.word == "squares_from":
        return ROW if roles == [EACH, ROW] else ""
    if e.word in REDUCTIONS:
        return ROW if roles == [EACH] else ""
    if e.word == "sum_rows":
        return COLUMN if roles == [EACH] else ""
    if e.word == "spread":  # what is one for many becomes one for each of them
        wider = {ONE: (ROW, COLUMN, EACH), ROW: (EACH,), COLUMN: (EACH,)}.get(roles[0], ())
        return e.role if e.role in wider else ""
    if not set(roles) <= {EACH, ROW, COLUMN, ONE}:
        return ""
    if EACH in roles or {ROW, COLUMN} <= set(roles):
        return EACH
    return next((role for role in (ROW, COLUMN) if role in roles), ONE)


def _is_truth(e: Expr) -> bool:
    if e.word == "where":
        return all(a.truth for a in e.args[1:])
    if e.word == "spread":
        return e.args[0].truth
    return e.word in _COMPARED or e.word in TRUTHS
