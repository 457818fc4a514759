"""Where the device suite runs: on a GPU through CuPy, or on the stand-in `fakecupy` without one.

RUSHLIGHT_DEVICE=fake or =cuda insists on one of them. RUSHLIGHT_SHARD=2/8 runs the third of eight
parts of the suite; what belongs to one op stays together, because it needs the same kernels.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Iterator

import pytest

from rushlight.arrays import cuda
from rushlight.arrays.device import cuda_count
from tests.device import fakecupy

WANTED = os.environ.get("RUSHLIGHT_DEVICE", "")
REAL = WANTED != "fake" and cuda_count() > 0
if WANTED == "cuda" and not REAL:
    raise RuntimeError("RUSHLIGHT_DEVICE=cuda, but CuPy finds no GPU")


def pytest_report_header() -> str:
    return f"device suite: {'CuPy on a GPU' if REAL else 'a stand-in for CuPy'}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    shard, _, count = os.environ.get("RUSHLIGHT_SHARD", "0/1").partition("/")

    def mine(item: pytest.Item) -> bool:
        subject = item.name.partition("[")[2] or item.name
        return zlib.crc32(subject.rpartition("-")[0].encode() or subject.encode()) % int(
            count
        ) == int(shard)

    items[:] = [item for item in items if mine(item)]


@pytest.fixture(scope="module", autouse=True)
def cupy() -> Iterator[object]:
    """The array library behind `device="cuda"`, for as long as a module's tests run."""
    if REAL:
        import cupy as module

        yield module
        return
    before = {name: sys.modules.get(name) for name in fakecupy.modules()}
    sys.modules.update(fakecupy.modules())
    cuda_count.cache_clear()
    yield fakecupy
    for name, module in before.items():
        if module is None:
            del sys.modules[name]
        else:
            sys.modules[name] = module
    cuda_count.cache_clear()
    cuda._state.clear()
