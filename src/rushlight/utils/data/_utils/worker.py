"""A worker process of a `DataLoader`: it takes indices from its channel and sends batches back."""

from __future__ import annotations

import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rushlight.random.worker_seed import numpy_state, seed_worker
from rushlight.settings import set_num_threads
from rushlight.utils.data._utils import channel
from rushlight.utils.data._utils.fetch import _DatasetKind

__all__ = ["MP_STATUS_CHECK_INTERVAL", "ExceptionWrapper", "WorkerInfo", "get_worker_info"]
__dir__ = __all__.copy

MP_STATUS_CHECK_INTERVAL: Final = 5.0
_LOOK: Final = 1.0  # seconds after which an idle worker looks whether its parent is there


class _Message(str):
    """A KeyError shows its message by `repr`: this one stays readable."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception on its way to another process: its class, and its traceback as text.

    >>> from rushlight.utils.data._utils.worker import ExceptionWrapper
    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError:
    ...     caught = ExceptionWrapper(where="in the kitchen")
    >>> caught.reraise()
    Traceback (most recent call last):
    ZeroDivisionError: Caught ZeroDivisionError in the kitchen.
    Original Traceback (most recent call last):
    ...
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, error, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, error, trace))
        self.where = where

    def reraise(self) -> None:
        """Raise it here, with the first traceback in its message."""
        kind = self.exc_type
        text = f"Caught {kind.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if kind is KeyError:
            text = _Message(text)
        try:
            error = kind(text)
        except Exception:  # a class of the user's, which is not made from a text
            raise RuntimeError(text) from None
        raise error


@dataclass(slots=True, frozen=True)
class WorkerInfo:
    """What `get_worker_info` gives: `id`, `num_workers`, `seed`, and this worker's `dataset`."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """Sent when the dataset of a worker has come to its end."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Sent to workers that live on, when a new pass begins; they send it back."""

    seed: int | None = None


class _Place:
    info: WorkerInfo | None = None


_place: Final = _Place()


def get_worker_info() -> WorkerInfo | None:
    """get_worker_info() -> WorkerInfo or None

    In a worker process of a `DataLoader`: which one this is. In the main process None.

    >>> torch.utils.data.get_worker_info() is None
    True
    """
    return _place.info


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    return numpy_state(base_seed, worker_id)


@dataclass(frozen=True)
class Job:
    """What a worker is told when it starts."""

    kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Any
    drop_last: bool
    base_seed: int
    init_fn: Callable[[int], Any] | None
    worker_id: int
    num_workers: int
    persistent: bool


class _Sender:
    """Sends results from a thread of its own: a worker never waits until its result is read, so
    it goes on to read indices, and neither side can wait for the other."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.waiting: queue.SimpleQueue[channel.Packet | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while (packet := self.waiting.get()) is not None:
            try:
                channel.send_packet(self.connection, packet)
            except OSError:
                return  # nobody reads any more

    def put(self, number: int, data: Any) -> None:
        self.waiting.put(channel.pack((number, data)))

    def finish(self) -> None:
        """Wait until all is sent."""
        self.waiting.put(None)
        self.thread.join()


def _next_task(connection: Any, parent: int) -> Any:
    """What the loader asks for next; None when it has hung up, or is gone."""
    while not connection.poll(_LOOK):
        if os.getppid() != parent:
            return None
    if channel.is_hung_up(connection):
        return None
    try:
        return channel.receive(connection)
    except (EOFError, OSError):
        return None


def _worker_loop(job: Job, connection: Any) -> None:
    """The whole life of a worker process."""
    parent = os.getppid()
    where = f"in DataLoader worker process {job.worker_id}"
    fetcher: Any = None
    failure: ExceptionWrapper | None = None
    try:
        try:
            _prepare(job)
            fetcher = _fetcher(job)
        except Exception:
            failure = ExceptionWrapper(where=where)
        sender = _Sender(connection)
        ended = False
        while (task := _next_task(connection, parent)) is not None:
            if isinstance(task, _ResumeIteration):
                sender.put(-1, task)
                ended = False
                fetcher = _fetcher(job)
                continue
            if ended:
                continue
            number, index = task
            data: Any
            if failure is not None:
                data, failure = failure, None
            else:
                try:
                    data = fetcher.fetch(index)
                except Exception as error:
                    if isinstance(error, StopIteration) and job.kind == _DatasetKind.Iterable:
                        data = _IterableDatasetStopIteration(job.worker_id)
                        ended = True
                    else:
                        data = ExceptionWrapper(where=where)
            try:
                sender.put(number, data)
            except Exception:  # the batch cannot be pickled
                sender.put(number, ExceptionWrapper(where=where))
            del task, index, data
        sender.finish()
    except KeyboardInterrupt:
        pass  # the main process was interrupted too, and tells it


def _prepare(job: Job) -> None:
    set_num_threads(1)
    seed_worker(job.base_seed, job.worker_id)
    seed = job.base_seed + job.worker_id
    _place.info = WorkerInfo(job.worker_id, job.num_workers, seed, job.dataset)
    if job.init_fn is not None:
        job.init_fn(job.worker_id)


def _fetcher(job: Job) -> Any:
    return _DatasetKind.create_fetcher(
        job.kind, job.dataset, job.auto_collation, job.collate_fn, job.drop_last
    )
