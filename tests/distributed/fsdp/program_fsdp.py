"""`fully_shard` on two processes: training of several kinds, each beside that of whole tensors."""

from __future__ import annotations

import sys
from typing import Any

from tests.distributed.library import chosen, numbers, tell

torch: Any = chosen()
import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

nn = torch.nn


class Net(nn.Module):  # type: ignore[misc]
    """Three layers, one of them shared, and one that is not used."""

    def __init__(self, recomputes: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(5, 7)
        self.again = nn.Linear(7, 7)
        self.last = nn.Linear(7, 3)
        self.unused = nn.Linear(2, 2)
        self.norm = nn.LayerNorm(7)
        self.recomputes = recomputes

    def forward(self, x: Any) -> Any:
        h = self.norm(self.first(x).tanh())
        if self.recomputes:
            h = checkpoint(self.again, h, use_reentrant=False).tanh()
        else:
            h = self.again(h).tanh()
        return self.last(self.again(h))


def make(seed: int = 0, **how: Any) -> Any:
    torch.manual_seed(seed)
    return Net(**how).double()


def share(net: Any, **how: Any) -> Any:
    fully_shard(net.first, **how)
    fully_shard(net.again, **how)
    return fully_shard(net, **how)


def batch(step: int) -> tuple[Any, Any]:
    rank, n = dist.get_rank(), dist.get_world_size()
    draw = torch.Generator().manual_seed(step)
    x = torch.randn(8, 5, generator=draw).double()
    y = torch.randn(8, 3, generator=draw).double()
    return x.chunk(n)[rank], y.chunk(n)[rank]


def train(net: Any, optimiser: Any, whole: bool, clip: float | None = None) -> None:
    for step in range(3):
        x, y = batch(step)
        optimiser.zero_grad()
        ((net(x) - y) ** 2).mean().backward()
        if whole:
            for p in net.parameters():
                if p.grad is not None:
                    dist.all_reduce(p.grad)
                    p.grad /= dist.get_world_size()
        if clip is not None:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimiser.step()


def weights(net: Any) -> Any:
    return numbers(dict(net.state_dict()))


def pairs() -> dict[str, Any]:
    """Trained in parts, and whole."""
    found = {}
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("r", "s"))
    kinds: dict[str, tuple[dict[str, Any], dict[str, Any], float | None]] = {
        "plain": ({}, {}, None),
        "kept whole until backward": ({}, {"reshard_after_forward": False}, None),
        "given back at once": ({}, {"reshard_after_forward": True}, None),
        "recomputed": ({"recomputes": True}, {}, None),
        "clipped": ({}, {}, 0.1),
        "two dimensions": ({}, {"mesh": mesh}, None),
    }
    for name, (how, sharing, clip) in kinds.items():
        net, plain = share(make(**how), **sharing), make(**how)
        train(net, torch.optim.AdamW(net.parameters(), lr=0.01), False, clip)
        train(plain, torch.optim.AdamW(plain.parameters(), lr=0.01), True, clip)
        found[name] = [weights(net), weights(plain)]
    return found


