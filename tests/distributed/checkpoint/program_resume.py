"""Training that is saved by some processes, and goes on with others.

program_resume.py LIBRARY save FOLDER        train 3 steps, and save
program_resume.py LIBRARY resume FOLDER      load, and train 3 steps more
"""

from __future__ import annotations

import os
import sys
from typing import Any

from tests.distributed.library import chosen, numbers, tell

torch: Any = chosen()
import torch.distributed as dist  # noqa: E402
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.state_dict import (  # noqa: E402
    get_state_dict,
    set_state_dict,
)
from torch.distributed.fsdp import fully_shard  # noqa: E402

nn = torch.nn


def make(kind: str, seed: int) -> tuple[Any, Any]:
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 6), nn.Linear(6, 3)).double()
    if kind == "sharded":
        for layer in (net[0], net[2]):
            fully_shard(layer)
        fully_shard(net)
    return net, torch.optim.Adam(net.parameters(), lr=0.01)


def train(kind: str, net: Any, adam: Any, steps: range) -> None:
    rank, n = dist.get_rank(), dist.get_world_size()
    for step in steps:
        draw = torch.Generator().manual_seed(step)
        x = torch.randn(12, 5, generator=draw).double().chunk(n)[rank]
        y = torch.randn(12, 3, generator=draw).double().chunk(n)[rank]
        adam.zero_grad()
        ((net(x) - y) ** 2).mean().backward()
        if kind == "replicated":
            for p in net.parameters():
                dist.all_reduce(p.grad)
                p.grad /= n
        adam.step()


def main() -> None:
    _, _, action, folder = sys.argv
    dist.init_process_group("gloo")
    found: dict[str, Any] = {}
    for kind in ("replicated", "sharded"):
        place = os.path.join(folder, kind)
        net, adam = make(kind, seed=0 if action == "save" else 1)
        if action == "save":
            train(kind, net, adam, range(3))
            weights, state = get_state_dict(net, adam)
            dcp.save({"model": weights, "optim": state, "step": 3}, checkpoint_id=place)
            later = dcp.async_save({"model": weights}, checkpoint_id=place + "_async")
            if sys.argv[1] == "torch":  # its thread shares the group with this one, and hangs
                later.result()
            train(kind, net, adam, range(3, 6))  # while it is written
            later.result()
        else:
            weights, state = get_state_dict(net, adam)
            loaded = {"model": weights, "optim": state, "step": 0}
            dcp.load(loaded, checkpoint_id=place)
            set_state_dict(
                net, adam, model_state_dict=loaded["model"], optim_state_dict=loaded["optim"]
            )
            train(kind, net, adam, range(loaded["step"], 6))
        found[kind] = numbers(dict(net.state_dict()))
        found[kind + " state"] = numbers(get_state_dict(net, adam)[1]["state"])
    tell(torch, found)


if __name__ == "__main__":
    main()
