"""The programs of `tests/laws/cases_programs.py` on PyTorch, in a child process: some crash it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from attack._apart import _answer, _start, _stop

__all__ = ["PyTorchChild", "programs"]


def programs() -> Any:
    """The module `tests/laws/cases_programs.py`."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    try:
        return importlib.import_module("tests.laws.cases_programs")
    finally:
        sys.path.pop(0)


def one(seed: int, index: int) -> Any:
    """What program number `index` gives on PyTorch."""
    return programs().run(importlib.import_module("torch"), index)


class PyTorchChild:
    """A child that runs programs on PyTorch; one that crashed is followed by another."""

    def __init__(self) -> None:
        self.child: Any = None

    def run(self, number: int) -> Any:
        """What the program gives, or None if PyTorch did not live to say."""
        if self.child is None:
            self.child = _start("attack._views_in_pytorch", 0, 0)
        self.child.stdin.write(f"{number}\n".encode())
        self.child.stdin.flush()
        answer = _answer(self.child)
        if answer is None:
            self.close()
            return None
        return answer["broke"]

    def close(self) -> None:
        if self.child is not None:
            _stop(self.child)
            self.child = None
