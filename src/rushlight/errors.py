"""Wording of errors: PyTorch's type and first words, then where, then the cure. And what tracebacks
show: the user's own lines.

In the lowest layer: it needs nothing of rushlight.

Note [Tracebacks]
    A user wants to see which line of the program was wrong, not by which way rushlight noticed. So
    public functions hand an error that passes through them to `hide_insides`, which takes the
    frames of rushlight, and of the libraries it called, out of the traceback; frames of the user's
    code that rushlight called (a hook, a `forward`, a mapped function) stay. It happens in `except`
    clauses alone, which cost nothing until an error comes. An error that nobody meant to raise is
    a fault of rushlight's, and keeps all its frames. So do all, if the environment variable
    RUSHLIGHT_FULL_TRACEBACK is set to 1, or `rushlight.errors.tracebacks.full` to True.

    An exception caught inside is not shown as the context of the error that says it better: NumPy's
    words about broadcasting help nobody who reads PyTorch's. `raise ... from None` says the same,
    but mypyc compiles that as if there were no `from`: compiled files raise `alone(error)`.
"""

from __future__ import annotations

import dis
import functools
import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, ParamSpec, TypeVar

E = TypeVar("E", bound=BaseException)
P = ParamSpec("P")
R = TypeVar("R")

_RAISES: Final = (dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"])
_LIBRARIES: Final = ("numpy", "scipy", "ml_dtypes", "cupy")
_TOLD: Final = "_rushlight_told"  # an attribute of errors whose traceback has been shortened


class Tracebacks:
    """What tracebacks show."""

    def __init__(self) -> None:
        self.full = os.environ.get("RUSHLIGHT_FULL_TRACEBACK", "0") not in ("", "0")


tracebacks: Final = Tracebacks()


def _home(at: TracebackType) -> str:
    """The package in which a frame of a traceback runs."""
    return str(at.tb_frame.f_globals.get("__name__", "")).partition(".")[0]


def was_told(error: BaseException) -> bool:
    """Whether a public function has settled an error's words and traceback."""
    return _TOLD in error.__dict__


def raised_by_user_code(error: BaseException) -> bool:
    """Whether code of the user's was running where an error was raised, or on the way there."""
    at = error.__traceback__
    while at is not None:
        home = _home(at)
        if home != "rushlight" and home not in _LIBRARIES:
            return True
        at = at.tb_next
    return False


def is_meant(error: BaseException) -> bool:
    """Whether an error says what its author wanted: a `raise` of rushlight's, or of code that is
    not rushlight's, such as a function of the user's. What Python or NumPy raised from within an
    expression was not foreseen."""
    if was_told(error) or isinstance(error, Warning) or raised_by_user_code(error):
        return True
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    if last is None or _home(last) != "rushlight":
        return False
    code, offset = last.tb_frame.f_code, last.tb_lasti
    if code.co_name == "ask":  # it calls what the user called: the arguments did not fit
        return False
    if not code.co_consts and not code.co_names:  # compiled: there is no bytecode to look at
        return not (isinstance(error, AttributeError) or "object expected; got" in str(error))
    return offset >= 0 and code.co_code[offset] in _RAISES


def hide_insides(error: BaseException) -> None:
    """Leave the user's frames alone in the traceback of an error that is passing through.

    To be called in an `except` clause that raises it again with a bare `raise`; see
    Note [Tracebacks].
    """
    if tracebacks.full or not is_meant(error):
        return
    kept: list[TracebackType] = []
    inside = True
    at = error.__traceback__
    while at is not None:
        home = _home(at)
        if home == "rushlight":
            inside = True
        elif home not in _LIBRARIES:  # a library that the user's code called is the user's
            inside = False
        if not inside:
            kept.append(at)
        at = at.tb_next
    shown: TracebackType | None = None
    for at in reversed(kept):
        shown = TracebackType(shown, at.tb_frame, at.tb_lasti, at.tb_lineno)
    if not kept and error.__cause__ is None:
        _forget_caught(error)
    error.__traceback__ = shown
    error.__dict__[_TOLD] = True


def readable(fn: Callable[P, R]) -> Callable[P, R]:
    """A public function whose errors show the user's lines. It costs a call more, and a warning's
    `stacklevel` counts one frame more: hot functions call `hide_insides` themselves."""

    @functools.wraps(fn)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            hide_insides(error)
            raise

    return call


def _forget_caught(error: BaseException) -> None:
    """Take what rushlight caught out of the errors that `error` is shown to have come after: the
    traceback of each begins at the frame that caught it. One that the user handles stays."""
    context = error.__context__
    while context is not None:
        at = context.__traceback__
        if at is not None and _home(at) != "rushlight":
            break
        context = context.__context__
    error.__context__ = context
    error.__suppress_context__ = context is None


def alone(error: E) -> E:
    """An error about to be raised for another that was caught: `raise alone(error)` does not show
    the other, compiled or not."""
    error.__cause__ = None  # Python takes that for `from None`
    return error


def sentence(message: str, where: str = "", cure: str = "") -> str:
    """Join an error's three parts: what happened, which line did it, what to do.

    >>> print(sentence("it broke", "at train.py:3  y = x", "Write `y = x.clone()`."))
    it broke
      at train.py:3  y = x
    Write `y = x.clone()`.
    """
    parts = [message]
    if where:
        parts.append("\n".join("  " + line for line in where.splitlines()))
    if cure:
        parts.append(cure)
    return "\n".join(parts)


def advise(error: BaseException, note: str) -> BaseException:
    """Attach a line to an exception that is passing through, once.

    The exception keeps its type and text, so code that catches it sees no difference.
    """
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return error


ONE_DTYPE: Final = (
    "Bring them to one dtype: the data to the model's, `x.float()` say (NumPy's floats are "
    "float64), or the model to the data's, `model.double()`."
)

OVERLAPS: Final = (
    "unsupported operation: more than one element of the written-to tensor refers to a "
    "single memory location. Please clone() the tensor before performing the operation."
)


def too_few_sizes(kind: str, have: Sequence[int], sizes: Sequence[int]) -> str:
    """PyTorch's text for sizes to expand to that are fewer than the dimensions there are."""
    return (
        f"expand({kind}{{{list(have)}}}, size={list(sizes)}): the number of sizes provided "
        f"({len(sizes)}) must be greater or equal to the number of dimensions in the tensor "
        f"({len(have)})"
    )


def expand_mismatch(d: int, size: int, have: Sequence[int], sizes: Sequence[int]) -> str:
    """PyTorch's text for a `size` at dimension `d` that cannot be expanded as wanted."""
    return (
        f"The expanded size of the tensor ({sizes[d]}) must match the existing size ({size}) at "
        f"non-singleton dimension {d}.  Target sizes: {list(sizes)}.  Tensor sizes: {list(have)}"
    )


def check_expandable(kind: str, have: Sequence[int], sizes: Sequence[int]) -> None:
    """PyTorch's error unless a tensor of type `kind` and the shape `have` expands to `sizes`."""
    lead = len(sizes) - len(have)
    if lead < 0:
        raise RuntimeError(too_few_sizes(kind, have, sizes))
    for d in range(len(sizes) - 1, lead - 1, -1):
        if have[d - lead] not in (1, sizes[d]):
            raise RuntimeError(expand_mismatch(d, have[d - lead], have, sizes))


def broadcast_mismatch(a: Sequence[int], b: Sequence[int]) -> str:
    """PyTorch's text for two shapes that do not broadcast together, and the shapes.

    >>> print(broadcast_mismatch((2, 3), (4,)))
    The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1
      a has the shape [2, 3], b has [4]
    Sizes are compared from the last dimension: they must be equal, or one of them 1.
    """
    rank = max(len(a), len(b))
    for back in range(1, rank + 1):
        m = a[-back] if back <= len(a) else 1
        n = b[-back] if back <= len(b) else 1
        if m != n and m != 1 and n != 1:
            return sentence(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) "
                f"at non-singleton dimension {rank - back}",
                f"a has the shape {list(a)}, b has {list(b)}",
                "Sizes are compared from the last dimension: they must be equal, or one of them 1.",
            )
    return f"The shapes {tuple(a)} and {tuple(b)} do not broadcast together"


def product_mismatch(a: Sequence[int], b: Sequence[int]) -> str:
    """PyTorch's text for two matrices that cannot be multiplied, and what might be meant.

    >>> print(product_mismatch((2, 3), (4, 3)))
    mat1 and mat2 shapes cannot be multiplied (2x3 and 4x3)
    The first has 3 columns, and the second 4 rows: they must be as many. Is `b.T` meant?
    """
    (n, k), (m, p) = a, b
    cure = f"The first has {k} columns, and the second {m} rows: they must be as many."
    if k == p:
        cure += " Is `b.T` meant?"
    elif n == m:
        cure += " Is `a.T` meant?"
    return sentence(f"mat1 and mat2 shapes cannot be multiplied ({n}x{k} and {m}x{p})", "", cure)


def dim_out_of_range(dim: int, rank: int) -> str:
    """PyTorch's text for a dimension that a tensor of `rank` dimensions does not have.

    >>> dim_out_of_range(2, 2)
    'Dimension out of range (expected to be in range of [-2, 1], but got 2)'
    """
    top = max(rank, 1)
    return f"Dimension out of range (expected to be in range of [{-top}, {top - 1}], but got {dim})"
