"""When gradients are sent: while the backward pass is running, and in which order."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.nn.parallel import DistributedDataParallel as DDP
from rushlight.nn.parallel.reducer import leaves_of

pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def alone() -> Iterator[None]:
    """A group of this process only."""
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def log_of(net: Any, ddp: Any) -> list[Any]:
    """What happens in a backward pass: gradients by the name of their parameter, buckets by their
    number."""
    log: list[Any] = []

    def send(state: Any, bucket: Any) -> Any:
        log.append(bucket.index())
        future: Any = torch.futures.Future()
        future.set_result(bucket.buffer())
        return future

    ddp.register_comm_hook(None, send)
    for name, p in net.named_parameters():
        p.register_hook(lambda g, name=name: log.append(name))
    return log


def test_full_buckets_leave_before_the_pass_is_over() -> None:
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Tanh(), nn.Linear(2, 2, bias=False))
    ddp = DDP(net, bucket_cap_mb=1e-6)
    log = log_of(net, ddp)
    ddp(torch.ones(1, 2)).sum().backward()
    assert log == ["2.weight", "0.weight", 0], "the first pass has one bucket"
    log.clear()
    ddp(torch.ones(1, 2)).sum().backward()
    assert log == ["2.weight", 0, "0.weight", 1]


def test_buckets_are_rebuilt_in_the_order_of_gradients() -> None:
    class Crossed(nn.Module):
        """Registered in the order that gradients come in, not in that of use."""

        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(2, 2, bias=False)
            self.first = nn.Linear(2, 2, bias=False)

        def forward(self, x: Any) -> Any:
            return self.last(self.first(x).tanh())

    net = Crossed()
    ddp = DDP(net, bucket_cap_mb=1e-6)
    log = log_of(net, ddp)
    for _ in range(2):
        log.clear()
        ddp(torch.ones(1, 2)).sum().backward()
    assert log == ["last.weight", 0, "first.weight", 1]
    assert [b.indices for b in ddp.reducer.buckets] == [(0,), (1,)] and ddp.reducer.rebuilt


def test_a_full_bucket_waits_for_its_turn() -> None:
    net = nn.ModuleList([nn.Linear(2, 2, bias=False) for _ in range(3)])

    class Either(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = net
            self.order = [0, 1, 2]

        def forward(self, x: Any) -> Any:
            for at in self.order:
                x = self.layers[at](x).tanh()
            return x

    inner = Either()
    ddp = DDP(inner, bucket_cap_mb=1e-6)
    log = log_of(net, ddp)
    ddp(torch.ones(1, 2)).sum().backward()
    log.clear()
    inner.order = [2, 1, 0]  # gradients now come in the opposite order
    ddp(torch.ones(1, 2)).sum().backward()
    assert log == ["0.weight", "1.weight", "2.weight", 0, 1, 2]


def test_gradients_as_views_share_memory() -> None:
    net = nn.Linear(3, 3)
    ddp = DDP(net, gradient_as_bucket_view=True)
    for _ in range(3):
        ddp.zero_grad()
        ddp(torch.ones(2, 3)).sum().backward()
        (bucket,) = ddp.reducer.buckets
        start = bucket.buffer.data_ptr()
        end = start + bucket.buffer.numel() * 4
        assert all(start <= p.grad.data_ptr() < end for p in net.parameters())
    kept = [p.grad for p in net.parameters()]
    with ddp.no_sync():
        ddp(torch.ones(2, 3)).sum().backward()
    assert all(p.grad is g for p, g in zip(net.parameters(), kept))
    assert kept[1].tolist() == [4, 4, 4]


def test_leaves_are_found_behind_outputs() -> None:
    a, b, c = (torch.ones(1, requires_grad=True) for _ in range(3))
    y = a * b
    z = (y + y).exp()
    assert leaves_of([z]) == {id(a), id(b)} and leaves_of([c]) == set()


def test_a_graph_that_was_said_to_be_static() -> None:
    class Changes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(1, 1), nn.Linear(1, 1)
            self.both = False

        def forward(self, x: Any) -> Any:
            return self.a(x) + self.b(x) if self.both else self.a(x)

    net = Changes()
    ddp = DDP(net, static_graph=True)
    ddp(torch.ones(1, 1)).sum().backward()
    net.both = True
    y = ddp(torch.ones(1, 1)).sum()
    with pytest.raises(RuntimeError, match="Your training graph has changed in this iteration"):
        y.backward()


def test_a_parameter_ready_twice() -> None:
    from rushlight.utils.checkpoint import checkpoint

    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(1, 1), nn.Linear(1, 1)

        def forward(self, x: Any) -> Any:
            for layer in (self.b, self.a, self.a):
                x = checkpoint(layer, x, use_reentrant=True)
            return x

    ddp = DDP(Shared())
    y = ddp(torch.ones(1, 1, requires_grad=True))
    with pytest.raises(RuntimeError, match="Expected to mark a variable ready only once"):
        y.sum().backward()


def test_a_hook_must_return_a_future() -> None:
    ddp = DDP(nn.Linear(1, 1))

    def nothing(state, bucket):  # type: ignore[no-untyped-def]
        return None

    ddp.register_comm_hook(None, nothing)
    y = ddp(torch.ones(1, 1))
    with pytest.raises(RuntimeError, match="expected a torch.futures.Future"):
        y.backward()


def test_a_dropped_wrapper_leaves_the_parameters() -> None:
    net = nn.Linear(1, 1)
    ddp = DDP(net)
    assert net.weight._post_accumulate_grad_hooks
    del ddp
    gc.collect()
    assert not net.weight._post_accumulate_grad_hooks
