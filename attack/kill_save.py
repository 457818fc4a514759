"""`kill -9` in the middle of a save.

A process saves to one path over and over, each time another checkpoint, and is killed some time.
What is at the path then must load and be one that was saved, whole; and what killed saves leave
behind must not pile up. In turn: to a new path, over an old file, where files must have a name
while they are written, and two processes at once.
"""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import rushlight

TITLE = "saves that are killed"
SHORT = 12

_ROOT = Path(__file__).resolve().parents[1]
_SIZES = (10, 5_000, 400_000)


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    if not hasattr(os, "fork"):
        return
    index = 0
    with _Savers() as savers, tempfile.TemporaryDirectory() as folder:
        while True:
            yield _one(savers, folder, seed, index)
            index += 1


class _Savers:
    """A process that forks others, which save; so that each starts at once."""

    def __enter__(self) -> _Savers:
        path = os.pathsep.join([str(_ROOT), *filter(None, sys.path)])
        self.parent = subprocess.Popen(
            [sys.executable, "-m", "attack.kill_save"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": path},
        )
        return self

    def start(self, path: str, size: int, named: bool, count: int) -> list[int]:
        return [int(self._ask(f"{path}\t{size}\t{int(named)}")) for _ in range(count)]

    def reap(self, pid: int) -> bool:
        """Kill a saver; whether it was still at it."""
        os.kill(pid, signal.SIGKILL)
        return self._ask(f"wait\t{pid}") == "killed"

    def _ask(self, line: str) -> str:
        assert self.parent.stdin is not None and self.parent.stdout is not None
        self.parent.stdin.write(line.encode() + b"\n")
        self.parent.stdin.flush()
        ready, _, _ = select.select([self.parent.stdout], [], [], 120.0)
        if not ready:
            raise RuntimeError("the process that starts savers does not answer")
        return self.parent.stdout.readline().decode().strip()

    def __exit__(self, *error: object) -> None:
        assert self.parent.stdin is not None and self.parent.stdout is not None
        self.parent.stdin.close()
        self.parent.wait(60)
        self.parent.stdout.close()


def _one(savers: _Savers, folder: str, seed: int, index: int) -> str | None:
    rng = random.Random(f"{seed} {index}")
    size = rng.choice(_SIZES)
    named, count = index % 4 == 2, 2 if index % 4 == 3 else 1
    label = f"seed {seed}, attempt {index} ({size} numbers, {count} savers, named {named})"
    place = os.path.join(folder, f"{index % 4}")
    os.makedirs(place, exist_ok=True)
    path = os.path.join(place, "w.pt")
    if index % 4 == 0:
        shutil.rmtree(place)
        os.makedirs(place)
    elif not os.path.exists(path):
        rushlight.save(_checkpoint(-1, 10), path)
    for pid in savers.start(path, size, named, count):
        time.sleep(rng.random() * 0.05)  # at whatever point that is
        if not savers.reap(pid):
            return f"{label}: a save failed"
    if not os.path.exists(path):
        return None if index % 4 == 0 else f"{label}: the old file is gone"
    try:
        found = rushlight.load(path)
    except Exception as error:
        return f"{label}: what is there does not load: {type(error).__name__}: {error}"
    number = found["number"]
    if not bool((found["w"] == number).all()) or not bool((found["b"] == number).all()):
        return f"{label}: what is there is of two saves"
    left = sorted(os.listdir(place))
    if len(left) > 1 + count or any(not n.endswith(".part") for n in left if n != "w.pt"):
        return f"{label}: left behind: {left}"
    return None


def _checkpoint(number: int, size: int) -> dict[str, Any]:
    w = rushlight.full((size,), float(number))
    return {"number": number, "w": w, "b": rushlight.full((7,), float(number))}


# --- in the process that forks --------------------------------------------------------------------
def main() -> None:
    for line in sys.stdin:
        words = line.rstrip("\n").split("\t")
        if words[0] == "wait":
            status = os.waitpid(int(words[1]), 0)[1]
            print("killed" if os.WIFSIGNALED(status) else "ended", flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            _save_for_ever(words[0], int(words[1]), words[2] == "1")
        print(pid, flush=True)


def _save_for_ever(path: str, size: int, named: bool) -> None:
    if named:  # as on a file system whose files always have a name
        from rushlight.serialization import replace

        replace._new_file = lambda folder, part: replace._named_file(part)
    for number in range(100_000):
        try:
            rushlight.save(_checkpoint(number, size), path)
        except Exception as error:
            # at once, so that the kill does not come before the status that tells of it
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    main()
