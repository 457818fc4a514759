"""A small page: one self-contained file, light and dark, readable at the width of a phone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any


def page(title: str, body: str, script: str = "") -> str:
    """A whole page; `title` is escaped, the rest is HTML already."""
    style = page_file("sheet.css")
    code = f"<script>{script}</script>" if script else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">"
        f"<title>{escape(title)}</title><style>{style}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}{code}</body></html>"
    )


def page_file(name: str) -> str:
    """A file of the folder `page_files`."""
    return (Path(__file__).parent / "page_files" / name).read_text("utf-8")


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], parts: Sequence[float] = ()) -> str:
    """A table; heads that begin with '#' are of numbers, those with '`' of code. `parts` are the
    lengths of bars behind the first column, from 0 to 1."""
    kinds = [{"#": "n", "`": "c"}.get(head[0], "") for head in heads]
    top = "".join(
        f'<th class="{kind}">{escape(head.lstrip("#`"))}</th>'
        for head, kind in zip(heads, kinds, strict=True)
    )
    lines = []
    for at, row in enumerate(rows):
        cells = []
        for i, (cell, kind) in enumerate(zip(row, kinds, strict=True)):
            text = escape(str(cell))
            text = f"<code>{text}</code>" if heads[i].startswith("`") else text
            bar = f' style="--part:{100 * parts[at]:.1f}%"' if i == 0 and parts else ""
            cells.append(f'<td class="{kind}{" bar" if bar else ""}"{bar}>{text}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table><tr>{top}</tr>{"".join(lines)}</table></div>'


def write(path: Any, text: str) -> None:
    """Write a page to a file whose name ends in .html."""
    if not str(path).endswith((".html", ".htm")):
        raise ValueError(f"a page is saved as .html, not {str(path)!r}")
    Path(path).write_text(text, encoding="utf-8")
