"""Ctrl-C at every place of many programs: whatever was switched on is off again afterwards, a pass
that was cut short gave all leaves their gradients or none, and what is computed next is right.

The programs, and what is asked of them, stand in `_interrupted`, which runs in child processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

TITLE = "interrupts"
SHORT = 340

PROGRAMS = (
    "training", "again", "graphs", "functions", "modes", "many_modes", "batches", "derivatives",
    "forward", "hessians", "jacobians", "checkpoints", "saved", "anomalies", "hooks", "profiles",
    "operators",
)  # fmt: skip
CHUNK = 20  # attempts on one program before the next has its turn
LONGEST = 120.0  # seconds until a child is taken to hang


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    for turn in count():
        # each place of a program in turn; a timer, whose moments nobody can choose, is for the long
        # run: the first turn is the same every time
        mode = "timer" if turn % 2 else "calls"
        left = dict.fromkeys(PROGRAMS, turn // 2 * CHUNK)
        ends = {name: first + CHUNK for name, first in left.items()}
        while True:
            wanted = [f"{n}:{k}:{ends[n] - k}" for n, k in left.items() if k < ends[n]]
            if not wanted:
                break
            said = ""
            for line in child(seed, mode, wanted):
                name, said = line.split(" ", 1)
                left[name] += 1
                yield None if said == "ok" else f"seed {seed}, {mode}: {line}"
            if said == "ok" and any(k < ends[n] for n, k in left.items()):
                yield f"seed {seed}, {mode}: a child died or hung, with {wanted} to do"
                return
            if not said:
                yield f"seed {seed}, {mode}: a child said nothing, with {wanted} to do"
                return


def child(seed: int, mode: str, wanted: list[str]) -> Iterator[str]:
    """The lines that a child says; it is killed when it takes too long."""
    import rushlight

    root = Path(__file__).resolve().parents[1]
    source = Path(rushlight.__file__).resolve().parents[1]
    paths = [str(root), str(source), os.environ.get("PYTHONPATH", "")]
    command = [sys.executable, "-m", "attack._interrupted", str(seed), mode, *wanted]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=root,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )  # fmt: skip
    watchdog = threading.Timer(LONGEST, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            yield line.rstrip("\n")
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
