"""Draw what `python -m bench.ops` measured: bench/results/ops.svg and bench/results/ops-names.svg.

In the first, one column a size and one dot an op: how its time compares with PyTorch's, on a
logarithmic scale. In the second each op has a line of its own, with its name.
`python tools/make_figures.py` copies both into the documents.
"""

from __future__ import annotations

import json
import math
from typing import Any

from bench.ops import RESULTS, SHAPES

PICTURES = {name: RESULTS.with_name(f"{name}.svg") for name in ("ops", "ops-names")}
WAYS = {"forward": "tab:blue", "forward + backward": "tab:orange"}
SIZES = {"small": "tab:blue", "medium": "tab:orange", "large": "tab:green"}


def found(measured: dict[str, Any], size: str, way: str, threads: int = 1) -> Any:
    """What was measured of a size and a way; None if it was not."""
    shape = "x".join(map(str, SHAPES[size]))
    return measured.get(f"{size} {shape}, {way}, threads: {threads}")


def scale(axes: Any, lowest: int) -> None:
    """A logarithmic scale of ratios, with a line at 1."""
    axes.axvline(1, color="gray", linewidth=0.8)
    axes.set_xscale("log", base=2)
    ticks = [2.0**e for e in range(lowest, 3)]
    axes.set_xticks(ticks, [f"{t:g}" if t >= 1 else f"1/{round(1 / t)}" for t in ticks])
    axes.set_xlim(2 ** (lowest - 0.5), 2**2.5)
    axes.set_xlabel("time, PyTorch = 1")


def column(axes: Any, measured: dict[str, Any], size: str) -> None:
    """The ops of one size, sorted by their ratio."""
    scale(axes, -5)
    for way, colour in WAYS.items():
        for threads, marker in ((1, "."), (2, "x")):
            rows = found(measured, size, way, threads)
            if rows is None:
                continue
            ratios = sorted(rows["ratios"].values())
            places = [100 * (i + 0.5) / len(ratios) for i in range(len(ratios))]
            label = f"{way}, {threads} thread{'s' * (threads > 1)}: mean {rows['mean']:.2f}"
            axes.plot(ratios, places, marker, color=colour, markersize=3, label=label)
    axes.set_title(f"{size}: {math.prod(SHAPES[size]):,} numbers")
    axes.legend(loc="lower right", fontsize=6)


def named(axes: Any, measured: dict[str, Any], way: str) -> None:
    """Every op on a line of its own: the slowest, by its mean over the sizes, at the top."""
    scale(axes, -5)
    tables = {s: rows["ratios"] for s in SIZES if (rows := found(measured, s, way)) is not None}
    names = sorted(
        {name for table in tables.values() for name in table},
        key=lambda name: sum(math.log(t[name]) for t in tables.values() if name in t),
    )
    for size, table in tables.items():
        places = [i for i, name in enumerate(names) if name in table]
        ratios = [table[name] for name in names if name in table]
        axes.plot(ratios, places, ".", color=SIZES[size], markersize=5, label=size)
    axes.set_yticks(range(len(names)), names, fontsize=6, family="monospace")
    axes.set_ylim(-1, len(names))
    axes.grid(axis="y", linewidth=0.2)
    axes.set_title(way)
    axes.legend(loc="lower right", fontsize=8)


def main() -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "rushlight"  # the same picture each time
    matplotlib.rcParams["svg.fonttype"] = "none"  # letters, not their outlines
    from matplotlib import pyplot

    measured = json.loads(RESULTS.read_text("utf-8"))
    figure, columns = pyplot.subplots(1, len(SHAPES), sharey=True, figsize=(11, 4))
    for axes, size in zip(columns, SHAPES, strict=True):
        column(axes, measured, size)
    columns[0].set_ylabel("% of the ops that take no longer")
    figure.tight_layout()
    figure.savefig(PICTURES["ops"], metadata={"Date": None})
    most = max(len(rows["ratios"]) for rows in measured.values())
    figure, sides = pyplot.subplots(1, len(WAYS), figsize=(11, 1 + 0.11 * most))
    for axes, way in zip(sides, WAYS, strict=True):
        named(axes, measured, way)
    figure.tight_layout()
    figure.savefig(PICTURES["ops-names"], metadata={"Date": None})


if __name__ == "__main__":
    main()
