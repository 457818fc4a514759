"""Several processes that run one function, each with its number: `spawn`."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import Any

__all__ = [
    "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "spawn", "start_processes",
]  # fmt: skip
__dir__ = __all__.copy


class ProcessException(Exception):
    """A process of `spawn` failed: `error_index` says which, `error_pid` is its id."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = self.error_pid = error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process raised; the message holds its traceback."""


class ProcessExitedException(ProcessException):
    """A process was killed, or ended with an exit code."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int,
        signal_name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> Any:
        known = (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)
        return type(self), known


def _run(fn: Callable[..., Any], i: int, args: tuple[Any, ...], end: Any) -> None:
    """The life of process `i`."""
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted too, and tells it
    except Exception:
        end.send(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes that `spawn(join=False)` has started."""

    def __init__(self, processes: list[Any], error_files: list[Any]) -> None:
        self.processes = processes
        self._ends = error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one process ends or `timeout` seconds have gone; whether all have ended.

        If one failed, the others are stopped, and its error is raised. `grace_period` seconds pass
        before they are stopped by force.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in wait(list(self.sentinels), timeout):
            i = self.sentinels.pop(sentinel)
            self.processes[i].join()
            if self.processes[i].exitcode != 0:
                failed = i
                break
        if failed is None:
            return not self.sentinels
        self._stop(30 if grace_period is None else grace_period)
        raise self._error(failed)

    def _stop(self, seconds: float) -> None:
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        deadline = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(deadline - time.monotonic(), 0))
            if process.is_alive():
                process.kill()
                process.join()

    def _error(self, i: int) -> ProcessException:
        process, end = self.processes[i], self._ends[i]
        try:
            text = end.recv() if end.poll() else None
        except EOFError:
            text = None
        if text is not None:
            text = f"\n\n-- Process {i} terminated with the following error:\n{text}"
            return ProcessRaisedException(text, i, process.pid)
        code = process.exitcode
        if code < 0:
            name = signal.Signals(-code).name
            text = f"process {i} terminated with signal {name}"
            return ProcessExitedException(text, i, process.pid, code, name)
        text = f"process {i} terminated with exit code {code}"
        return ProcessExitedException(text, i, process.pid, code)


class SpawnContext(ProcessContext):
    """What `spawn(join=False)` gives."""


def start_processes(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
    daemon: bool = False, start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method='spawn')

    Run `fn(i, *args)` in `nprocs` processes, i from 0 on. Without `join`, return at once, with
    their `ProcessContext`.

    >>> x = torch.zeros(3).share_memory_()
    >>> fill = lambda i, x: x[i].fill_(i + 1)
    >>> torch.multiprocessing.start_processes(fill, (x,), nprocs=3, start_method="fork")
    >>> x
    tensor([1., 2., 3.])
    """
    context = multiprocessing.get_context(start_method)
    processes: list[Any] = []
    ends: list[Any] = []
    for i in range(nprocs):
        ours, theirs = context.Pipe(duplex=False)
        arguments = (fn, i, args, theirs)
        process = context.Process(target=_run, args=arguments, daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        theirs.close()
        processes.append(process)
        ends.append(ours)
    made = SpawnContext(processes, ends)
    if not join:
        return made
    while not made.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True,
    daemon: bool = False, start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method='spawn')

    `start_processes` with fresh interpreters: `fn` must be importable, at the top of a module, and
    a script must start its work under `if __name__ == "__main__":`.
    """
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\n"
            "To use a different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
