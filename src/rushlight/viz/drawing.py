"""A picture as boxes, texts and lines: what an SVG and a PNG are both written from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rushlight.viz.folding import Group
from rushlight.viz.layout import Layout, Point, lay_out
from rushlight.viz.model import Item
from rushlight.viz.visible import Shown, View

# fill, border and text of each kind of box; colour-blind safe, and told apart by shape too
COLOURS = {
    "op": ("#eef2f7", "#8796ab", "#1c2733"),
    "function": ("#f3e8fb", "#9a66c4", "#2b1638"),
    "parameter": ("#dff3e4", "#3f9a5c", "#10331c"),
    "leaf": ("#dff3e4", "#3f9a5c", "#10331c"),
    "constant": ("#f6f6f4", "#b5b5ad", "#55554f"),
    "output": ("#fde9d3", "#d98324", "#3d2408"),
    "group": ("#dce9fb", "#4a7fc1", "#10263f"),
}
LINE = "#8796ab"
Texts = list[tuple[str, float, bool]]


@dataclass
class DrawnBox:
    """A box around (x, y), with lines of text: each has a size, and is bold or not."""

    key: str
    kind: str
    x: float
    y: float
    width: float
    height: float
    texts: Texts
    round: bool = False
    stacked: bool = False  # a folded group: drawn as a pile
    tip: str = ""


@dataclass
class Drawing:
    """All of a picture, in units of pixels."""

    width: float = 0.0
    height: float = 0.0
    boxes: list[DrawnBox] = field(default_factory=list)
    lines: list[list[Point]] = field(default_factory=list)
    marks: list[tuple[float, float, str]] = field(default_factory=list)  # beside lines
    title: str = ""


def width_of(text: str, size: float, bold: bool = False) -> float:
    """How wide a text is, roughly, in the fonts that browsers have for sans-serif."""
    wide = sum(1.65 if ord(c) > 0x2E80 else 0.55 if c in "iljtf.,:;'|![]() " else 1.0 for c in text)
    return wide * size * (0.64 if bold else 0.57)


def texts_of(shown: Shown, reads: Sequence[str] = ()) -> tuple[str, Texts, str]:
    """The kind of a box, its lines of text, and what it says when one points at it. `reads` are
    leaves that no line leads from: see `View`."""
    if isinstance(shown, Group):
        count = len(shown.nodes())
        texts = [(cut(shown.title, 30), 12.5, True)]
        if shown.subtitle:
            texts.append((cut(shown.subtitle, 34), 10, False))
        texts.append((f"{count} nodes folded", 10, False))
        if reads:
            texts.append((cut("reads " + ", ".join(reads), 40), 9, False))
        return "group", texts, f"{shown.kind} {shown.title} {shown.subtitle}".strip()
    texts = [(cut(shown.title, 30), 12.5, True)]
    if shown.label and shown.label != shown.title:
        texts[0] = (f"{cut(shown.label, 14)} = {cut(shown.title, 20)}", 12.5, True)
    numbers = [f"{k}={v}" for k, v in shown.details.items() if k in ("other", "exponent", "dims")]
    if shown.size_text:
        texts.append((shown.size_text, 10, False))
    if numbers:
        texts.append((cut(", ".join(numbers), 34), 10, False))
    if shown.kept:
        texts.append((cut("keeps " + ", ".join(shown.kept), 34), 9, False))
    if reads:
        texts.append((cut("reads " + ", ".join(reads), 34), 9, False))
    if shown.place is not None and str(shown.place):
        texts.append((cut(str(shown.place), 34), 9, False))
    return shown.kind, texts, tip_of(shown)


def tip_of(item: Item) -> str:
    """All that is known of an item, in a few lines."""
    lines = [item.graph_node.name() if item.kind in ("op", "function") else item.title]
    if item.module:
        lines.append(".".join(item.module))
    if item.size_text:
        lines.append(item.size_text)
    for name, shape in item.kept.items():
        lines.append(f"keeps {name} {list(shape)}")
    if item.place is not None:
        lines.append(f"{item.place}  {item.place.source}")
    return "\n".join(lines)


def cut(text: str, length: int) -> str:
    """A text, shortened in its middle if it is longer."""
    if len(text) <= length:
        return text
    half = (length - 1) // 2
    return f"{text[: length - 1 - half]}…{text[-half:]}"


def draw(view: View, title: str) -> Drawing:
    """The picture of what is seen of a graph."""
    boxes: dict[str, DrawnBox] = {}
    for key, shown in view.shown.items():
        kind, texts, tip = texts_of(shown, view.reads.get(key, ()))
        width = max(width_of(text, size, bold) for text, size, bold in texts) + 22
        height = sum(size * 1.35 for _, size, _ in texts) + 12
        boxes[key] = DrawnBox(key, kind, 0, 0, max(width, 54), height, texts, tip=tip)
        boxes[key].round = kind in ("parameter", "leaf", "constant", "output")
        boxes[key].stacked = kind == "group"
    sizes = {key: (box.width, box.height) for key, box in boxes.items()}
    place: Layout = lay_out(sizes, list(view.joined))
    for key, box in boxes.items():
        box.x, box.y = place.boxes[key]
    drawing = Drawing(place.width, place.height, list(boxes.values()), title=title)
    for (a, b), line in place.lines.items():
        first, last = boxes[a], boxes[b]
        ends = [(line[0][0], first.y + first.height / 2), *line[1:-1]]
        drawing.lines.append([*ends, (line[-1][0], last.y - last.height / 2 - 2)])
        if view.joined[a, b] > 1 and not (first.stacked or last.stacked):
            (ax, ay), (bx, by) = drawing.lines[-1][:2]
            drawing.marks.append(((ax + bx) / 2 + 6, (ay + by) / 2 + 3, f"×{view.joined[a, b]}"))
    return drawing


def curve(line: list[Point]) -> list[tuple[Point, Point, Point]]:
    """A smooth way through the points of a line: Bézier pieces that leave and arrive downwards."""
    pieces = []
    for (ax, ay), (bx, by) in pairwise(line):
        bend = max((by - ay) * 0.5, 6.0)
        pieces.append(((ax, ay + bend), (bx, by - bend), (bx, by)))
    return pieces