def main() -> None:
    dist.init_process_group("gloo")
    found: dict[str, Any] = {"pairs": pairs()}
    net = share(make())
    found["class"] = [type(net).__name__, isinstance(net, Net), type(net.first.weight).__name__]
    found["local"] = [list(p.to_local().shape) for p in net.parameters()]
    found["names"] = list(net.state_dict())
    x, y = batch(0)
    ((net(x) - y) ** 2).mean().backward()
    found["unused"] = net.unused.weight.grad is None
    found["grad"] = [type(net.last.weight.grad).__name__, list(net.last.weight.grad.shape)]
    # gradients of two backward passes, averaged once
    net = share(make())
    net.set_requires_gradient_sync(False)
    net(x).sum().backward()
    found["put off"] = net.first.weight.grad is None
    net.set_requires_gradient_sync(True)
    net(x).sum().backward()
    found["added up"] = numbers(net.first.weight.grad)
    # some parameters frozen
    net = make()
    net.first.weight.requires_grad_(False)
    share(net)
    net(x).sum().backward()
    found["frozen"] = [net.first.weight.grad is None, numbers(net.first.bias.grad)]
    # in another dtype
    net = make()
    fully_shard(net.first, mp_policy=MixedPrecisionPolicy(torch.float32))
    fully_shard(net, mp_policy=MixedPrecisionPolicy(torch.float32, output_dtype=torch.float64))
    out = net(x)
    out.sum().backward()
    found["dtypes"] = [str(t.dtype) for t in (out, net.first.weight, net.first.weight.grad)]
    found["low"] = [round(v, 4) for v in numbers(net.last.bias.grad)]
    # parts that are written between two calls, with and without a backward pass in between
    net = share(make())
    for quiet in (True, False):
        with torch.set_grad_enabled(not quiet):
            before = net(x).sum().item()
        with torch.no_grad():
            for p in net.parameters():
                p.mul_(0.5)
        if sys.argv[1] == "rushlight":  # PyTorch's outermost module keeps the old values
            found[f"written {quiet}"] = net(x).sum().item() != before
    scalar = nn.ParameterList([nn.Parameter(torch.ones(()))])
    for kind in (nn.ModuleList([nn.Linear(1, 1)]), scalar):
        try:
            fully_shard(kind)
        except ValueError as error:
            found.setdefault("errors", []).append(str(error).split(":")[0])
    if sys.argv[1] == "rushlight":
        found["memory"] = memory(x)
        found["wrapped"] = wrapped()
    tell(torch, found)


def memory(x: Any) -> list[Any]:
    """How many elements of whole parameters are kept between forward and backward, and after."""
    from rushlight.distributed.fsdp._param_group import gathered

    net = share(make(), reshard_after_forward=True)
    params = [p for state in net._states(True) for p in state.group.params]

    def now() -> list[int]:
        held = sum(gathered.get(p.address) is p for p in params)
        return [held, sum(p.whole.untyped_storage().nbytes() // 8 for p in params)]

    loss = net(x).sum()
    between = now()
    loss.backward()
    return [*between, *now()]


def wrapped() -> dict[str, Any]:
    """`FullyShardedDataParallel`, and what its state dicts hold."""
    from torch.distributed.fsdp import (
        FullStateDictConfig,
        FullyShardedDataParallel,
        StateDictType,
    )
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    policy = ModuleWrapPolicy({nn.Linear})
    torch.manual_seed(dist.get_rank())  # rank 0's values count
    net = FullyShardedDataParallel(Net().double(), auto_wrap_policy=policy, sync_module_states=True)
    plain = make()
    train(net, torch.optim.AdamW(net.parameters(), lr=0.01), False)
    train(plain, torch.optim.AdamW(plain.parameters(), lr=0.01), True)
    found: dict[str, Any] = {"pair": [numbers(dict(net.state_dict())), weights(plain)]}
    config = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FullyShardedDataParallel.state_dict_type(net, StateDictType.FULL_STATE_DICT, config):
        found["rank 0 only"] = len(net.state_dict())
    with FullyShardedDataParallel.state_dict_type(net, StateDictType.SHARDED_STATE_DICT):
        found["parts"] = list(net.state_dict()["first.weight"].to_local().shape)
    other = FullyShardedDataParallel(make(3), auto_wrap_policy=policy)
    found["loaded"] = str(other.load_state_dict(net.state_dict()))
    found["equal"] = numbers(dict(other.state_dict())) == found["pair"][0]
    with FullyShardedDataParallel.summon_full_params(other):
        found["summoned"] = list(other.first.weight.shape)
        with torch.no_grad():
            other.first.weight.fill_(2.0)
    found["written back"] = numbers(other.state_dict()["first.weight"])[6]
    found["names"] = [name for name, _ in other.named_parameters()]
    with net.no_sync():
        net(batch(0)[0]).sum().backward()
    return found


if __name__ == "__main__":
    main()
