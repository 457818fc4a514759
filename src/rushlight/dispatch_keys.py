"""Names of the parts of PyTorch's dispatcher, for programs that list them: rushlight has no
dispatcher, so that to leave some of them out changes nothing.

>>> key = torch._C.DispatchKey.AutocastCPU
>>> torch._C.DispatchKeySet(key).has(key)
True
"""

from __future__ import annotations

import contextlib
from typing import Any

__all__ = ["DispatchKey", "DispatchKeySet"]
__dir__ = __all__.copy


class _Keys(type):
    """The class of `DispatchKey`: makes a key of each name that is asked for, once."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"type object 'DispatchKey' has no attribute {name!r}")
        made = cls(name)
        setattr(cls, name, made)
        return made


class DispatchKey(metaclass=_Keys):
    """A part of PyTorch's dispatcher, by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"DispatchKey.{self.name}"


class DispatchKeySet:
    """Some keys."""

    def __init__(self, *keys: DispatchKey) -> None:
        self.keys = frozenset(keys)

    def has(self, key: DispatchKey) -> bool:
        """Whether a key is one of them."""
        return key in self.keys

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self.keys, *other.keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self.keys & other.keys))

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self.keys - other.keys))

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """These and one more."""
        return DispatchKeySet(*self.keys, key)


class _ExcludeDispatchKeyGuard(contextlib.nullcontext[None]):
    """A block without some parts of the dispatcher."""


_ForceDispatchKeyGuard = _ExcludeDispatchKeyGuard
