"""Attempts in a process of their own, so that one that hangs, crashes or eats all memory is told of
and not suffered.

An attack whose attempts must be watched has `one(seed, index)`, which makes attempt number `index`
and returns None or how it broke. `apart` asks a child for one after the other, and starts another
child behind an attempt that did not come back.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["apart"]

_ROOT = Path(__file__).resolve().parents[1]
_PATIENCE = 120.0  # seconds without an answer: it hangs


def apart(module: str, seed: int, room: int = 0) -> Iterator[str | None]:
    """The attempts of `module`, made by a child that may have `room` bytes of memory (0: any)."""
    index = 0
    child: Any = None
    try:
        while True:
            if child is None:
                child = _start(module, seed, room)
            child.stdin.write(f"{index}\n".encode())
            child.stdin.flush()
            answer = _answer(child)
            if answer is None:
                hung = child.poll() is None
                _stop(child)
                how = "hangs" if hung else f"ends its process with {child.returncode}"
                yield f"seed {seed}, attempt {index} {how}"
                child = None
            else:
                yield answer["broke"]
            index += 1
    finally:
        if child is not None:
            _stop(child)


def _start(module: str, seed: int, room: int) -> Any:
    path = os.pathsep.join([str(_ROOT), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "-m", "attack._apart", module, str(seed), str(room)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )


def _answer(child: Any) -> Any:
    """The next line of the child's answers; None if it hangs or has died."""
    ready, _, _ = select.select([child.stdout], [], [], _PATIENCE)
    line = child.stdout.readline() if ready else b""
    return json.loads(line) if line.endswith(b"\n") else None


def _stop(child: Any) -> None:
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()


def main() -> None:
    name, seed, room = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    module = importlib.import_module(name)
    if room:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (room, room))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what attempts print is no answer
    for line in sys.stdin.buffer:
        broke = module.one(seed, int(line))
        answers.write(json.dumps({"broke": broke}).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
