"""NCCL: a group of one on a GPU; several ranks as threads over the stand-in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight.distributed.nccl import NCCLTransport
from rushlight.distributed.reduce_op import ReduceOp
from tests.device.conftest import REAL


@pytest.fixture
def alone() -> Iterator[Any]:
    dist.init_process_group("nccl", rank=0, world_size=1, store=dist.HashStore())
    yield dist.group.WORLD
    dist.destroy_process_group()


def test_a_group_of_one(alone: Any) -> None:
    assert dist.get_backend() == "nccl" and dist.is_nccl_available()
    assert dist.get_backend_config() == "cuda:nccl" and alone.timeout == timedelta(minutes=10)
    for dtype in (torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8):
        x = torch.arange(4, device="cuda").to(dtype)
        for op in (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.AVG, ReduceOp.PRODUCT):
            dist.all_reduce(x, op=op)
        assert x.tolist() == [0, 1, 2, 3], dtype
    z = torch.tensor([1 + 2j], device="cuda")
    dist.all_reduce(z.conj())
    dist.all_reduce(z)
    assert z.tolist() == [1 + 2j]
    turned = torch.arange(6.0, device="cuda").reshape(2, 3).t()
    before = turned._version
    dist.all_reduce(turned)
    dist.broadcast(turned, src=0)
    dist.reduce(turned, dst=0)
    assert turned.tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]] and turned._version > before
    out = [torch.zeros(3, device="cuda")]
    dist.all_gather(out, torch.arange(3.0, device="cuda"))
    dist.gather(out[0] + 1, out, dst=0)
    assert out[0].tolist() == [1.0, 2.0, 3.0]
    flat = torch.zeros(3, device="cuda")
    dist.all_gather_into_tensor(flat, out[0])
    dist.reduce_scatter_tensor(flat, flat * 2)
    dist.scatter(flat, [flat + 1], src=0)
    got = torch.zeros(3, device="cuda")
    dist.all_to_all_single(got, flat)
    assert got.tolist() == [3.0, 5.0, 7.0]
    found: list[Any] = [None]
    dist.all_gather_object(found, {"a": 1})
    dist.broadcast_object_list(found, src=0)
    assert found == [{"a": 1}]
    work = dist.all_reduce(got, async_op=True)
    assert work is not None and work.wait() and work.get_future().wait()[0] is got
    dist.barrier()


def test_what_nccl_does_not_do(alone: Any) -> None:
    with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
        dist.all_reduce(torch.ones(1))
    with pytest.raises(ValueError, match=r"Cannot use ReduceOp\.BAND with NCCL"):
        dist.all_reduce(torch.ones(1, dtype=torch.int32, device="cuda"), op=ReduceOp.BAND)
    with pytest.raises(RuntimeError, match="Unconvertible NCCL type"):
        dist.all_reduce(torch.ones(1, dtype=torch.int16, device="cuda"))


def test_both_kinds_of_tensors() -> None:
    dist.init_process_group("cpu:gloo,cuda:nccl", rank=0, world_size=1, store=dist.HashStore())
    here, there = torch.ones(2), torch.ones(2, device="cuda")
    dist.all_reduce(here)
    dist.all_reduce(there)
    assert here.tolist() == there.tolist() == [1.0, 1.0]
    dist.destroy_process_group()


# --- several ranks --------------------------------------------------------------------------------
def on_ranks(n: int, body: Callable[[NCCLTransport, int], Any]) -> list[Any]:
    """What a function gives on each rank."""
    store = dist.HashStore()
    found: list[Any] = [None] * n

    def run(rank: int) -> None:
        try:
            found[rank] = body(NCCLTransport(store, rank, n, "test", 30.0), rank)
        except BaseException as error:
            found[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for value in found:
        if isinstance(value, BaseException):
            raise value
    return found


@pytest.mark.skipif(REAL, reason="NCCL wants a GPU for each rank, and there may be one")
def test_every_collective_on_three_ranks() -> None:
    def body(t: NCCLTransport, rank: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        x = torch.arange(3.0, device="cuda") + rank
        t.all_reduce(x, ReduceOp.SUM, False)
        found["all_reduce"] = x.tolist()
        x = torch.ones(2, 2, device="cuda").t() * (rank + 1)
        t.all_reduce(x, ReduceOp.AVG, False)
        found["average"] = x.tolist()
        z = torch.tensor([1 + 1j * rank], device="cuda").conj()
        t.all_reduce(z, ReduceOp.SUM, False)
        found["complex"] = [z.real.item(), z.imag.item()]
        x = torch.full((2,), float(rank), device="cuda")
        t.reduce(x, 1, ReduceOp.MAX, False)
        found["reduce"] = x.tolist()
        x = torch.full((2,), float(rank), device="cuda")
        t.broadcast(x, 2, False)
        found["broadcast"] = x.tolist()
        outs = [torch.zeros(2, device="cuda") for _ in range(3)]
        t.all_gather(outs, x + rank, False)
        found["all_gather"] = [o.tolist() for o in outs]
        flat = torch.zeros(6, device="cuda")
        t.all_gather([flat], x + rank, False)
        found["flat"] = flat.tolist()
        t.gather(outs if rank == 0 else None, x * rank, 0, False)
        found["gather"] = [o.tolist() for o in outs]
        parts = [torch.full((2,), 10.0 * i, device="cuda") for i in range(3)]
        t.scatter(x, parts if rank == 1 else None, 1, False)
        found["scatter"] = x.tolist()
        t.reduce_scatter(x, parts, ReduceOp.SUM, False)
        found["reduce_scatter"] = x.tolist()
        t.reduce_scatter(x, [torch.arange(6.0, device="cuda")], ReduceOp.SUM, False)
        found["reduce_scatter flat"] = x.tolist()
        sent = [torch.full((i + 1,), 10.0 * rank + i, device="cuda") for i in range(3)]
        got = [torch.zeros(rank + 1, device="cuda") for _ in range(3)]
        t.all_to_all(got, sent, False)
        found["all_to_all"] = [o.tolist() for o in got]
        x = torch.zeros(2, device="cuda")
        if rank == 0:
            t.send(torch.arange(2.0, device="cuda"), 2, 0, False)
        elif rank == 2:
            t.receive(x, 0, 0, False)
        found["message"] = x.tolist()
        t.close()
        return found

    for rank, found in enumerate(on_ranks(3, body)):
        assert found == {
            "all_reduce": [3.0, 6.0, 9.0],
            "average": [[2.0, 2.0], [2.0, 2.0]],
            "complex": [3.0, -3.0],
            "reduce": [2.0, 2.0] if rank == 1 else [rank, rank],
            "broadcast": [2.0, 2.0],
            "all_gather": [[2.0, 2.0], [3.0, 3.0], [4.0, 4.0]],
            "flat": [2.0, 2.0, 3.0, 3.0, 4.0, 4.0],
            "gather": [[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]]
            if rank == 0
            else [[2.0, 2.0], [3.0, 3.0], [4.0, 4.0]],
            "scatter": [10.0 * rank] * 2,
            "reduce_scatter": [30.0 * rank] * 2,
            "reduce_scatter flat": [6.0 * rank, 6.0 * rank + 3],
            "all_to_all": [[10.0 * i + rank] * (rank + 1) for i in range(3)],
            "message": [0.0, 1.0] if rank == 2 else [0.0, 0.0],
        }, rank
