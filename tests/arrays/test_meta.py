"""Tensors of the device `meta`: shapes, strides and dtypes as PyTorch's, and no numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import move
from rushlight.arrays.meta import META, Meta
from rushlight.core.graph import wrap
from rushlight.core.record import apply
from tests import harness
from tests.arrays import cases_meta as cases
from tests.laws.test_laws import CASES, listed

STORED = harness.stored("arrays/meta")
OURS = cases.results(torch)
# The shapes of their results depend on numbers.
BY_NUMBERS = {
    "bincount", "histc", "masked_select", "nonzero", "nonzero_numpy", "unique",
    "unique_consecutive", "unique_dim",
}  # fmt: skip


@pytest.mark.parametrize("line", cases.LINES)
def test_pytorch_agrees(line: str) -> None:
    assert OURS[line] == STORED[line]


if harness.LIVE:

    def test_stored_results_are_pytorchs() -> None:
        assert cases.results(harness.pytorch()) == STORED


def as_tensors(x: Any, meta: bool) -> Any:
    if isinstance(x, np.ndarray):
        return wrap(move(x, META) if meta else x.copy())
    if isinstance(x, list | tuple):
        return type(x)(as_tensors(y, meta) for y in x)
    return x


@pytest.mark.parametrize(("op", "xs"), CASES)
def test_every_op_gives_what_it_gives_of_numbers(op: Any, xs: tuple[Any, ...]) -> None:
    real = listed(apply(op, *as_tensors(xs, False)))
    try:
        found = listed(apply(op, *as_tensors(xs, True)))
    except NotImplementedError as error:
        masks = any(isinstance(x, np.ndarray) and x.dtype == bool for x in xs)
        assert op.name in BY_NUMBERS or (op.name == "index" and masks), error
        return
    assert op.name not in BY_NUMBERS
    for a, b in zip(real, found, strict=True):
        assert b.is_meta and (a.shape, a.dtype) == (b.shape, b.dtype)
        if a.numel():
            assert a.stride() == b.stride()


def test_nothing_is_read_where_nothing_is() -> None:
    huge = Meta((10**7, 10**7), np.float32)
    assert huge[5, 7].shape == () and huge[3:5, 1].strides == (4 * 10**7,)
    assert huge[..., None].shape == (10**7, 10**7, 1) and huge[2, 1].data.ptr == 80_000_004
    assert v.reshape(v.permute(huge, (1, 0)), (10**14,)).base is None  # a copy
    assert v.reshape(huge, (10**14,)).base is huge
    with pytest.raises(NotImplementedError, match="too large to try"):
        v.pad(huge, ((1, 1), (0, 0)), 0)


def test_random_numbers_are_not_drawn() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    torch.rand(5, device="meta").uniform_().normal_()
    torch.nn.Linear(3, 3, device="meta")
    assert torch.rand(2).tolist() == expected
