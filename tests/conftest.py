"""What every test run says and refuses: which rushlight is tested, and that it is no stale one."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import Any

import pytest

from rushlight import __config__, ops
from rushlight.core.grad_mode import state
from tests.autograd.profiler_state import no_profiler
from tests.harness import LIBRARIES

ops.fill_rest()  # laws are about the whole table
# Tests start hundreds of processes. Without bytecode each would compile all of rushlight again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_report_header() -> str:
    modules = __config__.compiled()
    kind = f"{len(modules)} modules compiled" if modules else "pure Python"
    return f"rushlight: {kind}, from {os.path.dirname(__config__.__file__)}"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Stop before the first test when it would not test what it seems to.

    RUSHLIGHT_EXPECT=compiled or =pure makes a run of the other kind an error: `make test` and
    `make test-pure` set it.
    """
    if stale := __config__.stale():
        pytest.exit(f"compiled before the last edit: {', '.join(stale)}; run `make build`", 4)
    expected = os.environ.get("RUSHLIGHT_EXPECT")
    actual = "compiled" if __config__.compiled() else "pure"
    if expected and expected != actual:
        pytest.exit(f"RUSHLIGHT_EXPECT={expected}, but the installed rushlight is {actual}", 4)


@pytest.fixture
def profiler_off(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No profiler is on before the test, nor after it."""
    # said once a process: which test comes first must not matter
    monkeypatch.setattr("rushlight.profiler.profiler._Told.cleared", True)
    assert no_profiler()
    yield
    assert no_profiler()


@pytest.fixture
def no_mode_left() -> Iterator[None]:
    """A test leaves no mode entered, and with it no slow path."""
    before = state.active
    yield
    assert state.active == before


@pytest.fixture(params=LIBRARIES)
def torch(request: pytest.FixtureRequest) -> Any:
    """rushlight, and PyTorch where it is installed: what the test asserts is true of both."""
    return importlib.import_module(request.param)
