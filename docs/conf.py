"""How Sphinx builds these documents: `make docs` writes them into build/docs.

Pages are Markdown (MyST), so that they read as well in an editor or on a code host. The reference
of functions is written from the op table by tools/make_api.py whenever the documents are built.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))

project = "rushlight"
author = "The rushlight authors"
project_copyright = author
version = release = "0.1.0"

extensions = ["myst_parser"]
myst_heading_anchors = 3
nitpicky = True

html_theme = "furo"
html_title = "rushlight"
html_static_path = ["_static"]
html_css_files = ["page.css"]
html_show_sourcelink = False
pygments_style = "friendly"


def setup(app: Any) -> None:
    """Write the reference before the pages are read."""
    app.connect("builder-inited", write_reference)
    app.connect("source-read", unlink)


def write_reference(app: Any) -> None:
    from make_api import write

    write(Path(app.srcdir) / "api")


def unlink(app: Any, name: str, source: list[str]) -> None:
    """Links that leave this folder are for readers of the repository: here their words stay."""
    outside = (
        r"(?<!!)\[([^\]]+)\]\((?:\.\./)+(?:README|CONTRIBUTING|CHANGELOG|examples|src|tests)[^)]*\)"
    )
    source[0] = re.sub(outside, r"\1", source[0])
