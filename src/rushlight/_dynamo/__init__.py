"""What programs touch of PyTorch's compiler: `reset`, `disable`, `config`. It compiles nothing."""

from __future__ import annotations

import typing as _typing
from typing import Any

from rushlight._dynamo import config
from rushlight.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
    set_stance,
    substitute_in_graph,
)
from rushlight.missing import face as _face

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable",
    "disallow_in_graph", "forbid_in_graph", "graph_break", "is_compiling", "list_backends",
    "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic", "optimize",
    "reset", "run", "set_stance", "substitute_in_graph",
]  # fmt: skip


class OptimizedModule:
    """What PyTorch makes of a compiled module. Nothing is one here."""


def disallow_in_graph(fn: Any) -> Any:
    """disallow_in_graph(fn): the function itself."""
    return fn


def forbid_in_graph(fn: Any) -> Any:
    """forbid_in_graph(fn): the function itself."""
    return fn


def run(fn: Any = None) -> Any:
    """run(fn=None): the function itself."""
    return (lambda given: given) if fn is None else fn


def optimize(*args: Any, **kwargs: Any) -> Any:
    """optimize(backend): a decorator that hands its function back.

    >>> torch._dynamo.optimize("inductor")(abs) is abs
    True
    """
    return lambda fn: fn


def graph_break(msg: str = "") -> None:
    """graph_break(): there is no graph."""


def mark_dynamic(t: Any, index: Any, **options: Any) -> None:
    """mark_dynamic(t, index): every size may change."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """maybe_mark_dynamic(t, index): every size may change."""


def mark_static(t: Any, index: Any = None) -> None:
    """mark_static(t, index=None): every size may change."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """mark_static_address(t): changes nothing."""


def is_dynamo_supported() -> bool:
    """is_dynamo_supported() -> bool: never."""
    return False


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch._dynamo", globals())
