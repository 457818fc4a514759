"""`rushlight info`: what this installation is, as text and as JSON."""

from __future__ import annotations

import json

import pytest

import rushlight
from rushlight import cli


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"rushlight {rushlight.__version__}\n")
    for name in ("python", "numpy", "scipy", "cupy", "compiled"):
        assert f"\n  {name} " in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["rushlight"] == rushlight.__version__
    assert said["numpy"].count(".") == 2
    assert bool(said["compiled"]) is (said["pure_because"] is None)


def test_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info", "--yaml"]) == 2
    assert "usage: rushlight info [--json]" in capsys.readouterr().err
