"""`rushlight info`: versions of everything, and what is compiled, as text or as JSON."""

from __future__ import annotations

import json

from rushlight import __config__
from rushlight.cli import refuse, show_help

USAGE = """\
usage: rushlight info [--json]

Versions of rushlight, Python and the libraries below it, where it is installed, whether its core
is compiled, and how many kernels it has. Put it into a report of a fault.

  rushlight info
  rushlight info --json | python -c "import json, sys; print(json.load(sys.stdin)['numpy'])"

  --json    the same as one JSON object; what is not installed is null

exit status: 0; 2 if the command line is wrong
"""


def command(arguments: list[str]) -> int:
    """Print what this installation is."""
    if arguments in (["-h"], ["--help"]):
        return show_help(USAGE)
    if arguments == ["--json"]:
        print(json.dumps(__config__.facts(), indent=2))
        return 0
    if arguments:
        return refuse("info takes nothing but --json", USAGE)
    print(__config__.show())
    return 0
