"""Programs written for PyTorch run unchanged, and print the same: words equal, numbers to 1e-4."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from tests.harness import stored
from tests.programs.cases_programs import SCRIPTS, run

NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:e[-+]?\d+)?")


@functools.cache
def printed() -> dict[str, list[str]]:
    """What the programs print on rushlight; all in one process, which is quicker."""
    return run(["-m", "rushlight", "run"], SCRIPTS)


def numbers(line: str) -> list[float]:
    return [float(found) for found in NUMBER.findall(line)]


def words(line: str) -> str:
    """A line without its numbers, and without the spaces that their widths make."""
    return "".join(NUMBER.sub("#", line).split())


def test_all_are_stored() -> None:
    assert stored("programs/programs").keys() == {path.stem for path in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_prints_what_pytorch_prints(script: Path) -> None:
    got, want = printed()[script.stem], stored("programs/programs")[script.stem]
    assert len(got) == len(want), "\n".join(got)
    for ours, theirs in zip(got, want, strict=True):
        assert words(ours) == words(theirs), (ours, theirs)
        assert numbers(ours) == pytest.approx(numbers(theirs), rel=1e-4, abs=2e-5), (ours, theirs)
