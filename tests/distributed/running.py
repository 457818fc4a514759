"""Programs of several processes: started by `mpiexec`, or as processes that find each other.

A program ends with `report(rank, value)` in each process; `launch` returns the values by rank. A
value is anything JSON has.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests import forked
from tests.harness import ROOT

PATIENCE = 240  # seconds; a program takes one or two


def mpiexec() -> str:
    """The launcher that comes with the MPI of this environment."""
    if importlib.util.find_spec("mpi4py") is None:
        pytest.skip("mpi4py is not installed")
    beside = Path(sys.executable).with_name("mpiexec")
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("there is no mpiexec")
    return found


def report(rank: int, value: Any) -> None:
    """Give a value to the test that started this program."""
    Path(os.environ["RUSHLIGHT_TEST_RESULTS"], str(rank)).write_text(json.dumps(value))


@dataclass
class Ended:
    """How the processes of a program ended."""

    status: list[int]
    output: str
    values: list[Any] = field(default_factory=list)


def environment(folder: Path) -> dict[str, str]:
    """What a process has to know: where rushlight is, one thread each, where to report."""
    paths = [str(Path(importlib.import_module("rushlight").__file__).parents[1]), str(ROOT)]  # type: ignore[arg-type]
    given = {k: v for k, v in os.environ.items() if not k.startswith(("PMI", "MPI_", "PYTEST"))}
    return given | {
        "PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
        "RUSHLIGHT_TEST_RESULTS": str(folder),
    }  # fmt: skip


def _program(program: str | Path, folder: Path) -> str:
    if isinstance(program, Path):
        return str(program)
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    return str(path)


def launch(program: str | Path, n: int, folder: Path, *arguments: str) -> list[Any]:
    """What each of `n` processes of a program reports. It is started by `mpiexec`."""
    done = subprocess.run(
        [mpiexec(), "-n", str(n), sys.executable, _program(program, folder), *arguments],
        env=environment(folder), capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return _reports(folder, n)


def _reports(folder: Path, n: int) -> list[Any]:
    return [json.loads((folder / str(rank)).read_text()) for rank in range(n)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environments(n: int, folder: Path) -> list[dict[str, str]]:
    """Those of `n` processes that find each other by RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT."""
    common = environment(folder) | {
        "WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())
    }  # fmt: skip
    return [common | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(n)]


def start(program: str | Path, n: int, folder: Path, *arguments: str, **extra: str) -> Ended:
    """`n` processes that find each other by their environments."""
    mpiexec()  # skips where there is no MPI
    path = _program(program, folder)
    output = folder / "output.txt"
    with output.open("w") as file:
        processes = [
            subprocess.Popen(
                [sys.executable, path, *arguments],
                env=env | extra, stdout=file, stderr=file, start_new_session=True,
            )
            for env in environments(n, folder)
        ]  # fmt: skip
        try:
            status = [process.wait(PATIENCE) for process in processes]
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it hangs\n{output.read_text()}") from None
        finally:
            for process in processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
    return Ended(status, output.read_text(), _values(folder, n))


def start_on_pytorch(program: Path, n: int, folder: Path, *arguments: str) -> Ended:
    """The same on PyTorch, in forks of a process that has imported it."""
    outs = [str(folder / f"{rank}.out") for rank in range(n)]
    status = forked.run(
        forked.Request(
            str(program), list(arguments), os.getcwd(), float(PATIENCE), environments(n, folder),
            outs,
        )
    )  # fmt: skip
    said = "\n".join(Path(out + end).read_text()[-4000:] for out in outs for end in ("", ".err"))
    return Ended(status, said, _values(folder, n))


def _values(folder: Path, n: int) -> list[Any]:
    """What was reported, and None of those that did not come to it."""
    return [
        json.loads((folder / str(rank)).read_text()) if (folder / str(rank)).exists() else None
        for rank in range(n)
    ]
