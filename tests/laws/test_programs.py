"""Random programs of views, in-place writes, hooks, custom functions and modes do what they do in
PyTorch. The failures that these programs found have names in autograd/view_cases.py."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from typing import Any

import programs
import pytest

import rushlight

STORED = json.loads(
    gzip.decompress((Path(__file__).parent / "reference/programs.json.gz").read_bytes())
)
CHUNK = 50


def compare(seed: int, theirs: Any) -> None:
    ours = json.loads(json.dumps(programs.run(rushlight, seed)))
    if not programs.alike(ours, theirs):
        for at, (a, b) in enumerate(zip(ours, theirs, strict=False)):
            assert programs.alike(a, b), f"program {seed}, note {at}:\n  {a}\n  PyTorch: {b}"
    assert len(ours) == len(theirs), f"program {seed} has other notes at the end"


@pytest.mark.parametrize("first", range(0, len(STORED), CHUNK))
def test_stored_programs(first: int) -> None:
    for seed in range(first, min(first + CHUNK, len(STORED))):
        if STORED[seed] is not None:
            compare(seed, STORED[seed])


if importlib.util.find_spec("torch"):

    @pytest.mark.parametrize("first", range(10_000, 10_400, CHUNK))
    def test_live_programs(first: int) -> None:
        torch = importlib.import_module("torch")
        for seed in range(first, first + CHUNK):
            theirs = programs.run(torch, seed)
            if programs.sound(theirs):
                compare(seed, json.loads(json.dumps(theirs)))
