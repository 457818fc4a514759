"""A module as a table: its layers as it prints itself, and its parameters with their numbers."""

from __future__ import annotations

import html
from typing import Any

MOST = 40  # parameters that are listed


def module_html(module: Any) -> str:
    """A module as HTML: what `print` shows, and below it, folded, a row for each parameter.

    >>> "3 parameters" in module_html(torch.nn.Linear(2, 1))
    True
    """
    rows = list(module.named_parameters())
    total = sum(p.numel() for _, p in rows)
    frozen = sum(p.numel() for _, p in rows if not p.requires_grad)
    said = f"{total:,} parameters" + (f", {frozen:,} of them frozen" if frozen else "")
    lines = "".join(row(name, p) for name, p in rows[:MOST])
    if len(rows) > MOST:
        lines += f'<tr><td colspan="4">and {len(rows) - MOST} more</td></tr>'
    head = "<tr><th>parameter</th><th>shape</th><th>norm</th><th>norm of the gradient</th></tr>"
    return (
        f"<pre>{html.escape(str(module))}</pre>"
        f"<details><summary>{said}</summary><table>{head}{lines}</table></details>"
    )


def row(name: str, p: Any) -> str:
    """One parameter: its size, and how large it and its gradient are."""
    shape = "×".join(map(str, p.shape)) or "number"
    grad = "frozen" if not p.requires_grad else "none yet"
    if p.grad is not None:
        grad = norm(p.grad)
    cells = (name, shape, norm(p), grad)
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


def norm(x: Any) -> str:
    if x.device.type == "meta":
        return "no numbers"
    return f"{x.detach().norm().item():.4g}"
