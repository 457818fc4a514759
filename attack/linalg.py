"""Linear algebra on numbers that LAPACK was not made for: each call in a child process, in time."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from attack._linalg_worker import receive, send

TITLE = "linear algebra on hostile numbers"
SHORT = 120
LIMIT = 30.0  # seconds after which a call counts as hung


class Worker:
    """A child that makes calls with one library; a hung one is killed and replaced."""

    def __init__(self, library: str) -> None:
        self.library = library
        self.child: Any = None

    def start(self) -> None:
        env = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
        env["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        self.child = subprocess.Popen(
            [sys.executable, "-m", "attack._linalg_worker", self.library],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env,
        )  # fmt: skip
        self.read(600.0)

    def read(self, limit: float) -> Any:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self.child.stdout, selectors.EVENT_READ)
            if not waiting.select(limit):
                return None
        return receive(self.child.stdout)

    def ask(self, call: dict[str, Any]) -> Any:
        """What came of a call; None if it did not return, or took the child with it."""
        if self.child is None:
            self.start()
        try:
            send(self.child.stdin, call)
            found = self.read(LIMIT)
        except (EOFError, BrokenPipeError):
            found = None
        if found is None:
            self.stop()
        return found

    def stop(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child.stdin.close()
            self.child.stdout.close()
            self.child = None
