"""What arguments are called, what they take and what they mean: the words of `help`.

A public function need not repeat what `dim` or `keepdim` is: `argument_words.txt` says it once.
`described` reads it for docstrings and signatures, and `tools/make_stubs.py` does for type
checkers. What an argument means in one function alone is in that function's docstring, under
`Args:`.
"""

from __future__ import annotations

import functools

from rushlight.tables import read_table

__all__ = ["words"]

# The argument: its type ("" where the name alone does not say it), and the meaning.
Words = dict[str, tuple[str, str]]


@functools.cache
def words() -> dict[str, Words]:
    """For each function that means something of its own by an argument, these arguments; under ""
    those of all functions.

    >>> words()[""]["keepdim"]
    ('bool', 'whether reduced dimensions stay, with size 1')
    """
    table: dict[str, Words] = {"": {}}
    fns, before = [""], ""
    for line in "\n".join(read_table(__file__)).replace("\n    ", " ").split("\n"):
        if line.startswith("of "):
            fns = (fns if before.startswith("of ") else []) + line[3:].split(" ")
        else:
            name, _, meaning = line.strip().partition(": ")
            name, _, kind = name.partition(" (")
            for fn in fns:
                table.setdefault(fn, {})[name] = (kind.removesuffix(")"), meaning)
        before = line
    return table
