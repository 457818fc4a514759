"""`python -m torch.distributed.run`, which PyTorch installs as `torchrun`: several processes of a
program, on this host or on each of several, started again if one fails.

    python -m rushlight.distributed.run --nproc-per-node 4 train.py

`rushlight launch` does the same by `mpiexec`. This one is for what mpiexec does not do: each host
starts its own processes (`--nnodes`, `--node-rank`), and all are started anew when one has failed
(`--max-restarts`), to go on from a checkpoint.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]
__dir__ = __all__.copy

_PAUSE = 0.05  # seconds between two looks at the processes
_PATIENCE = 10.0  # seconds that processes have to end when they are asked to


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="torchrun", description="Run a program in several processes."
    )

    def option(name: str, *more: str, **kwargs: Any) -> None:
        both = {name, "--" + name[2:].replace("-", "_"), *more}
        made.add_argument(*sorted(both, key=lambda n: n != name), **kwargs)

    option("--nproc-per-node", default="1", help="processes on each host; cpu: one a core")
    option("--nnodes", default="1", help="hosts")
    option("--node-rank", type=int, default=0, help="which host this is, from 0")
    option("--master-addr", default="", help="the address of host 0")
    option("--master-port", type=int, default=0, help="a port of host 0 that is free")
    option("--standalone", action="store_true", help="one host, and any port")
    option("--max-restarts", type=int, default=0, help="how often to start anew after a failure")
    option("--monitor-interval", type=float, default=_PAUSE, help="seconds between two looks")
    option("--rdzv-backend", default="static", help="accepted; the store of rank 0 serves all")
    option("--rdzv-endpoint", default="", help="host:port, as --master-addr and --master-port")
    option("--rdzv-id", default="", help="the name of the run")
    option("--rdzv-conf", default="", help="accepted")
    option("--start-method", default="spawn", help="accepted")
    option("--log-dir", default=None, help="accepted")
    option("--local-addr", default=None, help="accepted")
    option("--role", default="default", help="accepted")
    made.add_argument("-m", "--module", action="store_true", help="the program is a module")
    option("--no-python", action="store_true", help="the program is an executable")
    made.add_argument("training_script")
    made.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return made


def _count(text: str) -> int:
    if text in ("auto", "cpu"):
        return os.cpu_count() or 1
    if text == "gpu":
        from rushlight import cuda

        return cuda.device_count()
    return int(text)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def main(args: Sequence[str] | None = None) -> None:
    """The command; ends the process with status 1 if the program failed."""
    given = _parser().parse_args(args)
    local = _count(given.nproc_per_node)
    nodes = int(str(given.nnodes).split(":")[-1])
    host, port = given.master_addr, given.master_port
    if given.rdzv_endpoint and not host:
        host, _, text = given.rdzv_endpoint.partition(":")
        port = int(text or 29400)
    host = host or "127.0.0.1"
    if not port:
        port = _free_port() if nodes == 1 else 29500
    for attempt in range(given.max_restarts + 1):
        environment = os.environ | {
            "MASTER_ADDR": host, "MASTER_PORT": str(port), "WORLD_SIZE": str(local * nodes),
            "LOCAL_WORLD_SIZE": str(local), "GROUP_RANK": str(given.node_rank),
            "GROUP_WORLD_SIZE": str(nodes), "TORCHELASTIC_RUN_ID": given.rdzv_id or _RUN,
            "TORCHELASTIC_RESTART_COUNT": str(attempt),
            "TORCHELASTIC_MAX_RESTARTS": str(given.max_restarts),
        }  # fmt: skip
        if local > 1:
            environment.setdefault("OMP_NUM_THREADS", "1")
        failed = _run(_command(given), local, given.node_rank, environment, given.monitor_interval)
        if failed is None:
            return
        rank, status = failed
        print(
            f"rank {rank} failed ({_ended(status)}); {given.max_restarts - attempt} restarts left",
            file=sys.stderr,
        )
        if nodes == 1 and not given.master_port:
            port = _free_port()  # the old one may be taken for a while
    sys.exit(1)


_RUN = uuid.uuid4().hex[:8]


def _command(given: argparse.Namespace) -> list[str]:
    if given.no_python:
        return [given.training_script, *given.training_script_args]
    module = ["-m"] if given.module else []
    python = [sys.executable, "-m", "rushlight", "run"]
    return [*python, *module, given.training_script, *given.training_script_args]


def _run(
    command: list[str], local: int, node: int, environment: dict[str, str], pause: float
) -> tuple[int, int] | None:
    """Run the processes of this host; None if all ended well, else who failed first, and how."""
    processes: dict[int, subprocess.Popen[bytes]] = {}
    for i in range(local):
        rank = node * local + i
        own = {"RANK": str(rank), "LOCAL_RANK": str(i), "ROLE_RANK": str(rank)}
        processes[rank] = subprocess.Popen(command, env=environment | own)
    try:
        while True:
            states = {rank: process.poll() for rank, process in processes.items()}
            failed = [(rank, status) for rank, status in states.items() if status]
            if failed:
                return failed[0]
            if all(status == 0 for status in states.values()):
                return None
            time.sleep(min(pause, _PAUSE))
    finally:
        _end(list(processes.values()))


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """End processes that still run: ask first, then end them."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    deadline = time.monotonic() + _PATIENCE
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ended(status: int) -> str:
    if status < 0:
        return f"signal {signal.Signals(-status).name}"
    return f"exit status {status}"


if __name__ == "__main__":
    main()
