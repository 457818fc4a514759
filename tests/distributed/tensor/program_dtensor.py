"""DTensors and meshes on two or four processes: what they are, and what becomes of them."""

from __future__ import annotations

import sys
from typing import Any

from tests.distributed.library import chosen, numbers, tell

torch: Any = chosen()
import torch.distributed as dist  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.tensor import (  # noqa: E402
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
)


def facts(d: Any) -> Any:
    return [
        list(d.shape), list(d.stride()), d.numel(), d.dim(), d.size(0), str(d.placements),
        d.to_local().tolist(), d.full_tensor().tolist(), type(d).__name__,
    ]  # fmt: skip


def one_dimension(mesh: Any) -> dict[str, Any]:
    rank = dist.get_rank()
    x = torch.arange(10.0).reshape(5, 2)
    rows = distribute_tensor(x, mesh, [Shard(0)])
    columns = distribute_tensor(x, mesh, [Shard(-1)])
    found: dict[str, Any] = {"rows": facts(rows), "columns": facts(columns)}
    found["repr"] = repr(rows)
    found["short"] = facts(distribute_tensor(torch.arange(1.0), mesh, [Shard(0)]))
    found["whole"] = facts(distribute_tensor(x + rank, mesh, [Replicate()]))  # rank 0's counts
    partial = DTensor.from_local(torch.full((5, 2), float(rank + 1)), mesh, [Partial()])
    found["partial"] = facts(partial)
    found["partial to rows"] = facts(partial.redistribute(placements=[Shard(0)]))
    found["rows to columns"] = facts(rows.redistribute(placements=[Shard(1)]))
    found["rows to whole"] = facts(rows.redistribute(placements=[Replicate()]))
    found["from local"] = facts(DTensor.from_local(torch.ones(2, 3) * rank, mesh, [Shard(0)]))
    y = (rows * 2 + rows).sqrt() - 0.5
    found["pointwise"] = facts(y)
    found["in place"] = facts(rows.clone().add_(1).mul_(rows))
    found["like"] = facts(torch.zeros_like(rows))
    found["sum"] = rows.sum().full_tensor().item()
    found["mean"] = rows.mean().full_tensor().item()
    found["norm"] = torch.linalg.vector_norm(rows).full_tensor().item()
    found["norm inf"] = torch.linalg.vector_norm(rows, float("inf")).full_tensor().item()
    return found


def gradients(mesh: Any) -> dict[str, Any]:
    x = torch.arange(6.0).reshape(3, 2)
    p = torch.nn.Parameter(distribute_tensor(x, mesh, [Shard(0)]))
    found: dict[str, Any] = {"class": [type(p).__name__, isinstance(p, torch.nn.Parameter)]}
    (p.to_local() * 3).sum().backward()
    found["local"] = facts(p.grad)
    p.grad = None
    (p.redistribute(placements=[Replicate()]).to_local() ** 2).sum().backward()
    found["gathered"] = facts(p.grad)
    norm = torch.nn.utils.clip_grad_norm_([p], 1.0)
    found["clipped"] = [norm.full_tensor().item(), facts(p.grad)]
    for make in (torch.optim.Adam, torch.optim.SGD):
        more = {"momentum": 0.9} if make is torch.optim.SGD else {}
        optimiser = make([p], lr=0.1, **more)
        optimiser.step()
        found[make.__name__] = [facts(p), numbers(optimiser.state[p])]
    return found


def mesh_facts(mesh: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "repr": repr(mesh), "mesh": mesh.mesh.tolist(), "where": list(mesh.get_coordinate()),
        "shape": list(mesh.shape), "names": mesh.mesh_dim_names,
        "size": [mesh.size(), mesh.size(0)],
    }  # fmt: skip
    for name in ("dp", "tp"):
        part = mesh[name]
        group = part.get_group()
        found[name] = [
            repr(part), part.mesh.tolist(), part.get_local_rank(), mesh.get_local_rank(name),
            dist.get_process_group_ranks(group), part.ndim, part == mesh[name],
        ]  # fmt: skip
    flat = mesh._flatten("all")
    found["flat"] = [repr(flat), flat.mesh.tolist(), flat.get_local_rank(), flat.size()]
    x = torch.arange(32.0).reshape(8, 4)
    for n, placements in enumerate(
        ([Shard(0), Shard(0)], [Shard(0), Shard(1)], [Replicate(), Shard(0)], [Shard(1), Partial()])
    ):
        d = distribute_tensor(x, mesh, placements)
        found[f"cut {n}"] = [d.to_local().tolist(), d.full_tensor().tolist()]
    d = distribute_tensor(x, mesh, [Shard(0), Shard(0)])
    found["moved"] = facts(d.redistribute(placements=[Shard(1), Replicate()]))
    errors = []
    for wrong in (
        lambda: mesh["x"], lambda: mesh["tp", "dp"], lambda: mesh.get_group(),
        lambda: mesh.get_local_rank(),
    ):  # fmt: skip
        try:
            wrong()
        except (KeyError, RuntimeError) as error:
            errors.append([type(error).__name__, str(error).split(". Valid")[0]])
    found["errors"] = errors
    return found


def main() -> None:
    dist.init_process_group("gloo")
    if dist.get_world_size() == 4:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        found = mesh_facts(mesh)
    else:
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        found = {**one_dimension(mesh), "gradients": gradients(mesh)}
    tell(torch, found)


if __name__ == "__main__":
    assert len(sys.argv) > 1
    main()
