"""Views and in-place writes in the corners, case by case, do what they do in PyTorch.

What PyTorch does is stored, and asked live where it is installed.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import rushlight as torch
from tests.core.views import cases_views_history, cases_views_memory, cases_views_modes
from tests.harness import LIVE, as_stored, pytorch, stored
from tests.laws import cases_programs as programs

PARTS = {
    "history": cases_views_history.cases,
    "memory": cases_views_memory.cases,
    "modes": cases_views_modes.cases,
}


STORED = {part: stored(f"core/views/views_{part}") for part in PARTS}
NAMES = [(part, name) for part, cases in PARTS.items() for name in cases]


def ran(lib: Any, part: str, name: str) -> Any:
    return as_stored(PARTS[part].run(lib, name))


def compare(ours: list[Any], theirs: list[Any]) -> None:
    for at, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert programs.alike(a, b), f"note {at}:\n  {a}\n  PyTorch: {b}"


@pytest.mark.parametrize(("part", "name"), NAMES)
def test_as_pytorch(part: str, name: str) -> None:
    compare(ran(torch, part, name), STORED[part][name])


def test_all_cases_are_stored() -> None:
    for part, cases in PARTS.items():
        assert sorted(STORED[part]) == sorted(cases) and len(cases) > 30


if LIVE:

    @pytest.mark.parametrize(("part", "name"), NAMES)
    def test_as_pytorch_today(part: str, name: str) -> None:
        compare(ran(torch, part, name), ran(pytorch(), part, name))


# --- chains of views ------------------------------------------------------------------------------
def chain(x: Any, length: int) -> Any:
    for _ in range(length):
        x = x.t()
    return x


def test_a_long_chain_of_views_is_written_and_differentiated() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    v = chain(x * 1, 10_000)
    v.mul_(2)
    v.sum().backward()
    assert x.grad.tolist() == [[2.0] * 3] * 2


def test_a_long_chain_of_views_is_freed_without_the_collector() -> None:
    gc.disable()
    try:
        for asks in (False, True):
            base = torch.ones(2, 3, requires_grad=asks) * 1
            v = chain(base, 200_000)
            gone = weakref.ref(base)
            assert v._view.base is base and len(v._view.ops) == 200_000
            del base, v
            assert gone() is None
    finally:
        gc.enable()


def test_written_views_are_freed_without_the_collector() -> None:
    gc.disable()
    try:
        for write in ("mul_", "exp_", "tanh_"):
            x = torch.ones(4, requires_grad=True)
            y = x * 1
            v = y[:2]
            getattr(v, write)(*([2] if write == "mul_" else []))
            w = y[1:]
            (g,) = torch.autograd.grad((w * w).sum() + v.sum(), x, create_graph=True)
            watched = [weakref.ref(t) for t in (y, v, w, v.grad_fn, y.grad_fn)]
            del y, v, w, g
            assert [r() for r in watched] == [None] * 5
    finally:
        gc.enable()


@pytest.mark.parametrize("part", [1, -2, slice(1, 3), slice(-2, None), slice(2, 0), slice(0, 3, 2)])
def test_a_part_of_plain_data_is_a_view_by_the_ops_that_are_recorded(part: Any) -> None:
    for data in (torch.arange(3.0), torch.zeros(3, 2), torch.zeros(2, 3, 2)[1], torch.ones(3, 0)):
        seen = data[part]
        along = data.detach().clone().requires_grad_()[part]  # op by op
        assert seen._view.last == along._view.last
        assert seen.shape == along.shape
        seen += 1
        assert torch.equal(data[part], seen)


def test_a_row_of_plain_data_follows_a_later_history() -> None:
    x = torch.zeros(3, 2)
    row, rows, last = x[1], x[1:], x[0:][-1]
    w = torch.ones(3, 2, requires_grad=True)
    x += w * 2
    assert [t.grad_fn.name() for t in (row, rows, last)] == ["AsStridedBackward0"] * 3
    (row.sum() + 10 * rows.sum() + 100 * last.sum()).backward()
    assert w.grad.tolist() == [[0, 0], [22, 22], [220, 220]]


def test_rows_met_in_a_loop_may_not_be_written_once_they_have_a_history() -> None:
    x = torch.zeros(2, 2)
    first, _ = x
    x += torch.ones(2, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="the output of a function that returns multiple views"):
        first += 1
