"""`fractional_max_pool`: where windows begin."""

from __future__ import annotations

import rushlight as torch


def test_low_precision_rounds_where_windows_begin() -> None:
    x = torch.arange(256.0).reshape(1, 1, 16, 16).to(torch.bfloat16)
    numbers = torch.tensor([[[5.96875, 3.125]]], dtype=torch.bfloat16)
    _, places = torch.nn.functional.fractional_max_pool2d(
        x, 1, output_ratio=(0.5, 0.5), return_indices=True, _random_samples=numbers
    )
    assert places[0, 0, 0].tolist() == [0, 2, 5, 7, 9, 11, 13, 15]
    assert places[0, 0, :, 0].tolist() == [0, 32, 80, 112, 144, 176, 208, 240]
