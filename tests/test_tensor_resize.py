"""Memory that grows and shrinks: all who share it follow."""

from __future__ import annotations

import copy
import gc
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from tests.helpers import raises


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


def test_set_and_resize() -> None:
    x = torch.ones(3)
    x.set_(torch.arange(6.0).untyped_storage(), 1, (2, 2))
    assert x.tolist() == [[1, 2], [3, 4]] and x._version == 1
    assert x.set_().shape == (0,)
    y = torch.arange(6)
    view = y[1:]
    assert view.resize_(2).tolist() == [1, 2]
    assert y.resize_(2, 2).tolist() == [[0, 1], [2, 3]]
    assert torch.arange(2).resize_(4)[:2].tolist() == [0, 1]
    raises(RuntimeError, "cannot resize variables that require grad",
           torch.ones(2, requires_grad=True).resize_, 3)  # fmt: skip
