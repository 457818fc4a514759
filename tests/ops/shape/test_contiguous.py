"""Questions about sizes and strides."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.view.helpers import count


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("x.size(3)", IndexError, r"expected to be in range of \[-3, 2\], but got 3"),
        ("len(x[0, 0, 0])", TypeError, "len.. of a 0-d tensor"),
        ("list(x[0, 0, 0])", TypeError, "iteration over a 0-d tensor"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3, 4), "torch": torch})


def test_sizes_strides_and_offsets() -> None:
    x = count(2, 3, 4)
    assert x.size() == (2, 3, 4) and x.size(-1) == 4
    assert x.dim() == x.ndimension() == 3
    assert x.numel() == x.nelement() == torch.numel(x) == 24
    assert x.element_size() == x.itemsize == 4 and x.nbytes == 96
    assert x[1, 2:].storage_offset() == 20
    assert x.unfold(2, 2, 1)[1, 1].storage_offset() == 16
    assert x.is_contiguous() and not x.mT.is_contiguous()
    assert x.contiguous() is x and x.mT.contiguous().stride() == (12, 3, 1)
    assert x.is_set_to(x.view(2, 3, 4)) and not x.is_set_to(x[0])
    image = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert image.stride() == (60, 1, 15, 3)
    assert image.is_contiguous(memory_format=torch.channels_last)
    assert len(x) == 2
    assert [t.shape for t in (torch.atleast_1d(x[0, 0, 0]), torch.atleast_3d(x[0, 0]))] == [
        (1,), (1, 4, 1),
    ]  # fmt: skip
