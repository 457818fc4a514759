"""`rushlight kernels`: the kernels that rushlight writes from its op table, by name or as C."""

from __future__ import annotations

import sys

from rushlight.cli import refuse, show_help

USAGE = """\
usage: rushlight kernels              print the names of all kernels, one a line
       rushlight kernels show NAME    print the C of those whose name has NAME in it

  rushlight kernels show softmax

exit status: 0; 1 if no kernel has that name; 2 if the command line is wrong
"""


def command(arguments: list[str]) -> int:
    """Print the names of the kernels, or the C of some."""
    if arguments[:1] in (["-h"], ["--help"]):
        return show_help(USAGE)
    if arguments and (arguments[0] != "show" or len(arguments) != 2):
        return refuse("kernels takes nothing, or show and a name", USAGE)
    from rushlight.codegen.build import show

    found = show(arguments[1] if arguments else None)
    if not found:
        print(f"rushlight: no kernel has {arguments[1]!r} in its name", file=sys.stderr)
        return 1
    print(found)
    return 0
