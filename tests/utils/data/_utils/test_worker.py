"""Worker processes: what they do wrong is told, and none is left, however a program ends."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight.utils.data import DataLoader, Dataset, TensorDataset, get_worker_info
from rushlight.utils.data._utils.worker import ExceptionWrapper

pytestmark = pytest.mark.filterwarnings(
    "ignore:This DataLoader will create", "ignore:.*multi-threaded.*fork:DeprecationWarning"
)


class Doing(Dataset[Any]):
    """Four samples; asked for one, it does something."""

    def __init__(self, what: Callable[[int], Any]) -> None:
        self.what = what

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> Any:
        return self.what(i)


def fail(i: int) -> Any:
    raise ValueError(f"sample {i} is bad")


def kill(i: int) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def raised_by(loader: DataLoader[Any], kind: type[BaseException]) -> BaseException:
    with pytest.raises(kind) as caught:
        list(loader)
    return caught.value


def test_an_error_tells_worker_and_traceback() -> None:
    error = raised_by(DataLoader(Doing(fail), num_workers=1), ValueError)
    lines = str(error).splitlines()
    assert lines[0] == "Caught ValueError in DataLoader worker process 0."
    assert lines[1] == "Original Traceback (most recent call last):"
    assert lines[-1] == "ValueError: sample 0 is bad"
    assert "in fail" in str(error)


def test_other_batches_come_after_an_error() -> None:
    def some(i: int) -> int:
        return i if i != 1 else fail(i)

    batches = iter(DataLoader(Doing(some), num_workers=2))
    assert next(batches).tolist() == [0]
    with pytest.raises(ValueError, match="in DataLoader worker process 1"):
        next(batches)
    assert [b.tolist() for b in batches] == [[2], [3]]


def test_a_key_error_is_readable() -> None:
    error = raised_by(DataLoader(Doing({}.__getitem__), num_workers=1), KeyError)
    assert str(error).startswith("Caught KeyError in DataLoader worker process 0.\nOriginal ")


class Odd(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(a, b)


def test_an_error_that_cannot_be_made_anew_is_a_runtime_error() -> None:
    def odd(i: int) -> Any:
        raise Odd(1, 2)

    error = raised_by(DataLoader(Doing(odd), num_workers=1), RuntimeError)
    assert str(error).startswith("Caught Odd in DataLoader worker process 0.")


def test_an_error_of_worker_init_fn_comes_with_the_first_batch() -> None:
    def init(i: int) -> None:
        raise RuntimeError("no start")

    error = raised_by(DataLoader(range(3), num_workers=1, worker_init_fn=init), RuntimeError)
    assert "no start" in str(error) and "worker process 0" in str(error)


def test_a_batch_that_cannot_be_sent_is_an_error() -> None:
    loader = DataLoader(Doing(lambda i: lambda: i), num_workers=1, collate_fn=lambda b: b)
    error = raised_by(loader, Exception)
    assert str(error).startswith("Caught ") and "worker process 0" in str(error)


def test_a_worker_that_is_killed() -> None:
    error = raised_by(DataLoader(Doing(kill), num_workers=1), RuntimeError)
    text = str(error)
    assert text.startswith("DataLoader worker (pid(s) ")
    assert text.endswith(") exited unexpectedly")
    assert str(error.__cause__).endswith("is killed by signal: Killed. ")


def test_a_worker_that_is_killed_while_it_has_nothing_to_do() -> None:
    batches = iter(DataLoader(range(100), num_workers=2))
    next(batches)
    os.kill(batches._workers[0].pid, signal.SIGKILL)  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(batches)


def test_a_worker_that_exits() -> None:
    error = raised_by(DataLoader(Doing(lambda i: os._exit(3)), num_workers=1), RuntimeError)
    assert "exited unexpectedly with exit code 3." in str(error.__cause__)


def test_a_worker_that_is_late() -> None:
    slow = Doing(lambda i: time.sleep(60))
    error = raised_by(DataLoader(slow, num_workers=1, timeout=0.2), RuntimeError)
    assert str(error) == "DataLoader timed out after 0.2 seconds"


def test_large_messages_in_both_directions_do_not_block() -> None:
    indices = [list(range(4)) * 100_000 for _ in range(6)]
    loader = DataLoader(
        Doing(lambda i: "x" * 10), batch_sampler=indices, num_workers=1, collate_fn=lambda b: b
    )
    assert [len(batch) for batch in loader] == [400_000] * 6


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_every_start_method(method: str) -> None:
    loader = DataLoader(
        TensorDataset(torch.arange(6)), 2, num_workers=1, multiprocessing_context=method
    )
    assert [x.tolist() for (x,) in loader] == [[0, 1], [2, 3], [4, 5]]


def test_batches_lie_in_shared_memory_and_keep_what_they_share() -> None:
    def collate(samples: list[int]) -> Any:
        x = torch.arange(4.0)
        low = torch.ones(3, dtype=torch.bfloat16)
        return {"x": x, "part": x[1:3], "array": x.numpy() * 2, "low": low, "t": x.view(2, 2).t()}

    (batch,) = DataLoader(range(3), 3, num_workers=1, collate_fn=collate)
    assert batch["x"].is_shared() and batch["low"].is_shared()
    batch["x"][2] = 9
    assert batch["part"].tolist() == [1, 9] and batch["t"].tolist() == [[0, 9], [1, 3]]
    assert batch["array"].tolist() == [0, 2, 4, 6] and batch["array"].flags.writeable
    assert batch["low"].dtype is torch.bfloat16 and batch["low"].tolist() == [1, 1, 1]
    assert batch["t"].stride() == (1, 2)


def test_a_row_of_a_large_tensor_is_sent_without_the_rest() -> None:
    rows = torch.arange(100_000.0).reshape(1000, 100)
    first = next(iter(DataLoader(TensorDataset(rows), None, num_workers=1)))[0]
    assert first.tolist() == rows[0].tolist()
    assert first.untyped_storage().nbytes() == 400


def test_a_parameter_arrives_as_one() -> None:
    loader = DataLoader(
        range(1), num_workers=1, collate_fn=lambda b: torch.nn.Parameter(torch.ones(2))
    )
    (got,) = loader
    assert isinstance(got, torch.nn.Parameter) and got.requires_grad and got.tolist() == [1, 1]


def test_a_tensor_with_history_is_refused() -> None:
    loader = DataLoader(
        range(1), num_workers=1, collate_fn=lambda b: torch.ones(1, requires_grad=True) * 2
    )
    error = raised_by(loader, RuntimeError)
    assert "Cowardly refusing to serialize non-leaf tensor" in str(error)


def gone(pid: int) -> bool:
    """Whether a process is no more, or only waits to be collected."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether something becomes true; the limit only guards against hanging."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_leaving_early_leaves_nothing_behind() -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    for _ in range(3):
        batches = iter(DataLoader(TensorDataset(torch.ones(1000, 50)), 4, num_workers=2))
        next(batches)
        pids = [w.pid for w in batches._workers]  # type: ignore[attr-defined]
        del batches
        gc.collect()
        assert all(gone(pid) for pid in pids)
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_persistent_workers_live_as_long_as_the_loader() -> None:
    loader = DataLoader(
        Doing(lambda i: os.getpid()), num_workers=1, persistent_workers=True, collate_fn=lambda b: b
    )
    first = {pid for (pid,) in loader}
    assert {pid for (pid,) in loader} == first
    half = iter(loader)  # what is left of this pass is dropped
    next(half)
    assert [pid for (pid,) in loader] == [*first] * 4
    del loader, half
    gc.collect()
    assert all(gone(pid) for pid in first)


