"""Views and in-place writes in the corners, case by case, do what they do in PyTorch.

What PyTorch does is stored, and asked live where it is installed.
"""

from __future__ import annotations

import copy
import gc
import sys
import threading
import weakref
from pathlib import Path
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
def test_stored_cases(part: str, name: str) -> None:
    compare(ran(torch, part, name), STORED[part][name])


def test_all_cases_are_stored() -> None:
    for part, cases in PARTS.items():
        assert sorted(STORED[part]) == sorted(cases) and len(cases) > 30


if LIVE:

    @pytest.mark.parametrize(("part", "name"), NAMES)
    def test_live_cases(part: str, name: str) -> None:
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


# --- memory that grows ----------------------------------------------------------------------------
def test_memory_grows_for_all_who_share_it() -> None:
    x = torch.arange(4.0)
    views = [x[1:3], x.view(2, 2).t(), x.detach(), x.data]
    storage = x.untyped_storage()
    x.resize_(10).fill_(7.0)
    assert [v.tolist() for v in views] == [[7.0] * 2, [[7.0] * 2] * 2, [7.0] * 4, [7.0] * 4]
    assert storage.nbytes() == 40 and storage.data_ptr() == views[1].data_ptr() == x.data_ptr()


def test_growing_memory_walks_over_no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    objects = gc.get_objects

    def counted() -> Any:
        asked.append(1)
        return objects()

    monkeypatch.setattr(gc, "get_objects", counted)
    assert torch.empty(0).resize_(199).shape == (199,)
    x = torch.arange(4.0)
    view = x[1:]
    x.resize_(199)  # memory that is shared: its storage knows who shares it
    assert asked == [] and view.tolist() == [1, 2, 3]


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


def aliases(x: Any) -> list[Any]:
    return [
        x, x[1:3], x.view(2, 2).t(), x.detach(), x.data, x.view(torch.int32), x.data[1:].detach(),
        torch.nn.Parameter(x), copy.copy(x), torch.empty(0).set_(x), x.unbind()[1],
        torch.empty(0).set_(x.untyped_storage(), 0, (4,)), x.as_subclass(torch.Tensor),
        torch.autograd.Variable(x), x.untyped_storage(), torch.asarray(x),
    ]  # fmt: skip


def place(x: Any) -> int:
    return int((x if torch.is_storage(x) else x.untyped_storage()).data_ptr())


@pytest.mark.parametrize("grown", range(16))
@pytest.mark.parametrize("inference", [False, True])
def test_whoever_grows_all_others_follow(grown: int, inference: bool) -> None:
    with torch.inference_mode(inference):
        family = aliases(torch.arange(4.0))
        one = family[grown]
        if torch.is_storage(one):
            one.resize_(4000)
        elif not one.requires_grad or inference:
            one.resize_(1000)
        assert len({place(x) for x in family}) == 1
        assert family[1].tolist()[:2] == [1.0, 2.0] and family[14].nbytes() in (
            16,
            4000,
            4004,
            4008,
        )


def test_two_over_one_memory_that_nothing_else_leads_to() -> None:
    x = torch.zeros(4)
    y = torch.empty(0).set_(x)
    y.resize_(100).fill_(2.0)
    assert x.tolist() == [2.0] * 4
    z = torch.zeros(1)
    z.data = x
    z.resize_(1000).fill_(3.0)
    assert x.tolist() == [3.0] * 4 == y[:4].tolist()


def test_what_is_left_when_the_others_have_gone_follows() -> None:
    x = torch.arange(4.0)
    a, b = x.detach(), x.data[1:]
    del x
    for _ in range(100):
        a.view(2, 2)  # views that are gone again
    a.resize_(50).fill_(5.0)
    assert b.tolist() == [5.0, 5.0, 5.0]


def test_memory_forgets_views_that_are_gone() -> None:
    x = torch.arange(4.0)
    kept = [x[:2] for _ in range(5)]
    for _ in range(1000):
        x[1:]
        x.detach()
    assert len(x._storage.sharers.refs) < 60 and len(kept) == 5


