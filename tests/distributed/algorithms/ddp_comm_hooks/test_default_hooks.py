"""Hooks in a group of one process; tests/nn/parallel has them in two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed.algorithms import ddp_comm_hooks
from rushlight.distributed.algorithms.ddp_comm_hooks import default_hooks
from rushlight.nn.parallel import DistributedDataParallel as DDP
from rushlight.nn.parallel.buckets import Bucket, GradBucket


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    """A group of this process only."""
    dist.init_process_group("gloo", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def bucket_of(*numbers: float) -> GradBucket:
    bucket = Bucket([0], [torch.zeros(len(numbers))])
    bucket.buffer.copy_(torch.tensor(numbers))
    return GradBucket(bucket, 0, True)


@pytest.mark.parametrize(
    ("hook", "dtype"),
    [
        (default_hooks.allreduce_hook, torch.float32),
        (default_hooks.fp16_compress_hook, torch.float16),
        (default_hooks.bf16_compress_hook, torch.bfloat16),
        (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), torch.float16),
        (default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook), torch.bfloat16),
    ],
)
def test_numbers_are_rounded_to_what_is_sent(hook: Any, dtype: Any) -> None:
    bucket = bucket_of(1 / 3, -2 / 3)
    expected = torch.tensor([1 / 3, -2 / 3]).to(dtype).float()
    before = bucket.buffer()
    result = hook(None, bucket).wait()
    assert torch.equal(result, expected) and result.dtype is torch.float32
    assert result.data_ptr() == before.data_ptr(), "written where it came from"


def test_hooks_by_name() -> None:
    net = DDP(nn.Linear(2, 1, bias=False))
    kind = ddp_comm_hooks.DDPCommHookType.BF16_COMPRESS
    ddp_comm_hooks.register_ddp_comm_hook(kind, net)
    net(torch.tensor([[1 / 3, 1.0]])).sum().backward()
    assert net.module.weight.grad.tolist() == [[0.333984375, 1.0]]
    noop = DDP(nn.Linear(1, 1, bias=False))
    ddp_comm_hooks.register_ddp_comm_hook(ddp_comm_hooks.DDPCommHookType.NOOP, noop)
    noop(torch.ones(1, 1)).sum().backward()
    assert noop.module.weight.grad.item() == 1
