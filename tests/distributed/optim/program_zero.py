"""ZeroRedundancyOptimizer on two processes: who has which parameters, and training with it."""

from __future__ import annotations

import sys
from typing import Any

from tests.distributed.library import chosen, numbers, tell

torch: Any = chosen()
import torch.distributed as dist  # noqa: E402
from torch.distributed.algorithms.join import Join  # noqa: E402
from torch.distributed.optim import ZeroRedundancyOptimizer  # noqa: E402

nn = torch.nn


def model() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 6), nn.Linear(6, 3)).double()


def train(net: Any, optimiser: Any, steps: int) -> None:
    """Steps with a batch of which each process has a part, and gradients averaged by hand."""
    rank, n = dist.get_rank(), dist.get_world_size()
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(12, 5, generator=draw).double().chunk(n)[rank]
    y = torch.randn(12, 3, generator=draw).double().chunk(n)[rank]
    for _ in range(steps):
        optimiser.zero_grad()
        ((net(x) - y) ** 2).mean().backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
            p.grad /= n
        optimiser.step()


def weights(net: Any) -> Any:
    return numbers(dict(net.state_dict()))


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    found: dict[str, Any] = {}
    plain = model()
    adam = torch.optim.Adam(plain.parameters(), lr=0.01)
    train(plain, adam, 4)
    found["plain"] = weights(plain)
    for views in (False, True):
        net = model()
        params = list(net.parameters())
        zero = ZeroRedundancyOptimizer(
            params, torch.optim.Adam, lr=0.01, parameters_as_bucket_view=views
        )
        train(net, zero, 4)
        found[f"views {views}"] = weights(net)
    places = {id(p): n for n, p in enumerate(params)}
    found["mine"] = sorted(places[id(p)] for p in zero.optim.state)
    try:
        zero.state_dict()
    except RuntimeError as error:
        found["not yet"] = str(error)
    zero.consolidate_state_dict(to=1)
    if rank == 1:
        found["state"] = numbers(zero.state_dict()["state"])
        found["groups"] = zero.state_dict()["param_groups"][0]["params"]
    # another one goes on from what this one knew
    sent = [zero.state_dict() if rank == 1 else None]
    dist.broadcast_object_list(sent, src=1)
    net2 = model()
    net2.load_state_dict(net.state_dict())
    zero2 = ZeroRedundancyOptimizer(net2.parameters(), torch.optim.Adam, lr=0.5)
    zero2.load_state_dict(sent[0])
    train(net2, zero2, 2)
    train(plain, adam, 2)
    found["gone on"], found["plain gone on"] = weights(net2), weights(plain)
    # a group that comes later, a scheduler, and inputs that end on one process first
    net = model()
    zero = ZeroRedundancyOptimizer(net[0].parameters(), torch.optim.SGD, lr=0.1)
    zero.add_param_group({"params": list(net[2].parameters()), "lr": 0.2})
    schedule = torch.optim.lr_scheduler.StepLR(zero, 1, gamma=0.5)
    train(net, zero, 1)
    schedule.step()
    found["rates"] = [group["lr"] for group in zero.param_groups]
    if sys.argv[1] == "rushlight":  # PyTorch's cannot be joined without a model, and hangs
        with Join([zero]):
            for _ in range(2 + rank):
                zero.step()
        found["uneven"] = weights(net)
    tell(torch, found)


if __name__ == "__main__":
    main()
