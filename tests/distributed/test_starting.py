"""Starting: one process alone, several by each way there is, and what is said if it goes wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import distributed as dist
from tests.distributed import running
from tests.harness import LIBRARIES, pytorch

SUM = """
import sys
import rushlight as torch
import rushlight.distributed as dist
from tests.distributed.running import report

dist.init_process_group(*sys.argv[1:2])
x = torch.tensor([1.0 + dist.get_rank()])
dist.all_reduce(x)
report(dist.get_rank(), [dist.get_world_size(), x.item(), dist.get_backend()])
"""


@pytest.fixture
def alone() -> Any:
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    yield dist.group.WORLD
    dist.destroy_process_group()


# --- one process ----------------------------------------------------------------------------------
def test_one_process_needs_no_mpi(alone: Any) -> None:
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
    x = torch.arange(3.0)
    for call in (
        lambda: dist.all_reduce(x),
        lambda: dist.broadcast(x, src=0),
        lambda: dist.reduce(x, dst=0),
        lambda: dist.barrier(),
        lambda: dist.monitored_barrier(),
    ):
        call()
    assert x.tolist() == [0.0, 1.0, 2.0]
    out = [torch.zeros(3)]
    dist.all_gather(out, x)
    dist.gather(x + 1, out, dst=0)
    assert out[0].tolist() == [1.0, 2.0, 3.0]
    dist.scatter(x, [torch.ones(3)], src=0)
    flat = torch.zeros(3)
    dist.all_gather_into_tensor(flat, x)
    dist.reduce_scatter_tensor(flat, flat + 1)
    dist.all_to_all_single(x, flat)
    assert x.tolist() == [2.0, 2.0, 2.0]
    found: list[Any] = [None]
    dist.all_gather_object(found, {"a": x})
    assert found[0]["a"].tolist() == x.tolist()
    work = dist.all_reduce(x, async_op=True)
    assert work is not None and work.wait() and work.is_success()
    assert work.get_future().wait()[0] is x and work.exception() is None
    assert dist.get_process_group_ranks(None) == [0] and dist.get_pg_count() == 1


def test_groups_are_objects_that_travel(alone: Any) -> None:
    import copy
    import pickle

    assert copy.deepcopy(alone) is alone and pickle.loads(pickle.dumps(alone)) is alone
    assert alone is dist.GroupMember.WORLD and alone.name() == "gloo"
    other = dist.new_group([0], group_desc="a part")
    assert other is not alone and other.group_desc == "a part"
    dist.destroy_process_group(other)
    assert dist.get_pg_count() == 1


@pytest.mark.parametrize("lib", LIBRARIES)
def test_errors_of_one_process(lib: str, tmp_path: Path) -> None:
    library = torch if lib == "rushlight" else pytorch()
    d = library.distributed
    calls: list[tuple[type[Exception], str, Any]] = [
        (ValueError, "Default process group has not been initialized, please make sure to call "
         "init_process_group.", lambda: d.all_reduce(library.ones(1))),
        (ValueError, "Error initializing torch.distributed using env:// rendezvous: environment "
         "variable RANK expected, but not set", lambda: d.init_process_group("gloo")),
        (ValueError, "Error initializing torch.distributed using tcp:// rendezvous: rank parameter "
         "missing", lambda: d.init_process_group("gloo", init_method="tcp://127.0.0.1:1")),
        (RuntimeError, "No rendezvous handler for ftp://",
         lambda: d.init_process_group("gloo", init_method="ftp://x", rank=0, world_size=1)),
        (AssertionError, "Unknown backend type fast", lambda: d.init_process_group(
            "fast", rank=0, world_size=1, store=d.HashStore())),
        (AssertionError, "Cannot specify both init_method and store.", lambda: d.init_process_group(
            "gloo", init_method="env://", store=d.HashStore())),
        (ValueError, "Default process group has not been initialized, please make sure to call "
         "init_process_group.", lambda: d.get_world_size()),
    ]  # fmt: skip
    import warnings

    for kind, text, call in calls:
        with warnings.catch_warnings(), pytest.raises(kind) as caught:
            warnings.simplefilter("ignore")
            call()
        assert str(caught.value).splitlines()[0] == text


def test_what_there_is() -> None:
    assert dist.is_available() and not dist.is_initialized()
    assert dist.is_backend_available("GLOO") == dist.is_mpi_available() == dist.is_gloo_available()
    assert not dist.is_ucc_available() and not dist.is_backend_available("nothing")
    assert dist.get_default_backend_for_device("cuda:1") == "nccl"
    assert repr(dist.BackendConfig(dist.Backend("GLOO"))) == "cpu:gloo,cuda:gloo"


def test_a_file_and_an_address_to_meet_at(tmp_path: Path) -> None:
    for where in (f"file://{tmp_path}/keys", f"tcp://127.0.0.1:{running.free_port()}"):
        dist.init_process_group("gloo", init_method=where, rank=0, world_size=1)
        assert dist.get_world_size() == 1
        dist.destroy_process_group()
    assert not dist.is_initialized()


# --- several --------------------------------------------------------------------------------------
def test_by_mpiexec(tmp_path: Path) -> None:
    assert running.launch(SUM, 2, tmp_path, "mpi") == [[2, 3.0, "mpi"]] * 2


def test_by_variables_of_the_environment(tmp_path: Path) -> None:
    ended = running.start(SUM, 3, tmp_path, "gloo")
    assert ended.status == [0, 0, 0], ended.output
    assert ended.values == [[3, 6.0, "gloo"]] * 3


@pytest.mark.parametrize("how", ["spawn", "fork", "file"])
def test_by_processes_that_a_program_starts(tmp_path: Path, how: str) -> None:
    """As PyTorch's tutorials do: `torch.multiprocessing`, an address, `gloo`."""
    running.mpiexec()
    place = f"file://{tmp_path}/keys" if how == "file" else f"tcp://127.0.0.1:{running.free_port()}"
    program = f"""
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from tests.distributed.running import report

def work(rank, size):
    dist.init_process_group("gloo", init_method={place!r}, rank=rank, world_size=size)
    x = torch.tensor([1.0 + rank])
    dist.all_reduce(x)
    report(rank, x.item())
    dist.destroy_process_group()

if __name__ == "__main__":
    if {how!r} == "fork":
        processes = [mp.get_context("fork").Process(target=work, args=(i, 2)) for i in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            assert process.exitcode == 0
    else:
        mp.spawn(work, args=(2,), nprocs=2)
"""
    path = tmp_path / "program.py"
    path.write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", "run", str(path)], env=running.environment(tmp_path),
        capture_output=True, text=True, timeout=running.PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / str(i)).read_text() for i in range(2)] == ["3.0", "3.0"]


