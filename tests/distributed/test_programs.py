"""Programs in the shape of PyTorch's tutorials print under rushlight what they print under PyTorch.

Those that start their processes themselves run by `rushlight run`, the one that `torchrun` starts
by `rushlight launch`. What PyTorch 2.13 prints is stored here, and compared anew where it is there.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import forked
from tests.distributed.running import free_port
from tests.running import python

PROGRAMS = Path(__file__).with_name("programs")
PRINTED = {
    "applications": """\
rank 0 blocking: 1.0
rank 0 not blocking: 1.0
rank 0 group: 2.0
rank 0 ring: [1.0, 3.0, 5.0]
rank 0 losses: [1.3669, 1.2546, 1.0767]
rank 1 blocking: 1.0
rank 1 not blocking: 1.0
rank 1 group: 2.0
rank 1 ring: [1.0, 3.0, 5.0]
rank 1 losses: [1.3704, 1.2589, 1.092]
""",
    "ddp": """\
rank 0 basic: 1.03759 1.03562 1.03368 26.35411
rank 0 checkpoint: 1.06059 25.82478
rank 0 model parallel: 1.06525 26.53617
rank 1 basic: 1.16923 1.16740 1.16559 26.35411
rank 1 checkpoint: 1.06781 25.82478
rank 1 model parallel: 1.14622 26.53617
""",
    "elastic_ddp": """\
rank 0 local 0 of 2: 1.25309 26.33971
rank 1 local 1 of 2: 1.18247 26.33971
""",
}
SPAWNING = ["applications", "ddp"]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "1")


@pytest.mark.parametrize("name", SPAWNING)
def test_a_program_that_starts_its_processes(name: str, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    words = ("-m", "rushlight", "run", str(PROGRAMS / f"{name}.py"))
    status, out, errors = python(*words, cwd=tmp_path)
    assert (status, out) == (0, PRINTED[name]), errors


def test_a_program_that_is_launched(tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    words = ("-m", "rushlight", "launch", "-n", "2", str(PROGRAMS / "elastic_ddp.py"))
    status, out, errors = python(*words, cwd=tmp_path)
    assert (status, out) == (0, PRINTED["elastic_ddp"]), errors


@pytest.mark.parametrize("name", SPAWNING)
def test_pytorch_prints_it(name: str, tmp_path: Path) -> None:
    assert printed_by_pytorch(name, tmp_path, [{}]) == [PRINTED[name]]


def test_pytorch_prints_it_when_launched(tmp_path: Path) -> None:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    each = [{**place, "RANK": rank, "LOCAL_RANK": rank} for rank in "01"]
    assert printed_by_pytorch("elastic_ddp", tmp_path, each) == [PRINTED["elastic_ddp"], ""]


def printed_by_pytorch(name: str, folder: Path, each: list[dict[str, str]]) -> list[str]:
    """What each process of a program prints on PyTorch; those that it starts are forks as well."""
    pytest.importorskip("torch")
    outs = [folder / f"{at}.out" for at in range(len(each))]
    request = forked.Request(
        str(PROGRAMS / f"{name}.py"), [], str(folder), 120.0, [{**os.environ, **e} for e in each],
        [str(out) for out in outs], spawn_forks=True,
    )  # fmt: skip
    ended = forked.run(request)
    assert not any(ended), [Path(f"{out}.err").read_text() for out in outs]
    return [out.read_text() for out in outs]
