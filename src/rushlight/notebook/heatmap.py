"""A tensor as a small picture: its numbers as colours, written out where there is room.

Blue is below zero, red above, white near it; the darkest is the largest in size. What is not finite
is grey, and says so. Of large tensors some rows and columns are shown, of more than two dimensions
the first matrix. The picture is SVG, and needs nothing else.
"""

from __future__ import annotations

import html
import math
from typing import Any

import rushlight as torch

MOST = 48  # rows and columns that are drawn
WRITTEN = 10  # up to so many rows and columns are written out
STYLE = "font:11px ui-monospace,Menlo,Consolas,monospace"


def tensor_html(x: Any) -> str:
    """A tensor as HTML: a line that says what it is, and the picture.

    >>> text = tensor_html(torch.tensor([[1., -2.]]))
    >>> "1×2 float32" in text, text.count("<rect")
    (True, 2)
    """
    return f'<div style="{STYLE};margin:2px 0">{caption(x)}<br>{picture(x)}</div>'


def caption(x: Any) -> str:
    """Shape, dtype, and its place in the graph; statistics if there are many numbers."""
    shape = "×".join(map(str, x.shape)) if x.ndim else "number"
    words = [f"{shape} {str(x.dtype).removeprefix('torch.')}"]
    if x.device.type != "cpu":
        words.append(f"on {x.device}")
    if x.grad_fn is not None:
        words.append(f"from {x.grad_fn.name()}")
    elif x.requires_grad:
        words.append("requires_grad")
    if x.layout is not torch.strided:
        words.append(str(x.layout).removeprefix("torch."))
    if x.numel() > WRITTEN**2 and x.device.type != "meta":
        words.append(statistics(x))
    return html.escape(", ".join(words))


def statistics(x: Any) -> str:
    """The range and the mean of many numbers, and how many are not finite."""
    numbers = plain(x)
    finite = numbers[torch.isfinite(numbers)]
    lost = numbers.numel() - finite.numel()
    said = "nothing is finite"
    if finite.numel():
        low, high, mean = finite.min().item(), finite.max().item(), finite.mean().item()
        said = f"from {short(low)} to {short(high)}, mean {short(mean)}"
    return said + (f", {lost} not finite" if lost and finite.numel() else "")


def plain(x: Any) -> Any:
    """The numbers to be shown as dense float64 without a history; of complex ones their sizes."""
    x = x.detach()
    x = x.to_dense() if x.layout is not torch.strided else x
    x = x.abs() if x.is_complex() else x
    return x.to("cpu", torch.float64)


def picture(x: Any) -> str:
    """The numbers as an SVG; as text where there are none or one."""
    if x.device.type == "meta":
        return "<i>no numbers: the device is meta</i>"
    if x.numel() == 0:
        return "<i>empty</i>"
    if x.ndim == 0:
        return f"<b>{html.escape(short(x.item()))}</b>"
    numbers = plain(x)
    note = ""
    if numbers.ndim > 2:
        note = f"<br>the first of {math.prod(x.shape[:-2])} matrices"
        numbers = numbers.reshape(-1, *x.shape[-2:])[0]
    rows, columns = numbers.shape if numbers.ndim == 2 else (1, len(numbers))
    matrix = numbers.reshape(rows, columns)
    across, down = chosen(columns), chosen(rows)
    if len(down) < rows or len(across) < columns:
        note += f"<br>{len(down)} of {rows} rows, {len(across)} of {columns} columns"
    return svg(matrix[down][:, across].tolist(), down, across, x.dtype) + note


def chosen(n: int) -> list[int]:
    """Which of `n` rows are drawn: all, or some at even distances, the last among them."""
    if n <= MOST:
        return list(range(n))
    return [round(i * (n - 1) / (MOST - 1)) for i in range(MOST)]


def svg(values: list[list[float]], down: list[int], across: list[int], dtype: Any) -> str:
    """Squares in the colours of the values, each with its place and value as a tooltip."""
    written = len(down) <= WRITTEN and len(across) <= WRITTEN
    texts = [[short(v, dtype) for v in row] for row in values]
    wide = max(24, 7 * max(len(t) for row in texts for t in row) + 8) if written else 8
    high = 20 if written else 8
    largest = max((abs(v) for row in values for v in row if math.isfinite(v)), default=0.0)
    parts = []
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            fill, ink = colours(value, largest)
            tip = html.escape(f"[{down[i]}, {across[j]}] {texts[i][j]}")
            box = f'<rect x="{j * wide}" y="{i * high}" width="{wide}" height="{high}"'
            parts.append(f'{box} fill="{fill}"><title>{tip}</title></rect>')
            if written:
                x, y = j * wide + wide / 2, i * high + 14
                parts.append(
                    f'<text x="{x:g}" y="{y:g}" text-anchor="middle" fill="{ink}" '
                    f'pointer-events="none">{html.escape(texts[i][j])}</text>'
                )
    size = f'width="{wide * len(across)}" height="{high * len(down)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{STYLE}">{"".join(parts)}</svg>'


def colours(value: float, largest: float) -> tuple[str, str]:
    """The colour of a number, and the one to write on it."""
    if not math.isfinite(value):
        return "#8a8a8a", "#ffffff"
    strength = abs(value) / largest if largest else 0.0
    deep = (33, 102, 172) if value < 0 else (178, 24, 43)
    mixed = [round(247 + (c - 247) * strength) for c in deep]
    return "#" + "".join(f"{c:02x}" for c in mixed), "#ffffff" if strength > 0.55 else "#222222"


def short(value: Any, dtype: Any = None) -> str:
    """A number in a few characters.

    >>> short(1234.5678), short(2.0), short(3.0, torch.int64)
    ('1235', '2.', '3')
    """
    if isinstance(value, (bool, int, complex)):
        return str(value)
    if dtype is torch.bool:
        return str(bool(value))
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        return str(int(value))
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.4g}"
    return text + "." if text.lstrip("-").isdigit() and len(text) < 4 else text
