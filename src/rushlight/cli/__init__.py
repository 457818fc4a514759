"""The `rushlight` command: run programs written for torch, look at what they do, ask what is there.

    run       options.py, launch.py, watch.py    a script in which `import torch` means rushlight
    launch    processes.py                       the same in several processes
    doctor    doctor.py, uses.py, lookup.py      what a script uses that rushlight lacks
    info      info.py                            versions, and what is compiled
    kernels   kernels.py                         the C that rushlight writes

`main` is the entry point of the installed command. Each command is imported when it is called.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rushlight._version import __version__

USAGE = """\
usage: rushlight run [options] script.py [args...]   run a script on rushlight
       rushlight launch -n N script.py [args...]     run it in N processes
       rushlight doctor script.py|folder [--json]    what a script uses that rushlight lacks
       rushlight info [--json]                       versions of everything, and what is compiled
       rushlight kernels [show NAME]                 the kernels that rushlight writes, or their C
       rushlight --version

`rushlight COMMAND --help` explains a command, with examples.

  rushlight run train.py                      `import torch` in it means rushlight
  rushlight run --graph g.html train.py       and g.html shows the graph of its last backward()
  rushlight launch -n 4 train.py              in 4 processes, for torch.distributed
  rushlight doctor train.py                   would it run? The script is read, not run
"""


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; the result is the exit status.

    >>> main(["--version"])
    rushlight 0.1.0
    0
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        return refuse("", USAGE)
    command, *rest = arguments
    if command in ("-h", "--help", "help"):
        return show_help(USAGE)
    if command in ("-V", "--version"):
        print(f"rushlight {__version__}")
        return 0
    if command == "run":
        from rushlight.cli import launch

        return launch.command(rest)
    if command == "launch":
        from rushlight.cli import processes

        return processes.command(rest)
    if command == "doctor":
        from rushlight.cli import doctor

        return doctor.command(rest)
    if command == "info":
        from rushlight.cli import info

        return info.command(rest)
    if command == "kernels":
        from rushlight.cli import kernels

        return kernels.command(rest)
    return refuse(f"unknown command: {command}", USAGE)


def show_help(text: str) -> int:
    """Print a help text that was asked for."""
    print(text, end="")
    return 0


def refuse(trouble: str, usage: str) -> int:
    """Say what is wrong with the command line, and how it should be."""
    if trouble:
        print(f"rushlight: {trouble}", file=sys.stderr)
    print(usage, end="", file=sys.stderr)
    return 2
