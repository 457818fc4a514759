"""Symbols: arrays that compute nothing and write down, as an expression, what is done with them.

A rule is run twice, on symbols of two sizes: what it computes must come out the same. So a number
that a rule made from a size (the count of elements that a mean divides by) is found, and becomes
the size itself; a rule that depends on sizes otherwise gives no kernel.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rushlight.arrays.vocabulary import Kind, reduce_sum, register
from rushlight.codegen.expressions import COLUMN, EACH, ONE, REDUCTIONS, ROW, Expr

SIZES = ((5, 7), (3, 11))  # rows and columns of the two runs
_RENAMED = {"conjugate": "positive", "fabs": "absolute", "true_divide": "divide"}
_AS_IT_IS = ("positive", "copy", "cast", "real")
_POWERS = {2: "square", 1: "positive", 0.5: "sqrt", -1: "reciprocal"}


class Unfit(Exception):
    """A rule asked for what kernels do not do."""


class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """An array, or a number that is a parameter of an op (`like` is then a Python float)."""

    def __init__(self, expr: Expr, like: Any) -> None:
        self.expr = expr
        self._like = like

    shape = property(lambda self: np.shape(self._like))
    ndim = property(lambda self: np.ndim(self._like))
    size = property(lambda self: np.size(self._like))
    dtype = property(lambda self: np.asarray(self._like).dtype)
    strides = property(lambda self: np.asarray(self._like).strides)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or ufunc.nout != 1:
            raise Unfit(f"{ufunc.__name__}.{method}")
        return record(ufunc.__name__, ufunc, inputs)

    def _refuse(self, *args: Any) -> Any:
        raise Unfit("a look at numbers")

    def _decide(self, other: Any, answer: bool) -> Any:
        """A parameter, compared with 0 or 1, while `deciding`: it is above 0, and not 1."""
        return answer if _deciding and self.expr.word == "param" and other in (0, 1) else None

    def __eq__(self, other: Any) -> Any:
        found = None if isinstance(other, Symbol) else self._decide(other, False)
        return super().__eq__(other) if found is None else found

    def __ne__(self, other: Any) -> Any:
        found = None if isinstance(other, Symbol) else self._decide(other, True)
        return super().__ne__(other) if found is None else found

    def __gt__(self, other: Any) -> Any:
        if _deciding and self.expr.role == ONE and type(other) is int and other == 0:
            return True
        return super().__gt__(other)

    def __lt__(self, other: Any) -> Any:
        if _valued and self.expr.role == ONE and type(other) in (int, float):
            return bool(self._like < other)
        return super().__lt__(other)

    __bool__ = __int__ = __float__ = __complex__ = __index__ = _refuse
    __iter__ = __len__ = __getitem__ = __array__ = _refuse
    __hash__ = object.__hash__


def array(number: int, shape: tuple[int, ...], dtype: Any, rows: int, columns: int) -> Symbol:
    """The symbol of an input."""
    like = np.ones(shape, dtype)
    truth = like.dtype.kind == "b"
    return Symbol(Expr("input", (), number, _role(shape, rows, columns), truth), like)


def param(number: int, value: float = 1.5) -> Symbol:
    """The symbol of a number."""
    return Symbol(Expr("param", (), number, ONE), float(value))


def _role(shape: tuple[int, ...], rows: int, columns: int) -> str:
    if shape in ((rows, columns), (columns * rows,)):
        return EACH
    if shape in ((rows, 1), (rows,)):
        return ROW
    if shape in ((columns,), (1, columns)):
        return COLUMN
    if all(n == 1 for n in shape):
        return ONE
    raise Unfit(f"an array of {shape}")


_RANKS = {ONE: 0, ROW: 1, COLUMN: 1, EACH: 2}


def record(word: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The symbol of `word(*args)`; its shape and dtype come from running it on ones."""
    if word == "special":  # of real numbers, element by element: no need for SciPy to know
        word, fn, args = args[1], np.add if len(args) > 2 else np.positive, (args[0], *args[2:])
    try:
        with np.errstate(all="ignore"):
            like = fn(*(a._like if isinstance(a, Symbol) else a for a in args))
    except (TypeError, ImportError) as error:  # a word for whole numbers, or one of SciPy's
        raise Unfit(word) from error
    if isinstance(like, (tuple, list)) or like is None:
        raise Unfit(word)
    word = _RENAMED.get(word, word)
    if word == "constant" and isinstance(args[1], Symbol):
        return args[1]
    if word == "deviations":
        return _deviations(*args)
    if word == "power" and not isinstance(args[1], Symbol) and args[1] in _POWERS:
        word, args = _POWERS[args[1]], args[:1]  # as NumPy has them
    value: Any = None
    if word in _AS_IT_IS:
        same = args[0].dtype == np.asarray(like).dtype
        if same and isinstance(args[0], Symbol):
            return Symbol(args[0].expr, like)
        if word != "cast" or not args[0].expr.truth or np.asarray(like).dtype.kind != "f":
            raise Unfit("a cast")
        word, args = "number", args[:1]
    elif word in REDUCTIONS:
        x, axes, keep = args
        if isinstance(x, Symbol) and x.expr.role == ROW and x.ndim == 2 and np.ndim(like) == 1:
            return Symbol(x.expr, like)  # of one element each
        if not isinstance(x, Symbol) or x.expr.role != EACH or x.ndim != 2:
            raise Unfit(f"{word} of a {x.expr.role}")
        del keep  # the shape of the result tells
        over = None if axes is None else tuple(a % 2 for a in axes)
        if _whole and over in (None, (0, 1)):
            over = (1,)  # the whole array is the row
        if word == "reduce_sum" and over == (0,):
            return Symbol(Expr("sum_rows", (x.expr,), None, COLUMN), like)
        if over != (1,):
            raise Unfit(f"{word} over {axes}")
        args = (x,)
    elif word == "reshape" or word == "broadcast":
        x = args[0]
        if _find_role(np.shape(like)) == x.expr.role:
            return Symbol(x.expr, like)
        if x.expr.role == ONE or (x.expr.role == ROW and np.ndim(like) == 2):
            args = (x,)
            word = "spread"
        else:
            raise Unfit(word)
    elif word in ("full", "constant"):
        return Symbol(Expr("const", (), float(args[2 if word == "full" else 1]), ONE), like)
    parts = tuple(_part(a) for a in args)
    roles = {p.role for p in parts}
    role = max(roles, key=_RANKS.__getitem__)
    if {ROW, COLUMN} <= roles:
        role = EACH
    if word in REDUCTIONS:
        role = ROW
    kind = np.asarray(like).dtype.kind
    if kind not in "fb":
        raise Unfit(f"{word} gives {np.asarray(like).dtype}")
    if (
        role == ONE
        and all(isinstance(p, Expr) and p.role == ONE for p in parts)
        and (isinstance(like, (float, np.floating)) or np.ndim(like) == 0)
    ):
        like = bool(like) if kind == "b" else float(like)  # as weak as a Python number
    if word == "spread":
        role = _find_role(np.shape(like))
    return Symbol(Expr(word, parts, value, role, kind == "b"), like)


