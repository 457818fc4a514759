"""Which functions an expression goes through, in order: a way to read the library.

    python tools/walk.py "x * y"
    python tools/walk.py "(x * y).sum().backward()"
    python tools/walk.py --setup "m = nn.Linear(2, 1)" "m(x)" --totals

Each line is a call of one of rushlight's functions, indented by depth, with the file and line where
it stands; a bar at the left marks a switch to another file. The last line counts calls, files and
switches. It reads the sources, also where they are compiled: compiled calls cannot be seen. Names
at hand: `torch`, `nn`, `F`, and the 2x2 tensors `x` and `y`, which require grad, and `t`, two class
indices. The expression runs twice unseen first, so that what is made once (classes of nodes, lazy
imports) and what is kept at the second time (`core/recall.py`) is not shown.
"""

from __future__ import annotations

import argparse
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent / "src"
PACKAGE = str(SOURCE / "rushlight")


def read_sources_only() -> None:
    """Let imports inside the package find `.py` files, never the compiled modules beside them."""

    def finder(path: str) -> FileFinder:
        if not path.startswith(PACKAGE):
            raise ImportError(path)
        return FileFinder(path, (SourceFileLoader, [".py"]))

    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.clear()
    sys.path.insert(0, str(SOURCE))


class Walk:
    """The calls of rushlight's functions, as (depth, file, line, name), while it is entered."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, str, int, str]] = []
        self._depth = 0

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE):
            return
        if event == "call":
            where = code.co_filename[len(PACKAGE) + 1 :]
            self.steps.append((self._depth, where, code.co_firstlineno, code.co_qualname))
            self._depth += 1
        elif event == "return":
            self._depth -= 1

    def __enter__(self) -> Walk:
        sys.setprofile(self._see)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    @property
    def files(self) -> list[str]:
        """The files it came through, each once."""
        return list(dict.fromkeys(step[1] for step in self.steps))

    @property
    def switches(self) -> int:
        """How often the next call stands in another file than the last one."""
        return sum(a[1] != b[1] for a, b in zip(self.steps, self.steps[1:]))


def names_at_hand(setup: str) -> dict[str, Any]:
    """What an expression may use."""
    import rushlight as torch

    names: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional}
    names["x"] = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    names["y"] = torch.tensor([[5.0, 6.0], [7.0, 8.0]], requires_grad=True)
    names["t"] = torch.tensor([0, 1])
    exec(setup, names)
    return names


def walk(expression: str, setup: str = "") -> Walk:
    """The walk of the expression's third evaluation."""
    names = names_at_hand(setup)
    code = compile(expression, "<expression>", "exec")
    for _ in range(2):
        exec(code, names)
        names["x"].grad = names["y"].grad = None  # as it was the first time
    with Walk() as seen:
        exec(code, names)
    return seen


def show(seen: Walk, only_totals: bool) -> None:
    if not only_totals:
        last = ""
        for depth, file, line, name in seen.steps:
            mark = " " if file == last else "|"
            print(f"{mark} {'  ' * depth}{name}".ljust(64), f"{file}:{line}")
            last = file
    print(f"{len(seen.steps)} calls, {len(seen.files)} files, {seen.switches} switches of file")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("expression")
    parser.add_argument("--setup", default="", help="statements to run before, unseen")
    parser.add_argument("--totals", action="store_true", help="only the last line")
    options = parser.parse_args()
    read_sources_only()
    show(walk(options.expression, options.setup), options.totals)


if __name__ == "__main__":
    main()
