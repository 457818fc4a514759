"""Calls of the whole public API, and of the compiled classes' methods, with whatever comes to hand.

A call may fail, but as PyTorch fails: with an error of a type that users expect, whose text tells
of what they passed and not of rushlight's insides. It may not crash the process or hang, which is
why calls are made in a child: one that dies or is silent for long is counted, and replaced.
"""

from __future__ import annotations

import contextlib
import os
import queue
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TITLE = "garbage calls"
SHORT = 800
WEIGHT = 1.0

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 60.0  # seconds of silence that count as a hang; a call takes a millisecond
SHARE = 2000  # calls a child makes before it is replaced: what one leaves behind ends there
BATCH = 50  # seeds sent at once


class Child:
    """A child process and a thread that hears it."""

    def __init__(self) -> None:
        path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attack._garbage_child"],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.made = 0
        self.heard: queue.Queue[str] = queue.Queue()
        self.thread = threading.Thread(target=self._hear, daemon=True)
        self.thread.start()

    def _hear(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.heard.put(line.rstrip("\n"))
        self.heard.put("")  # the end

    def ask(self, seeds: list[int]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{seed}\n" for seed in seeds))
        self.process.stdin.flush()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.thread.join()  # it has read to the end
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # what was left to write is for no one
            self.process.stdin.close()
        self.process.stdout.close()


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    rng = random.Random(seed)
    child = Child()
    try:
        while True:
            if child.made >= SHARE:
                child.close()
                child = Child()
            seeds = [rng.randrange(1 << 40) for _ in range(BATCH)]
            for outcome in calls(child, seeds):
                yield outcome
                child.made += 1
            if child.process.poll() is not None:
                child.close()
                child = Child()
    finally:
        child.close()


def calls(child: Child, seeds: list[int]) -> Iterator[str | None]:
    """What came of each call; fewer than seeds if the child died."""
    try:
        child.ask(seeds)
    except BrokenPipeError:
        yield f"the child was gone before seed {seeds[0]}"
        return
    for seed in seeds:
        begun = "a call"
        while True:
            try:
                line = child.heard.get(timeout=PATIENCE)
            except queue.Empty:
                child.close()
                yield f"hangs: {begun} (seed {seed})"
                return
            if line.startswith("begin "):
                begun = line[6:]
            elif line.startswith("end"):
                yield f"{line[4:]} (seed {seed})" if line[4:] else None
                break
            else:
                status = child.process.wait()
                yield f"the process died with status {status}: {begun} (seed {seed})"
                return
