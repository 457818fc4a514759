"""How results lie in memory, where an op has results of several shapes."""

from __future__ import annotations

import rushlight as torch


def test_group_norm_of_channels_last() -> None:
    x = torch.arange(32.0).reshape(1, 4, 2, 4)
    last = x.to(memory_format=torch.channels_last).requires_grad_()
    y = torch.nn.functional.group_norm(last, 2)
    assert y.stride() == last.stride() == (32, 1, 16, 4)
    torch.testing.assert_close(y, torch.nn.functional.group_norm(x, 2), check_stride=False)
    y.square().sum().backward()
    assert last.grad is not None and last.grad.shape == x.shape
    out, mean, rstd = torch.native_group_norm(last, None, None, 1, 4, 8, 2, 1e-5)
    assert out.stride() == (32, 1, 16, 4) and mean.stride() == rstd.stride() == (2, 1)
