"""`python -m bench`: print the table of ratios and write bench/results/latest.json.

Ratios below 1 mean that rushlight is faster. PyTorch and JAX are compared with where they are
installed; a bar that is missed makes the exit status 1.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import numpy as np

import rushlight
from bench import memory
from bench.cases import (
    AGAINST_A_LOOP,
    AGAINST_NUMPY,
    AGAINST_TORCH,
    SMALL_AGAINST_NUMPY,
    numpy_multiplies,
    numpy_pairs,
)
from bench.timing import alternate

RESULTS = Path(__file__).parent / "results"


def against_torch(torch: Any) -> list[dict[str, Any]]:
    torch.set_num_threads(1)
    rows = []
    for name, (case, bar) in AGAINST_TORCH.items():
        found = alternate({"rushlight": case(rushlight), "torch": case(torch)})
        rows.append(row(name, "PyTorch", found["rushlight"], found["torch"], bar))
    return rows


def against_jax() -> list[dict[str, Any]]:
    """JAX's eager mode and its compiled function on the tutorial's example."""
    import jax
    import jax.numpy as jnp

    def example(x: Any) -> Any:
        y = x + 2
        return (y * y * 3).mean()

    ours = AGAINST_TORCH["the first tutorial's example"][0](rushlight)
    eager, compiled = jax.grad(example), jax.jit(jax.grad(example))
    x = jnp.ones((2, 2))
    found = alternate(
        {
            "rushlight": ours,
            "eager": lambda: eager(x).block_until_ready(),
            "jit": lambda: compiled(x).block_until_ready(),
        },
        rounds=7,
    )
    return [
        row("the first tutorial's example", "JAX grad", found["rushlight"], found["eager"], None),
        row("the same, compiled by JAX", "JAX jit", found["rushlight"], found["jit"], None),
    ]


def against_numpy() -> list[dict[str, Any]]:
    rows = []
    for name, (ours, theirs) in numpy_pairs(rushlight, np).items():
        found = alternate({"ours": ours, "numpy": theirs}, rounds=25)
        label = f"{name}, 1e6 float32"
        rows.append(row(label, "NumPy", found["ours"], found["numpy"], AGAINST_NUMPY[name]))
    for name, (case, bar) in SMALL_AGAINST_NUMPY.items():
        found = alternate({"ours": case(rushlight), "numpy": numpy_multiplies(np)}, rounds=50)
        compiled = bool(rushlight.__config__.compiled())
        rows.append(row(name, "NumPy", found["ours"], found["numpy"], bar if compiled else None))
    return rows


def against_a_loop() -> list[dict[str, Any]]:
    """Batches at once, against one member after the other: both are rushlight's."""
    rows = []
    for name, (case, loop, bar) in AGAINST_A_LOOP.items():
        found = alternate({"ours": case(rushlight), "loop": loop(rushlight)}, rounds=7)
        rows.append(row(name, "a loop", found["ours"], found["loop"], bar))
    return rows


def row(name: str, other: str, ours: float, theirs: float, bar: float | None) -> dict[str, Any]:
    return {
        "case": name, "against": other, "ours_us": ours * 1e6, "theirs_us": theirs * 1e6,
        "ratio": ours / theirs, "bar": bar,
    }  # fmt: skip


def import_times(repeats: int = 7) -> dict[str, Any]:
    """Milliseconds to import NumPy alone, and rushlight with it, best of several."""

    def best(module: str) -> float:
        code = (
            f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        )
        command = [sys.executable, "-c", code]
        # bytecode is cached as in any installation; the first run fills the cache
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        runs = [float(subprocess.check_output(command, env=env)) for _ in range(repeats + 1)]
        return 1e3 * min(runs[1:])

    plain, ours = best("numpy"), best("rushlight")
    return {"numpy_ms": plain, "rushlight_ms": ours, "more_ms": ours - plain, "bar_ms": 60.0}


def main() -> int:
    rows: list[dict[str, Any]] = []
    bytes_taken: list[dict[str, Any]] = []
    if importlib.util.find_spec("torch"):
        import torch

        rows += against_torch(torch)
        bytes_taken = memory.ratios()
    else:
        print("PyTorch is not installed: its rows are left out")
    if importlib.util.find_spec("jax"):
        rows += against_jax()
    rows += against_numpy()
    rows += against_a_loop()
    imports = import_times()
    missed = 0
    print(f"{'case':42} {'against':9} {'ours µs':>10} {'theirs µs':>10} {'ratio':>7} {'bar':>6}")
    for r in rows:
        over = r["bar"] is not None and r["ratio"] > r["bar"]
        missed += over
        bar = "" if r["bar"] is None else f"{r['bar']:.2f}"
        print(
            f"{r['case']:42} {r['against']:9} {r['ours_us']:10.2f} {r['theirs_us']:10.2f} "
            f"{r['ratio']:7.3f} {bar:>6}{'  over' if over else ''}"
        )
    for r in bytes_taken:
        ratio = r["ours"] / r["theirs"]
        over = ratio > r["bar"]
        missed += over
        print(
            f"{r['case']:42} {'memory':9} {r['ours'] / 1e6:7.1f} MB {r['theirs'] / 1e6:7.1f} MB "
            f"{ratio:7.3f} {r['bar']:6.2f}{'  over' if over else ''}"
        )
    over = imports["more_ms"] > imports["bar_ms"]
    missed += over
    print(
        f"import: NumPy {imports['numpy_ms']:.0f} ms, rushlight {imports['rushlight_ms']:.0f} ms, "
        f"{imports['more_ms']:.0f} ms more (bar {imports['bar_ms']:.0f}){'  over' if over else ''}"
    )
    RESULTS.mkdir(exist_ok=True)
    record = {
        "rows": rows,
        "memory": bytes_taken,
        "import": imports,
        "compiled": rushlight.__config__.compiled(),
    }
    (RESULTS / "latest.json").write_text(json.dumps(record, indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
