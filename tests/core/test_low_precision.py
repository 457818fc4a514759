"""bfloat16 and float16: the short way gives what `core.elementwise` gives for every dtype."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.core.dispatch import binary, unary
from rushlight.core.elementwise import elementwise
from rushlight.core.families import Elementwise
from rushlight.ops.registry import table

DTYPES = [torch.bfloat16, torch.float16]
OPS = sorted(
    name
    for name, op in table.items()
    if issubclass(op, Elementwise)
    and not op.params
    and len(op.inputs) in (1, 2)
    and "__init__" not in vars(op)
    and not inspect.isabstract(op)
)


def outcome(call: Any, *args: Any) -> Any:
    """What can be seen of a result, or of an error."""
    try:
        y = call(*args)
    except Exception as error:  # compared
        return type(error).__name__, str(error)
    bits = (
        y.detach().contiguous().view(torch.uint8)
        if y.dim()
        else y.detach().view(1).view(torch.uint8)
    )
    return str(y.dtype), y.shape, y.stride(), str(y.grad_fn).partition(" ")[0], bits.tolist()


def operands(dtype: Any, count: int) -> list[tuple[Any, ...]]:
    torch.manual_seed(0)
    x, y = (torch.randn(3, 4).to(dtype) for _ in range(2))
    special = torch.tensor([0.0, -0.0, 1.0, float("inf"), float("-inf"), float("nan"), 3e4, 1e-7])
    z = special.to(dtype)
    if count == 1:
        return [(x,), (z,), (x.t(),), (x[0, 0],), (x.clone().requires_grad_(),), (x[:0],)]
    return [
        (x, y), (x, y[0]), (x, 0.3), (2, x), (z, z.flip(0)), (x.t(), y.t()), (x, 1e30),
        (x.clone().requires_grad_(), y), (x, y.clone().requires_grad_()), (x[0, 0], y[0, 0]),
        (x, y.float()), (x[0, 0], y),
    ]  # fmt: skip


@pytest.mark.parametrize("name", OPS)
@pytest.mark.filterwarnings("ignore")
def test_the_short_way(name: str) -> None:
    op = table[name]()
    call = unary if len(op.inputs) == 1 else binary
    for dtype in DTYPES:
        for xs in operands(dtype, len(op.inputs)):
            assert outcome(call, op, *xs) == outcome(elementwise, op, xs), (dtype, xs)


def test_gradients() -> None:
    for dtype in DTYPES:
        x = torch.tensor([0.5, -2.0, 3.0], dtype=dtype, requires_grad=True)
        y = torch.tensor([1.5, 2.0, -1.0], dtype=dtype, requires_grad=True)
        (x * y + x.exp()).sum().backward()
        assert x.grad is not None and y.grad is not None
        assert x.grad.dtype is dtype and y.grad.tolist() == [0.5, -2.0, 3.0]
        torch.testing.assert_close(
            x.grad.float(),
            torch.tensor([1.5, 2.0, -1.0]) + x.detach().float().exp(),
            rtol=1e-2,
            atol=1e-2,
        )


def test_casts_of_every_bfloat16() -> None:
    bits = torch.from_numpy(np.arange(1 << 16, dtype=np.uint16))
    halves = bits.view(torch.bfloat16)
    wide = halves.float()
    assert (wide.view(torch.int32) == bits.to(torch.int32) << 16).all()
    back = wide.to(torch.bfloat16)
    known = ~wide.isnan()
    assert torch.equal(back.view(torch.uint16)[known], bits[known]) and back[~known].isnan().all()
    between = (wide.view(torch.int32)[known] + 0x8000).view(torch.float32)  # ties go to even ones
    finite = between.isfinite()
    rounded = between[finite].to(torch.bfloat16).view(torch.uint16).to(torch.int32)
    assert (rounded % 2 == 0).all()
