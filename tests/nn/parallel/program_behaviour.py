"""What `DistributedDataParallel` does besides training, on rushlight or PyTorch."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
import sys
import warnings
from typing import Any

torch: Any = importlib.import_module(sys.argv[1])
dist = torch.distributed
nn = torch.nn
DDP = nn.parallel.DistributedDataParallel
default_hooks: Any = importlib.import_module(
    f"{sys.argv[1]}.distributed.algorithms.ddp_comm_hooks.default_hooks"
)


def linear(*, value: float = 0.5, bias: bool = True) -> Any:
    net = nn.Linear(2, 2, bias=bias)
    for p in net.parameters():
        nn.init.constant_(p, value)
    return net


def ramp(*shape: int) -> Any:
    return torch.arange(float(torch.Size(shape).numel())).view(shape) / 4 - 0.5


def grads(net: Any) -> list[Any]:
    return [None if p.grad is None else p.grad.flatten().tolist() for p in net.parameters()]


class Branches(nn.Module):  # type: ignore[misc]  # the library is known when it runs
    """Process 0 uses `a`, the others `a` and `b`; nobody uses `c`."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = linear(value=0.1), linear(value=0.2), linear(value=0.3)

    def forward(self, x: Any) -> Any:
        y = self.a(x)
        return {"y": y if dist.get_rank() == 0 else self.b(y), "extra": [self.a(2 * x)]}


def unused() -> list[Any]:
    found = []
    for options in ({}, {"gradient_as_bucket_view": True}):
        net = DDP(Branches(), find_unused_parameters=True, **options)
        for _ in range(2):
            net(ramp(3, 2))["y"].sum().backward()
            found.append(grads(net))
        net.zero_grad()
        outputs = net(ramp(3, 2))
        (outputs["y"].sum() + outputs["extra"][0].sum()).backward()
        found.append(grads(net))
    return found