def test_a_forked_child_leaves_its_parents_workers_alone() -> None:
    batches = iter(DataLoader(range(8), num_workers=1))
    next(batches)
    pid = os.fork()
    if pid == 0:
        batches._end()  # type: ignore[attr-defined]
        os._exit(0)
    os.waitpid(pid, 0)
    assert [x.item() for x in batches] == list(range(1, 8))


def test_worker_info() -> None:
    def told(i: int) -> Any:
        info = get_worker_info()
        assert info is not None
        return info.id, info.num_workers, len(info.dataset)

    loader = DataLoader(Doing(told), None, num_workers=2)
    assert list(loader) == [[0, 2, 4], [1, 2, 4], [0, 2, 4], [1, 2, 4]]
    assert get_worker_info() is None


def test_an_exception_keeps_its_place() -> None:
    try:
        fail(3)
    except ValueError:
        caught = ExceptionWrapper(where="here")
    with pytest.raises(ValueError, match="Caught ValueError here"):
        caught.reraise()


PROGRAM = """
import os, sys, time
import rushlight as torch
from rushlight.utils.data import DataLoader

class Slow(torch.utils.data.Dataset):
    def __len__(self): return 10_000
    def __getitem__(self, i):
        time.sleep(0.01)
        return i

if __name__ == "__main__":
    batches = iter(DataLoader(Slow(), num_workers=2, persistent_workers=PERSISTENT))
    next(batches)
    print(*[w.pid for w in batches._workers], flush=True)
    for batch in batches:
        pass
"""


@pytest.mark.skipif(not os.path.exists("/proc"), reason="looks for processes in /proc")
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("how", ["SIGINT to all", "SIGINT", "SIGTERM", "SIGKILL"])
def test_no_worker_outlives_the_program(how: str, persistent: bool, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.replace("PERSISTENT", str(persistent)))
    program = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script)], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert program.stdout is not None
    pids = [int(word) for word in program.stdout.readline().split()]
    assert len(pids) == 2 and not any(map(gone, pids))
    if how == "SIGINT to all":  # what Ctrl-C does
        os.killpg(program.pid, signal.SIGINT)
    else:
        program.send_signal(getattr(signal, how))
    _, errors = program.communicate(timeout=60)
    assert wait_for(lambda: all(map(gone, pids)))
    if "SIGINT" in how:
        assert program.returncode == -signal.SIGINT
        assert errors.count("KeyboardInterrupt") == 1, errors


def test_an_iterator_in_a_cycle_ends_its_workers() -> None:
    """The connections of a cycle may be finalised first: the workers end all the same, quietly."""
    batches: Any = iter(DataLoader(range(8), num_workers=2))
    next(batches)
    pids = [w.pid for w in batches._workers]
    batches.itself = batches  # the cycle
    del batches
    gc.collect()
    assert all(gone(pid) for pid in pids)
