"""Copies: strides, and memory that is not shared."""

from __future__ import annotations

import rushlight as torch
from rushlight.ops.shape.pad import pad
from tests.ops.shape.helpers import count, leaf


def test_copies_never_share_memory() -> None:
    x = torch.ones(1, 1)
    copies = [
        x.flip(0), x.roll(1), x.roll(1, 0), x.repeat(1, 1), torch.cat([x]), x.clone(), x.tril(),
        x.rot90(0), x.rot90(2), x.tile(1), pad(x, (0, 0)), pad(x, (0, 0), "circular"),
        pad(x, (0, 0), "reflect"), pad(x, (0, 0), "replicate"), x.narrow_copy(0, 0, 1),
        x.diag(), torch.block_diag(x), torch.diff(x, 0),
    ]  # fmt: skip
    for y in copies:
        y.fill_(9)
    assert x.item() == 1


def test_clone_keeps_the_order_of_strides() -> None:
    x = count(2, 3, 4)
    assert x.permute(2, 0, 1).clone().stride() == (1, 12, 4)
    assert x[:, :, ::2].clone().stride() == (6, 2, 1)
    assert x[:1].expand(5, 3, 4).clone().stride() == (12, 4, 1)
    row = x.permute(2, 0, 1).clone(memory_format=torch.contiguous_format)
    assert row.stride() == (6, 3, 1)
    y = leaf(2)
    assert y.clone().grad_fn.name() == "CloneBackward0"
