"""Where the device suite runs: on a GPU through CuPy, or on the stand-in `fakecupy` without one.

RUSHLIGHT_DEVICE=fake or =cuda insists on one of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import fakecupy
import pytest

from rushlight.arrays import cuda
from rushlight.arrays.device import cuda_count

WANTED = os.environ.get("RUSHLIGHT_DEVICE", "")
REAL = WANTED != "fake" and cuda_count() > 0
if WANTED == "cuda" and not REAL:
    raise RuntimeError("RUSHLIGHT_DEVICE=cuda, but CuPy finds no GPU")


def pytest_report_header() -> str:
    return f"device suite: {'CuPy on a GPU' if REAL else 'a stand-in for CuPy'}"


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
