"""`DataLoader`: batches of a dataset, made here or by worker processes.

Random numbers are drawn at the moments at which PyTorch draws them, so that one seed gives the same
order of samples and the same numbers in the workers.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import wait
from typing import Any, Generic, NoReturn, Self, TypeAlias, TypeVar, cast

from rushlight.arrays.device import cuda_count
from rushlight.utils.data._utils import channel
from rushlight.utils.data._utils.collate import default_collate, default_convert
from rushlight.utils.data._utils.fetch import _DatasetKind
from rushlight.utils.data._utils.pin_memory import pin_memory as _pinned
from rushlight.utils.data._utils.worker import (
    MP_STATUS_CHECK_INTERVAL,
    ExceptionWrapper,
    Job,
    _IterableDatasetStopIteration,
    _ResumeIteration,
    _worker_loop,
    get_worker_info,
)
from rushlight.utils.data.dataset import IterableDataset
from rushlight.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    draw_seed,
)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]
__dir__ = __all__.copy

_T_co = TypeVar("_T_co", covariant=True)

# PyTorch's names for what is called in a worker, which libraries annotate with
_collate_fn_t: TypeAlias = Callable[[list[Any]], Any]
_worker_init_fn_t: TypeAlias = Callable[[int], None]

# What may not change once a loader exists: others were made from them.
_FIXED = {
    "batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers",
}  # fmt: skip


class _InfiniteConstantSampler(Sampler[None]):
    """None for ever: samples of an iterable dataset have no indices."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


