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
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rushlight.distributed.simulate import Cluster, Layer, Layers, Link, simulate

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "figures" / "scaling.json"
MPIEXEC = Path(sys.executable).with_name("mpiexec")
LIBRARIES = ("rushlight", "torch")
BATCHES = {"mlp": 64, "gpt": 4}
CAPS = (1.0, 4.0, 25.0)


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **more}


def measure(library: str, what: str, *words: object, ranks: int = 2) -> Any:
    """What rank 0 of some workers prints. rushlight's are started by mpiexec; PyTorch's, which has
    no MPI in its wheels, find each other by a port."""
    worker = [sys.executable, "-m", "bench.scaling_worker", library, what, *map(str, words)]
    if library != "torch":
        command = [str(MPIEXEC), "-n", str(ranks), *worker]
        done = subprocess.run(
            command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True, check=True
        )
        return json.loads(next(line for line in done.stdout.splitlines() if len(line) > 2))
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
    return json.loads(first)


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
    points = tuple((float(size), seconds) for size, seconds in measured["reduce"])
    return Cluster(
        Link(0.0, 1e9),
        measured={2: points},
        steal=measured["overlap"]["steal"],
        copy_bandwidth=measured["copy"]["bandwidth"],
    )


def predictions(measured: dict[str, Any]) -> Iterable[tuple[str, float, float, float]]:
    """For every training step that was timed: model, bucket size, measured and predicted."""
    cluster = cluster_of(measured)
    for name, steps in measured["ddp"].items():
        layers = layers_of(measured["alone"][name])
        for cap, step in steps.items():
            # A given bucket size holds for the first bucket too, as in PyTorch.
            said = simulate(layers, cluster, 2, bucket_cap_mb=float(cap), first_mb=float(cap))
            yield name, float(cap), step["step"], said.seconds


def measure_library(library: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "reduce": measure(library, "reduce"),
        "overlap": measure(library, "overlap"),
        "copy": measure(library, "copy"),
        "solo": {}, "alone": {}, "half": {}, "ddp": {}, "ddp_half": {},
    }  # fmt: skip
    for name, batch in BATCHES.items():
        found["solo"][name] = measure(library, "alone", name, batch, ranks=1)["step"]
        found["alone"][name] = measure(library, "alone", name, batch)
        found["ddp"][name] = {str(cap): measure(library, "ddp", name, batch, cap) for cap in CAPS}
        found["ddp_half"][name] = measure(library, "ddp", name, batch // 2, 25.0)["step"]
        print(library, name, "measured", flush=True)
    return found


def table(results: dict[str, Any]) -> str:
    lines = ["| library | model | bucket MB | measured ms | predicted ms | error |"]
    lines.append("| --- | --- | ---: | ---: | ---: | ---: |")
    for library, measured in results.items():
        if library == "raw":
            continue
        for name, cap, seconds, said in predictions(measured):
            lines.append(
                f"| {library} | {name} | {cap:g} | {seconds * 1e3:.2f} | {said * 1e3:.2f} | "
                f"{said / seconds - 1:+.0%} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m bench.scaling")
    parser.add_argument("libraries", nargs="*", default=LIBRARIES, help="rushlight, torch")
    chosen = parser.parse_args().libraries
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    results["raw"] = measure("mpi4py", "raw")
    for library in chosen:
        results[library] = measure_library(library)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(table(results))


if __name__ == "__main__":
    main()
