"""Running an attack: until so many attempts were made, or until its time is up."""

from __future__ import annotations

import importlib
import pkgutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import attack

__all__ = ["Report", "modules", "pytorch", "run"]

_SUPPORT = {"__main__", "harness"}  # modules of this folder that are no attacks


@dataclass
class Report:
    """What an attack came to."""

    title: str
    attempts: int = 0
    seconds: float = 0.0
    broken: list[str] = field(default_factory=list)


def modules() -> list[ModuleType]:
    """The attacks, by name; a name that begins with an underscore is a helper."""
    names = sorted(m.name for m in pkgutil.iter_modules(attack.__path__))
    kept = [n for n in names if n not in _SUPPORT and not n.startswith("_")]
    return [importlib.import_module(f"attack.{name}") for name in kept]


def pytorch() -> Any:
    """PyTorch, or None where it is not installed."""
    try:
        return importlib.import_module("torch")
    except ImportError:
        return None


def run(
    module: ModuleType,
    seed: int,
    torch: Any,
    *,
    attempts: int | None = None,
    seconds: float | None = None,
) -> Report:
    """Run one attack for a number of attempts or of seconds, whichever is given."""
    report = Report(module.TITLE)
    began = time.monotonic()
    tries: Iterator[str | None] = module.attempts(seed, torch)
    try:
        while attempts is None or report.attempts < attempts:
            if seconds is not None and time.monotonic() - began > seconds:
                break
            try:
                broke = next(tries)
            except StopIteration:
                break
            report.attempts += 1
            if broke is not None:
                report.broken.append(broke)
    finally:
        close = getattr(tries, "close", None)
        if close is not None:
            close()
    report.seconds = time.monotonic() - began
    return report