class DataLoader(Generic[_T_co]):
    """DataLoader(dataset, batch_size=1, shuffle=None, sampler=None, batch_sampler=None,
    num_workers=0, collate_fn=None, pin_memory=False, drop_last=False, timeout=0,
    worker_init_fn=None, multiprocessing_context=None, generator=None, *, prefetch_factor=None,
    persistent_workers=False, pin_memory_device='', in_order=True)

    Iterates over the batches of a dataset.

    Args:
        dataset: what has `__getitem__` and `__len__`, or an `IterableDataset`.
        batch_size: samples in a batch; None: single samples, not batched.
        shuffle: whether to draw a new random order for each pass.
        sampler: gives the order instead: any iterable of indices.
        batch_sampler: gives the batches: any iterable of lists of indices.
        num_workers: processes that load ahead; 0: batches are made when asked for.
        collate_fn: makes a batch of a list of samples.
        drop_last: whether to leave a last batch out that is not full.
        timeout: seconds to wait for a worker's batch; 0: for ever.
        worker_init_fn: called with its number in each worker, when it starts.
        multiprocessing_context: how workers start: 'fork', 'spawn', 'forkserver' or a context.
        generator: where the order's random numbers come from.
        prefetch_factor: batches that each worker prepares ahead (2).
        persistent_workers: whether workers live on for the next pass.
        pin_memory, pin_memory_device: taken and of no effect.
        in_order: whether batches of several workers come in the sampler's order.

    >>> loader = torch.utils.data.DataLoader(range(10), batch_size=4, drop_last=True)
    >>> len(loader), list(loader)
    (2, [tensor([0, 1, 2, 3]), tensor([4, 5, 6, 7])])
    """

    dataset: Any
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Any
    batch_sampler: Any
    pin_memory_device: str
    prefetch_factor: int | None
    _iterator: _BaseDataLoaderIter | None = None
    __initialized = False

    def __init__(
        self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None, batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0, collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False, drop_last: bool = False, timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None, multiprocessing_context: Any = None,
        generator: Any = None, *, prefetch_factor: int | None = None,
        persistent_workers: bool = False, pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        prefetch_factor = _checked_options(
            num_workers, timeout, prefetch_factor, persistent_workers
        )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        if isinstance(dataset, IterableDataset):
            self._dataset_kind = _DatasetKind.Iterable
            _refuse_order(shuffle, sampler, batch_sampler)
        else:
            self._dataset_kind = _DatasetKind.Map
            shuffle = bool(shuffle)
        _check_exclusive(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(cast(Any, sampler), batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self.check_worker_number_rationality()

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    @property
    def multiprocessing_context(self) -> Any:
        """What makes the worker processes."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            context = _checked_context(context, self.num_workers)
        self.__multiprocessing_context = context

    def __setattr__(self, attr: str, val: Any) -> None:
        if self.__initialized and attr in _FIXED:
            raise ValueError(
                f"{attr} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(attr, val)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn of more workers than there are processors for them."""
        if not self.num_workers:
            return
        most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if most is not None and self.num_workers > most:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our "
                f"suggested max number of worker in current system is {most}, which is smaller "
                "than what this DataLoader is going to create. Please be aware that excessive "
                "worker creation might get DataLoader running slow or even freeze, lower the "
                "worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )


# --- what the constructor refuses -----------------------------------------------------------------
def _checked_options(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> int | None:
    """`prefetch_factor` with its default; ValueError for what cannot be."""
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 "
            "to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if num_workers > 0 and prefetch_factor is None:
        prefetch_factor = 2
    elif prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    return prefetch_factor


def _refuse_order(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """An iterable dataset has its own order."""
    given = {"sampler": sampler, "batch_sampler": batch_sampler}
    if shuffle not in (False, None):
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified shuffle option, but got "
            f"shuffle={shuffle}"
        )
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                f"{name}={value}"
            )


def _check_exclusive(
    batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: Any
) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and "
                "drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )


def _checked_context(context: Any, num_workers: int) -> Any:
    if num_workers <= 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > "
            f"0), but got num_workers={num_workers}"
        )
    if isinstance(context, str):
        known = multiprocessing.get_all_start_methods()
        if context not in known:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{known!r}, but got multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={context}"
        )
    return context


# --- iterators ------------------------------------------------------------------------------------
class _BaseDataLoaderIter:
    """One pass over the data."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._pin_memory = _pins(loader)
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = draw_seed(loader.generator)
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0

    def __iter__(self) -> Self:
        return self

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        data = self._next_data()
        self._num_yielded += 1
        said = self._IterableDataset_len_called
        if (
            said is not None
            and self._dataset_kind == _DatasetKind.Iterable
            and self._num_yielded > said
        ):
            text = (
                f"Length of IterableDataset {self._dataset} was reported to be {said}(when "
                f"accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
            )
            if self._num_workers > 0:
                text += (
                    "For multiprocessing data-loading, this could be caused by not properly "
                    "configuring the IterableDataset replica at each worker. Please see "
                    "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset "
                    "for examples."
                )
            warnings.warn(text, stacklevel=2)
        return data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


def _pins(loader: DataLoader[Any]) -> bool:
    """Whether batches are pinned for a GPU; says why not."""
    if loader.pin_memory_device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,"
            f"ignore pin_memory_device='{loader.pin_memory_device}'.",
            stacklevel=5,
        )
    if loader.pin_memory and cuda_count() == 0:
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned "
            "memory won't be used.",
            stacklevel=5,
        )
        return False
    return loader.pin_memory


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Makes each batch when it is asked for."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if self._num_workers != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires num_workers == 0")
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn,
            self._drop_last,
        )  # fmt: skip

    def _next_data(self) -> Any:
        data = self._dataset_fetcher.fetch(self._next_index())
        return _pinned(data) if self._pin_memory else data


# Note [Whose turn]
# Batches are numbered as they are asked for: `_send_idx` is the next number, `_rcvd_idx` the next
# to hand out. `_tasks` says which worker has a number. Every worker answers in the order in which
# it was asked, so in order the loader reads from the one channel on which the next number comes,
# and the others wait in theirs.
class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Has worker processes make batches ahead."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._shutdown = False
        self._pid = os.getpid()
        self._prefetch_factor = loader.prefetch_factor or 0
        self._in_order = loader.in_order
        self._workers: list[Any] = []
        self._channels: list[Any] = []
        # Not `__del__`: where the iterator is part of a cycle, its connections may be finalised
        # before it, and their descriptors be someone else's by then. This holds on to them.
        self._end = weakref.finalize(self, _end_workers, self._channels, self._workers, self._pid)
        if self._num_workers <= 0 or self._prefetch_factor <= 0:
            raise AssertionError("num_workers and prefetch_factor must be greater than 0")
        context = loader.multiprocessing_context or multiprocessing.get_context()
        try:
            for worker_id in range(self._num_workers):
                self._start(context, worker_id, loader.worker_init_fn)
        except BaseException:
            self._shutdown_workers()
            raise
        self._reset(loader, first_iter=True)

    def _start(self, context: Any, worker_id: int, init_fn: Any) -> None:
        job = Job(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn,
            self._drop_last, self._base_seed, init_fn, worker_id, self._num_workers,
            self._persistent_workers,
        )  # fmt: skip
        ours, theirs = context.Pipe()
        try:
            worker = context.Process(target=_worker_loop, args=(job, theirs), daemon=True)
            worker.start()
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()  # so that the channel ends when the worker does
        self._workers.append(worker)
        self._channels.append(ours)

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._send_idx = 0
        self._rcvd_idx = 0
        self._tasks: dict[int, int] = {}
        self._active = [True] * self._num_workers
        self._load = [0] * self._num_workers
        self._turns = itertools.cycle(range(self._num_workers))
        if not first_iter:
            self._resume()
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _resume(self) -> None:
        """Tell workers that a new pass begins; what they had left of the last one is dropped."""
        for worker_id in range(self._num_workers):
            self._send(worker_id, _ResumeIteration())
        for worker_id in range(self._num_workers):
            while not isinstance(self._receive(worker_id)[1], _ResumeIteration):
                pass

    def _send(self, worker_id: int, message: Any) -> None:
        try:
            channel.send_packet(self._channels[worker_id], channel.pack(message))
        except OSError:
            self._tell_of_death(worker_id)

    def _try_put_index(self) -> None:
        """Ask the worker whose turn it is for the next batch, if there is one."""
        try:
            index = self._next_index()
        except StopIteration:
            return
        for worker_id in itertools.islice(self._turns, self._num_workers):
            room = self._in_order or self._load[worker_id] < self._prefetch_factor
            if self._active[worker_id] and room:
                break
        else:
            return
        self._send(worker_id, (self._send_idx, index))
        self._tasks[self._send_idx] = worker_id
        self._load[worker_id] += 1
        self._send_idx += 1

    def _next_data(self) -> Any:
        while True:
            # numbers that a worker was asked for and, at the end of its dataset, did not answer
            while self._rcvd_idx < self._send_idx and self._is_void(self._rcvd_idx):
                self._tasks.pop(self._rcvd_idx, None)
                self._rcvd_idx += 1
            if not self._tasks:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            number, data = self._next_answer()
            worker_id = self._tasks.pop(number)
            self._load[worker_id] -= 1
            if isinstance(data, _IterableDatasetStopIteration):
                self._retire(worker_id)
                self._try_put_index()
                continue
            if self._in_order:
                self._rcvd_idx += 1
            self._try_put_index()
            if isinstance(data, ExceptionWrapper):
                data.reraise()
            return _pinned(data) if self._pin_memory else data

    def _is_void(self, number: int) -> bool:
        worker_id = self._tasks.get(number)
        return worker_id is None or not self._active[worker_id]

    def _next_answer(self) -> tuple[int, Any]:
        """The next batch in the sampler's order, or the first that any worker has ready."""
        if not self._in_order:
            number, data = self._receive(None)
            return number, data
        wanted = self._rcvd_idx
        worker_id = self._tasks[wanted]
        number, data = self._receive(worker_id)
        if number != wanted:
            raise AssertionError(f"worker {worker_id} sent batch {number}, not {wanted}")
        return number, data

    def _retire(self, worker_id: int) -> None:
        """The dataset of a worker has come to its end."""
        self._active[worker_id] = False
        if not self._in_order:
            mine = [number for number, owner in self._tasks.items() if owner == worker_id]
            for number in mine:
                del self._tasks[number]
        if not self._persistent_workers:
            channel.hang_up(self._channels[worker_id])

    def _receive(self, worker_id: int | None) -> tuple[int, Any]:
        """A worker's next answer; or of any worker, if that is None."""
        ends = {self._channels[w]: w for w in self._waited(worker_id)}
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            left = MP_STATUS_CHECK_INTERVAL
            if deadline is not None:
                left = max(min(left, deadline - time.monotonic()), 0)
            ready: list[Any] = wait(list(ends), left)
            if ready:
                try:
                    answer: tuple[int, Any] = channel.receive(ready[0])
                except (EOFError, OSError):
                    self._tell_of_death(ends[ready[0]])
                return answer
            if deadline is not None and time.monotonic() >= deadline:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            for w in ends.values():
                if not self._workers[w].is_alive():
                    self._tell_of_death(w)

    def _waited(self, worker_id: int | None) -> list[int]:
        if worker_id is not None:
            return [worker_id]
        return sorted(set(self._tasks.values()))

    def _tell_of_death(self, worker_id: int) -> NoReturn:
        """RuntimeError for a worker that ended by itself."""
        worker = self._workers[worker_id]
        worker.join(MP_STATUS_CHECK_INTERVAL)
        dead = [w for w in self._workers if w.exitcode is not None and w.exitcode != 0]
        pids = ", ".join(str(w.pid) for w in dead or [worker])
        cause = RuntimeError(_epitaph(worker.pid, worker.exitcode))
        self._shutdown_workers()
        raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from cause

    def _shutdown_workers(self) -> None:
        """End all workers, once."""
        if self._pid == os.getpid():
            self._shutdown = True
            self._end()


def _end_workers(channels: list[Any], workers: list[Any], pid: int) -> None:
    """End workers: politely, and after some seconds by force."""
    if pid != os.getpid():
        return
    for end in channels:
        if not end.closed:
            channel.hang_up(end)
    for end_worker in (None, "terminate", "kill"):
        for worker in workers:
            if end_worker is not None and worker.is_alive():
                getattr(worker, end_worker)()
        for worker in workers:
            worker.join(MP_STATUS_CHECK_INTERVAL)


def _epitaph(pid: int, exitcode: int | None) -> str:
    """How a worker ended."""
    who = f"DataLoader worker (pid {pid})"
    if exitcode is not None and exitcode < 0:
        text = f"{who} is killed by signal: {signal.strsignal(-exitcode)}. "
        if -exitcode == getattr(signal, "SIGBUS", 0):
            text += "It is possible that dataloader's workers are out of shared memory."
        return text
    return (
        f"{who} exited unexpectedly with exit code {exitcode}. Details are lost due to "
        "multiprocessing. Rerunning with num_workers=0 may give better error trace."
    )
