"""The examples run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import ROOT
from tests.running import run

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example: Path) -> None:
    status, out, errors = run(str(example))
    assert (status, errors) == (0, "")
    assert out
