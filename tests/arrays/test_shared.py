"""Memory that processes share: seen by both, and gone with the last that looks at it."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import shared

FDS = Path("/proc/self/fd")
needs_proc = pytest.mark.skipif(not FDS.exists(), reason="counts descriptors in /proc")


def test_a_child_writes_and_the_parent_sees_it() -> None:
    x = torch.zeros(2, 3)
    part, turned = x[1], x.t()
    x.share_memory_()
    assert x.is_shared() and part.is_shared() and turned.is_shared()
    pid = os.fork()
    if pid == 0:
        part[2] = 7
        os._exit(0)
    os.waitpid(pid, 0)
    assert x.tolist() == [[0, 0, 0], [0, 0, 7]] and turned[2, 1] == 7


def test_storages_follow() -> None:
    x = torch.arange(3.0)
    storage = x.untyped_storage()
    assert not storage.is_shared()
    storage.share_memory_()
    assert storage.is_shared() and x.is_shared() and storage.data_ptr() == x.data_ptr()
    assert not torch.ones(2).is_shared()


def test_sharing_twice_changes_nothing() -> None:
    x = torch.ones(3).share_memory_()
    where = x.data_ptr()
    assert x.share_memory_() is x and x.data_ptr() == where


def test_gradients_flow_into_shared_parameters() -> None:
    net = torch.nn.Linear(2, 1).share_memory()
    assert all(p.is_shared() for p in net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    assert net.weight.grad is not None and net.weight.grad.tolist() == [[1, 1]]


@needs_proc
def test_nothing_is_left_open() -> None:
    gc.collect()
    before = len(os.listdir(FDS))
    xs = [torch.ones(10).share_memory_() for _ in range(20)]
    assert len(os.listdir(FDS)) >= before + 20
    del xs
    gc.collect()
    assert len(os.listdir(FDS)) == before


def test_buffers_go_through_one_file() -> None:
    arrays = [np.arange(5), np.zeros(0), np.ones(100, np.uint8)]
    fd, sizes = shared.write_buffers(arrays)
    assert sizes == [40, 0, 100]
    found = shared.read_buffers(fd, sizes)
    assert found[0].view(np.int64).tolist() == [0, 1, 2, 3, 4]
    assert found[1].size == 0 and found[2].tolist() == [1] * 100
    assert all(shared.is_shared(array) and array.ctypes.data % 64 == 0 for array in found)
    with pytest.raises(OSError):
        os.fstat(fd)


def test_one_file_is_one_memory() -> None:
    first = shared.share(np.arange(4, dtype=np.uint8))
    again = shared.adopt(os.dup(shared.file_of(first)), 4)
    assert again is first
