"""The options of `rushlight run`: they stand before the script; what follows it is the script's."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

USAGE = """\
usage: rushlight run [options] script.py [args...]   as `python script.py [args...]`
       rushlight run [options] -m module [args...]   as `python -m module [args...]`
       rushlight run [options] -c code [args...]     as `python -c code [args...]`

Run a program in which `import torch` means rushlight. Arguments, output, tracebacks and exit status
are the program's own. Options stand before the script: all that follows the script is its own.

  --graph FILE       draw the graph of the last backward() into FILE: .html is a page to explore,
                     .svg and .png are pictures, .dot is for Graphviz
  --explain          tell the last backward() step by step: rule, gradient in, gradients out
  --memory           what its graph kept in memory, by line of the program
  --profile[=FILE]   where the time went, by op and line; into FILE: .json is a trace for
                     ui.perfetto.dev, .html a flame graph
  --pass N           look at the N-th backward() instead of the last
  --seed N           seed torch, Python's random and NumPy before the script starts

  rushlight run train.py --epochs 3              --epochs belongs to train.py
  rushlight run --graph g.html train.py          then open g.html in a browser
  rushlight run --seed 0 --explain train.py      the same numbers each time, told in words
  rushlight run --memory --pass 1 train.py       what the first step kept for its backward pass
  rushlight run -c "import torch; print(torch.arange(3))"

What is told about a run goes to standard error when the run is over, so that the program's output
can go elsewhere. Of a program with many passes the first 16 are looked at, and then the 32nd, 64th,
128th and so on: the last of those is shown, and which one it was is said.

exit status: that of the program; 1 if it was 0 and something that was asked for could not be made;
2 if the command line is wrong or the script cannot be read
"""

PICTURES = (".html", ".svg", ".png", ".dot")
PROFILES = (".json", ".json.gz", ".html")


class Wrong(Exception):
    """The command line cannot be understood; the text says why."""


@dataclass
class Options:
    """What `run` was asked for."""

    graph: str | None = None
    explain: bool = False
    memory: bool = False
    profile: bool = False
    profile_file: str | None = None
    seed: int | None = None
    which: int | None = None  # the backward pass to look at, from 1; None for the last
    program: list[str] = field(default_factory=list)  # the script, or -m or -c, and its arguments

    @property
    def looks_at_passes(self) -> bool:
        """Whether backward passes have to be looked at."""
        return self.graph is not None or self.explain or self.memory


def parse(arguments: list[str]) -> Options:
    """The options before the script, and the rest as it is.

    >>> parse(["--seed", "3", "--explain", "train.py", "--seed", "4"])  # doctest: +ELLIPSIS
    Options(..., explain=True, ..., seed=3, which=None, program=['train.py', '--seed', '4'])
    """
    options, rest = Options(), list(arguments)
    while rest and rest[0].startswith("--"):
        word, equals, value = rest.pop(0).partition("=")
        if word in ("--explain", "--memory") and not equals:
            setattr(options, word[2:], True)
        elif word == "--profile":
            options.profile = True
            options.profile_file = _file(word, value, PROFILES) if equals else None
        elif word in ("--graph", "--seed", "--pass"):
            if not equals:
                if not rest:
                    raise Wrong(f"{word} wants a value")
                value = rest.pop(0)
            if word == "--graph":
                options.graph = _file(word, value, PICTURES)
            elif word == "--seed":
                options.seed = _number(word, value)
            else:
                options.which = _number(word, value)
                if options.which < 1:
                    raise Wrong("--pass counts from 1")
        else:
            raise Wrong(f"unknown option of run: {word}{equals}{value}")
    options.program = rest
    return options


def _file(word: str, path: str, endings: tuple[str, ...]) -> str:
    """A path to write to, made absolute: the program may go to another folder."""
    if not path.endswith(endings):
        raise Wrong(f"{word} wants a file that ends in {' or '.join(endings)}, not {path!r}")
    return os.path.abspath(path)


def _number(word: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise Wrong(f"{word} wants a whole number, not {value!r}") from None
