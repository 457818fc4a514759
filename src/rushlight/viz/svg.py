"""A drawing as SVG: text that can be searched, no script, no font of its own."""

from __future__ import annotations

from html import escape

from rushlight.viz.drawing import COLOURS, LINE, Drawing, DrawnBox, curve

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


def svg(drawing: Drawing) -> str:
    """The drawing as one `<svg>` element, on white."""
    w, h = drawing.width, drawing.height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" '
        f'viewBox="0 0 {w:.1f} {h:.1f}" role="img" font-family="{escape(FONT)}">',
        f"<title>{text(drawing.title)}</title>",
        '<defs><marker id="rl-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>',
        f'<rect width="{w:.1f}" height="{h:.1f}" fill="#ffffff"/>',
        f'<g fill="none" stroke="{LINE}" stroke-width="1.2">',
    ]
    for line in drawing.lines:
        d = f"M{line[0][0]:.1f} {line[0][1]:.1f}"
        for (ax, ay), (bx, by), (x, y) in curve(line):
            d += f"C{ax:.1f} {ay:.1f} {bx:.1f} {by:.1f} {x:.1f} {y:.1f}"
        parts.append(f'<path d="{d}" marker-end="url(#rl-arrow)"/>')
    parts.append("</g>")
    for x, y, words in drawing.marks:
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="10" fill="{LINE}">{words}</text>')
    parts.extend(_box(box) for box in drawing.boxes)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def text(value: str) -> str:
    """A text for SVG: escaped, and without characters that XML does not allow."""
    allowed = "".join(c if c in "\t\n" or ord(c) >= 32 else "\ufffd" for c in value)
    return escape("".join("\ufffd" if 0xD800 <= ord(c) <= 0xDFFF else c for c in allowed))


def _box(box: DrawnBox) -> str:
    fill, border, ink = COLOURS[box.kind]
    left, top = box.x - box.width / 2, box.y - box.height / 2
    radius = box.height / 2 if box.round else 5
    dashes = ' stroke-dasharray="4 3"' if box.kind == "constant" else ""
    size = f'width="{box.width:.1f}" height="{box.height:.1f}" rx="{min(radius, 14):.1f}"'
    style = f'fill="{fill}" stroke="{border}"{dashes}'
    parts = [f'<g data-key="{text(box.key)}"><title>{text(box.tip)}</title>']
    for shift in (6, 3, 0) if box.stacked else (0,):
        parts.append(f'<rect x="{left + shift:.1f}" y="{top + shift:.1f}" {size} {style}/>')
    down = top + 6
    for words, height, bold in box.texts:
        down += height * 1.35
        weight = ' font-weight="600"' if bold else ' fill-opacity="0.75"'
        parts.append(
            f'<text x="{box.x:.1f}" y="{down - height * 0.3:.1f}" font-size="{height:g}" '
            f'text-anchor="middle" fill="{ink}"{weight}>{text(words)}</text>'
        )
    parts.append("</g>")
    return "".join(parts)
