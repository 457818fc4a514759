"""docs/scaling.md shows what the simulator computes, and the simulator is near what was measured.

Nothing is timed here: the measurements are those of docs/figures/scaling.json.
"""

from __future__ import annotations

import importlib.util
import json
import re
from typing import Any

import pytest

from rushlight.distributed.simulate import simulate
from tests.harness import ROOT


@pytest.fixture(scope="module")
def tool() -> Any:
    spec = importlib.util.spec_from_file_location("make_scaling", ROOT / "tools/make_scaling.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_and_its_pictures_are_made_anew_alike(tool: Any) -> None:
    assert tool.page() == tool.PAGE.read_text("utf-8")
    for name, content in tool.pictures().items():
        assert (tool.FIGURES / name).read_text("utf-8") == content


def test_the_table_of_efficiencies(tool: Any) -> None:
    rows = re.findall(r"\| (\d+)% \| (\d+)% \| (\d+)% \|$", tool.PAGE.read_text("utf-8"), re.M)
    computed = [
        tuple(f"{100 * simulate(*case, ranks).efficiency:.0f}" for ranks in (8, 64, 1024))
        for case in tool.cases().values()
    ]
    assert rows == computed


def test_predictions_are_near_the_measurements(tool: Any) -> None:
    results = json.loads(tool.scaling.RESULTS.read_text("utf-8"))
    for library in tool.scaling.LIBRARIES:
        found = list(tool.scaling.predictions(results[library]))
        assert len(found) == 6
        for name, cap, measured, predicted in found:
            assert 0.75 < predicted / measured < 1.25, (library, name, cap)
            # Without the communication it would be too low by more than the tolerance.
            assert predicted > results[library][f"alone {name}"]["step"]
