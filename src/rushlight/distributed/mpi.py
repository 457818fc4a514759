"""Collectives of host tensors by MPI: one communicator a group.

Data that is only moved goes as bytes, whatever its dtype. What is reduced goes as MPI's type of the
same name; float16, bfloat16 and the 8-bit floats are reduced in float32 and rounded once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from rushlight import dtypes
from rushlight.autograd.grad_mode import no_grad
from rushlight.distributed import debug_level as debug
from rushlight.distributed.buffers import (
    bytes_of,
    flat,
    host_copy,
    landing,
    row_of,
    write_back,
)
from rushlight.distributed.errors import DistBackendError
from rushlight.distributed.reduce_op import ReduceOp
from rushlight.distributed.work import Work
from rushlight.distributed.world import World

__all__ = ["MPITransport"]
__dir__ = __all__.copy

_TYPES: Final = {
    "float32": "FLOAT", "float64": "DOUBLE", "int8": "INT8_T", "int16": "INT16_T",
    "int32": "INT32_T", "int64": "INT64_T", "uint8": "UINT8_T", "uint16": "UINT16_T",
    "uint32": "UINT32_T", "uint64": "UINT64_T", "complex64": "C_FLOAT_COMPLEX",
    "complex128": "C_DOUBLE_COMPLEX",
}  # fmt: skip
_OPS: Final = {
    ReduceOp.SUM: "SUM", ReduceOp.AVG: "SUM", ReduceOp.PRODUCT: "PROD", ReduceOp.MIN: "MIN",
    ReduceOp.MAX: "MAX", ReduceOp.BAND: "BAND", ReduceOp.BOR: "BOR", ReduceOp.BXOR: "BXOR",
}  # fmt: skip
# Of truth values, which MPI has as bytes of 0 and 1.
_LOGIC: Final = {"SUM": "MAX", "PROD": "MIN"}


class MPITransport:
    """The collectives of one group. Ranks here are ranks in the group."""

    name = "mpi"

    def __init__(
        self, world: World, ranks: Sequence[int], label: str, seconds: float, store: Any
    ) -> None:
        self.world = world
        self.store = store
        self.ranks = list(ranks)
        self.label = label
        self.seconds = seconds
        self.count = 0  # collectives so far
        mpi = world.mpi
        everyone = world.communicator.Get_group()
        self.communicator = world.communicator.Create_group(
            everyone.Incl(self.ranks), tag=_tag_of(label)
        )
        self.communicator.Set_errhandler(mpi.ERRORS_RETURN)
        self.rank = int(self.communicator.Get_rank())
        self.size = len(self.ranks)

    # --- starting ---
    def _start(
        self, name: str, begin: Callable[[Any], Sequence[Any]], finish: Callable[[], None] | None,
        result: list[Any], alone: bool, seconds: float | None = None, peers: Any = None,
        status: Any = None, compared: Sequence[Any] = (),
    ) -> Work:  # fmt: skip
        """Work that `begin` starts; `alone` says that the program goes on meanwhile.

        `status` is told where a message came from. `compared` are the tensors that have to be alike
        in all processes.
        """
        world = self.world
        self.count += 1
        what = f"{name} #{self.count} of {self.label}"
        limit = self.seconds if seconds is None else seconds
        if peers is None and debug.get_debug_level() is debug.DebugLevel.DETAIL:
            call = f"{name} of {debug.describe(compared)}"
            debug.compare(self.store, self.ranks, self.rank, self.count, call, limit)
        requests = list(begin(self.communicator))
        ranks = self.ranks if peers is None else peers
        test = world.mpi.Request.Testall
        statuses = None if status is None else [status]

        def watch(start: float, given: float | None) -> None:
            seconds = limit if given is None else given
            if world.is_helper():
                # a receive may be posted long before its message is due; a collective is due
                seconds = seconds if peers is None else math.inf
            elif world.busy != what:
                world.busy, world.since = what, start
            world.watch(what, ranks, seconds, start)

        def home() -> None:
            if world.busy == what:
                world.busy = ""
            if finish is not None:
                finish()

        def poll() -> bool:
            try:
                return bool(test(requests, statuses))
            except world.mpi.Exception as error:
                raise DistBackendError(
                    f"MPI error in {what} on rank {world.rank}: {error.Get_error_string()}\nDo all "
                    "processes call it with tensors of the same size? With "
                    "TORCH_DISTRIBUTED_DEBUG=DETAIL they compare before each collective."
                ) from error

        source = None if status is None else lambda: int(status.Get_source())
        work = Work(poll, home, result, watch, source)
        if alone:
            world.help(work)
        return work

    def _typed(self, tensor: Any) -> list[Any]:
        row = flat(tensor)
        return [row, getattr(self.world.mpi, _TYPES[row.dtype.name])]

    def _op(self, op: ReduceOp, tensor: Any) -> Any:
        name = _OPS[op]
        if tensor.dtype is dtypes.bool_:
            name = _LOGIC.get(name, name)
        return getattr(self.world.mpi, name)

    # --- reductions ---
    def all_reduce(self, tensor: Any, op: ReduceOp, alone: bool) -> Work:
        """Reduce a tensor of all ranks, and give the result to all."""
        at = _for_reduction(landing(tensor))
        mpi = self.world.mpi

        def begin(c: Any) -> list[Any]:
            return [c.Iallreduce(mpi.IN_PLACE, self._typed(at), self._op(op, tensor))]

        return self._start(
            "all_reduce", begin, self._home(tensor, at, op), [tensor], alone, compared=[tensor]
        )

    def reduce(self, tensor: Any, root: int, op: ReduceOp, alone: bool) -> Work:
        """Reduce a tensor of all ranks; `root` gets the result."""
        at = _for_reduction(landing(tensor) if self.rank == root else host_copy(tensor))
        mpi = self.world.mpi

        def begin(c: Any) -> list[Any]:
            send = mpi.IN_PLACE if self.rank == root else self._typed(at)
            recv = self._typed(at) if self.rank == root else None
            return [c.Ireduce(send, recv, self._op(op, tensor), root)]

        finish = self._home(tensor, at, op) if self.rank == root else None
        return self._start("reduce", begin, finish, [tensor], alone, compared=[tensor])

    def reduce_scatter(self, output: Any, inputs: Sequence[Any], op: ReduceOp, alone: bool) -> Work:
        """Reduce a list of tensors of all ranks; rank i gets the i-th."""
        row = row_of(inputs)[0] if len(inputs) > 1 else host_copy(inputs[0])
        at = _for_reduction(row)
        counts = [t.numel() for t in inputs] if len(inputs) > 1 else None
        into = _for_reduction(landing(output, load=False))

        def begin(c: Any) -> list[Any]:
            operation = self._op(op, output)
            if counts is None:
                return [c.Ireduce_scatter_block(self._typed(at), self._typed(into), operation)]
            return [c.Ireduce_scatter(self._typed(at), self._typed(into), counts, operation)]

        home = self._home(output, into, op)
        return self._start(
            "reduce_scatter", begin, _keep(home, at), [output], alone, compared=inputs
        )

    def _home(self, tensor: Any, at: Any, op: ReduceOp) -> Callable[[], None]:
        """Bring a reduced tensor to where it belongs."""

        def home() -> None:
            with no_grad():
                if op is ReduceOp.AVG:
                    if at.is_floating_point() or at.is_complex():
                        at.div_(self.size)
                    else:
                        at.copy_(at.div(self.size, rounding_mode="trunc"))
                if at.dtype is tensor.dtype:
                    write_back(tensor, at)
                else:
                    tensor.detach().copy_(at)

        return home

    # --- moves ---
    def broadcast(self, tensor: Any, root: int, alone: bool) -> Work:
        """Give the tensor of `root` to all."""
        at = host_copy(tensor) if self.rank == root else landing(tensor, load=False)

        def begin(c: Any) -> list[Any]:
            return [c.Ibcast([bytes_of(at), self.world.mpi.BYTE], root)]

        back = None if self.rank == root else functools.partial(write_back, tensor, at)
        return self._start("broadcast", begin, _keep(back, at), [tensor], alone, compared=[tensor])

    def all_gather(self, outputs: Sequence[Any], tensor: Any, alone: bool) -> Work:
        """Give the tensors of all ranks to all: rank i's into the i-th output.

        One output takes all of them, one behind the other.
        """
        given = host_copy(tensor)
        row, back, counts = _rows_for(outputs, given.nbytes, self.size)

        def begin(c: Any) -> list[Any]:
            byte = self.world.mpi.BYTE
            if len(set(counts)) == 1:
                return [c.Iallgather([bytes_of(given), byte], [bytes_of(row), byte])]
            return [c.Iallgatherv([bytes_of(given), byte], [bytes_of(row), counts, byte])]

        return self._start(
            "all_gather", begin, _keep(back, given, row), list(outputs), alone, compared=outputs
        )

    def gather(self, outputs: Sequence[Any] | None, tensor: Any, root: int, alone: bool) -> Work:
        """Give the tensors of all ranks to `root`."""
        given = host_copy(tensor)
        row, back, counts = None, None, [given.nbytes] * self.size
        if self.rank == root:
            row, back, counts = _rows_for(outputs or (), given.nbytes, self.size)

        def begin(c: Any) -> list[Any]:
            byte = self.world.mpi.BYTE
            into = None if row is None else [bytes_of(row), counts, byte]
            return [c.Igatherv([bytes_of(given), byte], into, root)]

        return self._start(
            "gather", begin, _keep(back, given, row), list(outputs or [tensor]), alone
        )

    def scatter(self, tensor: Any, inputs: Sequence[Any] | None, root: int, alone: bool) -> Work:
        """Give the i-th of the tensors of `root` to rank i."""
        at = landing(tensor, load=False)
        row = row_of(inputs or ())[0] if self.rank == root else None

        def begin(c: Any) -> list[Any]:
            byte = self.world.mpi.BYTE
            send = None if row is None else [bytes_of(row), byte]
            return [c.Iscatter(send, [bytes_of(at), byte], root)]

        home = functools.partial(write_back, tensor, at)
        return self._start(
            "scatter", begin, _keep(home, at, row), [tensor], alone, compared=[tensor]
        )

    def all_to_all(self, outputs: Sequence[Any], inputs: Sequence[Any], alone: bool) -> Work:
        """Give the j-th of the inputs of rank i to rank j, as its i-th output."""
        sent = row_of(inputs)[0]
        row, bring_back = row_of(outputs, load=False)

        def begin(c: Any) -> list[Any]:
            byte = self.world.mpi.BYTE
            send = [bytes_of(sent), [t.nbytes for t in inputs], byte]
            return [c.Ialltoallv(send, [bytes_of(row), [t.nbytes for t in outputs], byte])]

        return self._start("all_to_all", begin, _keep(bring_back, sent, row), list(outputs), alone)

    def barrier(self, alone: bool, seconds: float | None = None) -> Work:
        """Wait until all have come here."""
        return self._start("barrier", lambda c: [c.Ibarrier()], None, [], alone, seconds)

    # --- messages ---
    def send(self, tensor: Any, to: int, tag: int, alone: bool) -> Work:
        """Send a tensor to one rank."""
        given = host_copy(tensor)

        def begin(c: Any) -> list[Any]:
            return [c.Isend([bytes_of(given), self.world.mpi.BYTE], to, tag)]

        peers = [self.ranks[to]]
        name = f"send to rank {peers[0]}"
        return self._start(name, begin, _keep(None, given), [tensor], alone, peers=peers)

    def receive(self, tensor: Any, source: int | None, tag: int, alone: bool) -> Work:
        """Receive a tensor from one rank, or from any."""
        mpi = self.world.mpi
        at = landing(tensor, load=False)

        def begin(c: Any) -> list[Any]:
            sender = mpi.ANY_SOURCE if source is None else source
            return [c.Irecv([bytes_of(at), mpi.BYTE], sender, tag)]

        peers = self.ranks if source is None else [self.ranks[source]]
        name = "recv" if source is None else f"recv from rank {peers[0]}"
        home = functools.partial(write_back, tensor, at)
        return self._start(
            name, begin, _keep(home, at), [tensor], alone, peers=peers, status=mpi.Status()
        )

    def close(self) -> None:
        """Give the communicator back, if all are there to do so."""
        # Free is collective, and waits: at the end of a program MPI frees what is left.


def _tag_of(label: str) -> int:
    """A number for the messages that make a communicator; the same in all processes."""
    return sum(ord(c) * (i + 1) for i, c in enumerate(label)) % 32000


def _for_reduction(tensor: Any) -> Any:
    """A tensor with numbers that MPI can reduce."""
    if tensor.dtype is dtypes.bool_:
        return tensor.to(dtypes.uint8)
    name = flat(tensor).dtype.name
    if name in _TYPES:
        return tensor
    if tensor.is_floating_point():
        return tensor.to(dtypes.float32)
    raise RuntimeError(f"Invalid scalar type: MPI does not reduce {tensor.dtype}")


def _rows_for(
    outputs: Sequence[Any], nbytes: int, size: int
) -> tuple[Any, Callable[[], None], list[int]]:
    """Memory for what comes from all ranks, how it gets to the outputs, the bytes of each rank."""
    if len(outputs) == 1 and size != 1:
        row = landing(outputs[0], load=False)
        return row, functools.partial(write_back, outputs[0], row), [nbytes] * size
    row, back = row_of(outputs, load=False)
    return row, back, [t.nbytes for t in outputs]


def _keep(finish: Callable[[], None] | None, *memory: Any) -> Callable[[], None]:
    """`finish`, holding on to memory that MPI uses until then."""

    def home(kept: Any = memory) -> None:
        if finish is not None:
            finish()

    return home
