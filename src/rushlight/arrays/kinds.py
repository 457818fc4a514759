"""Which kinds of array there are, and how a vocabulary function finds the right one.

A ufunc (`exp`, `multiply`) finds it by NumPy's own protocol, `__array_ufunc__`. The other names
of the vocabulary are functions made by `primitive`: on NumPy arrays they compute; if an argument is
of a kind that was registered here (a tensor, a CuPy or a recorded array), that kind answers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


class Kind(NamedTuple):
    """A kind of array other than NumPy's: who answers for it, and whom it outranks."""

    rank: int
    answer: Callable[[str, Callable[..., Any], tuple[Any, ...]], Any]


_VARIADIC: Final = 0x04  # CO_VARARGS: the function takes *args
primitives: Final[dict[str, Callable[..., Any]]] = {}
_kinds: Final[dict[type, Kind | None]] = {np.ndarray: None, int: None, float: None, tuple: None}


def register(cls: type, kind: Kind) -> None:
    """Let `kind.answer(name, numpy_function, args)` serve arrays of type `cls`.

    Where several kinds meet in one call the highest rank answers: a tensor over the arrays that
    it wraps. Subclasses are served too.
    """
    for known in [k for k in _kinds if issubclass(k, cls)]:
        del _kinds[known]
    _kinds[cls] = kind


def _kind_of(cls: type) -> Kind | None:
    for base in cls.__mro__:
        found = _kinds.get(base)
        if found is not None:
            _kinds[cls] = found
            return found
    _kinds[cls] = None
    return None


def primitive(fn: F) -> F:
    """Make a function over NumPy arrays a word of the vocabulary. Arguments are positional.

    The parameters annotated as arrays decide who answers; most words have one, the first.
    """
    name = fn.__name__
    # `inspect.signature` would cost a tenth of the package's import time
    code = getattr(fn, "__wrapped__", fn).__code__  # of what a decorator stands around
    count = code.co_argcount + bool(code.co_flags & _VARIADIC)
    kinds = [str(fn.__annotations__.get(p, "")) for p in code.co_varnames[:count]]
    single = "list" not in kinds[0] and not any("Array" in k for k in kinds[1:])
    call = _one(name, fn) if single else _many(name, fn)
    primitives[name] = call
    return call  # type: ignore[return-value]  # same signature, positional


def _one(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    kinds = _kinds

    @functools.wraps(fn)
    def call(x: Any, *args: Any) -> Any:
        cls = type(x)
        kind = kinds[cls] if cls in kinds else _kind_of(cls)
        return fn(x, *args) if kind is None else kind.answer(name, fn, (x, *args))

    return call


def _many(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    kinds = _kinds

    @functools.wraps(fn)
    def call(*args: Any) -> Any:
        best: Kind | None = None
        for arg in args:
            cls = type(arg)
            if cls is list:
                for item in arg:
                    kind = kinds[type(item)] if type(item) in kinds else _kind_of(type(item))
                    if kind is not None and (best is None or kind.rank > best.rank):
                        best = kind
                continue
            kind = kinds[cls] if cls in kinds else _kind_of(cls)
            if kind is not None and (best is None or kind.rank > best.rank):
                best = kind
        return fn(*args) if best is None else best.answer(name, fn, args)

    return call
