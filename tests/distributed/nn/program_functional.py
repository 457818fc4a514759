"""Gradients of collectives, on rushlight or PyTorch: first and second derivatives.

Each process adds its own loss; gradients are those of the sum of all losses.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

torch: Any = importlib.import_module(sys.argv[1])
dist = torch.distributed
F: Any = importlib.import_module(f"{sys.argv[1]}.distributed.nn.functional")
FC: Any = importlib.import_module(f"{sys.argv[1]}.distributed._functional_collectives")


def given(*shape: int) -> Any:
    """An input of this process."""
    count = torch.Size(shape).numel()
    start = 0.5 + 10 * dist.get_rank()
    return (torch.arange(float(count)).double().view(shape) + start).requires_grad_()


def weigh(outputs: Any) -> Any:
    """A loss whose gradient is another in every element and process."""
    outputs = outputs if isinstance(outputs, tuple | list) else (outputs,)
    share = 1.0 + dist.get_rank()
    total: Any = 0.0
    for at, y in enumerate(outputs):
        weights = torch.arange(1.0, y.numel() + 1).double().view(y.shape)
        total = total + (share * (at + 1) * weights * y * y).sum()
    return total


def scatter_of(x: Any) -> Any:
    return F.scatter(list(x.unbind(0)), 1)


def reduce_scatter_of(x: Any) -> Any:
    out = torch.zeros(2, dtype=torch.float64)
    y = F.reduce_scatter(out, list(x.unbind(0)))
    assert torch.equal(out, y.detach())
    return y


def all_to_all_of(x: Any) -> Any:
    outs = [torch.zeros(2, dtype=torch.float64) for _ in range(dist.get_world_size())]
    received = F.all_to_all(outs, list(x.unbind(0)))
    assert all(torch.equal(a, b.detach()) for a, b in zip(outs, received))
    return received


def all_to_all_single_of(x: Any) -> Any:
    return F.all_to_all_single(torch.zeros_like(x), x)


def uneven_all_to_all_of(x: Any) -> Any:
    """Process 0 sends 1 row to itself and 2 to the other, which sends 2 rows and 1."""
    rank = dist.get_rank()
    sent = [1, 2] if rank == 0 else [2, 1]
    received = [1, 2] if rank == 0 else [2, 1]
    out = torch.zeros(3, 2, dtype=torch.float64)
    return F.all_to_all_single(out, x, received, sent)


CASES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "broadcast": (lambda x: F.broadcast(x, 1), (3,)),
    "gather": (lambda x: F.gather(x, 1), (3,)),
    "scatter": (scatter_of, (2, 2)),
    "reduce": (lambda x: F.reduce(x, 0), (3,)),
    "reduce_scatter": (reduce_scatter_of, (2, 2)),
    "all_gather": (lambda x: F.all_gather(x), (3,)),
    "all_to_all": (all_to_all_of, (2, 2)),
    "all_to_all_single": (all_to_all_single_of, (4, 2)),
    "uneven all_to_all_single": (uneven_all_to_all_of, (3, 2)),
    "all_reduce": (lambda x: F.all_reduce(x), (3,)),
    "all_reduce of a transpose": (lambda x: F.all_reduce(x.t()), (2, 3)),
    "functional all_reduce": (lambda x: FC.all_reduce(x, "sum", dist.group.WORLD), (3,)),
    "functional all_gather": (
        lambda x: FC.all_gather_tensor_autograd(x, 1, dist.group.WORLD),
        (2, 2),
    ),
    "functional reduce_scatter": (
        lambda x: FC.reduce_scatter_tensor_autograd(x, "sum", 1, dist.group.WORLD),
        (2, 4),
    ),
    "functional all_to_all": (
        lambda x: FC.all_to_all_single_autograd(x, None, None, dist.group.WORLD),
        (2, 2),
    ),
    "functional permute": (lambda x: FC.permute_tensor(x, [1, 0], dist.group.WORLD), (3,)),
}


def derivatives(name: str) -> dict[str, Any]:
    collective, shape = CASES[name]
    x = given(*shape)
    y = collective(x)
    loss = weigh(y)
    (g,) = torch.autograd.grad(loss, x, create_graph=True)
    (gg,) = torch.autograd.grad((g * g).sum(), x)
    outputs = y if isinstance(y, tuple | list) else (y,)
    return {
        "outputs": [t.detach().flatten().tolist() for t in outputs],
        "first": g.detach().flatten().tolist(),
        "second": gg.flatten().tolist(),
    }


def main() -> None:
    dist.init_process_group("gloo")
    results = {name: derivatives(name) for name in CASES}
    if sys.argv[1] == "rushlight":  # PyTorch has this backward for NCCL alone
        x = given(2, 2)
        y = F._all_gather_base(torch.zeros(4, 2, dtype=torch.float64), x)
        (g,) = torch.autograd.grad(weigh(y), x)
        results["_all_gather_base"] = {
            "outputs": [y.detach().flatten().tolist()], "first": g.flatten().tolist()
        }  # fmt: skip
    dist.destroy_process_group()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
