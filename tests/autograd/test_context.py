"""What `ctx` keeps: saved tensors, their lives and their history."""

from __future__ import annotations

import gc
import weakref

import pytest

import rushlight as torch
from tests.autograd.function_helpers import Cube

pytestmark = pytest.mark.usefixtures("no_mode_left")


def test_saved_tensors_do_not_keep_interior_tensors_alive() -> None:
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(2, requires_grad=True)
        h = x * 2
        y = Cube.apply(h)
        assert y.grad_fn.saved_tensors[0] is h
        seen = weakref.ref(h)
        del h
        assert seen() is None
        assert y.grad_fn.saved_tensors[0].tolist() == [2, 2]
        y.sum().backward()
        assert x.grad.tolist() == [24, 24]
    finally:
        gc.enable()


def test_a_saved_tensor_that_was_detached_keeps_its_history() -> None:
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    y = Cube.apply(h)
    h.detach_()
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    assert gg.tolist() == [48, 48]
