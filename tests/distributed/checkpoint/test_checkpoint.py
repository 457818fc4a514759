"""Checkpoints of one process: what is written, what is read, what is left when it goes wrong."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
import rushlight.distributed.checkpoint as dcp
from rushlight.distributed.checkpoint._dedup_save_plans import dedup_save_plans
from rushlight.distributed.checkpoint.default_planner import create_default_local_save_plan
from rushlight.distributed.checkpoint.format_utils import dcp_to_torch_save, torch_save_to_dcp
from rushlight.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    get_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from rushlight.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys
from tests import forked
from tests.distributed.two_libraries import needs_torch

pytestmark = pytest.mark.filterwarnings(
    "ignore:torch.distributed is", "ignore:Detected an existing"
)
REFERENCE = Path(__file__).parents[1] / "reference" / "two_ranks"


def save(state: Any, folder: Path, **more: Any) -> Any:
    return dcp.save(state, checkpoint_id=folder, **more)


def load(state: Any, folder: Path, **more: Any) -> Any:
    dcp.load(state, checkpoint_id=folder, **more)
    return state


def test_there_and_back(tmp_path: Path) -> None:
    w = torch.arange(12.0).reshape(3, 4)
    state = {
        "w": w, "view": w[:, 1], "half": w.bfloat16(), "nothing": torch.ones(0, 2),
        "scalar": torch.tensor(3), "nested": {"list": [torch.ones(2), {"a": 1}], "words": ["x"]},
        "epoch": 7, "flag": torch.tensor([True]),
    }  # fmt: skip
    save(state, tmp_path)
    empty = {
        "w": torch.zeros(3, 4), "view": torch.zeros(3), "half": torch.zeros(3, 4).bfloat16(),
        "nothing": torch.ones(0, 2), "scalar": torch.tensor(0),
        "nested": {"list": [torch.zeros(2), {"a": 0}], "words": []}, "epoch": 0,
        "flag": torch.tensor([False]),
    }  # fmt: skip
    target = empty["w"]
    load(empty, tmp_path)
    assert empty["w"] is target  # in place
    assert str(empty) == str(state)


def test_a_view_is_written_without_what_is_around_it(tmp_path: Path) -> None:
    save({"view": torch.zeros(100_000)[:2]}, tmp_path)
    assert (tmp_path / "__0_0.distcp").stat().st_size < 3000


def test_objects_with_a_state(tmp_path: Path) -> None:
    def make() -> tuple[Any, Any]:
        model = torch.nn.Linear(2, 1)
        adam = torch.optim.Adam(model.parameters())
        model(torch.ones(2)).sum().backward()
        adam.step()
        return model, adam

    (model, adam), (other, fresh) = make(), make()
    adam.param_groups[0]["lr"] = 0.5
    save({"model": model, "adam": adam}, tmp_path)
    load({"model": other, "adam": fresh}, tmp_path)
    assert torch.equal(model.weight, other.weight)
    assert fresh.param_groups[0]["lr"] == 0.5
    moments = [o.state[m.weight]["exp_avg"] for o, m in ((adam, model), (fresh, other))]
    assert torch.equal(*moments)


def test_parts_of_a_checkpoint(tmp_path: Path) -> None:
    save({"a": torch.ones(2), "b": {"c": torch.ones(1), "d": 4}}, tmp_path)
    with pytest.raises(dcp.CheckpointException, match="Missing key in checkpoint state_dict: new"):
        load({"new": torch.zeros(1)}, tmp_path)
    with pytest.raises(dcp.CheckpointException, match="Size mismatch between saved"):
        load({"a": torch.zeros(3)}, tmp_path)
    planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
    state = load({"a": torch.zeros(2), "new": torch.zeros(1)}, tmp_path, planner=planner)
    assert str(state) == "{'a': tensor([1., 1.]), 'new': tensor([0.])}"
    found = _load_state_dict_from_keys("b", checkpoint_id=tmp_path)
    assert str(found) == "{'b': {'c': tensor([1.]), 'd': 4}}"


class Breaks(dcp.DefaultSavePlanner):
    """Fails when the second tensor is to be written."""

    written = 0

    def resolve_data(self, write_item: Any) -> Any:
        self.written += 1
        if self.written == 2:
            raise OSError("no space left")
        return super().resolve_data(write_item)


def test_a_save_that_fails_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    save({"a": torch.ones(2), "b": torch.ones(2)}, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(dcp.CheckpointException, match="no space left"):
        save({"a": torch.zeros(2), "b": torch.zeros(2)}, tmp_path, planner=Breaks())
    for name, data in before.items():
        assert (tmp_path / name).read_bytes() == data
    assert str(load({"a": torch.zeros(2)}, tmp_path)) == "{'a': tensor([1., 1.])}"
    save({"a": torch.full((2,), 3.0)}, tmp_path)
    assert str(load({"a": torch.zeros(2)}, tmp_path)) == "{'a': tensor([3., 3.])}"
    # the old files are gone: one for each `.metadata`
    assert len(list(tmp_path.glob("*.distcp"))) == 1


def test_a_killed_save_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    save({"a": torch.ones(2)}, tmp_path)
    program = (
        "import os, sys, rushlight as torch, rushlight.distributed.checkpoint as dcp\n"
        "dcp.FileSystemWriter.finish = lambda *_: os._exit(9)\n"
        "dcp.save({'a': torch.zeros(2)}, checkpoint_id=sys.argv[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, str(tmp_path)], check=False, timeout=60
    )
    assert done.returncode == 9
    assert str(load({"a": torch.zeros(2)}, tmp_path)) == "{'a': tensor([1., 1.])}"


def test_what_is_broken_is_named(tmp_path: Path) -> None:
    good = tmp_path / "good"
    save({"a": torch.ones(200), "b": 5}, good)

    def broken(name: str) -> Path:
        shutil.copytree(good, tmp_path / name)
        return tmp_path / name

    data = (good / "__0_0.distcp").read_bytes()
    short = broken("short")
    (short / "__0_0.distcp").write_bytes(data[:-100])
    with pytest.raises(dcp.CheckpointException, match=r"short/__0_0.distcp is damaged: it ends"):
        load({"a": torch.zeros(200)}, short)
    wrong = broken("wrong")
    (wrong / "__0_0.distcp").write_bytes(b"\0" * len(data))
    with pytest.raises(dcp.CheckpointException, match=r"wrong/__0_0.distcp is damaged.*'a'"):
        load({"a": torch.zeros(200)}, wrong)
    with pytest.raises(dcp.CheckpointException, match=r"wrong/__0_0.distcp is damaged.*'b'"):
        load({"b": 0}, wrong)
    gone = broken("gone")
    (gone / "__0_0.distcp").unlink()
    with pytest.raises(dcp.CheckpointException, match=r"No such file.*gone/__0_0.distcp"):
        load({"a": torch.zeros(200)}, gone)
    headless = broken("headless")
    (headless / ".metadata").unlink()
    with pytest.raises(dcp.CheckpointException, match=r"No such file.*headless/.metadata"):
        load({"a": torch.zeros(200)}, headless)
    garbled = broken("garbled")
    (garbled / ".metadata").write_bytes(b"garbled")
    with pytest.raises(dcp.CheckpointException, match=r"garbled/.metadata is damaged"):
        load({"a": torch.zeros(200)}, garbled)
    other = broken("other")
    (other / ".metadata").write_bytes(pickle.dumps({}))
    with pytest.raises(dcp.CheckpointException, match=r"other/.metadata holds no metadata"):
        load({"a": torch.zeros(200)}, other)


def test_options_of_the_writer(tmp_path: Path) -> None:
    state = {"a": torch.ones(2), "b": torch.ones(3), "c": 1}
    for n, more in enumerate(
        ({"thread_count": 2}, {"single_file_per_rank": False}, {"sync_files": False})
    ):
        writer = dcp.FileSystemWriter(tmp_path / str(n), **more)
        dcp.save(state, storage_writer=writer)
        found = load({"a": torch.zeros(2), "b": torch.zeros(3), "c": 0}, tmp_path / str(n))
        assert str(found) == str(state)
    assert [len(list((tmp_path / str(n)).glob("*.distcp"))) for n in range(3)] == [2, 3, 1]
    writer = dcp.FileSystemWriter(tmp_path / "0", overwrite=False)
    with pytest.raises(dcp.CheckpointException, match="Checkpoint already exists"):
        dcp.save(state, storage_writer=writer)
    dcp.save(state, checkpoint_id=tmp_path / "own", use_collectives=False)
    assert sorted(os.listdir(tmp_path / "own")) == ["__0.metadata", "__0_0.distcp"]
    assert load({"c": 0}, tmp_path / "own") == {"c": 1}


def test_older_names(tmp_path: Path) -> None:
    with pytest.warns(FutureWarning, match="`save_state_dict` is deprecated"):
        dcp.save_state_dict({"a": torch.ones(1)}, dcp.FileSystemWriter(tmp_path), no_dist=True)
    state = {"a": torch.zeros(1)}
    with pytest.warns(FutureWarning, match="`load_state_dict` is deprecated"):
        dcp.load_state_dict(state, dcp.FileSystemReader(tmp_path), no_dist=True)
    assert state["a"].item() == 1


def test_copies_are_made_before_training_goes_on(tmp_path: Path) -> None:
    w = torch.ones(3)
    for keeps in (False, True):
        writer = dcp.FileSystemWriter(tmp_path, cache_staged_state_dict=keeps)
        for value in (1.0, 2.0):
            w.fill_(value)
            later = dcp.async_save({"w": w, "list": [w]}, storage_writer=writer)
            w.zero_()
            later.result()
            assert load({"w": torch.zeros(3)}, tmp_path)["w"].tolist() == [value] * 3


def test_files_of_torch_save(tmp_path: Path) -> None:
    state = {"model": {"w": torch.ones(2)}, "epoch": 3}
    torch.save(state, tmp_path / "a.pt")
    torch_save_to_dcp(tmp_path / "a.pt", tmp_path / "dcp")
    dcp_to_torch_save(tmp_path / "dcp", tmp_path / "b.pt")
    assert str(torch.load(tmp_path / "b.pt")) == str(state)


def test_what_all_have_is_written_once_and_shared_out() -> None:
    state = {str(n): torch.zeros(size) for n, size in enumerate((4, 4, 8, 2))}
    plans = [create_default_local_save_plan(state, rank == 0) for rank in range(2)]
    shares = [[item.index.fqn for item in plan.items] for plan in dedup_save_plans(plans)]
    assert shares == [["0", "2"], ["1", "3"]]
    lowest = [[item.index.fqn for item in plan.items] for plan in dedup_save_plans(plans, True)]
    assert lowest == [["0", "1", "2", "3"], []]


def test_states_of_optimisers_have_names() -> None:
    def make(order: int) -> tuple[Any, Any]:
        model = torch.nn.Linear(2, 1)
        return model, torch.optim.Adam(list(model.parameters())[::order], lr=0.1)

    model, adam = make(1)
    model(torch.ones(2)).sum().backward()
    adam.step()
    adam.zero_grad()
    weights, state = get_state_dict(model, adam)
    other, fresh = make(-1)  # the same parameters in another order
    set_state_dict(other, fresh, model_state_dict=weights, optim_state_dict=state)
    assert torch.equal(model.weight, other.weight)
    moments = [o.state[m.weight]["exp_avg"] for o, m in ((adam, model), (fresh, other))]
    assert torch.equal(*moments)
    flat = StateDictOptions(flatten_optimizer_state_dict=True)
    found = get_optimizer_state_dict(model, adam, options=flat)
    assert found["param_groups.bias.lr"] == 0.1 and "state.weight.step" in found
    other, fresh = make(-1)
    set_optimizer_state_dict(other, fresh, found, options=flat)
    assert torch.equal(adam.state[model.bias]["exp_avg_sq"], fresh.state[other.bias]["exp_avg_sq"])
    model(torch.ones(2)).sum().backward()
    with pytest.raises(RuntimeError, match="the gradients are not None"):
        get_optimizer_state_dict(model, torch.optim.Adam(model.parameters()))


def test_a_checkpoint_that_pytorch_wrote() -> None:
    state = {
        "rows": torch.zeros(5, 2), "columns": torch.zeros(2, 3), "plain": torch.zeros(3),
        "nested": {"n": 0, "text": ""},
    }  # fmt: skip
    load(state, REFERENCE)
    assert state["rows"].tolist() == torch.arange(10.0).reshape(5, 2).tolist()
    assert state["columns"].tolist() == torch.arange(6.0).reshape(2, 3).tolist()
    assert state["plain"].tolist() == [1.0, 2.0, 3.0]
    assert state["nested"] == {"n": 4, "text": "from PyTorch"}
    metadata = dcp.FileSystemReader(REFERENCE).read_metadata()
    chunks = metadata.state_dict_metadata["rows"].chunks
    assert [tuple(chunk.sizes) for chunk in chunks] == [(3, 2), (2, 2)]


@needs_torch
def test_pytorch_reads_what_is_written_here(tmp_path: Path) -> None:
    save({"a": torch.arange(3.0), "n": {"b": torch.tensor(2).half(), "c": {"d": 1}}}, tmp_path)
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, torch, torch.distributed.checkpoint as dcp\n"
        "state = {'a': torch.zeros(3), 'n': {'b': torch.tensor(0.).half(), 'c': {'d': 0}}}\n"
        "dcp.load(state, checkpoint_id=sys.argv[1])\n"
        "print(state)\n"
    )
    out = tmp_path / "out"
    request = forked.Request(
        str(program), [str(tmp_path)], str(tmp_path), 100.0, [dict(os.environ)], [str(out)]
    )
    assert forked.run(request) == [0], (tmp_path / "out.err").read_text()
    expected = (
        "{'a': tensor([0., 1., 2.]), 'n': {'b': tensor(2., dtype=torch.float16), 'c': {'d': 1}}}"
    )
    assert out.read_text().strip() == expected
