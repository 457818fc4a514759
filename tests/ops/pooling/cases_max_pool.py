"""Pooling of all kinds: results, places, two orders of gradients, and errors."""

from __future__ import annotations

from typing import Any

from tests.ops.calls import answers, errors

CALLS = """
F.max_pool1d(x(2, 3, 9), 2) | F.max_pool1d(x(3, 9), 3, 2, 1)
F.max_pool1d(x(2, 3, 9), 3, 2, 1, 2, True)
F.max_pool1d(x(2, 3, 9), 3, 1, return_indices=True) | torch.max_pool1d(x(2, 3, 9), 2)
torch.max_pool1d_with_indices(x(2, 3, 9), 2) | F.max_pool2d(x(2, 3, 6, 6), 2)
F.max_pool2d(x(3, 6, 7), (2, 3), return_indices=True) | F.max_pool2d(x(2, 3, 6, 6), 3, 2, 1)
F.max_pool2d(x(2, 3, 6, 6), 3, 2, 1, 1, True, True)
F.max_pool2d(x(1, 2, 7, 7), 2, 3, 1, 2, True, True)
F.max_pool2d(x(0, 3, 4, 4), 2) | F.max_pool2d(i(2, 3, 5, 5), 2, return_indices=True)
F.max_pool2d(torch.full((1, 1, 4, 4), float("nan")), 2, return_indices=True)[1]
F.max_pool2d(torch.full((1, 1, 4, 4), -float("inf")), 3, 1, 1, return_indices=True)[1]
F.max_pool2d(torch.ones(1, 1, 4, 4), 2, return_indices=True)[1]
F.max_pool2d(x(1, 1, 20, 20), 17, 1, return_indices=True)
F.max_pool2d(x(2, 3, 4, 4).contiguous(memory_format=torch.channels_last), 2)
F.max_pool2d(x(2, 3, 4, 4).detach(), 3, 2, 1)
F.max_pool3d(x(1, 2, 4, 4, 5), 2, return_indices=True)
F.max_pool3d(x(2, 4, 4, 5), 3, 2, 1, ceil_mode=True)
F.max_pool3d(x(1, 2, 4, 4, 5), (1, 2, 2), (1, 1, 2))
F.avg_pool1d(x(2, 3, 9), 2) | F.avg_pool1d(x(3, 9), 3, 2, 1, True, False)
torch.avg_pool1d(x(2, 3, 9), 4, 3)
F.avg_pool2d(x(2, 3, 6, 6), 2) | F.avg_pool2d(x(3, 6, 7), (2, 3), 2, 1)
F.avg_pool2d(x(1, 2, 7, 6), 3, 2, 1, True)
F.avg_pool2d(x(1, 2, 7, 6), 3, 2, 1, True, False)
F.avg_pool2d(x(1, 2, 5, 5), 2, 1, divisor_override=3)
F.avg_pool2d(i(1, 2, 5, 5), 2) | F.avg_pool3d(x(1, 2, 4, 5, 4), 2)
F.avg_pool3d(x(2, 4, 5, 4), 3, 2, 1, True, False)
F.adaptive_avg_pool1d(x(2, 3, 7), 3) | F.adaptive_avg_pool1d(x(3, 8), 4)
F.adaptive_avg_pool2d(x(2, 3, 6, 7), 1)
F.adaptive_avg_pool2d(x(2, 3, 6, 7), (None, 3)) | F.adaptive_avg_pool2d(x(3, 6, 6), (4, 9))
F.adaptive_avg_pool2d(x(1, 1, 40, 3), (3, 2)) | F.adaptive_avg_pool3d(x(1, 2, 4, 5, 6), (2, 3, 3))
F.adaptive_avg_pool3d(x(2, 4, 5, 6), 1) | F.adaptive_avg_pool2d(x(2, 3, 4, 4).detach(), 0)
F.adaptive_max_pool1d(x(2, 3, 7), 3, True) | F.adaptive_max_pool2d(x(2, 3, 6, 7), (2, 3), True)
F.adaptive_max_pool2d(x(3, 6, 7), (None, 4)) | F.adaptive_max_pool2d(x(2, 3, 6, 7), 1, True)
F.adaptive_max_pool3d(x(1, 2, 4, 5, 6), (2, 3, 3), True) | torch.adaptive_max_pool1d(x(2, 3, 7), 2)
F.adaptive_max_pool2d(x(1, 2, 5, 5), (7, 3), True)
F.lp_pool1d(x(2, 3, 8).abs(), 2, 3, 2) | F.lp_pool2d(x(2, 3, 6, 6), 2, 2)
F.lp_pool2d(x(2, 3, 6, 6), 4, (2, 3), 1, True)
F.lp_pool3d(x(1, 2, 4, 4, 4), 2, 2)
F.fractional_max_pool2d(x(2, 3, 9, 9), 2, 5, return_indices=True, _random_samples=u(2, 3, 2))
F.fractional_max_pool2d(x(3, 9, 8), (2, 3), (4, 3), _random_samples=u(1, 3, 2))
F.fractional_max_pool2d(x(2, 3, 9, 9), 2, output_ratio=(0.5, 0.4), _random_samples=u(2, 3, 2))
F.fractional_max_pool3d(x(2, 6, 6, 7), 2, (3, 4, 5), return_indices=1, _random_samples=u(1, 2, 3))
F.fractional_max_pool2d(x(1, 1, 5, 5), 2, 1, _random_samples=u(1, 1, 2))
F.max_unpool1d(*F.max_pool1d(x(2, 3, 8), 2, return_indices=True), 2)
F.max_unpool2d(*F.max_pool2d(x(2, 3, 6, 6), 2, return_indices=True), 2)
F.max_unpool2d(*F.max_pool2d(x(2, 3, 7, 7), 2, return_indices=True), 2, output_size=(7, 7))
F.max_unpool3d(*F.max_pool3d(x(1, 2, 4, 4, 4), 2, return_indices=True), 2)
torch.func.vmap(lambda a: F.max_pool2d(a, 2, 1))(x(3, 2, 2, 4, 4))
torch.func.vmap(lambda a: F.avg_pool2d(a, 2, 1, 1, count_include_pad=False))(x(3, 2, 2, 4, 4))
torch.func.jvp(lambda a: F.max_pool2d(a, 3, 2, 1), (x(1, 2, 5, 5),), (x(1, 2, 5, 5),))
torch.func.jvp(lambda a: F.adaptive_avg_pool2d(a, 3), (x(1, 2, 5, 5),), (x(1, 2, 5, 5),))
"""

