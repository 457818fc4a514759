"""`device`: the accelerator, contexts, defaults of each thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from rushlight.arrays import device as devices
from rushlight.arrays.device import device


@pytest.fixture(autouse=True)
def restored_default() -> Iterator[None]:
    yield
    devices.set_default_device(None)


def test_device_from_int_is_the_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cuda_count", lambda: 0)
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is avail"):
        device(1)
    monkeypatch.setattr(devices, "cuda_count", lambda: 2)
    assert device(1) == device(np.int64(1)) == device("cuda:1")  # type: ignore[call-overload]


def test_device_as_a_context() -> None:
    meta, cuda = device("meta"), device("cuda:1")
    with meta as entered:
        assert entered is meta
        assert devices.get_default_device() == meta
        with cuda:
            assert devices.get_default_device() == devices.current() == cuda
        with meta, pytest.raises(KeyError), cuda:
            raise KeyError
        assert devices.get_default_device() == meta
    assert devices.get_default_device() == device("cpu")
    with pytest.raises(RuntimeError, match="trying to pop from empty mode stack"):
        meta.__exit__(None, None, None)


def test_set_default_device_outside_and_inside_a_context() -> None:
    devices.set_default_device("meta")
    with device("cuda:1"):
        assert devices.get_default_device() == device("cuda:1")
    assert devices.get_default_device() == device("meta")
    devices.set_default_device(None)
    with device("meta"):
        devices.set_default_device("cpu")
        assert devices.get_default_device() == device("cpu")
        devices.set_default_device(None)
        assert devices.get_default_device() == device("meta")
        devices.set_default_device(device("meta"))
    assert devices.get_default_device() == device("meta")
    with device("meta"):
        devices.set_default_device("xla")
    assert devices.get_default_device() == device("xla")


def test_default_device_is_each_thread_s_own() -> None:
    seen = []
    with device("meta"):
        devices.set_default_device("xla")
        thread = threading.Thread(target=lambda: seen.append(devices.get_default_device()))
        thread.start()
        thread.join()
    assert seen == [device("cpu")]


def test_default_cuda_without_cupy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cuda_count", lambda: 0)
    devices.set_default_device("cuda")
    assert devices.current() == device("cuda")
    with pytest.raises(AssertionError, match=r"Torch not compiled with CUDA enabled.*cupy-cuda"):
        devices.get_default_device()
