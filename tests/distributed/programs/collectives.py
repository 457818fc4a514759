"""Every collective, in each process: results as nested lists. Runs on PyTorch (gloo) as well.

mpiexec -n 2 python collectives.py          rushlight
... python collectives.py torch             PyTorch, with RANK and the others set
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from typing import Any

warnings.filterwarnings("ignore")
torch = importlib.import_module("torch" if "torch" in sys.argv else "rushlight")
dist: Any = torch.distributed


def plain(value: Any) -> Any:
    """A result as JSON has it."""
    if isinstance(value, torch.Tensor):
        return plain(torch.view_as_real(value)) if value.is_complex() else value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(x) for x in value]
    return value


def numbers(rank: int, n: int) -> dict[str, Any]:
    """What this process has after each collective."""
    found: dict[str, Any] = {}
    op = dist.ReduceOp
    for dtype in (torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.int8):
        for how in (op.SUM, op.PRODUCT, op.MIN, op.MAX):
            x = torch.arange(1, 7).to(dtype) + rank
            dist.all_reduce(x, op=how)
            found[f"all_reduce {dtype} {how}"] = plain(x)
    for how in (op.BAND, op.BOR, op.BXOR):
        x = torch.arange(6, dtype=torch.int32) + 5 * rank
        dist.all_reduce(x, op=how)
        found[f"all_reduce {how}"] = plain(x)
    for dtype in (torch.float16, torch.bfloat16):
        x = (torch.arange(5) / 3 + rank).to(dtype)
        dist.all_reduce(x)
        found[f"all_reduce {dtype}"] = plain(x.float())
    z = torch.complex(torch.arange(3.0), torch.ones(3) * rank)
    dist.all_reduce(z)
    found["all_reduce complex"] = plain(z)
    scalar = torch.tensor(2.5 + rank)
    dist.all_reduce(scalar)
    found["all_reduce 0-d"] = plain(scalar)
    empty = torch.ones(0, 3)
    dist.all_reduce(empty)
    found["all_reduce empty"] = plain(empty)
    for root in range(n):
        x = torch.arange(4.0) * (rank + 1)
        dist.broadcast(x, src=root)
        found[f"broadcast {root}"] = plain(x)
        x = torch.arange(4.0) * (rank + 1)
        dist.reduce(x, dst=root)
        found[f"reduce {root}"] = plain(x) if rank == root else None
        out = [torch.zeros(2, 2) for _ in range(n)] if rank == root else None
        dist.gather(torch.full((2, 2), float(rank)), out, dst=root)
        found[f"gather {root}"] = plain(out)
        x = torch.zeros(3)
        parts = [torch.full((3,), float(i)) for i in range(n)] if rank == root else None
        dist.scatter(x, parts, src=root)
        found[f"scatter {root}"] = plain(x)
    out = [torch.zeros(2, dtype=torch.bool) for _ in range(n)]
    dist.all_gather(out, torch.tensor([True, rank == 0]))
    found["all_gather"] = plain(out)
    flat = torch.zeros(2 * n)
    dist.all_gather_into_tensor(flat, torch.arange(2.0) + 10 * rank)
    found["all_gather_into_tensor"] = plain(flat)
    x = torch.zeros(2)
    dist.reduce_scatter(x, [torch.arange(2.0) + i + rank for i in range(n)])
    found["reduce_scatter"] = plain(x)
    x = torch.zeros(2)
    dist.reduce_scatter_tensor(x, torch.arange(2.0 * n) * (rank + 1))
    found["reduce_scatter_tensor"] = plain(x)
    x = torch.zeros(2 * n)
    dist.all_to_all_single(x, torch.arange(2.0 * n) + 100 * rank)
    found["all_to_all_single"] = plain(x)
    # rank i sends j + 1 rows to rank j
    rows = torch.arange(float(sum(range(1, n + 1)))).reshape(-1, 1) + 100 * rank
    x = torch.zeros((rank + 1) * n, 1)
    dist.all_to_all_single(x, rows, [rank + 1] * n, list(range(1, n + 1)))
    found["all_to_all_single splits"] = plain(x)
    x = torch.ones(3) * rank
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    found["async"] = [plain(x), work.is_completed()]
    # objects
    objects: list[Any] = [None] * n
    dist.all_gather_object(objects, {"rank": rank, "more": "x" * (10 * rank)})
    found["all_gather_object"] = objects
    objects = ["a", {"b": 1}] if rank == 1 else [None, None]
    dist.broadcast_object_list(objects, src=1)
    found["broadcast_object_list"] = objects
    gathered: list[Any] | None = [None] * n if rank == 0 else None
    dist.gather_object(f"object {rank}", gathered, dst=0)
    found["gather_object"] = gathered
    one: list[Any] = [None]
    dist.scatter_object_list(one, [f"for {i}" for i in range(n)] if rank == 0 else None, src=0)
    found["scatter_object_list"] = one
    # messages
    if rank == 0:
        dist.send(torch.arange(3.0), dst=1)
        dist.send(torch.arange(3.0) + 1, dst=1, tag=7)
        dist.send_object_list(["sent", 3], dst=1)
        dist.isend(torch.arange(2, dtype=torch.int16), dst=1).wait()
    elif rank == 1:
        x = torch.zeros(3)
        found["recv"] = [dist.recv(x, src=0), plain(x)]
        found["recv any"] = [dist.recv(x, tag=7), plain(x)]
        got: list[Any] = [None, None]
        dist.recv_object_list(got, src=0)
        found["recv_object_list"] = got
        short = torch.zeros(2, dtype=torch.int16)
        dist.irecv(short, src=0).wait()
        found["irecv"] = plain(short)
    around = torch.zeros(1)
    works = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, torch.tensor([float(rank)]), (rank + 1) % n),
            dist.P2POp(dist.irecv, around, (rank - 1) % n),
        ]
    )
    for work in works:
        work.wait()
    found["batch_isend_irecv"] = plain(around)
    # groups
    last = dist.new_group([n - 1])
    pair = dist.new_group([0, 1])
    found["ranks"] = [dist.get_rank(last), dist.get_rank(pair), dist.get_world_size(pair)]
    x = torch.ones(2) * (rank + 1)
    if rank < 2:
        dist.all_reduce(x, group=pair)
        dist.broadcast(x, group_src=0, group=pair)
    found["in a group"] = plain(x)
    own, all_of_them = dist.new_subgroups(1)
    found["subgroups"] = [dist.get_process_group_ranks(own), len(all_of_them)]
    dist.barrier()
    dist.monitored_barrier()
    found["backend"] = [dist.get_backend(), dist.get_backend_config()]
    return found


def errors(rank: int, n: int) -> dict[str, str]:
    """The errors of calls that are wrong in themselves, before anything is sent."""
    calls = {
        "no tensor": lambda: dist.all_reduce(3),
        "to itself": lambda: dist.send(torch.ones(1), rank),
        "twice": lambda: dist.init_process_group("gloo"),
        "no root": lambda: dist.broadcast(torch.ones(1)),
        "dtypes": lambda: dist.all_gather([torch.ones(1, dtype=torch.int32)] * n, torch.ones(1)),
        "too many": lambda: dist.new_group(list(range(n + 1))),
        "complex": lambda: dist.all_reduce(torch.ones(1) * 1j, op=dist.ReduceOp.MAX),
        "P2POp": lambda: dist.P2POp(print, torch.ones(1), 0),
        "gather_list": lambda: dist.gather(torch.ones(1), dst=rank),
        "scatter_list": lambda: dist.scatter(torch.ones(1), src=rank),
    }
    found = {}
    for name, call in calls.items():
        try:
            call()
            found[name] = "no error"
        except Exception as error:  # compared with PyTorch's
            found[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return found


def main() -> None:
    from tests.distributed.running import report

    dist.init_process_group("gloo")
    rank, n = dist.get_rank(), dist.get_world_size()
    report(rank, {"numbers": numbers(rank, n), "errors": errors(rank, n)})
    dist.destroy_process_group()
    assert "RANK" in os.environ


if __name__ == "__main__":
    main()
