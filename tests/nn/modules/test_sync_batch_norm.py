"""`SyncBatchNorm`: two processes with parts of a batch, against one with the whole."""

from __future__ import annotations

from pathlib import Path

import rushlight as torch
from rushlight import nn
from tests.distributed.two_libraries import run_ranks


def test_statistics_and_gradients_are_those_of_the_whole_batch() -> None:
    results = run_ranks("rushlight", Path(__file__).parent / "program_sync_batch_norm.py", 2)
    gradient = results[0]["gradient"]
    for found in results:
        text = found.pop("one value")
        assert text.startswith("Expected more than 1 value per channel when training, got input")
        assert found.pop("gradient") == gradient, "averaged like any other"
        for case, differences in found.items():
            bound = 1e-5 if case == "float32" else 1e-12
            assert len(differences) >= 4 and max(differences) < bound, (case, differences)


def test_one_process_is_batch_norm() -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 2, 3)
    whole = nn.BatchNorm1d(2)
    alone = nn.SyncBatchNorm(2)
    assert torch.equal(whole(x), alone(x))
    assert torch.equal(whole.running_var, alone.running_var)
