"""Is a name of torch's there? Looked up in rushlight itself, and in the list of what it lacks."""

from __future__ import annotations

import functools
import importlib
import importlib.util
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import rushlight
from rushlight import absent
from rushlight.missing import HINTS, is_missing, nearest


@dataclass(frozen=True)
class Lack:
    """A name that is not there: the first part of it that is lacking, why, and what is nearest."""

    name: str
    why: str
    nearest: str


@functools.cache
def lookup(name: str) -> Lack | None:
    """None if rushlight has what PyTorch calls `name`; else what to say of it.

    >>> lookup("torch.nn.Linear")
    >>> lookup("torch.nested.nested_tensor").nearest
    'torch.nn.utils.rnn.pad_sequence, for sequences of several lengths'
    """
    parts = name.split(".")
    reason = absent.why(name)
    if reason is not None:
        hints = [HINTS.get(".".join(parts[:at]), "") for at in range(len(parts), 1, -1)]
        return Lack(name, reason, next(filter(None, hints), "nothing"))
    value: Any = rushlight
    for at in range(1, len(parts)):
        home = ".".join(parts[:at])
        inner = _attribute(value, parts[at], home)
        if inner is None:
            return _lack(home, parts[at], value)
        value = inner[0]
        if not isinstance(value, ModuleType | type):
            break  # an object: which attributes it has is known when it runs
    return None


def _attribute(value: Any, name: str, home: str) -> tuple[Any] | None:
    """An attribute or a submodule, in a tuple; None where there is none."""
    if hasattr(value, name):
        return (getattr(value, name),)
    if isinstance(value, ModuleType) and hasattr(value, "__path__"):
        ours = f"{value.__name__}.{name}"
        if importlib.util.find_spec(ours) is not None:
            return (importlib.import_module(ours),)
    if isinstance(value, type) and not is_missing(home, name):
        return (None,)  # it may be set by __init__
    return None


def _lack(home: str, name: str, value: Any) -> Lack:
    whole = f"{home}.{name}"
    if is_missing(home, name):
        why = "PyTorch has it, rushlight has not"
    elif name.startswith("_"):
        why = "one of PyTorch's insides, if it has it"
    else:
        why = "neither PyTorch 2.13 nor rushlight has it"
    return Lack(whole, why, nearest(home, name, dir(value)))
