"""A small page: one self-contained file, light and dark, readable at the width of a phone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

STYLE: Final = """
:root{color-scheme:light dark;--ink:#1d2433;--dim:#5d6778;--paper:#fff;--line:#dde2ea;--bar:#9cc3ef}
@media (prefers-color-scheme:dark){:root{--ink:#e4e8ef;--dim:#98a2b3;--paper:#14181f;
--line:#2c3440;--bar:#2f5f96}}
body{margin:1rem auto;max-width:70rem;padding:0 1rem;background:var(--paper);color:var(--ink);
font:15px/1.45 system-ui,sans-serif}
h1{font-size:1.25rem}h2{font-size:1.05rem;margin-top:1.6rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:left;white-space:nowrap}
th{color:var(--dim);font-weight:500}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
td.c{white-space:normal;min-width:16rem}code{font:13px ui-monospace,monospace}.dim{color:var(--dim)}
.warn{border-left:4px solid #d9822b;padding:.3rem .8rem}
td.bar{background:linear-gradient(to right,var(--bar) var(--part),transparent var(--part))}
"""


def page(title: str, body: str, style: str = "", script: str = "") -> str:
    """A whole page; `title` is escaped, the rest is HTML already."""
    code = f"<script>{script}</script>" if script else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}{code}</body></html>"
    )


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
