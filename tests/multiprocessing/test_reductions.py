"""Tensors that go to other processes lie in memory that both see."""

from __future__ import annotations

import glob
import os
import subprocess
import sys
from typing import Any

import pytest

import rushlight as torch
import rushlight.multiprocessing as mp
from rushlight.multiprocessing import reductions

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def work(x: Any, inbox: Any, outbox: Any, over: Any) -> None:
    """What a child does: writes where the parent sees it, and sends a tensor of its own."""
    x += 1
    y = inbox.get()
    y.mul_(2)
    outbox.put((torch.arange(3.0), y))
    over.wait(60)  # what it sent is its own until it was received


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_arguments_and_queues(method: str) -> None:
    context = mp.get_context(method)
    inbox, outbox, over = context.Queue(), context.Queue(), context.Event()
    x, y = torch.zeros(2, 2).share_memory_(), torch.ones(3)
    child = context.Process(target=work, args=(x[0], inbox, outbox, over))
    child.start()
    inbox.put(y)
    made, back = outbox.get(timeout=60)
    over.set()
    child.join(60)
    assert child.exitcode == 0
    assert x.tolist() == [[1, 1], [0, 0]] and y.tolist() == [2, 2, 2]
    assert made.tolist() == [0, 1, 2] and back.data_ptr() == y.data_ptr()
    inbox.close()
    outbox.close()


def through(*things: Any) -> Any:
    queue = mp.SimpleQueue()
    queue.put(things)
    got = queue.get()
    queue.close()
    return got


def test_what_is_shared_stays_shared() -> None:
    x = torch.arange(4.0)
    first, last, turned = through(x[:2], x[2:], x.view(2, 2).t())
    x[1] = 9
    assert first.tolist() == [0, 9] and turned.tolist() == [[0, 2], [9, 3]]
    assert last.storage_offset() == 2 and turned.stride() == (1, 2)


def test_kinds_of_tensors() -> None:
    parameter = torch.nn.Parameter(torch.ones(2))
    low = torch.ones(2, dtype=torch.bfloat16)
    empty = torch.ones(0, 3)
    storage = torch.arange(3).untyped_storage()
    got = through(parameter, low, empty, storage, torch.tensor(5))
    assert isinstance(got[0], torch.nn.Parameter) and got[0].requires_grad
    assert got[1].dtype is torch.bfloat16 and got[1].tolist() == [1, 1]
    assert got[2].shape == (0, 3)
    assert got[3].nbytes() == 24 and got[3].is_shared() and got[4].item() == 5


def test_history_does_not_cross() -> None:
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        through(torch.ones(1, requires_grad=True) * 2)
    (leaf,) = through(torch.ones(1, requires_grad=True))
    assert leaf.requires_grad and leaf.is_leaf


def double(x: Any) -> Any:
    return x * 2


def test_pools() -> None:
    with mp.get_context("fork").Pool(2) as pool:
        assert [x.item() for x in pool.map(double, [torch.tensor(1), torch.tensor(2)])] == [2, 4]


def test_strategies() -> None:
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    assert mp.get_sharing_strategy() == "file_descriptor"
    mp.set_sharing_strategy("file_system")
    assert mp.get_sharing_strategy() == "file_system"
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError, match="invalid sharing strategy 'x'"):
        mp.set_sharing_strategy("x")


def _echo(given: Any, back: Any) -> None:
    back.put(given.get())


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_memory_comes_home_from_a_process_that_has_ended(how: str) -> None:
    if how not in mp.get_all_start_methods():
        pytest.skip(f"no {how} on this system")
    context: Any = mp.get_context(how)
    given, back = context.Queue(), context.Queue()
    process = context.Process(target=_echo, args=(given, back))
    process.start()
    x = torch.arange(3.0)
    given.put([x, x.untyped_storage()])
    process.join(60)
    tensor, storage = back.get(timeout=60)
    tensor[0] = 7.0
    assert x.tolist() == [7.0, 1.0, 2.0] and storage.data_ptr() == x.data_ptr()


def send_and_end(outbox: Any, kept: Any) -> None:
    x = torch.arange(4.0)
    outbox.put(x)
    outbox.put((x[2:], x.untyped_storage(), kept))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_a_child_sent_arrives_after_its_end(method: str) -> None:
    context = mp.get_context(method)
    outbox, kept = context.Queue(), torch.zeros(1).share_memory_()
    child = context.Process(target=send_and_end, args=(outbox, kept))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    x = outbox.get(timeout=60)
    rest, storage, back = outbox.get(timeout=60)
    assert x.tolist() == [0, 1, 2, 3] and x.is_shared()
    x += 1
    assert rest.tolist() == [3, 4]
    assert storage.data_ptr() == x.data_ptr()
    assert back.data_ptr() == kept.data_ptr()
    assert not glob.glob(f"{reductions._common_name()}-{child.pid}-*")
    assert through(x)[0].data_ptr() == x.data_ptr()
    outbox.close()


def test_what_nobody_read_is_removed_with_the_main_process() -> None:
    program = """
import glob, os
import rushlight as torch, rushlight.multiprocessing as mp
from rushlight.multiprocessing import reductions
queue = mp.get_context("fork").SimpleQueue()
child = mp.get_context("fork").Process(target=lambda: queue.put(torch.ones(3)))
child.start()
child.join(60)
assert len(glob.glob(reductions._common_name() + "-*")) == 1
print(reductions._common_name())
"""
    name = subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=120, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    assert name and not glob.glob(f"{name}-*")


def test_the_error_of_a_descriptor_that_is_lost() -> None:
    sent = reductions.Sent(os.open(os.devnull, os.O_RDONLY), 0)
    reductions._waiting.pop(sent.path)
    sent.ticket = ("/nowhere/to/be/found", 1)
    with pytest.raises(FileNotFoundError):
        reductions._received(sent, 0, (0, 0))
