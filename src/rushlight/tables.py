"""Tables that are data, not code: text files that lie next to the modules that read them."""

from __future__ import annotations

import os


def read_table(module: str) -> list[str]:
    """The lines of the table of a module, given its `__file__`: the file of its name that ends in
    `.txt`. Empty lines are left out, and remarks, which begin with `#`."""
    with open(os.path.splitext(module)[0] + ".txt", encoding="utf-8") as file:
        return [line for line in file.read().splitlines() if line and line[0] != "#"]