def _deviations(x: Any, axes: Any, keep: bool) -> Any:
    """The sum of the squared distances from the mean: both are added in double."""
    count = x.size if axes is None else math.prod([x.shape[d] for d in axes])
    like = np.ones(reduce_sum(x, axes, keep).shape, x.dtype)
    mean = Symbol(Expr("wide_sum", (x.expr,), None, ROW), like) / count
    return Symbol(Expr("squares_from", (x.expr, mean.expr), None, ROW), like)


_now: list[tuple[int, int]] = []
_deciding: list[bool] = []  # not empty while parameters are known to be above 0, and not 1
_valued: list[bool] = []  # not empty while parameters stand for all that compare as they do
_whole: list[bool] = []  # not empty while a reduction over the whole array is recorded


def _find_role(shape: tuple[int, ...]) -> str:
    return _role(shape, *_now[-1])


def _part(a: Any) -> Expr:
    if isinstance(a, Symbol):
        return a.expr
    if isinstance(a, (bool, np.bool_)):
        return Expr("const", (), bool(a), ONE, True)
    if isinstance(a, (int, float, np.floating, np.integer)):
        return Expr("const", (), float(a), ONE)
    raise Unfit(f"an operand of type {type(a).__name__}")


def trace(run: Callable[[int, int], Any], whole: bool = False) -> Any:
    """The expressions of `run(rows, columns)`, which gives a symbol or a tuple of them; each is
    run in two sizes, see above. With the expressions comes the rank of each result. `whole` says
    that reductions are over all of an array."""
    found: list[Any] = []
    _whole.extend([True] * whole)
    try:
        return _trace(run, found, [m * n if whole else n for m, n in SIZES])
    finally:
        _whole.clear()


@contextlib.contextmanager
def valued() -> Iterator[None]:
    """Inside, a rule that asks whether a parameter is below a number is answered: the kernel is for
    parameters that compare alike."""
    _valued.append(True)
    try:
        yield
    finally:
        _valued.pop()


@contextlib.contextmanager
def deciding() -> Iterator[None]:
    """Inside, parameters are numbers above 0 and not 1: rules that ask are answered."""
    _deciding.append(True)
    try:
        yield
    finally:
        _deciding.pop()


def _trace(run: Callable[[int, int], Any], found: list[Any], counts: list[int]) -> Any:
    for rows, columns in SIZES:
        _now.append((rows, columns))
        try:
            results = run(rows, columns)
        finally:
            _now.pop()
        several = results if isinstance(results, (tuple, list)) else (results,)
        if not several or not all(isinstance(s, Symbol) for s in several):
            raise Unfit("a result that is no array")
        found.append([(s.expr, s.ndim) for s in several])
    first, second = found
    if len(first) != len(second):
        raise Unfit("results that depend on sizes")
    same = tuple(_same(a, b, counts) for (a, _), (b, _) in zip(first, second))
    return same, [n for _, n in first]


def _same(a: Expr, b: Expr, counts: list[int]) -> Expr:
    """One expression for both sizes."""
    if a is b:
        return a
    if a.word == b.word == "const" and a.value != b.value:
        m, n = counts
        if (a.value, b.value) == (m, n):
            return Expr("count", (), None, ONE)
        if (a.value, b.value) == (1 / m, 1 / n):
            return Expr(
                "divide", (Expr("const", (), 1.0, ONE), Expr("count", (), None, ONE)), None, ONE
            )
        raise Unfit(f"a number made from sizes: {a.value}, {b.value}")
    if (a.word, a.value, a.role, len(a.args)) != (b.word, b.value, b.role, len(b.args)):
        raise Unfit("work that depends on sizes")
    args = tuple(_same(x, y, counts) for x, y in zip(a.args, b.args))
    return a if args == a.args else Expr(a.word, args, a.value, a.role, a.truth)


register(Symbol, Kind(7, lambda name, fn, args: record(name, fn, args)))
