"""A step as a picture: computing above, communication below, time from left to right."""

from __future__ import annotations

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
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
        f'viewBox="0 0 {WIDTH} {y}" font-family="sans-serif" font-size="12">'
        f'<rect width="{WIDTH}" height="{y}" fill="white"/>' + "".join(legend + parts) + "</svg>"
    )
