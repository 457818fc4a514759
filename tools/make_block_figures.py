"""Draw the figures of the documents by the code that stands beside them.

    python tools/make_block_figures.py           write docs/figures/ anew
    python tools/make_block_figures.py --check   say which are not what their code draws; 1 if any

A figure belongs to a Python block that writes a file of its name, in the same page and before it:
`viz.graph(d).save("graph.svg")` and then `![...](figures/graph.svg)`. The block is run alone. Of
pictures in SVG the words are compared, of others (PNG) their size: layouts and fonts differ a
little from machine to machine.
"""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = r"^```python\n((?:(?!^```).)*)^```$"


def blocks_with_figures() -> dict[Path, str]:
    """The programs that draw figures, by the figure."""
    found: dict[Path, str] = {}
    for page in [*ROOT.glob("README*.md"), *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text("utf-8")
        for image in re.finditer(r"!\[[^\]]*\]\(([^)]+)\)", text):
            figure = (page.parent / image[1]).resolve()
            for block in re.findall(BLOCK, text[: image.start()], re.MULTILINE | re.DOTALL):
                if f'"{figure.name}"' in block:
                    found.setdefault(figure, block)
    return found


def drawn(code: str, name: str) -> bytes:
    """The file that a program leaves."""
    titled = re.match(r"# (\w+\.py)\n", code)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / (titled[1] if titled else "pasted.py")
        script.write_text(code, "utf-8")
        paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        space = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        subprocess.run(
            [sys.executable, script.name], cwd=folder, env=space, check=True,
            stdout=subprocess.DEVNULL, timeout=120,
        )  # fmt: skip
        return (Path(folder) / name).read_bytes()


def gist(picture: bytes) -> list[str]:
    """What must not differ: the words of an SVG, the size of a PNG."""
    if picture.startswith(b"\x89PNG"):
        return [str(number) for number in struct.unpack(">II", picture[16:24])]
    return sorted(re.findall(r">([^<>]+)</text>", picture.decode("utf-8")))


def main() -> int:
    status = 0
    for figure, code in blocks_with_figures().items():
        now = drawn(code, figure.name)
        if "--check" not in sys.argv:
            figure.write_bytes(now)
        elif not figure.exists() or gist(figure.read_bytes()) != gist(now):
            print(f"{figure.relative_to(ROOT)} is not what its code draws")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
