"""Views and in-place writes in the corners, case by case, do what they do in PyTorch.

The cases stand in view_cases.py. What PyTorch does is stored, and asked live where it is installed.
"""

from __future__ import annotations

import gc
import gzip
import importlib.util
import json
import weakref
from pathlib import Path
from typing import Any

import programs
import pytest
import view_cases

import rushlight as torch

REFERENCE = Path(__file__).parents[1] / "reference"
STORED = json.loads(gzip.decompress((REFERENCE / "views.json.gz").read_bytes()))


def ran(lib: Any, name: str) -> Any:
    return json.loads(json.dumps(view_cases.run(lib, name)))


def compare(ours: list[Any], theirs: list[Any]) -> None:
    for at, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert programs.alike(a, b), f"note {at}:\n  {a}\n  PyTorch: {b}"


@pytest.mark.parametrize("name", view_cases.CASES)
def test_stored_cases(name: str) -> None:
    compare(ran(torch, name), STORED[name])


def test_all_cases_are_stored() -> None:
    assert sorted(STORED) == sorted(view_cases.CASES) and len(STORED) > 100


if importlib.util.find_spec("torch"):

    @pytest.mark.parametrize("name", view_cases.CASES)
    def test_live_cases(name: str) -> None:
        compare(ran(torch, name), ran(importlib.import_module("torch"), name))


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
            assert v.as_view.base is base and len(v.as_view.ops) == 200_000
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


# --- memory that grows ----------------------------------------------------------------------------
def test_memory_grows_for_all_who_share_it() -> None:
    x = torch.arange(4.0)
    views = [x[1:3], x.view(2, 2).t(), x.detach(), x.data]
    storage = x.untyped_storage()
    x.resize_(10).fill_(7.0)
    assert [v.tolist() for v in views] == [[7.0] * 2, [[7.0] * 2] * 2, [7.0] * 4, [7.0] * 4]
    assert storage.nbytes() == 40 and storage.data_ptr() == views[1].data_ptr() == x.data_ptr()


def test_growing_memory_of_its_own_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    objects = gc.get_objects

    def counted() -> Any:
        asked.append(1)
        return objects()

    monkeypatch.setattr(gc, "get_objects", counted)
    assert torch.empty(0).resize_(199).shape == (199,)
    assert asked == []
    x = torch.arange(4.0)
    view = x[1:]
    x.resize_(199)  # memory that is shared: all who share it are looked for
    assert asked and view.tolist() == [1, 2, 3]


def test_a_write_through_a_view_of_memory_that_grew() -> None:
    a, z = torch.arange(4.0), torch.ones(2, requires_grad=True)
    v = a[1:3]
    a.resize_(6)
    a[4:] = 0.0
    v.mul_(z)
    a.sum().backward()
    assert z.grad.tolist() == [1.0, 2.0]


def test_storages_shrink_without_harm() -> None:
    x = torch.ones(4)
    storage = x.untyped_storage()
    storage.resize_(0)
    assert storage.nbytes() == 0 and x.sum().item() == 4.0


# --- swap_tensors ---------------------------------------------------------------------------------
def test_swapped_tensors_swap_everything() -> None:
    class Mine(torch.Tensor):
        pass

    a = torch.ones(2, requires_grad=True)
    b = torch.zeros(3).as_subclass(Mine)
    a.note, b.other = "a", "b"
    a.sum().backward()
    torch.utils.swap_tensors(a, b)
    assert type(a) is Mine and type(b) is torch.Tensor
    assert (a.other, b.note) == ("b", "a") and not hasattr(a, "note")
    assert a.grad is None and b.grad.tolist() == [1.0, 1.0]
    (b * 3).sum().backward()
    assert b.grad.tolist() == [4.0, 4.0]
