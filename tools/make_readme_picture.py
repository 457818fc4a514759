"""Take the picture at the top of README.md: the page that its code writes, in a browser.

    python tools/make_readme_picture.py

The block of README.md that saves `graph.html` is run alone; the page is opened in the system's
Chromium, driven by playwright (the extra `dev`), one node is clicked, and docs/figures/readme.png
is what can be seen then.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "figures" / "readme.png"
PAGE = "graph.html"
CLICKED = "tanh"


def program() -> str:
    """The block of README.md that writes the page."""
    text = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n((?:(?!^```).)*)^```$", text, re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if f'save("{PAGE}")' in block]
    return str(block)


def main() -> None:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "train.py"
        script.write_text(program(), "utf-8")
        space = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        subprocess.run([sys.executable, script.name], cwd=folder, env=space, check=True)
        with sync_playwright() as p:
            browser = p.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 1200, "height": 660})
            page.goto(f"file://{folder}/{PAGE}")
            page.get_by_text(CLICKED, exact=True).first.click()
            page.wait_for_timeout(600)
            page.screenshot(path=PICTURE)
            browser.close()


if __name__ == "__main__":
    main()
