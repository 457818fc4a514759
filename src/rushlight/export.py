"""`torch.export`: programs as graphs for other systems, which rushlight does not make."""

from __future__ import annotations

import typing as _typing
from typing import Any, NoReturn

from rushlight.missing import face as _face

__all__ = ["Dim", "dims", "export", "load", "register_dataclass", "save"]

_NO_GRAPH = (
    "rushlight makes no exported programs: it runs Python as it is; call the module itself, and "
    "keep its state_dict with torch.save."
)


class Dim:
    """Dim(name, *, min=None, max=None): a name for a size that may change.

    >>> torch.export.Dim("batch", min=1).__name__
    'batch'
    """

    AUTO = "AUTO"
    DYNAMIC = "DYNAMIC"
    STATIC = "STATIC"

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        self.__name__ = name
        self.min = 0 if min is None else min
        self.max = max


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """dims(*names, min=None, max=None) -> tuple of Dim"""
    return tuple(Dim(name, min=min, max=max) for name in names)


def register_dataclass(cls: Any, *, serialized_type_name: str | None = None) -> None:
    """register_dataclass(cls): changes nothing."""


def export(mod: Any, args: Any = (), kwargs: Any = None, **options: Any) -> NoReturn:
    """export(mod, args, kwargs=None): raises: there are no exported programs."""
    raise RuntimeError(_NO_GRAPH)


def save(ep: Any, f: Any, **options: Any) -> NoReturn:
    """save(ep, f): raises: there are no exported programs."""
    raise RuntimeError(_NO_GRAPH)


def load(f: Any, **options: Any) -> NoReturn:
    """load(f): raises: there are no exported programs."""
    raise RuntimeError(_NO_GRAPH)


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.export", globals())
