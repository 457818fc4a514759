"""Programs of several processes, run on rushlight and on PyTorch.

A program is a file that is called with the name of the library, `rushlight` or `torch`, starts a
process group and prints one line of JSON: its results.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.distributed import running

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed"
)


def run_ranks(library: str, program: Path, n: int, *arguments: str) -> list[Any]:
    """What each of `n` processes of a program printed last, by rank."""
    if library == "rushlight":
        running.mpiexec()  # skips where there is no MPI
    # Files and not pipes: a process that waits for its pipe to be read would hold up the others.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        outs = [folder / f"{rank}.out" for rank in range(n)]
        words = (program, n, folder, library, *arguments)
        if library == "torch":
            ended = running.start_on_pytorch(*words).status
        else:
            ended = _started(*words)
        for rank, (out, status) in enumerate(zip(outs, ended)):
            said = f"{out.read_text()[-2000:]}\n{Path(f'{out}.err').read_text()[-4000:]}"
            assert status == 0, f"rank {rank} of {program.name} ended with {status}\n{said}"
        return [json.loads(out.read_text().splitlines()[-1]) for out in outs]


def _started(program: Path, n: int, folder: Path, *words: str) -> list[int]:
    processes = []
    for rank, env in enumerate(running.environments(n, folder)):
        out = folder / f"{rank}.out"
        command = [sys.executable, "-W", "ignore", str(program), *words]
        with out.open("w") as stdout, Path(f"{out}.err").open("w") as stderr:
            processes.append(subprocess.Popen(command, env=env, stdout=stdout, stderr=stderr))
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):  # killed, which is a status too
            for p in processes:
                p.wait(timeout=running.PATIENCE)
    finally:
        for p in processes:
            p.kill()
            p.wait()
    return [p.returncode for p in processes]


def assert_close(a: Any, b: Any, tolerance: float, path: str = "") -> None:
    """Equal results, numbers up to a relative tolerance."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), path
        for key in a:
            assert_close(a[key], b[key], tolerance, f"{path}.{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), path
        for at, (x, y) in enumerate(zip(a, b)):
            assert_close(x, y, tolerance, f"{path}[{at}]")
    elif isinstance(a, float) and isinstance(b, float):
        assert abs(a - b) <= tolerance * max(1.0, abs(a), abs(b)), f"{path}: {a} and {b}"
    else:
        assert a == b, f"{path}: {a} and {b}"
