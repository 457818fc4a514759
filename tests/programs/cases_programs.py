"""Ordinary programs written for PyTorch, in `scripts/`, and what they print."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCRIPTS = sorted((HERE / "scripts").glob("*.py"))


def run(start: list[str], scripts: list[Path], **environment: str) -> dict[str, list[str]]:
    """What programs print, run by a command."""
    command = [sys.executable, *start, str(HERE / "driver.py"), *map(str, scripts)]
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600,
        env={**os.environ, **one_thread, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def results(torch: Any) -> dict[str, list[str]]:
    """What all of them print on PyTorch."""
    return run([], SCRIPTS)
