"""Cases that return plain data, and how those of nn and optim are compared."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.harness import Cases, as_stored


class PlainCases(Cases):
    def run(self, lib: Any, name: str) -> Any:
        return as_stored(self[name](lib))


class QuietCases(PlainCases):
    """Cases that either library warns of, in which that is not the point."""

    def run(self, lib: Any, name: str) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().run(lib, name)


def compare(got: Any, want: Any, exact: bool, where: str) -> None:
    """Equal, or for floats of a case that is only close, equal to rounding."""
    if isinstance(want, dict):
        assert isinstance(got, dict) and got.keys() == want.keys(), where
        for key in want:
            compare(got[key], want[key], exact, f"{where} > {key}")
    elif isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), where
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            compare(a, b, exact, f"{where} > {i}")
    elif isinstance(want, float) and not exact:
        double = "float64" in where
        rel, abs_ = (1e-12, 1e-13) if double else (1e-5, 2e-6)
        assert got == pytest.approx(want, rel=rel, abs=abs_, nan_ok=True), where
    elif where.startswith("errors") and isinstance(want, str):  # a cure may stand below
        assert isinstance(got, str) and f"{got}\n".startswith(f"{want}\n"), where
    else:
        assert type(got) is type(want) and got == want, where
