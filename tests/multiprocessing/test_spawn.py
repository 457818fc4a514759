"""`spawn` runs a function in several processes, and tells which of them failed and how."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
import rushlight.multiprocessing as mp

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")


def write(i: int, x: Any, value: int) -> None:
    x[i] = i + value


def fail(i: int) -> None:
    if i == 1:
        raise ValueError("number one")
    time.sleep(60)


def end(i: int, code: int) -> None:
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


def test_each_process_has_its_number() -> None:
    x = torch.zeros(3).share_memory_()
    assert mp.spawn(write, (x, 10), nprocs=3) is None  # type: ignore[func-returns-value]
    assert x.tolist() == [10, 11, 12]


def test_an_error_is_told_and_the_others_are_stopped() -> None:
    with pytest.raises(mp.ProcessRaisedException) as caught:
        mp.start_processes(fail, nprocs=2, start_method="fork")
    text = str(caught.value)
    assert text.startswith("\n\n-- Process 1 terminated with the following error:\nTraceback")
    assert text.rstrip().endswith("ValueError: number one")
    assert caught.value.error_index == 1 and caught.value.error_pid > 0


@pytest.mark.parametrize(
    ("code", "text", "name"),
    [
        (3, "process 0 terminated with exit code 3", None),
        (-int(signal.SIGKILL), "process 0 terminated with signal SIGKILL", "SIGKILL"),
    ],
)
def test_an_exit_is_told(code: int, text: str, name: str | None) -> None:
    with pytest.raises(mp.ProcessExitedException) as caught:
        mp.start_processes(end, (code,), start_method="fork")
    error = caught.value
    assert str(error) == text and error.exit_code == code and error.signal_name == name
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == text and again.exit_code == code


def test_without_join() -> None:
    x = torch.zeros(2).share_memory_()
    context = mp.start_processes(write, (x, 5), nprocs=2, join=False, start_method="fork")
    assert context is not None and len(context.pids()) == 2
    while not context.join(timeout=60):
        pass
    assert context.join() and x.tolist() == [5, 6]


def test_spawn_only_spawns() -> None:
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        mp.spawn(write, (torch.zeros(1).share_memory_(), 1), start_method="fork")


PROGRAM = """
import torch
import torch.multiprocessing as mp
from torch.utils.data import DataLoader, TensorDataset

def write(i, x):
    x[i] = len(torch.__name__) and i + 1

if __name__ == "__main__":
    x = torch.zeros(2).share_memory_()
    mp.spawn(write, (x,), nprocs=2)
    data = TensorDataset(torch.arange(3))
    loader = DataLoader(data, num_workers=1, multiprocessing_context="spawn")
    print(x.tolist(), [b.item() for (b,) in loader])
"""


def test_programs_for_torch_spawn_processes_that_run_on_rushlight(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "rushlight", "run", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "[1.0, 2.0] [0, 1, 2]\n", done.stderr
