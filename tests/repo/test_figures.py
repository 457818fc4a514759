"""The figures in the documents are what the code beside them draws."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.harness import ROOT


@pytest.fixture(scope="module")
def tool() -> Any:
    path = ROOT / "tools" / "make_block_figures.py"
    spec = importlib.util.spec_from_file_location("make_block_figures", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_figures(tool: Any) -> None:
    for library in ("igraph", "matplotlib"):
        pytest.importorskip(library)
    found = tool.blocks_with_figures()
    assert len(found) >= 3
    for figure, code in found.items():
        now = tool.drawn(code, figure.name)
        assert tool.gist(figure.read_bytes()) == tool.gist(now), figure.name


def test_a_wrong_figure_is_noticed(tool: Any) -> None:
    pictures = [b"<svg><text>a</text></svg>", b"<svg><text>b</text></svg>"]
    assert tool.gist(pictures[0]) == ["a"] != tool.gist(pictures[1])
    png = Path(ROOT / "docs" / "figures" / "tutorial-training.png").read_bytes()
    assert len(tool.gist(png)) == 2
