"""Random programs of views, in-place writes, hooks, custom functions and modes do what they do in
PyTorch. The failures that these programs found have names in core/views/cases_views_*.py."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight
from tests.harness import LIVE, as_stored, pytorch, stored
from tests.laws import cases_programs as programs

STORED = stored("laws/programs")
CHUNK = 50


def compare(seed: int, theirs: Any) -> None:
    ours = as_stored(programs.run(rushlight, seed))
    if not programs.alike(ours, theirs):
        for at, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            assert programs.alike(a, b), f"program {seed}, note {at}:\n  {a}\n  PyTorch: {b}"
    assert len(ours) == len(theirs), f"program {seed} has other notes at the end"


@pytest.mark.parametrize("first", range(0, len(STORED), CHUNK))
def test_stored_programs(first: int) -> None:
    for seed in range(first, min(first + CHUNK, len(STORED))):
        if STORED[seed] is not None:
            compare(seed, STORED[seed])


if LIVE:

    @pytest.mark.parametrize("first", range(10_000, 10_400, CHUNK))
    def test_live_programs(first: int) -> None:
        for seed in range(first, first + CHUNK):
            theirs = programs.run(pytorch(), seed)
            if programs.sound(theirs):
                compare(seed, as_stored(theirs))
