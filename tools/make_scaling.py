"""`python tools/make_scaling.py`: the tables and pictures of docs/scaling.md.

The pictures are computed by `rushlight.distributed.simulate`; the table is what
`python -m bench.scaling` measured last (docs/figures/scaling.json), beside what is predicted.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench import scaling  # noqa: E402 (found by the path above)
from rushlight.distributed.simulate import (  # noqa: E402
    ETHERNET,
    GPUS,
    Cluster,
    Layers,
    Link,
    curves,
    gpt,
    mlp,
    simulate,
    svg,
)

PAGE = ROOT / "docs" / "scaling.md"
FIGURES = ROOT / "docs" / "figures"
GPT2 = gpt(12, 768, tokens=16384, flops=2e14)


def cases() -> dict[str, tuple[Layers, Cluster]]:
    """The models and clusters of the page's first table."""
    slow = replace(ETHERNET, between=Link(50e-6, 1.1e9))
    on_cores = gpt(12, 768, tokens=8192, flops=1e12)
    perceptron = mlp([784, 1024, 1024, 10], batch=256, flops=1e12)
    return {
        "GPT-2, GPUs, NVLink + 400 Gb/s": (GPT2, GPUS),
        "GPT-2, processors, 100 Gb/s": (on_cores, ETHERNET),
        "GPT-2, processors, 10 Gb/s": (on_cores, slow),
        "perceptron, 100 Gb/s": (perceptron, ETHERNET),
        "perceptron, 10 Gb/s": (perceptron, slow),
    }


def pictures() -> dict[str, str]:
    """Names of files, and what is in them."""
    lines = {
        name: [(2**e, simulate(*case, 2**e).efficiency) for e in range(11)]
        for name, case in cases().items()
    }
    steps = {f"{ranks} ranks": simulate(GPT2, GPUS, ranks) for ranks in (8, 64, 1024)}
    return {"scaling.svg": curves(lines) + "\n", "scaling-step.svg": svg(steps) + "\n"}


def page() -> str:
    """docs/scaling.md with the present measurements."""
    results = json.loads(scaling.RESULTS.read_text("utf-8"))
    return re.sub(
        r"(?<=<!-- measured -->\n).*(?=\n<!-- end -->)",
        lambda _: "\n\n".join(
            make(results) for make in (scaling.reduce_table, scaling.training_table, scaling.table)
        ),
        PAGE.read_text("utf-8"),
        flags=re.DOTALL,
    )


def main() -> None:
    for name, content in pictures().items():
        (FIGURES / name).write_text(content, "utf-8")
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
