"""Programs that ask `why`, run together in a process of their own: there few objects are alive, and
no variables of the tests.

As a program this file reads sources as JSON, runs each as a file, and prints the answers.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from dataclasses import dataclass
from typing import Any

from tests.running import python

HEAD = "import rushlight as torch\n"


@dataclass
class Case:
    """A program, the kind of its answer, and the lines of the chain (the head is line 1)."""

    name: str
    kind: str
    lines: list[int]
    text: str


def cases(text: str) -> list[Case]:
    """Programs from a text: each begins with `=== name: kind: lines`."""
    found = []
    for part in text.split("=== ")[1:]:
        head, _, body = part.partition("\n")
        name, kind, lines = (word.strip() for word in head.split(":"))
        found.append(Case(name, kind, [int(n) for n in lines.split()], body.rstrip() + "\n"))
    return found


def answers(programs: list[Case]) -> dict[str, list[dict[str, Any]]]:
    """What each program was answered, call by call."""
    given = json.dumps({case.name: HEAD + case.text for case in programs})
    status, out, err = python("-m", "tests.reasons.asking", stdin=given)
    assert status == 0, err
    found: dict[str, list[dict[str, Any]]] = json.loads(out)
    return found


def check(case: Case, said: dict[str, Any]) -> None:
    """An answer is of its kind, and its chain has the lines of the program."""
    assert (said["kind"], said["lines"]) == (case.kind, case.lines), said["text"]
    lines = [HEAD.strip(), *case.text.splitlines()]
    assert said["sources"] == [lines[n - 1].strip() for n in case.lines]
    assert max(map(len, said["text"].splitlines())) <= 110


def main() -> None:
    import rushlight as torch
    from rushlight import reasons

    heard: list[Any] = []

    class Heard(type(reasons.why)):  # type: ignore[misc]
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            heard.append(super().__call__(*args, **kwargs, show=False))
            return heard[-1]

    Heard.__call__.__globals__["__name__"] = "rushlight.heard"  # no frame of the program's
    torch.why = Heard()  # type: ignore[assignment]
    said: dict[str, list[dict[str, Any]]] = {}
    os.chdir(tempfile.mkdtemp())
    warnings.simplefilter("ignore")  # the programs are confused, after all
    for name, text in json.load(sys.stdin).items():
        file = name.replace(" ", "_") + ".py"
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
        heard.clear()
        torch.set_grad_enabled(True)
        exec(compile(text, file, "exec"), {"__name__": "__main__"})
        said[name] = [
            {
                "kind": each.kind, "text": str(each), "certain": each.certain,
                "lines": [int(link.place.split()[0].rpartition(":")[2]) for link in each.chain],
                "sources": [link.place.split(maxsplit=1)[1] for link in each.chain],
            }
            for each in heard
        ]  # fmt: skip
    print(json.dumps(said))


if __name__ == "__main__":
    main()
