"""The steps of a call of a custom function, one by one."""

from __future__ import annotations

import pytest

import rushlight as torch
from rushlight.autograd import apply
from tests.autograd.function_helpers import Cube

pytestmark = pytest.mark.usefixtures("no_mode_left")


def test_the_steps_of_a_call() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    ctx = apply.begin(Cube, (x,))
    output = apply.compute(Cube, ctx, (x,))
    assert not output.requires_grad and ctx.to_save is not None
    (y,) = apply.settle(ctx, (x,), (output,), (), (), frozenset())
    apply.keep(ctx)
    assert y.grad_fn is ctx and len(ctx.saved_tensors) == 1
    y.backward()
    assert x.grad.item() == 12
