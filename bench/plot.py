"""`python -m bench.plot`: draw what `python -m bench.ops` measured, as docs/figures/ops.svg.

One column a size, one dot an op: how its time compares with PyTorch's, on a logarithmic scale.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from bench.ops import RESULTS, SHAPES

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "figures" / "ops.svg"
WAYS = {"forward": "tab:blue", "forward + backward": "tab:orange"}


def column(axes: Any, measured: dict[str, Any], size: str) -> None:
    """The ops of one size, sorted by their ratio."""
    shape = "x".join(map(str, SHAPES[size]))
    axes.axvline(1, color="gray", linewidth=0.8)
    for way, colour in WAYS.items():
        found = measured.get(f"{size} {shape}, {way}, threads: 1")
        if found is None:
            continue
        ratios = sorted(found["ratios"].values())
        places = [100 * (i + 0.5) / len(ratios) for i in range(len(ratios))]
        label = f"{way}: mean {found['mean']:.2f}"
        axes.plot(ratios, places, ".", color=colour, markersize=4, label=label)
    axes.set_xscale("log", base=2)
    ticks = [2.0**e for e in range(-5, 3)]
    axes.set_xticks(ticks, [f"{t:g}" if t >= 1 else f"1/{round(1 / t)}" for t in ticks])
    axes.set_xlim(2**-5.5, 2**2.5)
    axes.set_title(f"{size}: {math.prod(SHAPES[size]):,} numbers")
    axes.set_xlabel("time, PyTorch = 1")
    axes.legend(loc="upper left", fontsize=8)


def main() -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "rushlight"  # the same picture each time
    from matplotlib import pyplot

    measured = json.loads(RESULTS.read_text("utf-8"))
    figure, columns = pyplot.subplots(1, len(SHAPES), sharey=True, figsize=(11, 4))
    for axes, size in zip(columns, SHAPES, strict=True):
        column(axes, measured, size)
    columns[0].set_ylabel("% of the ops that take no longer")
    figure.tight_layout()
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
