"""One rank of `python -m bench.scaling`: measures with rushlight or with PyTorch, prints JSON.

`python -m bench.scaling_worker LIBRARY WHAT [WORDS]`, where WHAT is

- `reduce`: all-reduces of one float32 tensor, from 1 KB to 64 MB;
- `copy`: gradients into a bucket, as parts of the mean;
- `overlap`: a product of matrices while an all-reduce is under way;
- `alone MODEL BATCH`: a training step without communication, gradient by gradient; as many
  processes run it at once as were started, so that they share the machine as in training;
- `ddp MODEL BATCH CAP`: the same step with DistributedDataParallel and buckets of CAP MB.
- `raw`: all-reduces by mpi4py itself.

A time is the quickest tenth of its repetitions: others use the machine too.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

SIZES = [1 << e for e in range(10, 27, 2)]
WIDTH, DEPTH, HEADS, CONTEXT, WORDS = 256, 4, 4, 64, 512


def quick(times: list[float]) -> float:
    """The time that a tenth of the repetitions stay below."""
    return sorted(times)[len(times) // 10]


def repetitions(size: int) -> int:
    return max(10, min(200, (1 << 28) // size))


def mlp(torch: Any) -> tuple[Any, Callable[[int], tuple[Any, Any]]]:
    nn = torch.nn
    model = nn.Sequential(
        nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
        nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10),
    )  # fmt: skip
    return model, lambda batch: (torch.randn(batch, 784), torch.randint(0, 10, (batch,)))


def gpt(torch: Any) -> tuple[Any, Callable[[int], tuple[Any, Any]]]:
    nn = torch.nn
    F = nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.before, self.behind = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.keys, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = self.keys(self.before(x)).split(c, dim=2)
            q, k, v = (y.view(b, t, HEADS, c // HEADS).transpose(1, 2) for y in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
            return x + self.narrow(F.gelu(self.wide(self.behind(x))))

    model = nn.Sequential(
        nn.Embedding(WORDS, WIDTH), *(Block() for _ in range(DEPTH)), nn.Linear(WIDTH, WORDS)
    )

    def data(batch: int) -> tuple[Any, Any]:
        words = torch.randint(0, WORDS, (batch, CONTEXT + 1))
        return words[:, :-1], words[:, 1:].reshape(-1)

    return model, data


MODELS = {"mlp": mlp, "gpt": gpt}


def reduce(torch: Any) -> list[list[float]]:
    """Pairs of bytes and seconds."""
    dist, found = torch.distributed, []
    for size in SIZES:
        x, times = torch.zeros(size // 4), []
        for _ in range(repetitions(size)):
            dist.barrier()
            start = perf_counter()
            dist.all_reduce(x)
            times.append(perf_counter() - start)
        found.append([size, quick(times)])
    return found


def raw() -> list[list[float]]:
    import numpy as np
    from mpi4py import MPI

    world, found = MPI.COMM_WORLD, []
    for size in SIZES:
        x, times = np.zeros(size // 4, np.float32), []
        for _ in range(repetitions(size)):
            world.Barrier()
            start = perf_counter()
            world.Allreduce(MPI.IN_PLACE, x)
            times.append(perf_counter() - start)
        found.append([size, quick(times)])
    return found if world.rank == 0 else []


def overlap(torch: Any) -> dict[str, float]:
    """Seconds of a product, of an all-reduce, and of both at once; and the share of the all-reduce
    that the product paid for."""
    dist = torch.distributed
    x, a = torch.zeros(1 << 20), torch.randn(700, 700)

    def product() -> None:
        for _ in range(3):
            a @ a

    def both() -> None:
        work = dist.all_reduce(x, async_op=True)
        product()
        work.wait()

    times: dict[str, list[float]] = {"product": [], "reduce": [], "both": []}
    for _ in range(40):
        for name, run in (
            ("product", product),
            ("reduce", lambda: dist.all_reduce(x)),
            ("both", both),
        ):
            dist.barrier()
            start = perf_counter()
            run()
            times[name].append(perf_counter() - start)
    found = {name: quick(all_) for name, all_ in times.items()}
    steal = (found["both"] - found["product"]) / found["reduce"]
    return {**found, "steal": min(1.0, max(0.0, steal))}


def copy(torch: Any) -> dict[str, float]:
    """Bytes a second: 16 MB, a piece of 1 MB at a time, as gradients lie apart."""
    pieces = [torch.randn(1 << 18) for _ in range(16)]
    bucket = torch.zeros(1 << 22)
    places = list(bucket.split(1 << 18))
    times = []
    for _ in range(30):
        torch.distributed.barrier()
        start = perf_counter()
        for piece, place in zip(pieces, places, strict=True):
            torch.mul(piece, 0.5, out=place)
        times.append(perf_counter() - start)
    return {"bandwidth": (1 << 24) / quick(times)}


def alone(torch: Any, name: str, batch: int) -> dict[str, Any]:
    """Seconds of each part of a step without communication.

    `gradients` lists bytes and seconds since the start of the backward pass, as they arrive.
    """
    model, data = MODELS[name](torch)
    x, target = data(batch)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    arrived: list[tuple[int, float]] = []
    for index, p in enumerate(model.parameters()):
        p.register_post_accumulate_grad_hook(
            lambda _, index=index: arrived.append((index, perf_counter()))
        )
    sizes = [4 * p.numel() for p in model.parameters()]
    steps = []
    for _ in range(30):
        arrived.clear()
        t0 = perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x).reshape(len(target), -1), target)
        t1 = perf_counter()
        loss.backward()
        t2 = perf_counter()
        optimizer.step()
        t3 = perf_counter()
        steps.append((t3 - t0, t1 - t0, t2 - t1, t3 - t2, [(i, t - t1) for i, t in arrived]))
    whole, forward, backward, update, gradients = sorted(steps)[len(steps) // 10]
    return {
        "step": whole, "forward": forward, "backward": backward, "update": update,
        "gradients": [[sizes[i], t] for i, t in gradients],
    }  # fmt: skip


def ddp(torch: Any, name: str, batch: int, cap: float) -> dict[str, float]:
    """Seconds of a step, with everything in it."""
    model, data = MODELS[name](torch)
    x, target = data(batch)
    parallel = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=cap)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    times = []
    for _ in range(33):
        torch.distributed.barrier()
        start = perf_counter()
        optimizer.zero_grad()
        output = parallel(x)
        torch.nn.functional.cross_entropy(output.reshape(len(target), -1), target).backward()
        optimizer.step()
        times.append(perf_counter() - start)
    return {"step": quick(times[3:])}  # buckets are made anew after the first


def main() -> None:
    library, what, *words = sys.argv[1:]
    if what == "raw":
        print(json.dumps(raw()))
        return
    torch = importlib.import_module(library)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.distributed.init_process_group("gloo")
    try:
        if what == "reduce":
            found: Any = reduce(torch)
        elif what == "overlap":
            found = overlap(torch)
        elif what == "copy":
            found = copy(torch)
        elif what == "alone":
            found = alone(torch, words[0], int(words[1]))
        else:
            found = ddp(torch, words[0], int(words[1]), float(words[2]))
        if torch.distributed.get_rank() == 0:
            print(json.dumps(found), flush=True)
    finally:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
