"""A process that dies, leaves or does not come: an error in all others, and never a hang.

How soon is stated in `world.GRACE`, and for what hangs by `timeout`; the tests do not look at the
clock, but `running.start` ends a program that hangs, and fails.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed import running

BEGIN = """
import datetime, os, signal, sys, time
import rushlight as torch
import rushlight.distributed as dist
from tests.distributed.running import report

def wait_for(*ranks):
    while not all(os.path.exists(os.path.join(results, str(other))) for other in ranks):
        time.sleep(0.05)

results = os.environ["RUSHLIGHT_TEST_RESULTS"]
dist.init_process_group("gloo")
rank = dist.get_rank()
x = torch.ones(3)
dist.all_reduce(x)
# from here on: how long it took to start is no matter
dist.group.WORLD.set_timeout(datetime.timedelta(seconds=float(sys.argv[1])))
"""
END = """
try:
    while True:
        dist.all_reduce(x)
except dist.DistBackendError as error:
    report(rank, str(error))
    sys.exit(7)
"""


@pytest.mark.parametrize("victim", [0, 1, 2])
def test_a_process_that_is_killed(tmp_path: Path, victim: int) -> None:
    program = (
        BEGIN
        + f"""
if rank == {victim}:
    os.kill(os.getpid(), signal.SIGKILL)
"""
        + END
    )
    ended = running.start(program, 3, tmp_path, "600")
    for rank in range(3):
        if rank == victim:
            assert ended.status[rank] == -9
        else:
            assert ended.status[rank] == 7, ended.output
            text = ended.values[rank]
            assert text.startswith("Connection closed by peer: rank"), text
            assert f"rank {victim}" in text.splitlines()[0] or f" {victim} " in text


def test_a_process_that_is_killed_while_a_child_of_it_lives(tmp_path: Path) -> None:
    """A worker of a DataLoader does not keep up the appearance that its process is there."""
    program = (
        BEGIN
        + """
if rank == 1:
    if os.fork() == 0:
        wait_for(0)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)
"""
        + END
    )
    ended = running.start(program, 2, tmp_path, "600")
    assert ended.status == [7, -9], ended.output
    assert ended.values[0].startswith("Connection closed by peer: rank 1 ended")


def test_a_process_that_raises(tmp_path: Path) -> None:
    """The error is its own; the others are told who it was, and where they were waiting."""
    program = (
        BEGIN
        + """
if rank == 1:
    raise ValueError("a fault of the program")
"""
        + END
    )
    ended = running.start(program, 2, tmp_path, "600")
    assert ended.status == [7, 1], ended.output
    assert "ValueError: a fault of the program" in ended.output
    assert ended.values[0].startswith("Connection closed by peer: rank 1 ended while rank 0 was in")


def test_a_process_that_does_not_come(tmp_path: Path) -> None:
    """After `timeout` the error says who is late, and at which line."""
    program = (
        BEGIN
        + """
if rank == 1:
    wait_for(0)  # a hang, until the other has had enough
    sys.exit(0)
"""
        + END
    )
    ended = running.start(program, 2, tmp_path, "1.5")
    assert ended.status == [7, 0], ended.output
    text = ended.values[0]
    assert text.startswith("Timed out waiting 1500ms for all_reduce #"), text
    assert "rank 1 is in no collective, at program.py:" in text
    assert "timeout" in text.splitlines()[-1]


def test_a_process_that_calls_something_else(tmp_path: Path) -> None:
    program = (
        BEGIN
        + """
try:
    if rank == 0:
        dist.barrier()
    else:
        dist.recv(x, src=0)
except dist.DistBackendError as error:
    report(rank, str(error))
wait_for(0, 1)
os._exit(7)
"""
    )
    ended = running.start(program, 2, tmp_path, "1.5")
    assert ended.status == [7, 7], ended.output
    assert "rank 1 is in recv from rank 0 #" in ended.values[0], ended.values
    assert "rank 0 is in barrier #" in ended.values[1], ended.values


def test_a_process_that_was_never_started(tmp_path: Path) -> None:
    program = """
        import datetime, os, sys
        import rushlight.distributed as dist
        from tests.distributed.running import report

        os.environ["WORLD_SIZE"] = "3"
        try:
            dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=1))
        except dist.DistError as error:
            report(int(os.environ["RANK"]), str(error))
            sys.exit(7)
    """
    ended = running.start(program, 2, tmp_path)
    assert ended.status == [7, 7], ended.output
    assert "for 3 processes to call init_process_group" in ended.values[0]


def test_what_waits_in_the_background_fails_too(tmp_path: Path) -> None:
    program = (
        BEGIN
        + """
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
work = dist.all_reduce(x, async_op=True)
try:
    work.wait()
except dist.DistBackendError as error:
    report(rank, [type(error).__name__, str(error).splitlines()[0]])
    sys.exit(7)