TORCHRUN = """
import os
import torch
import torch.distributed as dist
from tests.distributed.running import report

rank = int(os.environ["RANK"])
assert int(os.environ["LOCAL_RANK"]) == rank
dist.init_process_group()
x = torch.ones(1)
dist.all_reduce(x)
assert dist.get_world_size() == int(os.environ["WORLD_SIZE"])
if os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0" and rank == 1:
    raise SystemExit(3)
report(rank, x.item())
"""


@pytest.mark.parametrize(
    "command",
    [
        ["launch", "-n", "2"],
        ["run", "-m", "torch.distributed.run", "--nproc_per_node=2", "--max-restarts=1"],
        ["run", "-m", "torch.distributed.launch", "--use-env", "--nproc-per-node", "2",
         "--max-restarts", "1"],
    ],
    ids=["launch", "torchrun", "torch.distributed.launch"],
)  # fmt: skip
def test_launchers(tmp_path: Path, command: list[str]) -> None:
    running.mpiexec()
    path = tmp_path / "program.py"
    path.write_text(TORCHRUN)
    done = subprocess.run(
        [sys.executable, "-m", "rushlight", *command, str(path)],
        env=running.environment(tmp_path), capture_output=True, text=True, check=False,
        timeout=running.PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert [(tmp_path / str(i)).read_text() for i in range(2)] == ["2.0", "2.0"]


def test_a_program_that_fails_every_time(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("raise SystemExit(5)\n")
    done = subprocess.run(
        [sys.executable, "-m", "rushlight.distributed.run", "--max-restarts=1", str(path)],
        env=running.environment(tmp_path), capture_output=True, text=True, check=False,
        timeout=running.PATIENCE,
    )  # fmt: skip
    assert done.returncode == 1
    assert "rank 0 failed (exit status 5); 0 restarts left" in done.stderr


def test_rank_and_size_that_mpiexec_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.setenv("PMI_SIZE", "4")
    with pytest.raises(ValueError, match="mpiexec started this process with world_size=4"):
        dist.init_process_group("gloo", rank=1, world_size=2)


def test_the_rank_on_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOCAL_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RuntimeError, match="fallback_rank"):
        dist.get_node_local_rank()
    assert dist.get_node_local_rank(3) == 3
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "5")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "8")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1")
    assert dist.get_node_local_rank() == 1
    assert timedelta(minutes=30) == dist.default_pg_timeout and "RANK" not in os.environ
