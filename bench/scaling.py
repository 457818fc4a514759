"""`python -m bench.scaling`: data-parallel training on two processes, measured and predicted.

Measures all-reduces and training steps with `bench.scaling_worker`, for rushlight and PyTorch;
computes from the all-reduces and from steps without communication what
`rushlight.distributed.simulate` says a step of DistributedDataParallel takes; prints both, and
writes all of it to docs/figures/scaling.json. One thread a process.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rushlight.distributed.simulate import Cluster, Layer, Layers, Link, simulate

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "figures" / "scaling.json"
MPIEXEC = Path(sys.executable).with_name("mpiexec")
LIBRARIES = ("rushlight", "torch")
BATCHES = {"mlp": 64, "gpt": 4}
CAPS = (1.0, 4.0, 25.0)
ROUNDS = 5
NAMES = {"rushlight": "rushlight", "torch": "PyTorch"}


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **more}


def measure(library: str, ranks: int = 2) -> dict[str, Any]:
    """What rank 0 of the workers prints. rushlight's are started by mpiexec; PyTorch's, which has
    no MPI in its wheels, find each other by a port."""
    words: dict[str, Any] = {"rounds": ROUNDS}
    if library != "mpi4py":
        words |= {"batches": BATCHES, "caps": CAPS}
    worker = [sys.executable, "-m", "bench.scaling_worker", library, json.dumps(words)]
    if library != "torch":
        done = subprocess.run(
            [str(MPIEXEC), "-n", str(ranks), *worker],
            cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        return dict(json.loads(done.stdout))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    started = [
        subprocess.Popen(
            worker, cwd=ROOT, stdout=subprocess.PIPE, text=True,
            env=environment(
                RANK=str(rank), WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=port
            ),
        )
        for rank in range(ranks)
    ]  # fmt: skip
    first, *_ = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise RuntimeError(f"{' '.join(worker)} failed")
    return dict(json.loads(first))


def layers_of(measured: dict[str, Any]) -> Layers:
    """A model from the arrival of its gradients: a layer a gradient, the last to arrive first."""
    layers, before = [], 0.0
    for index, (size, arrived) in enumerate(measured["gradients"]):
        layers.append(Layer(str(index), size, 0.0, arrived - before))
        before = arrived
    rest = measured["backward"] - before
    # What is left of the pass after the last gradient holds up nothing but the step.
    start = Layer("forward", 0.0, measured["forward"], rest)
    return Layers([start, *reversed(layers)], measured["update"])


def cluster_of(measured: dict[str, Any]) -> Cluster:
    """Two ranks whose all-reduces were timed, and how much computing pays for them."""
    points = sorted(
        (float(key.split()[1]), seconds)
        for key, seconds in measured.items()
        if key.startswith("reduce ")
    )
    steal = (measured["both"] - measured["product"]) / measured["exchange"]
    return Cluster(
        Link(0.0, 1e9),
        measured={2: tuple(points)},
        steal=min(1.0, max(0.0, steal)),
        copy_bandwidth=(1 << 24) / measured["copy"],
    )


def predictions(measured: dict[str, Any]) -> Iterator[tuple[str, float, float, float]]:
    """For every training step that was timed: model, bucket size, measured and predicted."""
    cluster = cluster_of(measured)
    for key, seconds in measured.items():
        if key.startswith("ddp "):
            _, name, cap = key.split()
            layers = layers_of(measured[f"alone {name}"])
            # A given bucket size holds for the first bucket too, as in PyTorch.
            said = simulate(layers, cluster, 2, bucket_cap_mb=float(cap), first_mb=float(cap))
            yield name, float(cap), seconds, said.seconds


def table(results: dict[str, Any]) -> str:
    lines = ["| library | model | bucket MB | measured ms | predicted ms | error |"]
    lines.append("| --- | --- | ---: | ---: | ---: | ---: |")
    for library in LIBRARIES:
        if library in results:
            for name, cap, seconds, said in predictions(results[library]):
                lines.append(
                    f"| {NAMES[library]} | {name} | {cap:g} | {seconds * 1e3:.1f} | "
                    f"{said * 1e3:.1f} | {said / seconds - 1:+.0%} |"
                )
    return "\n".join(lines)


def training_table(results: dict[str, Any]) -> str:
    """Two processes against one: each with a batch of its own (weak), or half of it (strong)."""
    lines = ["| library | model | one process ms | two, a batch each | two, half a batch each |"]
    lines.append("| --- | --- | ---: | ---: | ---: |")
    for library in LIBRARIES:
        for name in BATCHES:
            found = results[library]
            one, weak = found[f"solo {name}"], found[f"ddp {name} 25"]
            strong = found[f"half {name}"]
            quicker = f"{one / strong:.2f} x as fast"
            lines.append(
                f"| {NAMES[library]} | {name} | {one * 1e3:.1f} | {weak * 1e3:.1f} ms: "
                f"{one / weak:.0%} efficient | {strong * 1e3:.1f} ms: {quicker} |"
            )
    return "\n".join(lines)


def reduce_table(results: dict[str, Any]) -> str:
    """All-reduces of two processes, in microseconds."""
    sizes = {"1 KB": 1 << 10, "64 KB": 1 << 16, "1 MB": 1 << 20, "16 MB": 1 << 24, "64 MB": 1 << 26}
    lines = ["| all-reduce of | " + " | ".join(sizes) + " |", "| --- |" + " ---: |" * len(sizes)]
    for library in ("mpi4py", *LIBRARIES):
        times = [results[library][f"reduce {size}"] * 1e6 for size in sizes.values()]
        cells = " | ".join(f"{time:.0f} µs" for time in times)
        lines.append(f"| {NAMES.get(library, library)} | {cells} |")
    return "\n".join(lines)


def rounded(value: Any) -> Any:
    """Four digits are more than a busy machine repeats."""
    if isinstance(value, dict):
        return {key: rounded(x) for key, x in value.items()}
    if isinstance(value, list):
        return [rounded(x) for x in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m bench.scaling")
    parser.add_argument("libraries", nargs="*", help="mpi4py, rushlight, torch: by default all")
    chosen = parser.parse_args().libraries or ["mpi4py", *LIBRARIES]
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for library in chosen:
        results[library] = measure(library)
        RESULTS.write_text(json.dumps(rounded(results)) + "\n", "utf-8")
    print(table(results))


if __name__ == "__main__":
    main()
