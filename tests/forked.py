"""Programs on PyTorch, in forks of one process that has imported it.

To import PyTorch takes seconds, and a program of several processes does little else. So one
process imports it, once for all tests, and forks for each process that is asked for; no thread of
PyTorch's runs in it. A fork ends as `os._exit` ends it, and its group of processes with it:
PyTorch's threads of gloo now and then outlive what they work with, and end the process or hang.

`python -m tests.forked` is that process. It reads lines of JSON, a `Request` each, and
answers each with the statuses of its processes when all have ended.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.harness import ROOT

# What the programs of the tests import.
MODULES = (
    "torch", "torch.distributed", "torch.distributed.checkpoint.state_dict",
    "torch.distributed.fsdp", "torch.distributed.optim", "torch.distributed.tensor",
    "torch.distributed._functional_collectives", "torch.distributed.algorithms.join",
    "torch.distributed.nn.functional", "torch.nn.parallel",
    "torch._dynamo",  # which DistributedDataParallel imports when one is made: seconds
)  # fmt: skip


@dataclass
class Request:
    """Processes of one program. What it prints, and its errors, go to `out` and `out`.err."""

    program: str
    arguments: list[str]
    folder: str  # where it runs
    patience: float  # seconds after which those that have not ended are killed
    environments: list[dict[str, str]]
    outs: list[str]
    spawn_forks: bool = False  # whether `mp.spawn` forks too


@functools.cache
def _server() -> subprocess.Popen[str]:
    quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "FATAL"}
    server = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.forked"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, **quiet},
    )  # fmt: skip
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    server.communicate()  # it reads no more lines, and ends


def run(request: Request) -> list[int]:
    """The statuses of a request's processes, once they have ended; negative for a signal."""
    server = _server()
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(json.dumps(asdict(request)) + "\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    assert answer, f"the process with PyTorch ended with {server.wait()}"
    found: list[int] = json.loads(answer)
    return found


# --- the process with PyTorch ---------------------------------------------------------------------
def _become(request: Request, rank: int) -> None:
    """Run the program in this process, and end it."""
    status = 1
    try:
        os.setsid()  # what it starts is killed with it
        for number, path in ((1, request.outs[rank]), (2, request.outs[rank] + ".err")):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.environ.clear()
        os.environ.update(request.environments[rank])
        os.chdir(request.folder)
        sys.argv[:] = [request.program, *request.arguments]
        sys.path.insert(0, str(Path(request.program).parent))
        if request.spawn_forks:
            mp: Any = importlib.import_module("torch.multiprocessing")
            mp.spawn = functools.partial(mp.start_processes, start_method="fork")
            mp.set_start_method = lambda method, force=False: None
        # What lives on after the group it works with now and then aborts, or waits for ever.
        dist: Any = importlib.import_module("torch.distributed")
        dist.destroy_process_group = dist.barrier
        runpy.run_path(request.program, run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _ended(pids: list[int], patience: float) -> list[int]:
    """How children ended; those that hang are killed."""
    statuses: dict[int, int] = {}
    until = time.monotonic() + patience
    while len(statuses) < len(pids):
        for pid in pids:
            if pid not in statuses:
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    statuses[pid] = os.waitstatus_to_exitcode(status)
                elif time.monotonic() > until:
                    os.killpg(pid, signal.SIGKILL)
        time.sleep(0.005)
    return [statuses[pid] for pid in pids]


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what an import prints is no answer
    for name in MODULES:
        importlib.import_module(name)
    for line in sys.stdin:
        request = Request(**json.loads(line))
        pids = []
        for rank in range(len(request.outs)):
            pid = os.fork()
            if pid == 0:
                _become(request, rank)
            pids.append(pid)
        answers.write(json.dumps(_ended(pids, request.patience)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
