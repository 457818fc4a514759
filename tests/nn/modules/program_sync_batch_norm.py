"""`SyncBatchNorm` of a batch that two processes share, against `BatchNorm` of the whole.

Prints how far they are apart, by case.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn


def compare(
    x: Any, g: Any, mine: slice, dtype: Any = torch.float64, **options: Any
) -> list[float]:  # fmt: skip
    """Differences of outputs, gradients and statistics after two steps."""
    kind = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d}[x.ndim]
    whole = kind(x.shape[1], **options).to(dtype)
    if whole.affine:
        nn.init.uniform_(whole.weight)
    synced = nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(whole))
    assert type(synced) is nn.SyncBatchNorm
    pairs: list[tuple[Any, Any]] = []
    for step in (1, 2):
        a = (x.to(dtype) * step).requires_grad_()
        b = (x.to(dtype)[mine] * step).requires_grad_()
        y, z = whole(a), synced(b)
        y.backward(g.to(dtype))
        z.backward(g.to(dtype)[mine])
        assert z.dtype is dtype and b.grad is not None
        pairs += [(y[mine], z), (a.grad[mine], b.grad)]
    for p, q in zip(whole.parameters(), synced.parameters()):
        dist.all_reduce(q.grad)
        pairs.append((p.grad, q.grad))
    pairs += zip(whole.buffers(), synced.buffers())
    synced.eval()
    whole.eval()
    pairs.append((whole(x.to(dtype)), synced(x.to(dtype))))
    return [float((p - q).detach().abs().double().max()) for p, q in pairs if p.numel()]


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    uneven = slice(0, 3) if rank == 0 else slice(3, 7)
    one_has_nothing = slice(0, 7) if rank == 0 else slice(7, 7)
    x, g = torch.randn(2, 7, 3, 2, 2, dtype=torch.float64)
    results = {
        "uneven": compare(x, g, uneven),
        "plain rows": compare(x[:, :, 0, 0], g[:, :, 0, 0], uneven),
        "sequences": compare(x[:, :, 0], g[:, :, 0], uneven, momentum=None),
        "no parameters": compare(x, g, uneven, affine=False, track_running_stats=False),
        "empty": compare(x, g, one_has_nothing),
        "float32": compare(x, g, uneven, torch.float32),
    }
    net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(3, 3), nn.SyncBatchNorm(3)))
    net(torch.ones(2, 3) * torch.arange(2.0)[:, None] + rank).square().sum().backward()
    results["gradient"] = net.module[0].weight.grad.flatten().tolist()
    try:
        net.module[1](torch.ones(1 - rank, 3))
    except ValueError as error:
        results["one value"] = str(error)  # type: ignore[assignment]
    dist.destroy_process_group()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
