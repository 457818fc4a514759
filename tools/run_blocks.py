"""Run the Python blocks of documents, and write what they print into the text blocks behind them.

    python tools/run_blocks.py docs/tutorial.md docs/zh/tutorial.md README.md README.zh.md

Each block runs alone, as tests/repo/test_docs.py runs it, which compares. A `text varies` block is
left as it is. A block that ends in an error stops everything: nothing is written then.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAIR = r"^```python\n((?:(?!^```).)*)^```(\n\s*)^```text\n(?:(?!^```).)*^```$"


def printed(code: str) -> str:
    """What a program prints; a first line `# name.py` is the name of its file."""
    titled = re.match(r"# (\w+\.py)\n", code)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / (titled[1] if titled else "pasted.py")
        script.write_text(code, "utf-8")
        paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        space = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}
        done = subprocess.run(
            [sys.executable, script.name], cwd=folder, env=space, check=True, encoding="utf-8",
            stdout=subprocess.PIPE, timeout=120,
        )  # fmt: skip
        return done.stdout


def filled(page: str) -> str:
    """A page with what its blocks print now."""
    return re.sub(
        PAIR,
        lambda found: f"```python\n{found[1]}```{found[2]}```text\n{printed(found[1])}```",
        page,
        flags=re.MULTILINE | re.DOTALL,
    )


def main() -> None:
    pages = [Path(argument) for argument in sys.argv[1:]]
    texts = [filled(page.read_text("utf-8")) for page in pages]
    for page, text in zip(pages, texts, strict=True):
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
