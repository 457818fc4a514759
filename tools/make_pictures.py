"""Make the pictures of docs/pictures.md: `python tools/make_pictures.py`.

Each Python block of the page is run in a folder of its own. The picture behind it is what the block
saved under that name: an SVG as it is; of a page (`mlp.html` for `mlp.png`) a screenshot, taken in
headless Chromium. A comment before the picture says what is done first:

    <!-- shot: find=tanh; step=9; theme=dark; fit; width=1000; height=620; scale=1.5 -->

`find` picks what the search finds, `step` moves the slider, `fit` shows all of the graph. Needs
playwright, Pillow and Chromium. Names of pictures as arguments make those alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "pictures.md"
BLOCK = re.compile(
    r"^```python\n# (?P<file>\w+\.py)\n(?P<code>.*?)^```$(?P<between>.*?)"
    r"^!\[[^\]]*\]\(figures/(?P<picture>[\w.]+)\)$",
    re.MULTILINE | re.DOTALL,
)
SHOT = re.compile(r"<!-- shot: (.*?) -->")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
COLOURS = 160  # of a palette: enough for boxes and text, and small


def wanted(text: str) -> list[tuple[str, str, str, dict[str, str]]]:
    """For each picture: the block's file and code, the picture's name, and what is done first."""
    found = []
    for match in BLOCK.finditer(text):
        said = SHOT.search(match["between"])
        pairs = [part.strip().partition("=") for part in said[1].split(";")] if said else []
        options = {name: value for name, _, value in pairs}
        code = f"# {match['file']}\n{match['code']}"
        found.append((match["file"], code, match["picture"], options))
    return found


def run(file: str, code: str, folder: Path) -> None:
    """Run a block as the program it is."""
    (folder / file).write_text(code, "utf-8")
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, file], cwd=folder, check=True, env={**os.environ, "PYTHONPATH": path}
    )


def photograph(browser: Any, page_file: Path, target: Path, options: dict[str, str]) -> None:
    """A screenshot of a page, after what `options` ask for."""
    size = {"width": int(options.get("width", 1200)), "height": int(options.get("height", 700))}
    context = browser.new_context(
        viewport=size,
        reduced_motion="reduce",
        color_scheme=options.get("theme", "light"),
        device_scale_factor=float(options.get("scale", 1)),
    )
    page = context.new_page()
    page.goto(page_file.as_uri())
    if "find" in options:
        page.keyboard.press("/")
        page.locator("#search").fill(options["find"])
        page.keyboard.press("Enter")
        page.locator("#search").fill("")
    if "step" in options:
        page.locator("#slider").focus()
        for _ in range(int(options["step"])):
            page.keyboard.press(".")
    page.locator("#stage").focus()
    if "fit" in options or "find" in options or "step" in options:
        page.keyboard.press("0")
    page.screenshot(path=target)
    context.close()
    shrink(target)


def shrink(path: Path) -> None:
    """Fewer colours: a fifth of the size, and nobody sees it."""
    from PIL import Image

    with Image.open(path) as image:
        small = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def main() -> None:
    from playwright.sync_api import sync_playwright

    only = set(sys.argv[1:])
    chromium = next(filter(None, map(shutil.which, CHROMIUM)))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as scratch:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for file, code, picture, options in wanted(PAGE.read_text("utf-8")):
            if only and Path(picture).stem not in only:
                continue
            run(file, code, Path(scratch))
            made, target = Path(scratch) / picture, ROOT / "docs" / "figures" / picture
            if made.exists():
                shutil.copy(made, target)
            else:
                photograph(browser, made.with_suffix(".html"), target, options)
            print(f"{target.relative_to(ROOT)}: {target.stat().st_size / 1000:.0f} KB")
        browser.close()


if __name__ == "__main__":
    main()
