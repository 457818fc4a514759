"""Where things stand: a layered drawing (Sugiyama's method), laid out by igraph.

Every box stands below those that it was computed from. igraph orders each layer so that few lines
cross, and leads long lines around the boxes between.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rushlight.viz.missing_extra import need

Point = tuple[float, float]


@dataclass
class Layout:
    """The middle of each box, the points that each line goes through, and how large it all is."""

    boxes: dict[str, Point] = field(default_factory=dict)
    lines: dict[tuple[str, str], list[Point]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0


def layers_of(keys: list[str], joined: list[tuple[str, str]]) -> dict[str, int]:
    """For each box how many stand above it; what has none stands right above its reader."""
    sources: dict[str, list[str]] = {k: [] for k in keys}
    targets: dict[str, list[str]] = {k: [] for k in keys}
    waiting = dict.fromkeys(keys, 0)
    for a, b in joined:
        sources[b].append(a)
        targets[a].append(b)
        waiting[b] += 1
    ready = [k for k in keys if waiting[k] == 0]
    layers: dict[str, int] = {}
    order: list[str] = []
    while ready:
        key = ready.pop()
        order.append(key)
        layers[key] = max((layers[s] + 1 for s in sources[key]), default=0)
        for t in targets[key]:
            waiting[t] -= 1
            if waiting[t] == 0:
                ready.append(t)
    for key in order:
        if not sources[key] and targets[key]:
            layers[key] = min(layers[t] for t in targets[key]) - 1
    lowest = min(layers.values(), default=0)
    return {key: layer - lowest for key, layer in layers.items()}


def lay_out(
    sizes: dict[str, Point], joined: list[tuple[str, str]], gap_x: float = 26, gap_y: float = 46
) -> Layout:
    """Places for boxes of these sizes (width, height), and the lines that join them in pairs."""
    igraph = need("igraph")
    keys = list(sizes)
    if not keys:
        return Layout()
    number = {key: i for i, key in enumerate(keys)}
    layers = layers_of(keys, joined)
    pairs = [(number[a], number[b]) for a, b in joined]
    graph = igraph.Graph(n=len(keys), edges=pairs, directed=True)
    found: Any = graph.layout_sugiyama(layers=[layers[k] for k in keys], hgap=1, vgap=1)
    rows = {key: (x, layers[key]) for key, (x, _) in zip(keys, found)}
    bends = {pair: [(x, round(y)) for x, y in way] for pair, way in zip(joined, found.edge_routing)}
    return _scaled(rows, bends, sizes, (gap_x, gap_y))


def _scaled(
    rows: dict[str, tuple[float, int]], bends: dict[tuple[str, str], list[tuple[float, int]]],
    sizes: dict[str, Point], gaps: Point,
) -> Layout:  # fmt: skip
    """igraph's places, which are columns and layers, in the sizes of the boxes."""
    crowd: dict[float, dict[int, float]] = {}  # column -> layer -> how wide
    heights: dict[int, float] = {}
    for key, (x, layer) in rows.items():
        crowd.setdefault(x, {})[layer] = sizes[key][0]
        heights[layer] = max(heights.get(layer, 0.0), sizes[key][1])
    for way in bends.values():
        for x, layer in way:
            crowd.setdefault(x, {}).setdefault(layer, 0.0)
    across = _columns(crowd, gaps[0])
    down: dict[int, float] = {}
    top = gaps[1] / 2
    for layer in range(max(heights) + 1):
        down[layer] = top + heights.get(layer, 0.0) / 2
        top += heights.get(layer, 0.0) + gaps[1]
    made = Layout(height=top - gaps[1] / 2)
    for key, (x, layer) in rows.items():
        made.boxes[key] = (across[x], down[layer])
    for pair, way in bends.items():
        middle = [(across[x], down[layer]) for x, layer in way]
        made.lines[pair] = [made.boxes[pair[0]], *middle, made.boxes[pair[1]]]
    edges = [made.boxes[k][0] + sizes[k][0] / 2 for k in rows]
    made.width = max(edges + list(across.values())) + gaps[0]
    return made


def _columns(crowd: dict[float, dict[int, float]], gap: float) -> dict[float, float]:
    """Where each column goes, so that no two boxes of a layer meet and columns stay straight."""
    across: dict[float, float] = {}
    right: dict[int, float] = {}  # how far each layer is taken
    last = 0.0
    for x in sorted(crowd):
        here = last + (gap / 4 if across else 0.0)
        for layer, width in crowd[x].items():
            here = max(here, right.get(layer, 0.0) + gap + width / 2)
        across[x] = last = here
        for layer, width in crowd[x].items():
            right[layer] = here + width / 2
    return across
