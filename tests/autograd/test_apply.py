"""Custom autograd functions behave as PyTorch's in every situation of cases_function_*.py.

What PyTorch does is stored, and asked live where it is installed. What follows after the cases is
where rushlight does better, or what PyTorch cannot be asked.
"""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import Function, apply
from rushlight.core.grad_mode import state
from tests.autograd import (
    cases_function_calls,
    cases_function_dirty,
    cases_function_nested,
    cases_function_outputs,
    cases_function_rules,
    cases_function_saved,
)
from tests.harness import LIVE, agree, pytorch, stored

PARTS = {
    "calls": cases_function_calls.cases,
    "outputs": cases_function_outputs.cases,
    "dirty": cases_function_dirty.cases,
    "saved": cases_function_saved.cases,
    "rules": cases_function_rules.cases,
    "nested": cases_function_nested.cases,
}
NAMES = [(part, name) for part, cases in PARTS.items() for name in cases]
STORED = {part: stored(f"autograd/function_{part}") for part in PARTS}


@pytest.fixture(autouse=True)
def nothing_left() -> Any:
    """A test leaves no mode entered, and with it no slow path."""
    before = state.active
    yield
    assert state.active == before


def test_all_cases_are_stored() -> None:
    assert {part: list(found) for part, found in STORED.items()} == {
        part: list(cases) for part, cases in PARTS.items()
    }


@pytest.mark.parametrize(("part", "name"), NAMES)
def test_as_pytorch(part: str, name: str) -> None:
    ours = PARTS[part].run(torch, name)
    assert agree(STORED[part][name], ours), f"PyTorch: {STORED[part][name]}\nrushlight: {ours}"


if LIVE:  # what PyTorch does is stored; this asks whether it still does

    @pytest.mark.parametrize(("part", "name"), NAMES)
    def test_stored_is_what_pytorch_does(part: str, name: str) -> None:
        assert PARTS[part].run(pytorch(), name) == STORED[part][name]


# --- better than PyTorch --------------------------------------------------------------------------
class Scaled(Function):
    """Multiplies its second argument in place by its first."""

    @staticmethod
    def forward(ctx: Any, scale: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        ctx.save_for_backward(scale, x.clone())
        return x.mul_(scale)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        scale, x = ctx.saved_tensors
        return (g * x).sum(), g * scale


def test_a_written_view_need_not_be_the_first_argument() -> None:
    scale = torch.tensor(3.0, requires_grad=True)
    x = torch.arange(4.0).reshape(2, 2).requires_grad_()
    base = x * 2
    Scaled.apply(scale, base[1])
    base.sum().backward()
    assert scale.grad.item() == 2 * (2 + 3)
    assert x.grad.tolist() == [[2, 2], [6, 6]]


def test_a_view_made_inside_and_marked_dirty() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = (x * 2)[0]
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.stack([g * 2, g * 0])

    x = torch.ones(2, 2, requires_grad=True)
    with pytest.warns(UserWarning, match="not an input"):
        y = F.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [[2, 2], [0, 0]]


def test_errors_name_the_argument() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, 3.0

    y = F.apply(torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match=r"got float\), in what FBackward .* of argument 2"):
        y.sum().backward()


# --- deep -----------------------------------------------------------------------------------------
class Reenter(Function):
    """Its backward runs another of itself, `depth` times."""

    @staticmethod
    def forward(ctx: Any, x: Any, depth: int, seen: Any) -> Any:
        ctx.depth, ctx.seen = depth, seen
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        ctx.seen.append((threading.get_ident(), torch.is_grad_enabled()))
        if ctx.depth > 0:
            with torch.enable_grad():
                x = torch.ones(2, requires_grad=True)
                Reenter.apply(x, ctx.depth - 1, ctx.seen).sum().backward()
            g = g + x.grad
        return g, None, None


def test_backward_within_backward_goes_deeper_than_the_stack() -> None:
    depth = 2 * sys.getrecursionlimit()
    seen: list[Any] = []
    x = torch.ones(2, requires_grad=True)
    Reenter.apply(x, depth, seen).sum().backward()
    assert len(seen) == depth + 1
    assert x.grad.tolist() == [depth + 1] * 2
    assert not any(recorded for _, recorded in seen)


def test_shallow_rules_stay_on_the_callers_thread() -> None:
    seen: list[Any] = []
    Reenter.apply(torch.ones(2, requires_grad=True), 5, seen).sum().backward()
    assert {thread for thread, _ in seen} == {threading.get_ident()}


# --- the steps stand alone ------------------------------------------------------------------------
class Cube(Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


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
