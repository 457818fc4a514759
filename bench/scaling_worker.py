"""One rank of `python -m bench.scaling`: measures with rushlight or with PyTorch, prints JSON.

`python -m bench.scaling_worker rushlight` (or `torch`) measures on as many ranks as were started

- `reduce`: all-reduces of one float32 tensor, from 1 KB to 64 MB;
- `copy`: gradients into a bucket, as parts of the mean;
- `overlap`: a product of matrices while an all-reduce is under way;
- `alone`: training steps without communication, gradient by gradient; all ranks run them at once,
  so that they share the machine as in training, and the slower one counts;
- `solo`: these steps on the first rank, while the others wait;
- `ddp`: the same steps with DistributedDataParallel, by size of buckets; `half`: with half of the
  batch on each rank.

`python -m bench.scaling_worker mpi4py` measures all-reduces by mpi4py itself. Others use the
machine too: all is measured by turns, several times over, and a time is that of the quickest tenth.
"""

from __future__ import annotations

import importlib
import json
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


Samples = dict[str, list[Any]]


def reduce(torch: Any, samples: Samples) -> None:
    dist = torch.distributed
    for size in SIZES:
        x = torch.zeros(size // 4)
        for _ in range(repetitions(size)):
            dist.barrier()
            start = perf_counter()
            dist.all_reduce(x)
            samples.setdefault(f"reduce {size}", []).append(perf_counter() - start)


def raw(samples: Samples) -> None:
    import numpy as np
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    for size in SIZES:
        x = np.zeros(size // 4, np.float32)
        for _ in range(repetitions(size)):
            world.Barrier()
            start = perf_counter()
            world.Allreduce(MPI.IN_PLACE, x)
            samples.setdefault(f"reduce {size}", []).append(perf_counter() - start)


def overlap(torch: Any, samples: Samples) -> None:
    """A product, an all-reduce, and both at once."""
    dist = torch.distributed
    x, a = torch.zeros(1 << 20), torch.randn(700, 700)

    def product() -> None:
        for _ in range(3):
            a @ a

    def both() -> None:
        work = dist.all_reduce(x, async_op=True)
        product()
        work.wait()

    runs = {"product": product, "exchange": lambda: dist.all_reduce(x), "both": both}
    for _ in range(10):
        for name, run in runs.items():
            dist.barrier()
            start = perf_counter()
            run()
            samples.setdefault(name, []).append(perf_counter() - start)


def copy(torch: Any, samples: Samples) -> None:
    """16 MB into a bucket, a piece of 1 MB at a time, as gradients lie apart."""
    pieces = [torch.randn(1 << 18) for _ in range(16)]
    places = list(torch.zeros(1 << 22).split(1 << 18))
    for _ in range(10):
        torch.distributed.barrier()
        start = perf_counter()
        for piece, place in zip(pieces, places, strict=True):
            torch.mul(piece, 0.5, out=place)
        samples.setdefault("copy", []).append(perf_counter() - start)


class Alone:
    """Training steps without communication, timed from gradient to gradient; on all ranks at
    once, or on the first, while the others wait."""

    def __init__(self, torch: Any, name: str, batch: int, first_only: bool) -> None:
        self.torch, self.name, self.first_only = torch, name, first_only
        self.model, data = MODELS[name](torch)
        self.x, self.target = data(batch)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.arrived: list[tuple[int, float]] = []
        for p in self.model.parameters():
            size = 4 * p.numel()
            p.register_post_accumulate_grad_hook(
                lambda _, size=size: self.arrived.append((size, perf_counter()))
            )

    def step(self, samples: Samples) -> None:
        self.torch.distributed.barrier()
        if self.first_only and self.torch.distributed.get_rank():
            return
        self.arrived.clear()
        t0 = perf_counter()
        self.optimizer.zero_grad()
        output = self.model(self.x).reshape(len(self.target), -1)
        loss = self.torch.nn.functional.cross_entropy(output, self.target)
        t1 = perf_counter()
        loss.backward()
        t2 = perf_counter()
        self.optimizer.step()
        t3 = perf_counter()
        found = {
            "step": t3 - t0, "forward": t1 - t0, "backward": t2 - t1, "update": t3 - t2,
            "gradients": [[size, t - t1] for size, t in self.arrived],
        }  # fmt: skip
        samples.setdefault(f"{'solo' if self.first_only else 'alone'} {self.name}", []).append(
            found["step"] if self.first_only else found
        )


class Parallel:
    """Training steps with DistributedDataParallel."""

    def __init__(self, torch: Any, name: str, batch: int, cap: float, key: str) -> None:
        self.torch, self.key = torch, key
        model, data = MODELS[name](torch)
        self.x, self.target = data(batch)
        self.model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=cap)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
        for _ in range(3):  # buckets are made anew after the first
            self.step({})

    def step(self, samples: Samples) -> None:
        self.torch.distributed.barrier()
        start = perf_counter()
        self.optimizer.zero_grad()
        output = self.model(self.x).reshape(len(self.target), -1)
        self.torch.nn.functional.cross_entropy(output, self.target).backward()
        self.optimizer.step()
        samples.setdefault(self.key, []).append(perf_counter() - start)


def measure(torch: Any, batches: dict[str, int], caps: list[float], rounds: int) -> Samples:
    samples: Samples = {}
    contestants: list[Alone | Parallel] = []
    for name, batch in batches.items():
        contestants += [Alone(torch, name, batch, first_only) for first_only in (True, False)]
        contestants += [Parallel(torch, name, batch, cap, f"ddp {name} {cap:g}") for cap in caps]
        contestants.append(Parallel(torch, name, batch // 2, 25, f"half {name}"))
    for _ in range(rounds):
        reduce(torch, samples)
        copy(torch, samples)
        overlap(torch, samples)
        for _ in range(8):
            for contestant in contestants:
                contestant.step(samples)
    for key in samples:
        if key.startswith("alone"):
            samples[key] = slower(torch, samples[key])
    return samples


def slower(torch: Any, steps: list[Any]) -> list[Any]:
    """Of each step that of the slower rank: in training the others would wait for it."""
    found: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(found, steps)
    return [max(of_ranks, key=lambda x: x["step"]) for of_ranks in zip(*found, strict=True)]


def summary(samples: Samples) -> dict[str, Any]:
    """The quickest tenth of everything."""
    return {
        key: sorted(found, key=lambda x: x["step"])[len(found) // 10]
        if key.startswith("alone")
        else quick(found)
        for key, found in samples.items()
    }


def main() -> None:
    library, words = sys.argv[1], json.loads(sys.argv[2])
    if library == "mpi4py":
        from mpi4py import MPI

        samples: Samples = {}
        for _ in range(words["rounds"]):
            raw(samples)
        rank = MPI.COMM_WORLD.rank
    else:
        torch = importlib.import_module(library)
        torch.set_num_threads(1)
        torch.manual_seed(0)
        torch.distributed.init_process_group("gloo")
        samples = measure(torch, **words)
        rank = torch.distributed.get_rank()
        torch.distributed.destroy_process_group()
    if rank == 0:
        print(json.dumps(summary(samples)), flush=True)


if __name__ == "__main__":
    main()
