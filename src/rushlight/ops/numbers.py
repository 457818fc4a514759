"""What users pass as numbers, turned into Python's: the one place where that is done.

PyTorch takes a number to be one of Python's, one of NumPy's, or a tensor without dimensions that
wants no gradient. Ops take Python's alone: NumPy's would change the dtype of what they touch,
and a tensor would end up inside an array. A public function says by its annotations which of its
parameters are numbers, and the table has them turned into plain ones before it is called:

    p: int              a whole number; "must be int". Dimensions have their own check, `one_dim`
    p: float            a real number; PyTorch's error says "must be float"
    p: Number           real or complex; "must be Number"
    p: Number | str     a number, or a word that stands for one, such as "fro"
    p: Operand          a tensor, or a number: only NumPy's numbers are turned

with `| None` where None may stand there too. Who takes numbers and is no function of the table
(optimizers, modules, initialisers) calls `python_number`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from rushlight import dtypes
from rushlight.arrays.host import is_scalar
from rushlight.core.graph import TensorBase, requires_grad

Number: TypeAlias = Any  # bool, int, float or complex, of which mypy would not let us ask `x < 0`
Operand: TypeAlias = Any  # one of these, or a tensor

_REAL: Final = frozenset({float, int, bool})
_WANTED: Final = {
    "int": "int", "int | None": "int",
    "float": "float", "float | None": "float", "Number": "Number", "Number | None": "Number",
    "Number | str": "word", "Number | str | None": "word",
    "Operand": "either", "Operand | None": "either",
}  # fmt: skip
_SAID: Final = {"int": "int", "float": "float", "Number": "Number", "word": "Number or str"}
_VARARGS: Final = inspect.CO_VARARGS


def number(x: Any, wanted: str = "Number") -> Any:
    """`x` as a Python number; NotImplemented if PyTorch does not take it for one.

    >>> import numpy as np
    >>> number(np.float32(0.5)), number(np.bool_(True)), number("0.5")
    (0.5, True, NotImplemented)
    """
    if wanted == "int":
        return _whole(x)
    if type(x) is float or (type(x) in _REAL and wanted != "float"):
        return x
    if is_scalar(x):  # before the numbers: np.float64 is a float
        x = x.item()
    elif isinstance(x, TensorBase):
        if x._array.ndim or requires_grad(x):
            return NotImplemented
        x = x._array.item()
        if wanted == "float" and isinstance(x, complex) and x.imag == 0:
            x = x.real
    if isinstance(x, (int, float)):
        return float(x) if wanted == "float" else x
    return x if isinstance(x, complex) and wanted != "float" else NotImplemented


def _whole(x: Any) -> Any:
    """A whole number as Python's int."""
    if type(x) is int:
        return x
    if isinstance(x, TensorBase):
        if x._array.ndim or x._array.dtype.kind not in "iu":
            return NotImplemented
        return x._array.item()
    if isinstance(x, bool) or not hasattr(x, "__index__") or not hasattr(x, "__int__"):
        return NotImplemented
    try:
        return int(x.__index__())
    except TypeError:  # an array has the method, and no index unless it is 0-d
        return NotImplemented


def python_number(x: Any) -> Any:
    """A number as Python's; whatever else is handed back as it is."""
    if type(x) in _REAL:
        return x
    found = number(x)
    return x if found is NotImplemented else found


def has_negative_zero(values: tuple[Any, ...]) -> bool:
    """Whether -0.0 is among values: a cache takes it for 0.0, since they are equal.

    >>> has_negative_zero((0.0, 1)), has_negative_zero((-0.0, 1))
    (False, True)
    """
    for x in values:  # noqa: SIM110  # a generator costs as much again
        if x == 0 and type(x) is float and math.copysign(1.0, x) < 0:
            return True
    return False


class Numbers:
    """Which parameters of a function are numbers."""

    __slots__ = ("by_name", "rest", "start", "title", "where")

    def __init__(
        self, title: str, by_name: dict[str, tuple[int, str, bool]], rest: str, start: int
    ) -> None:
        self.title = title
        self.by_name = by_name  # position from 0 (-1: keyword only), what is wanted, may be None
        self.rest, self.start = rest, start  # `*rest`, numbers from this position on, or ""
        self.where = [
            (at, name, int if wanted == "int" else float)
            for name, (at, wanted, _) in by_name.items()
            if at >= 0
        ]

    def settle(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a call with plain numbers in their places."""
        for at, name, usual in self.where:
            if at < len(args) and type(args[at]) is not usual:
                args = (*args[:at], self.one(name, args[at], at), *args[at + 1 :])
        if self.rest and len(args) > self.start:
            more = [
                self.one(self.rest, x, at) for at, x in enumerate(args[self.start :], self.start)
            ]
            args = (*args[: self.start], *more)
        for name, x in kwargs.items():
            if name in self.by_name:
                kwargs[name] = self.one(name, x, -1)
        return args, kwargs

    def one(self, name: str, x: Any, at: int) -> Any:
        """One argument as a plain number, or PyTorch's TypeError."""
        place_of, wanted, optional = self.by_name[name]
        if wanted == "either":
            if isinstance(x, TensorBase) or (x is None and optional):
                return x
            found = number(x)
            if found is NotImplemented:
                raise TypeError(
                    f"{self.title}() received an invalid combination of arguments - got "
                    f"{dtypes.type_name(x)} for '{name}', but expected Tensor or Number"
                )
            return found
        if (x is None and optional) or (wanted == "word" and isinstance(x, str)):
            return x
        found = number(x, wanted)
        if found is NotImplemented:
            at = max(at, place_of)  # by keyword too: PyTorch's functions of Python pass it on so
            place = f" (position {at + 1})" if at >= 0 else ""
            kind = "Tensor" if isinstance(x, TensorBase) else dtypes.type_name(x)
            raise TypeError(
                f"{self.title}(): argument '{name}'{place} must be {_SAID[wanted]}, not {kind}"
            )
        return found


def numbers_of(fn: Callable[..., Any], title: str) -> tuple[Numbers | None, int]:
    """Which parameters of `fn` are numbers, by its annotations (None if there are none), and the
    first position of one: a call of fewer arguments has none to settle."""
    by_name: dict[str, tuple[int, str, bool]] = {}
    code = inspect.unwrap(fn).__code__
    positional, names = code.co_argcount, code.co_varnames
    first = positional
    rest = names[positional + code.co_kwonlyargcount] if code.co_flags & _VARARGS else ""
    for name, said in fn.__annotations__.items():
        wanted = _WANTED.get(said)
        if wanted == "int" and ("dim" in name or "axis" in name):
            continue
        if wanted is not None and name != "return":
            at = names.index(name)
            at = at if at < positional else -1
            by_name[name] = at, wanted, said.endswith("None")
            if 0 <= at < first:
                first = at
    if rest not in by_name:
        rest = ""
    return (Numbers(title, by_name, rest, positional) if by_name else None), first
