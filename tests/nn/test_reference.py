"""nn, optim and the schedulers give what PyTorch gives: stored, and live where it is installed."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import rushlight

REFERENCE = Path(__file__).resolve().parents[1] / "reference"


def load_maker() -> Any:
    spec = importlib.util.spec_from_file_location("make_nn", REFERENCE / "make_nn.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = load_maker()
STORED = json.loads(gzip.decompress((REFERENCE / "nn.json.gz").read_bytes()))
LIVE = importlib.util.find_spec("torch") is not None


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


def check(name: str, want: Any) -> None:
    exact = name in make.EXACT
    case = make.EXACT[name] if exact else make.CLOSE[name]
    compare(make.plain(case(rushlight)), want, exact, name)


def test_every_case_is_stored() -> None:
    assert STORED.keys() == (make.EXACT | make.CLOSE).keys()


@pytest.mark.parametrize("name", sorted(STORED))
def test_stored(name: str) -> None:
    check(name, STORED[name])


if LIVE:

    @pytest.mark.parametrize("name", sorted(STORED))
    def test_live(name: str) -> None:
        import torch

        case = (make.EXACT | make.CLOSE)[name]
        check(name, make.plain(case(torch)))
