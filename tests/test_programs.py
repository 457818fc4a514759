"""Random programs of views, in-place writes, ops and detaching do what they do in PyTorch."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path

import programs
import pytest

import rushlight

STORED = json.loads(
    gzip.decompress((Path(__file__).parent / "reference/programs.json.gz").read_bytes())
)
CHUNK = 50


@pytest.mark.parametrize("first", range(0, len(STORED), CHUNK))
def test_stored_programs(first: int) -> None:
    for seed in range(first, min(first + CHUNK, len(STORED))):
        ours = json.loads(json.dumps(programs.run(rushlight, seed)))
        assert ours == STORED[seed], f"program {seed}"


if importlib.util.find_spec("torch"):

    @pytest.mark.parametrize("first", range(10_000, 10_400, CHUNK))
    def test_live_programs(first: int) -> None:
        import torch

        for seed in range(first, first + CHUNK):
            assert programs.run(rushlight, seed) == programs.run(torch, seed), f"program {seed}"
