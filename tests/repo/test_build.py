"""Builds without a C compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import ROOT


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"RUSHLIGHT_PURE": "1"}, "RUSHLIGHT_PURE=1"),
        ({"RUSHLIGHT_PURE": "", "CC": "/no/such/cc"}, "no working C compiler ("),
    ],
)
def test_a_build_without_compiling_says_why(
    setting: dict[str, str], reason: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, **setting},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "rushlight" in line]
    assert line.startswith(f"rushlight: the core stays interpreted, and is slower for it: {reason}")
    record = json.loads((tmp_path / "rushlight" / "_build.json").read_text())
    assert record["compiled"] == {}
    assert record["pure_because"].startswith(reason)
    assert not list(tmp_path.rglob("*.so"))
    pages = tmp_path / "rushlight" / "viz" / "page_files"
    assert "@FILE" not in (pages / "page.html").read_text("utf-8")
    assert not (pages / "dagre.js").exists()  # it is in the page, as are its other parts


def test_a_compiler_can_be_insisted_on(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_py", "--build-lib", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "RUSHLIGHT_PURE": "0", "CC": "/no/such/cc"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "asks for compiled modules, but no working C compiler" in done.stderr
    assert not list(tmp_path.iterdir())
