"""Numbers that PyTorch's compiler does not know yet: `SymInt` and its kin. Here every size is a
Python number, so nothing is a `SymInt`, and the functions for both kinds are Python's own.

>>> isinstance(torch.ones(2).shape[0], torch.SymInt), torch.sym_max(2, 3)
(False, 3)
"""

from __future__ import annotations

import builtins
import math
import numbers
from collections.abc import Callable
from typing import Any

from rushlight.absent import stand_in

__all__ = [
    "SymBool", "SymFloat", "SymInt", "sym_float", "sym_fresh_size", "sym_int", "sym_ite", "sym_max",
    "sym_min", "sym_not", "sym_sqrt", "sym_sum",
]  # fmt: skip
__dir__ = __all__.copy

_WHY = "rushlight knows every size"
SymInt = stand_in("torch.SymInt", _WHY)
SymFloat = stand_in("torch.SymFloat", _WHY)
SymBool = stand_in("torch.SymBool", _WHY)


def sym_int(a: Any) -> int:
    """sym_int(a) -> int: towards zero, as `int`."""
    return int(a)


def sym_float(a: Any) -> float:
    """sym_float(a) -> float"""
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """sym_max(a, b): the larger one; a float if one is.

    >>> torch.sym_max(2, 1.5)
    2.0
    """
    return _chosen(builtins.max, a, b)


def sym_min(a: Any, b: Any) -> Any:
    """sym_min(a, b): the smaller one; a float if one is."""
    return _chosen(builtins.min, a, b)


def _chosen(choose: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    for x in (a, b):
        if not isinstance(x, numbers.Real):
            raise AssertionError(f"expected a number, int or float, got {type(x)}")
    found = choose(a, b)
    whole = isinstance(a, numbers.Integral) and isinstance(b, numbers.Integral)
    return found if whole else float(found)


def sym_not(a: Any) -> bool:
    """sym_not(a) -> bool"""
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """sym_ite(b, t, f): `t` if `b`, else `f`."""
    return t if b else f


def sym_sum(*args: Any) -> Any:
    """sym_sum(args): the sum of some numbers, in a list or one after the other."""
    listed = len(args) == 1 and isinstance(args[0], (list, tuple))
    return builtins.sum(args[0] if listed else args)


def sym_sqrt(a: Any) -> float:
    """sym_sqrt(a) -> float"""
    return math.sqrt(a)


def sym_fresh_size(expr: Any) -> Any:
    """sym_fresh_size(expr): the size itself."""
    return expr
