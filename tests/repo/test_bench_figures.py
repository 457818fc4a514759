"""What the bench measured is written into the documents, and slow ops want a reason there."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from bench.ops import REASONS, expressions, unexplained
from tests.harness import ROOT


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("figures", ROOT / "tools" / "make_figures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_slow_op_is_explained_or_told() -> None:
    rows = [(1.6, "x.prod(1)", 1.0, 1.0), (1.4, "x + y", 1.0, 1.0), (1.51, "x.exp()", 1.0, 1.0)]
    assert unexplained(rows, "`x.prod(1)`: the product is kept in double") == ["x.exp()"]


def test_ops_that_are_explained_are_measured() -> None:
    """A reason names an op as it is measured: else it explains nothing."""
    page = REASONS.read_text("utf-8").split("and why:\n")[1]
    named = [
        part
        for line in page.splitlines()
        if line.startswith("- ")
        for part in line.split("`")[1::2]
    ]
    assert named and [name for name in named if name not in expressions()] == []


def test_means_and_marks() -> None:
    figures = tool()
    measured = {
        "small 8x16, forward, threads: 1": {"mean": 0.456, "ratios": {"a": 1, "b": 2}},
        "small 8x16, forward + backward, threads: 1": {"mean": 0.23, "ratios": {"a": 1}},
    }
    assert figures.means(measured).splitlines()[2:] == ["| small, 8x16 | 1 | 2 | 0.46 | 0.23 |"]
    assert figures.between("a<b>old</b>c", "<b>", "</b>", "new") == "a<b>new</b>c"
    with pytest.raises(ValueError, match="unpack"):
        figures.between("no marks", "<b>", "</b>", "new")