"""
    )
    ended = running.start(program, 2, tmp_path, "600")
    assert ended.status == [7, -9], ended.output
    assert ended.values[0][1].startswith("Connection closed by peer: rank 1")


@pytest.mark.parametrize("how", ["dies", "hangs"])
def test_a_future_of_what_cannot_come(tmp_path: Path, how: str) -> None:
    """A future has no timeout of its own: the thread that helps gives the work up."""
    program = (
        BEGIN
        + f"""
if rank == 1 and {how!r} == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
if rank == 1:
    wait_for(0)
    sys.exit(0)
future = dist.all_reduce(x, async_op=True).get_future()
try:
    future.then(lambda done: done.value()).wait()
except RuntimeError as error:  # `then` tells of an error as PyTorch's does
    report(rank, str(error))
    sys.exit(7)
"""
    )
    ended = running.start(program, 2, tmp_path, "600" if how == "dies" else "1.5")
    assert ended.status[0] == 7, ended.output
    first = "Connection closed by peer: rank 1" if how == "dies" else "Timed out waiting 1500ms"
    assert f"DistBackendError: {first}" in ended.values[0]


def test_a_process_that_is_killed_before_a_hook_of_gradients(tmp_path: Path) -> None:
    """`DistributedDataParallel` waits for the futures of communication hooks."""
    program = (
        BEGIN
        + """
from rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from rushlight.nn.parallel import DistributedDataParallel

net = DistributedDataParallel(torch.nn.Linear(2, 1))
net.register_comm_hook(None, allreduce_hook)
loss = net(torch.ones(3, 2)).sum()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    loss.backward()
except RuntimeError as error:  # `then` tells of an error as PyTorch's does
    report(rank, str(error))
    sys.exit(7)
"""
    )
    ended = running.start(program, 2, tmp_path, "600")
    assert ended.status == [7, -9], ended.output
    assert "DistBackendError: Connection closed by peer: rank 1 ended" in ended.values[0]


def test_a_message_longer_than_its_place(tmp_path: Path) -> None:
    program = (
        BEGIN
        + """
if rank == 0:
    dist.send(torch.ones(100), dst=1)
    report(rank, "sent")
else:
    try:
        dist.recv(torch.zeros(3), src=0)
    except dist.DistBackendError as error:
        report(rank, str(error))
"""
    )
    ended = running.start(program, 2, tmp_path, "600")
    assert ended.status == [0, 0], ended.output
    assert ended.values[1].startswith("MPI error in recv from rank 0 #")


def test_ends_at_different_times(tmp_path: Path) -> None:
    """Who is done first does not disturb the others."""
    program = (
        BEGIN
        + """
if rank == 0:
    time.sleep(1)
if rank == 1:
    dist.destroy_process_group()
report(rank, x.tolist())
"""
    )
    ended = running.start(program, 3, tmp_path, "600")
    assert ended.status == [0, 0, 0], ended.output
    assert ended.values == [[3.0] * 3] * 3


def test_under_mpiexec_all_processes_end(tmp_path: Path) -> None:
    import subprocess
    import sys

    path = tmp_path / "program.py"
    path.write_text(
        BEGIN
        + """
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
"""
        + END
    )
    done = subprocess.run(
        [running.mpiexec(), "-n", "2", sys.executable, str(path), "600"],
        env=running.environment(tmp_path), capture_output=True, text=True, check=False,
        timeout=running.PATIENCE,
    )  # fmt: skip
    assert done.returncode != 0


def test_calls_that_do_not_match(tmp_path: Path) -> None:
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL all are told what each of them called."""
    program = (
        BEGIN
        + """
found = []
for call in (
    lambda: dist.all_reduce(torch.ones(3 + rank)),
    lambda: dist.barrier() if rank else dist.broadcast(x, src=0),
    lambda: dist.all_gather([x, x], x.clone()),
    lambda: dist.broadcast(x.double() if rank else x, src=0),
):
    try:
        call()
        found.append("no error")
    except dist.DistBackendError as error:
        found.append(str(error).splitlines()[:3])
report(rank, found)
"""
    )
    ended = running.start(program, 2, tmp_path, "600", TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert ended.status == [0, 0], ended.output

    assert ended.values[0] == ended.values[1]
    sizes, kinds, right, dtypes = ended.values[0]
    assert sizes[1:] == [
        "  rank 0 calls all_reduce of [3] torch.float32",
        "  rank 1 calls all_reduce of [4] torch.float32",
    ]
    assert kinds[1:] == [
        "  rank 0 calls broadcast of [3] torch.float32", "  rank 1 calls barrier of no tensors"
    ]  # fmt: skip
    assert right == "no error" and "torch.float64" in dtypes[2]
    assert sizes[0].startswith("Detected mismatch between collectives on ranks, at #")


def test_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    from rushlight import distributed as dist

    assert dist.get_debug_level() is dist.DebugLevel.OFF
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "info")
    dist.set_debug_level_from_env()
    assert dist.get_debug_level() is dist.DebugLevel.INFO
    dist.set_debug_level(dist.DebugLevel.OFF)
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "loud")
    with pytest.raises(RuntimeError, match="must be OFF, INFO, or DETAIL"):
        dist.set_debug_level_from_env()
