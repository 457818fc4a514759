"""Python, and `rushlight run`, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def python(*arguments: str, stdin: str = "", cwd: Path | None = None) -> tuple[int, str, str]:
    """Exit status, output and errors of Python with these arguments."""
    done = subprocess.run(
        [sys.executable, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def run(*arguments: str, stdin: str = "", cwd: Path | None = None) -> tuple[int, str, str]:
    return python("-m", "rushlight", "run", *arguments, stdin=stdin, cwd=cwd)
