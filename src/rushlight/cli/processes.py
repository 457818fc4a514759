"""`rushlight launch`: a program in several processes, which `mpiexec` starts."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from rushlight.cli import refuse, show_help

USAGE = """\
usage: rushlight launch -n N [options] script.py [args...]   N processes of a program
       rushlight launch -n N [options] -m module [args...]

Run a program that uses torch.distributed in N processes, in each of which `import torch` means
rushlight. They are started by mpiexec, of MPICH or of Open MPI, and told RANK, WORLD_SIZE,
LOCAL_RANK and LOCAL_WORLD_SIZE, as torchrun tells them. If one fails, mpiexec ends the others.

  -n N, --nproc N    how many processes
  --hosts A,B,C      on which hosts, in turn; they need the same files, and ssh without a password
  --mpiexec PATH     which mpiexec; without it the one beside Python, or the one on the PATH
  --dry-run          show the command instead of running it

  rushlight launch -n 4 train.py --epochs 3      --epochs belongs to train.py
  mpiexec -n 4 rushlight run train.py            the same, by hand

exit status: that of mpiexec, which is not 0 if a process failed; 2 if the command line is wrong
"""


def command(arguments: list[str]) -> int:
    """Start the processes; this process becomes mpiexec."""
    if arguments[:1] in (["-h"], ["--help"]):
        return show_help(USAGE)
    options: dict[str, str] = {}
    rest = list(arguments)
    dry = False
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        word, equals, value = rest.pop(0).partition("=")
        if word == "--dry-run" and not equals:
            dry = True
            continue
        name = {"-n": "n", "--nproc": "n", "--hosts": "hosts", "--mpiexec": "mpiexec"}.get(word)
        if name is None:
            return refuse(f"unknown option of launch: {word}", USAGE)
        if not equals:
            if not rest:
                return refuse(f"{word} wants a value", USAGE)
            value = rest.pop(0)
        options[name] = value
    if not rest:
        return refuse("launch wants a script, or -m module", USAGE)
    if not options.get("n", "").isdigit() or int(options["n"]) < 1:
        return refuse("launch wants -n and a number of processes", USAGE)
    starter = options.get("mpiexec") or find_mpiexec()
    if starter is None:
        print(
            "rushlight: there is no mpiexec. It comes with MPI: `pip install mpi4py mpich`.",
            file=sys.stderr,
        )
        return 1
    hosts = []
    if "hosts" in options:
        hosts = ["-hosts" if _is_mpich(starter) else "--host", options["hosts"]]
    line = [
        starter, "-n", options["n"], *hosts,
        sys.executable, "-m", "rushlight", "run", *rest,
    ]  # fmt: skip
    if dry:
        print(" ".join(line))
        return 0
    sys.stdout.flush()
    os.execv(starter, line)


def find_mpiexec() -> str | None:
    """The mpiexec of this environment: wheels put it beside Python."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def _is_mpich(starter: str) -> bool:
    """Whether an mpiexec is MPICH's, which names hosts in its own way."""
    return (
        "hydra" in Path(starter).resolve().name or Path(starter).with_name("mpiexec.hydra").exists()
    )