def test_tensors_that_moved_elsewhere_do_not_follow() -> None:
    x, y = torch.arange(4.0), torch.zeros(4)
    v, w = x[:2], x.view(2, 2)
    v.data = y
    w.set_(y)
    x.resize_(100).fill_(7.0)
    assert v.tolist() == [0.0] * 4 == w.tolist()
    y.resize_(100).fill_(3.0)
    assert v.tolist() == [3.0] * 4 == w.tolist() == v.view(4).tolist()


def test_empty_memory_and_memory_that_shrinks() -> None:
    x = torch.arange(4.0)
    v = x[1:3]
    assert x.resize_(0).untyped_storage().nbytes() == 16
    assert x.resize_(4).tolist() == [0.0, 1.0, 2.0, 3.0]  # nothing of it was given away
    storage = x.untyped_storage()
    storage.resize_(0)
    assert v.tolist() == [1.0, 2.0]  # it keeps the old memory until there is enough again
    storage.resize_(16)
    storage.fill_(0)
    assert v.tolist() == [0.0, 0.0] and x.tolist() == [0.0] * 4


def test_memory_that_others_own_does_not_grow() -> None:
    text = "Trying to resize storage that is not resizable"
    foreign = [
        torch.frombuffer(bytearray(8), dtype=torch.float32),
        torch.from_dlpack(torch.ones(2).numpy()),
        torch.asarray(torch.ones(2).numpy()),
        torch.asarray(bytearray(8), dtype=torch.float32),
    ]
    for x in foreign:
        assert not x.untyped_storage().resizable()
        with pytest.raises(RuntimeError, match=text):
            x.resize_(100)
    part = torch.arange(4.0).untyped_storage()[4:8]
    assert not part.resizable() and part.tolist() == [0, 0, 128, 63]
    with pytest.raises(RuntimeError, match=text):
        part.resize_(100)


def test_growing_memory_touches_nothing_else() -> None:
    wrong: list[BaseException] = []
    stop = threading.Event()

    def beside() -> None:
        try:
            while not stop.is_set():
                assert len(tuple(i for i in range(30))) == 30
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=beside) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for n in range(5, 60):
            x = torch.arange(4.0)
            v = x[1:]
            x.resize_(n).fill_(1.0)
            assert v.tolist() == [1.0] * 3
            torch.utils.swap_tensors(torch.ones(2, requires_grad=True), torch.ones(1))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert not wrong


def test_nothing_looks_through_all_objects() -> None:
    for path in Path(torch.__file__).parent.rglob("*.py"):
        text = path.read_text("utf-8")
        assert "gc.get_objects" not in text and "gc.get_referrers" not in text, path


# --- swap_tensors ---------------------------------------------------------------------------------
def test_edges_to_what_was_swapped_refuse_to_run() -> None:
    a, b = torch.ones(2, requires_grad=True), torch.zeros(3, requires_grad=True)
    y, z = (a * 2).sum(), (b * 2).sum()
    c = torch.ones(2, requires_grad=True)
    w = (a * c).sum()
    shown = y.grad_fn.next_functions[0][0].next_functions[0][0]
    torch.utils.swap_tensors(a, b)
    assert shown.variable is b
    for old in (y, z):
        with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
            old.backward()
    assert torch.autograd.grad(w, c)[0].tolist() == [1.0, 1.0]  # not by way of what was swapped
    (a.sum() + b.sum()).backward()
    assert a.grad.tolist() == [1.0] * 3 and b.grad.tolist() == [1.0] * 2


def test_views_of_a_tensor_do_not_forbid_to_swap_it() -> None:
    a, b = torch.ones(2), torch.zeros(3)
    views = [a[:1], a.detach(), b.data, b.untyped_storage()]
    torch.utils.swap_tensors(a, b)
    assert len(a) == 3 and views[0].tolist() == [1.0]
    b.resize_(50).fill_(4.0)
    assert views[0].tolist() == [4.0] == views[1][:1].tolist()
    reference = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref"):
        torch.utils.swap_tensors(a, b)
    assert reference() is a


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
