"""What every test run says and refuses: which rushlight is tested, and that it is no stale one."""

from __future__ import annotations

import os

import pytest

from rushlight import __config__


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
