"""Pictures as SVG: a step (computing above, communication below), and efficiency over ranks."""

from __future__ import annotations

import math

from rushlight.distributed.simulate.step import Step

WIDTH, LEFT, BAR = 720, 110, 26
COLOURS = {"forward": "#9ecae1", "backward": "#4292c6", "bucket": "#fdae6b", "wait": "#d9d9d9"}


def rectangle(x: float, y: float, width: float, colour: str, title: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.0f}" width="{max(width, 0.5):.1f}" height="{BAR}" '
        f'fill="{colour}" stroke="white" stroke-width="0.5"><title>{title}</title></rect>'
    )


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.0f}" text-anchor="{anchor}">{words}</text>'


def drawing(parts: list[str], height: float) -> str:
    """One `<svg>` element, on white."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>' + "".join(parts) + "</svg>"
    )


def svg(steps: dict[str, Step]) -> str:
    """Steps as one `<svg>` element, a pair of lines each, on one scale of time.

    >>> from rushlight.distributed.simulate import ETHERNET, Layer, Layers, simulate
    >>> model = Layers([Layer("a", 4e6, 0.01, 0.02), Layer("b", 4e6, 0.01, 0.02)])
    >>> picture = svg({"8 ranks": simulate(model, ETHERNET, 8)})
    >>> picture.startswith("<svg"), picture.count("<rect")
    (True, 10)
    """
    longest = max(step.seconds for step in steps.values())
    scale = (WIDTH - LEFT - 20) / longest
    parts, y = [], 34
    for name, step in steps.items():
        backward = step.backward_end - step.forward
        wait = step.seconds - step.backward_end
        at = LEFT + step.backward_end * scale
        parts += [
            text(LEFT - 8, y + 17, name, "end"),
            rectangle(LEFT, y, step.forward * scale, COLOURS["forward"], "forward"),
            rectangle(
                LEFT + step.forward * scale, y, backward * scale, COLOURS["backward"], "backward"
            ),
            rectangle(at, y, wait * scale, COLOURS["wait"], "waiting and update"),
        ]
        for reduction in step.reductions:
            title = f"{reduction.size / 1e6:.1f} MB, {reduction.algorithm}"
            start = LEFT + reduction.start * scale
            length = (reduction.end - reduction.start) * scale
            parts.append(rectangle(start, y + BAR + 2, length, COLOURS["bucket"], title))
        parts.append(
            text(LEFT, y + 2 * BAR + 16, f"{step.seconds * 1e3:.1f} ms, {step.efficiency:.0%}")
        )
        y += 2 * BAR + 30
    legend, x = [], float(LEFT)
    for name, colour in COLOURS.items():
        legend.append(f'<rect x="{x:.0f}" y="8" width="12" height="12" fill="{colour}"/>')
        legend.append(text(x + 16, 18, name))
        x += 110
    return drawing(legend + parts, y)


def curves(lines: dict[str, list[tuple[int, float]]], height: int = 260) -> str:
    """Efficiency over numbers of ranks, a curve for each name; ranks on a logarithmic scale.

    >>> picture = curves({"ring": [(1, 1.0), (8, 0.9), (64, 0.7)]})
    >>> picture.count("<polyline"), picture.count("<circle")
    (1, 3)
    """
    left, right, top, bottom = 50, 250, 16, 36
    most = max(ranks for points in lines.values() for ranks, _ in points)
    across = (WIDTH - left - right) / max(math.log2(most), 1.0)
    down = height - top - bottom

    def place(ranks: int, efficiency: float) -> tuple[float, float]:
        return left + across * math.log2(ranks), top + down * (1 - efficiency)

    parts = []
    for percent in range(0, 101, 20):
        x, y = place(1, percent / 100)
        parts.append(
            f'<line x1="{x:.0f}" x2="{WIDTH - right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        )
        parts.append(text(x - 6, y + 4, f"{percent}%", "end"))
    for power in range(int(math.log2(most)) + 1):
        parts.append(text(place(2**power, 0)[0], height - bottom + 16, str(2**power), "middle"))
    parts.append(text((left + WIDTH - right) / 2, height - 6, "ranks", "middle"))
    palette = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b")
    for number, (name, points) in enumerate(lines.items()):
        colour = palette[number % len(palette)]
        places = [place(*point) for point in points]
        track = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{track}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
        y = top + 12 + 20 * number
        parts.append(
            f'<rect x="{WIDTH - right + 14}" y="{y - 9}" width="12" height="12" fill="{colour}"/>'
        )
        parts.append(text(WIDTH - right + 32, y + 1, name))
    return drawing(parts, height)
