"""How much memory work takes at the highest, each library in a process of its own.

    python -m bench.memory rushlight NAME       prints bytes

What the process held before the work began does not count; what the work makes a library load
does.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.cases import MEMORY


def peak(library: str, name: str, repeats: int = 3) -> int:
    """Bytes of a case in a library: the least of several runs."""
    command = [sys.executable, "-m", "bench.memory", library, name]
    return min(int(subprocess.check_output(command)) for _ in range(repeats))


def ratios() -> list[dict[str, Any]]:
    """Bytes of each case in both libraries."""
    rows = []
    for name, (_, bar) in MEMORY.items():
        ours, theirs = peak("rushlight", name), peak("torch", name)
        rows.append({"case": name, "ours": ours, "theirs": theirs, "bar": bar})
    return rows


def measure(library: str, name: str) -> int:
    lib = importlib.import_module(library)
    importlib.import_module(f"{library}.utils.data")
    if library == "torch":
        lib.set_num_threads(1)
    work = MEMORY[name][0](lib)
    before = _highest()
    for _ in range(3):
        work()
    return _highest() - before


def _highest() -> int:
    """The most memory that this process held so far, in bytes. `getrusage` would count what the
    process that started this one held."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) * 1024


if __name__ == "__main__":
    print(measure(*sys.argv[1:]))
