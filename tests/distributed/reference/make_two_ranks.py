"""Writes the checkpoint `two_ranks` with PyTorch: torchrun --nproc-per-node 2 make_two_ranks.py."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (2,))
state = {
    "rows": distribute_tensor(torch.arange(10.0).reshape(5, 2), mesh, [Shard(0)]),
    "columns": distribute_tensor(torch.arange(6.0).reshape(2, 3), mesh, [Shard(1)]),
    "plain": torch.tensor([1.0, 2.0, 3.0]),
    "nested": {"n": 4, "text": "from PyTorch"},
}
os.chdir(Path(__file__).parent)
dcp.save(state, checkpoint_id="two_ranks")
dist.destroy_process_group()
