"""Run the notebooks in examples/, each in a kernel of its own.

    python tools/run_notebooks.py                        write what they show into them
    python tools/run_notebooks.py --check [paths...]     compare it with what they show; 1 if not

Compared is what is printed or shown as text; numbers may differ in their last digits, as those that
were trained do from one processor to another. Of pictures it is asked that they are there. nbclient
and ipykernel are needed (the extra `dev`).
"""

from __future__ import annotations

import logging
import math
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "examples"


def executed(path: Path) -> Any:
    """A notebook with what its cells show now."""
    import nbformat
    from nbclient import NotebookClient

    logging.disable(logging.WARNING)  # the kernel says that it talks over TCP
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}},
        record_timing=False,
    ).execute()  # fmt: skip
    for cell in notebook.cells:
        if "outputs" in cell:
            cell["outputs"] = joined(cell["outputs"])
            for output in cell["outputs"]:
                tidy(output)
    return notebook


def joined(outputs: list[Any]) -> list[Any]:
    """What a cell prints in one piece: it comes in as many as the kernel happens to send."""
    found: list[Any] = []
    for output in outputs:
        if found and output.get("name") and found[-1].get("name") == output["name"]:
            found[-1]["text"] += output["text"]
        else:
            found.append(output)
    return found


def tidy(output: Any) -> None:
    """Take out what differs from run to run: the number in the name of a cell's file."""
    for kind, text in output.get("data", {}).items():
        if isinstance(text, str):
            output["data"][kind] = re.sub(r"\b\d{5,}\.py\b", "cell.py", text)
    if "text" in output:
        output["text"] = re.sub(r"\b\d{5,}\.py\b", "cell.py", output["text"])


def shown(notebook: Any) -> list[tuple[str, str, list[str]]]:
    """For each output its kind, its text, and in which forms it is there."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            text = output.get("text", data.get("text/plain", ""))
            found.append((output["output_type"], text, sorted(data)))
    return found


NUMBER = r"(?<![\w.])-?\d+\.\d*(?:e[+-]?\d+)?"


def alike(before: str, now: str) -> bool:
    """Whether two texts have the same words, and nearly the same numbers."""
    words = ["".join(re.sub(NUMBER, "~", text).split()) for text in (before, now)]
    old, new = ([float(n) for n in re.findall(NUMBER, text)] for text in (before, now))
    return words[0] == words[1] and all(
        math.isclose(a, b, rel_tol=0.02, abs_tol=0.02) for a, b in zip(old, new, strict=True)
    )


def differences(before: Any, now: Any) -> list[str]:
    """What a notebook shows otherwise than before, a line each."""
    old, new = shown(before), shown(now)
    if len(old) != len(new):
        return [f"{len(new)} outputs, {len(old)} before"]
    return [
        f"before: {a}\nnow:    {b}"
        for a, b in zip(old, new, strict=True)
        if (a[0], a[2]) != (b[0], b[2]) or not alike(a[1], b[1])
    ]


def main(arguments: list[str]) -> int:
    import nbformat

    check = "--check" in arguments
    paths = [Path(word) for word in arguments if word != "--check"]
    status = 0
    for path in paths or sorted(NOTEBOOKS.glob("*.ipynb")):
        now = executed(path)
        if not check:
            nbformat.write(now, path)
        elif found := differences(nbformat.read(path, as_version=4), now):
            status = 1
            print("\n".join([f"{path} shows something else than before:", *found]))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
