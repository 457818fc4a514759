"""What some processes saved, others load, here or in PyTorch, and training goes on as if it had
never stopped."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
import rushlight.distributed.checkpoint as dcp
from tests.distributed.library import ranks
from tests.distributed.running import launch
from tests.distributed.two_libraries import assert_close, needs_torch

PROGRAM = Path(__file__).parent / "program_resume.py"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    folder = tmp_path_factory.mktemp("saved_by_two")
    return folder, ranks("rushlight", PROGRAM, 2, "save", str(folder))


def alone() -> dict[str, Any]:
    """Six steps of one process, of plain PyTorch code."""
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 6), nn.Linear(6, 3)).double()
    adam = torch.optim.Adam(net.parameters(), lr=0.01)
    for step in range(6):
        draw = torch.Generator().manual_seed(step)
        x = torch.randn(12, 5, generator=draw).double()
        y = torch.randn(12, 3, generator=draw).double()
        adam.zero_grad()
        ((net(x) - y) ** 2).mean().backward()
        adam.step()
    return {key: value.tolist() for key, value in net.state_dict().items()}


def test_two_processes_train_as_one(saved: tuple[Path, list[Any]]) -> None:
    for rank in saved[1]:
        assert_close(rank["replicated"], alone(), 1e-13)
        assert_close(rank["sharded"], alone(), 1e-13)


def test_who_wrote_what(saved: tuple[Path, list[Any]]) -> None:
    folder, _ = saved
    for kind in ("replicated", "sharded"):
        names = ["__0_0.distcp", "__1_0.distcp"]
        assert sorted(os.listdir(folder / kind)) == [".metadata", *names]
        metadata = dcp.FileSystemReader(folder / kind).read_metadata()
        chunks = metadata.state_dict_metadata["model.0.weight"].chunks
        places = metadata.storage_data.items()
        files = [p.relative_path for i, p in places if i.fqn == "model.0.weight"]
        if kind == "sharded":  # each rank its rows
            assert [tuple(c.sizes) for c in chunks] == [(4, 5), (3, 5)]
            assert files == names
        else:  # one of them all of it; together they write everything once
            assert [tuple(c.sizes) for c in chunks] == [(7, 5)] and len(files) == 1
            assert {p.relative_path for _, p in places} == set(names)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_going_on(n: int, saved: tuple[Path, list[Any]]) -> None:
    folder, before = saved
    for rank in ranks("rushlight", PROGRAM, n, "resume", str(folder)):
        for kind in ("replicated", "sharded"):
            assert_close(rank[kind], before[0][kind], 1e-13)
            assert_close(rank[kind + " state"], before[0][kind + " state"], 1e-13)


def test_parts_become_a_whole_without_processes(saved: tuple[Path, list[Any]]) -> None:
    folder, _ = saved
    wholes = []
    for kind in ("sharded", "sharded_async"):
        state = {"model": {"0.weight": torch.zeros(7, 5, dtype=torch.float64)}}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dcp.load(state, checkpoint_id=folder / kind)
        wholes.append(state["model"]["0.weight"])
    # what was copied before training went on
    assert torch.equal(*wholes) and bool(wholes[0].abs().sum() > 0)


FAILING = """
    import sys
    import warnings

    import rushlight as torch
    import rushlight.distributed as dist
    import rushlight.distributed.checkpoint as dcp
    from tests.distributed.running import report

    class Breaks(dcp.DefaultSavePlanner):
        def resolve_data(self, write_item):
            if dist.get_rank() == 1:
                raise OSError("no space left")
            return super().resolve_data(write_item)

    dist.init_process_group("gloo")
    state = {"a": torch.ones(3), "b": torch.ones(3)}
    said = []
    for planner in (Breaks(), None):
        try:
            dcp.save(state, checkpoint_id=sys.argv[1], planner=planner)
            said.append("saved")
        except dcp.CheckpointException as error:
            said.append([sorted(error.failures), str(error.failures[1][0])])
    rank = dist.get_rank()
    dist.destroy_process_group()
    report(rank, said)
"""


def test_an_error_of_one_process_is_known_to_all(tmp_path: Path) -> None:
    found = launch(FAILING, 2, tmp_path, str(tmp_path / "checkpoint"))
    assert found == [[[[1], "no space left"], "saved"]] * 2


@needs_torch
def test_pytorch_goes_on(saved: tuple[Path, list[Any]]) -> None:
    folder, before = saved
    for rank in ranks("torch", PROGRAM, 2, "resume", str(folder)):
        for kind in ("replicated", "sharded"):
            assert_close(rank[kind], before[0][kind], 1e-12)


@needs_torch
def test_going_on_from_pytorch(tmp_path: Path) -> None:
    theirs = ranks("torch", PROGRAM, 2, "save", str(tmp_path))
    for rank in ranks("rushlight", PROGRAM, 3, "resume", str(tmp_path)):
        for kind in ("replicated", "sharded"):
            assert_close(rank[kind], theirs[0][kind], 1e-12)