ERRORS = """
F.max_pool2d(x(6, 6), 2) | F.max_pool2d(x(1, 1, 6, 6), 0)
F.max_pool2d(x(1, 1, 6, 6), 2, padding=2)
F.max_pool2d(x(1, 1, 6, 6), (2, 2, 2)) | F.max_pool2d(x(1, 1, 6, 6), 7)
F.max_pool2d(x(1, 1, 6, 6), 2, dilation=0)
F.max_pool1d(x(1, 6), 0) | F.max_pool1d(x(1, 6), 7) | F.max_pool1d(x(1, 1, 1, 6), 2)
F.max_pool1d(x(1, 6), 2, padding=2)
F.max_pool2d(x(1, 1, 6, 6).bool(), 2) | F.max_pool2d(z(1, 1, 6, 6), 2)
F.max_pool2d(x(2, 0, 4, 4), 2)
F.max_pool3d(x(1, 1, 6, 6, 6), (1, 2)) | F.avg_pool2d(x(6, 6), 2)
F.avg_pool2d(x(1, 1, 6, 6), 2, padding=2)
F.avg_pool2d(x(1, 1, 6, 6), 2, divisor_override=0) | F.avg_pool2d(x(1, 1, 6, 6), 9)
F.avg_pool1d(x(1, 1, 1, 6), 2)
F.avg_pool2d(i(1, 1, 6, 6).int(), 2) | F.avg_pool1d(x(1, 6), (1, 2))
F.avg_pool2d(x(1, 1, 6, 6), 2, -1)
F.adaptive_avg_pool2d(x(1, 1, 6, 6), (1, 2, 3)) | F.adaptive_avg_pool2d(x(6, 6), 2)
F.adaptive_avg_pool2d(x(1, 1, 6, 6), -1)
F.adaptive_avg_pool2d(i(1, 1, 6, 6), 2) | F.adaptive_max_pool2d(x(1, 1, 6, 6), -1)
F.adaptive_max_pool2d(x(6, 6), 2)
F.adaptive_max_pool2d(i(1, 1, 6, 6), 2) | F.fractional_max_pool2d(x(1, 1, 6, 6), 2)
F.fractional_max_pool2d(x(1, 1, 6, 6), 2, 6)
F.fractional_max_pool3d(x(1, 1, 4, 4, 4), 2, 3)
F.fractional_max_pool2d(x(1, 1, 6, 6), 2, 3, _random_samples=u(1, 1))
F.max_unpool2d(x(1, 1, 2, 2), x(1, 1, 2, 2), 2)
F.max_unpool2d(x(1, 1, 2, 2), i(1, 1, 2, 3), 2)
F.max_unpool2d(x(1, 1, 2, 2), i(1, 1, 2, 2) * 0 + 500, 2)
F.max_unpool2d(x(1, 1, 2, 2), i(1, 1, 2, 2) * 0, 2, output_size=(9, 9)) | nn.FractionalMaxPool2d(2)
nn.FractionalMaxPool2d(2, 3, 0.5) | nn.FractionalMaxPool2d(2, output_ratio=1.5)
F.max_unpool2d(z(1, 1, 2, 2), i(1, 1, 2, 2) * 0, 2)
F.max_unpool3d(i(1, 1, 1, 2, 2), i(1, 1, 1, 2, 2) * 0, 2)
F.max_pool1d(i(1, 6), 2) | F.max_pool1d(z(1, 6), 2) | F.avg_pool3d(z(1, 4, 4, 4), 2)
F.avg_pool1d(z(1, 6), 2)
F.adaptive_avg_pool3d(z(1, 4, 4, 4), 2) | F.adaptive_max_pool3d(i(1, 4, 4, 4), 2)
"""


def results(torch: Any) -> Any:
    return {"answers": answers(torch, CALLS), "errors": errors(torch, ERRORS)}
