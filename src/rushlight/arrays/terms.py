"""Arrays that compute nothing and write down what is done with them, as a term to be read.

A rule that is run on them gives its own formula: `g * cos(x)`. Their shapes and dtypes are those of
`arrays.meta`, so every rule that runs without numbers can be written down. Imported by `viz` alone,
when a formula is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from rushlight.arrays.meta import Meta, answers_by_rule
from rushlight.arrays.vocabulary import Kind, primitives, register

_LARGE: Final = 1 << 16  # elements: words that `meta` has to run are not run on more
_FRESH: Final = frozenset(
    "full empty empty_as copy laid_out put overwrite store store_add store_along".split()
)
_PUT_OFF: Final = {"conjugated": "conjugate", "negated": "negative"}


class Unwritten(Exception):
    """A rule asked for what cannot be written as a formula."""


class Term:
    """A word applied to other terms and plain values; without any, a name."""

    __slots__ = ("args", "shape", "word")

    def __init__(self, word: str, args: tuple[Any, ...] = (), shape: Any = None) -> None:
        self.word = word
        self.args = args
        self.shape = shape

    def __repr__(self) -> str:
        return f"{self.word}({', '.join(map(repr, self.args))})" if self.args else self.word


class Written(np.lib.mixins.NDArrayOperatorsMixin):
    """An array as a term, with the shape and dtype it would have."""

    def __init__(self, term: Term, like: Meta, whole: Written | None = None) -> None:
        self.term = term
        self.like = like
        self.whole: Written = self if whole is None else whole  # the array this is a view of

    shape = property(lambda self: self.like.shape)
    ndim = property(lambda self: self.like.ndim)
    size = property(lambda self: self.like.size)
    dtype = property(lambda self: self.like.dtype)
    strides = property(lambda self: self.like.strides)
    flags = property(lambda self: self.like.flags)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            raise Unwritten(f"{ufunc.__name__}.{method}")
        return write(ufunc.__name__, ufunc, inputs)

    def _refuse(self, *args: Any) -> Any:
        raise Unwritten("a look at numbers")

    __bool__ = __int__ = __float__ = __complex__ = __index__ = _refuse
    __iter__ = __len__ = __getitem__ = __array__ = _refuse
    __hash__ = object.__hash__


def named(name: str, shape: Any, dtype: Any) -> Written:
    """The array that a formula calls `name`."""
    like = Meta(shape, dtype)
    return Written(Term(name, (), like.shape), like)


def write(word: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The term `word(*args)`, or several where the word gives several arrays."""
    try:
        found = fn(*[_without(a) for a in args])
    except Unwritten:
        raise
    except Exception as error:  # whatever a word has against arrays without numbers
        raise Unwritten(f"{word}: {error}") from error
    parts = tuple(_terms(a) for a in args)
    if found is None and isinstance(args[0], Written):
        _note_write(args[0], word, parts)
        return None
    if isinstance(found, Meta):
        whole = next((a.whole for a in args if _shares(a, found)), None)
        return Written(Term(word, parts, found.shape), found, whole)
    if isinstance(found, (tuple, list)) and all(isinstance(x, Meta) for x in found):
        whole = Term(word, parts)
        return tuple(Written(Term("part", (whole, i), x.shape), x) for i, x in enumerate(found))
    raise Unwritten(word)


def _shares(a: Any, made: Meta) -> bool:
    """Whether an array is a view of `a`."""
    return isinstance(a, Written) and a.like.data.mem is made.data.mem


def _note_write(target: Written, word: str, parts: tuple[Any, ...]) -> None:
    """A write: from now on the whole array is what it was, and has something else in a region."""
    whole = target.whole
    if whole.term.word not in _FRESH:  # perhaps a view of something, and that would be written
        raise Unwritten(f"{word} into what {whole.term.word} gave")
    if target is whole:
        whole.term = Term(word, parts, whole.shape)
    elif word == "overwrite":
        whole.term = Term("put", (whole.term, parts[1], target.term), whole.shape)
    else:
        raise Unwritten(f"{word} into a view")


def _without(a: Any) -> Any:
    if isinstance(a, Written):
        return a.like
    if isinstance(a, (list, tuple)):
        return type(a)([_without(x) for x in a])
    return a


def _terms(a: Any) -> Any:
    if isinstance(a, Written):
        return a.term
    if isinstance(a, (list, tuple)):
        return tuple(_terms(x) for x in a)
    if isinstance(a, np.ndarray):
        return a.item() if a.size == 1 else Term("constant", (), a.shape)
    return a.item() if isinstance(a, np.generic) else a


def _answer(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    if name in _PUT_OFF:  # `meta` gives another kind of array for these
        x = args[0]
        return Written(Term(_PUT_OFF[name], (x.term,), x.shape), x.like, x.whole)
    if not answers_by_rule(name) and sum(getattr(a, "size", 0) for a in args) > _LARGE:
        raise Unwritten(f"{name} of large arrays")
    return write(name, primitives.get(name, fn), args)


register(Written, Kind(7, _answer))
