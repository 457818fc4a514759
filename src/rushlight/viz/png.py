"""A drawing as PNG, through matplotlib: for reports and for pages that take no SVG."""

from __future__ import annotations

from typing import Any

from rushlight.viz.drawing import COLOURS, LINE, Drawing, DrawnBox, curve
from rushlight.viz.missing_extra import need

_MOST = 12000  # pixels along a side


def save_png(drawing: Drawing, path: Any, dpi: float = 144) -> None:
    """Write the drawing into a file or a binary stream; 96 dpi is a pixel a unit."""
    figures, canvases = need("matplotlib.figure"), need("matplotlib.backends.backend_agg")
    patches, paths = need("matplotlib.patches"), need("matplotlib.path")
    width, height = max(drawing.width, 1.0), max(drawing.height, 1.0)
    dpi = min(dpi, 96 * _MOST / max(width, height))
    # a figure of its own: nothing of the user's pyplot is touched, and no window is opened
    figure = figures.Figure(figsize=(width / 96, height / 96), facecolor="white")
    canvases.FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    axes.axis("off")
    for line in drawing.lines:
        points, codes = [line[0]], [paths.Path.MOVETO]
        for piece in curve(line):
            points.extend(piece)
            codes.extend([paths.Path.CURVE4] * 3)
        style: dict[str, Any] = {"color": LINE, "linewidth": 0.9, "fill": False}
        axes.add_patch(patches.PathPatch(paths.Path(points, codes), **style))
        x, y = line[-1]
        head = [(x - 3, y - 5), (x + 3, y - 5), (x, y + 1)]
        axes.add_patch(patches.Polygon(head, color=LINE, linewidth=0))
    for x, y, words in drawing.marks:
        axes.text(x, y, words, fontsize=7, color=LINE)
    for box in drawing.boxes:
        _draw_box(axes, patches, box)
    figure.savefig(path, format="png", dpi=dpi)


def _draw_box(axes: Any, patches: Any, box: DrawnBox) -> None:
    fill, border, ink = COLOURS[box.kind]
    radius = min(box.height / 2 if box.round else 5, 14)
    dashes = "--" if box.kind == "constant" else "-"
    for shift in (6, 3, 0) if box.stacked else (0,):
        corner = (box.x - box.width / 2 + shift, box.y - box.height / 2 + shift)
        shape = patches.BoxStyle("Round", pad=0, rounding_size=radius)
        style: dict[str, Any] = {"facecolor": fill, "edgecolor": border, "linewidth": 0.75}
        axes.add_patch(
            patches.FancyBboxPatch(
                corner, box.width, box.height, boxstyle=shape, linestyle=dashes, **style
            )
        )
    down = box.y - box.height / 2 + 6
    for words, size, bold in box.texts:
        down += size * 1.35
        axes.text(
            box.x, down - size * 0.3, words, fontsize=size * 0.72, ha="center", va="baseline",
            color=ink, fontweight="bold" if bold else "normal", parse_math=False,
            alpha=1.0 if bold else 0.75,
        )  # fmt: skip