class Half(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = linear(value=0.1), linear(value=0.2)

    def forward(self, x: Any) -> Any:
        return self.a(x)


def unused_in_all() -> list[Any]:
    """A static graph finds them out by itself; without that the second forward pass is refused."""
    net = DDP(Half(), static_graph=True)
    found: list[Any] = []
    for _ in range(3):
        net(ramp(3, 2) + dist.get_rank()).sum().backward()
        found.append(grads(net))
    net = DDP(Half())
    net(ramp(3, 2)).sum().backward()
    try:
        net(ramp(3, 2))
    except RuntimeError as error:
        text = str(error).replace("\n", "")
        assert "Parameter indices which did not receive grad for rank" in text
        found.append(text[:100])
    return found


def accumulate() -> list[Any]:
    found = []
    for options in ({}, {"gradient_as_bucket_view": True}):
        net = DDP(linear(), **options)
        for step in range(3):
            with net.no_sync():
                net(ramp(2, 2) * (dist.get_rank() + 1)).square().sum().backward()
            found.append(grads(net))
            net(ramp(2, 2) * (step + 1)).square().sum().backward()
            found.append(grads(net))
            if step == 1:
                net.zero_grad()
    return found


def buffers() -> list[Any]:
    rank = dist.get_rank()
    net = DDP(nn.Sequential(linear(), nn.BatchNorm1d(2)))
    found = []
    for _ in range(3):
        net(ramp(4, 2) * (rank + 1)).square().sum().backward()
        found.append([b.flatten().tolist() for b in net.buffers()])
    with torch.no_grad():
        net(ramp(4, 2))
    found.append([b.flatten().tolist() for b in net.buffers()])
    found.append([[net.will_sync_module_buffers()]])
    own = DDP(nn.Sequential(linear(), nn.BatchNorm1d(2)), forward_sync_buffers=False)
    own(ramp(4, 2) * (rank + 1)).square().sum().backward()
    own(ramp(4, 2) * (rank + 1)).square().sum().backward()
    found.append([b.flatten().tolist() for b in own.buffers()])
    return found


def uneven() -> list[Any]:
    rank = dist.get_rank()
    found = []
    for options in (
        {}, {"find_unused_parameters": True}, {"static_graph": True},
        {"gradient_as_bucket_view": True},
    ):  # fmt: skip
        for static_size in (True, False):
            net = DDP(nn.Sequential(linear(), nn.BatchNorm1d(2)), bucket_cap_mb=1e-5, **options)
            optimizer = torch.optim.SGD(net.parameters(), 0.1)
            with net.join(divide_by_initial_world_size=static_size):
                for step in range(1 + 3 * rank):
                    optimizer.zero_grad()
                    (net(ramp(4, 2) * (step + 1)) * ramp(4, 2)).square().sum().backward()
                    optimizer.step()
            found.append([v.flatten().tolist() for v in net.state_dict().values()])
    # Process 0 has no batch at all.
    net = DDP(linear(), bucket_cap_mb=1e-5)
    with net.join():
        for _ in range(3 * rank):
            net(ramp(4, 2)).square().sum().backward()
    found.append([[v] for v in grads(net) if rank])
    net = DDP(linear())
    try:
        with net.join(throw_on_early_termination=True):
            for _ in range(1 + rank):
                net(ramp(4, 2)).sum().backward()
    except RuntimeError as error:
        found.append([[str(error)]])
    return found


def hooks() -> dict[str, Any]:
    rank, n = dist.get_rank(), dist.get_world_size()
    found: dict[str, Any] = {}
    seen: list[Any] = []

    def twice(state: Any, bucket: Any) -> Any:
        shapes = [list(g.shape) for g in bucket.gradients()]
        owners = [list(p.shape) for p in bucket.parameters()]
        seen.append([bucket.index(), bucket.is_last(), bucket.buffer().numel(), shapes, owners])
        work = dist.all_reduce(bucket.buffer(), group=state, async_op=True)
        return work.get_future().then(lambda future: 2 * future.value()[0] / n)

    twice.__annotations__ = {}  # PyTorch reads them, and these are strings
    kinds = {
        "allreduce": default_hooks.allreduce_hook,
        "fp16": default_hooks.fp16_compress_hook,
        "fp16 wrapper": default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook),
        "twice": twice,
    }
    for name, hook in kinds.items():
        for views in (False, True):
            net = DDP(
                nn.Sequential(linear(), nn.Tanh(), linear(value=0.2)),
                gradient_as_bucket_view=views, bucket_cap_mb=1e-5,
            )  # fmt: skip
            net.register_comm_hook(None, hook)
            for _ in range(2):
                net(ramp(3, 2) * (rank + 1)).square().sum().backward()
            found[f"{name} {views}"] = grads(net)
    found["seen"] = seen
    try:
        net.register_comm_hook(None, twice)
    except RuntimeError as error:
        found["again"] = str(error)
    try:
        net.register_comm_hook(None, 3)
    except TypeError as error:
        found["no hook"] = str(error)
    return found


def copies() -> list[Any]:
    rank = dist.get_rank()
    net = DDP(linear(value=0.25))
    found = [list(net.state_dict())]
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        twin(ramp(3, 2) * (rank + 1)).sum().backward()
        found.append(grads(twin))
    assert net.module.weight.grad is None
    # Once a wrapper is gone, another may take the module.
    inner = net.module
    del net
    again = DDP(inner)
    again(ramp(3, 2) * (rank + 1)).sum().backward()
    found.append(grads(again))
    own = DDP(linear(), process_group=dist.new_group())
    own(ramp(3, 2) * (rank + 1)).sum().backward()
    found.append(grads(own))
    try:
        pickle.dumps(own)
    except RuntimeError as error:
        found.append([str(error)])
    return found


def checkpointed() -> list[Any]:
    """A layer used twice, recomputed by backward passes within the backward pass."""
    checkpoint = torch.utils.checkpoint.checkpoint

    class Twice(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = linear(), linear(value=0.1)

        def forward(self, x: Any) -> Any:
            for layer in (self.a, self.b, self.a):
                x = checkpoint(layer, x, use_reentrant=True).tanh()
            return x

    net = DDP(Twice(), static_graph=True)
    found = []
    for _ in range(3):
        net.zero_grad()
        x = (ramp(3, 2) * (dist.get_rank() + 1)).requires_grad_()
        net(x).sum().backward()
        found.append(grads(net))
    return found


def main() -> None:
    dist.init_process_group("gloo")
    warnings.simplefilter("ignore")
    parts = (unused, unused_in_all, accumulate, buffers, uneven, hooks, copies, checkpointed)
    results = {part.__name__: part() for part in parts}
    dist.destroy_process_group()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
