"""The notebooks in examples/ run, and show what they showed when they were written."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import ROOT
from tests.running import python

TOOL = ROOT / "tools" / "run_notebooks.py"
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(notebook: Path) -> None:
    for library in ("nbclient", "ipykernel", "igraph"):
        pytest.importorskip(library)
    status, out, errors = python("-W", "ignore", str(TOOL), "--check", str(notebook))
    assert status == 0, out + errors


def test_there_is_one_for_each_subject() -> None:
    assert [path.stem for path in NOTEBOOKS] == [
        "1_gradients", "2_vectors", "3_graph", "4_functions", "5_training",
    ]  # fmt: skip


@pytest.fixture
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("run_notebooks", TOOL)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_printed_in_pieces_is_one(tool: Any) -> None:
    pieces = [{"name": "stdout", "text": "a\n"}, {"name": "stdout", "text": "b\n"}, {"data": {}}]
    assert tool.joined(pieces) == [{"name": "stdout", "text": "a\nb\n"}, {"data": {}}]


def test_differences_are_noticed(tool: Any) -> None:
    def notebook(*outputs: dict[str, Any]) -> Any:
        return SimpleNamespace(cells=[{"outputs": list(outputs)}])

    old = notebook({"output_type": "stream", "text": "loss 0.5012 [ 1.,  2.]\n"})
    near = notebook({"output_type": "stream", "text": "loss 0.5013 [1., 2.]\n"})
    assert tool.differences(old, near) == []
    for text in ("loss 0.6", "loss 0.5012 [ 1.,  3.]\n", "cost 0.5012 [ 1.,  2.]\n"):
        assert tool.differences(old, notebook({"output_type": "stream", "text": text}))
    assert tool.differences(old, notebook())
    shown = {"output_type": "execute_result", "data": {"text/plain": "a", "text/html": "b"}}
    assert tool.differences(notebook(shown), notebook(shown)) == []
    bare = {"output_type": "execute_result", "data": {"text/plain": "a"}}
    assert tool.differences(notebook(shown), notebook(bare))
