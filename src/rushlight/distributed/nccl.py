"""Collectives of GPU tensors by NCCL, through CuPy: one communicator a group.

They run on the current stream, in the order in which they are called, as kernels do: what is
computed next sees the result, and the host waits for nothing: `wait()` returns at once. A watchdog
ends what another process keeps waiting too long.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, Final

from rushlight.arrays import nccl as gpu
from rushlight.arrays.host import put_off
from rushlight.autograd.grad_mode import no_grad
from rushlight.autograd.graph import increment_version
from rushlight.distributed.errors import DistBackendError
from rushlight.distributed.reduce_op import ReduceOp
from rushlight.distributed.watchdog import Watchdog
from rushlight.distributed.work import Work, finished
from rushlight.ops.registry import functions

__all__ = ["NCCLTransport"]
__dir__ = __all__.copy

# NCCL's numbers of dtypes, and how many of them an element is.
_TYPES: Final = {
    "int8": (0, 1), "uint8": (1, 1), "bool": (1, 1), "int32": (2, 1), "uint32": (3, 1),
    "int64": (4, 1), "uint64": (5, 1), "float16": (6, 1), "float32": (7, 1), "float64": (8, 1),
    "bfloat16": (9, 1), "complex64": (7, 2), "complex128": (8, 2),
}  # fmt: skip
_BYTES: Final = 1
_OPS: Final = {
    ReduceOp.SUM: 0, ReduceOp.PRODUCT: 1, ReduceOp.MAX: 2, ReduceOp.MIN: 3, ReduceOp.AVG: 4,
}  # fmt: skip


class NCCLTransport:
    """The collectives of one group. Ranks here are ranks in the group."""

    name = "nccl"

    def __init__(
        self, store: Any, rank: int, ranks: Sequence[int], label: str, seconds: float,
        attendance: Any = None,
    ) -> None:  # fmt: skip
        self._nccl = nccl = gpu.library()
        size = len(ranks)
        self.rank, self.size, self.label = rank, size, label
        if rank == 0:
            store.set("rushlight/nccl", _packed(nccl.get_unique_id()))
        number = _unpacked(store.get("rushlight/nccl"))
        try:
            self._communicator = nccl.NcclCommunicator(size, number, rank)
        except nccl.NcclError as error:
            raise DistBackendError(
                f"NCCL error in {label}: {error}\nEach rank needs a GPU of its own: call "
                "torch.cuda.set_device(local_rank) before init_process_group."
            ) from error
        self._watchdog = (
            Watchdog(self._communicator.abort, ranks, attendance, seconds, label)
            if size > 1
            else None
        )

    @property
    def seconds(self) -> float:
        """How long a collective may take."""
        return 0.0 if self._watchdog is None else self._watchdog.seconds

    @seconds.setter
    def seconds(self, value: float) -> None:
        if self._watchdog is not None:
            self._watchdog.seconds = value

    def _run(self, name: str, result: list[Any], call: Callable[[int], None]) -> Work:
        watchdog = self._watchdog
        if watchdog is not None:
            watchdog.check()
        stream = gpu.stream()
        try:
            call(int(stream.ptr))
        except self._nccl.NcclError as error:
            raise DistBackendError(f"NCCL error in {name} of {self.label}: {error}") from error
        if watchdog is None:
            return finished(result)
        watchdog.started(name, gpu.mark(stream))
        return Work(lambda: True, watchdog.check, result)

    def _kind(self, tensor: Any) -> tuple[int, int]:
        name = str(tensor.dtype).removeprefix("torch.")
        if name not in _TYPES:
            raise RuntimeError(f"Unconvertible NCCL type {tensor.dtype}")
        kind, parts = _TYPES[name]
        return kind, parts * tensor.numel()

    def _number(self, op: ReduceOp) -> int:
        if op not in _OPS:
            raise ValueError(f"Cannot use ReduceOp.{op.name} with NCCL")
        return _OPS[op]

    # --- reductions ---
    def all_reduce(self, tensor: Any, op: ReduceOp, alone: bool) -> Work:
        at = _dense(tensor)
        kind, count = self._kind(tensor)

        def call(stream: int) -> None:
            p = _pointer(at)
            self._communicator.allReduce(p, p, count, kind, self._number(op), stream)
            _home(tensor, at)

        return self._run("all_reduce", [tensor], call)

    def reduce(self, tensor: Any, root: int, op: ReduceOp, alone: bool) -> Work:
        at = _dense(tensor)
        kind, count = self._kind(tensor)

        def call(stream: int) -> None:
            p = _pointer(at)
            self._communicator.reduce(p, p, count, kind, self._number(op), root, stream)
            if self.rank == root:
                _home(tensor, at)

        return self._run("reduce", [tensor], call)

    def reduce_scatter(self, output: Any, inputs: Sequence[Any], op: ReduceOp, alone: bool) -> Work:
        given = _row(inputs)
        at = _dense(output)
        kind, count = self._kind(output)

        def call(stream: int) -> None:
            self._communicator.reduceScatter(
                _pointer(given), _pointer(at), count, kind, self._number(op), stream
            )
            _home(output, at)

        return self._run("reduce_scatter", [output], call)

    # --- moves ---
    def broadcast(self, tensor: Any, root: int, alone: bool) -> Work:
        at = _dense(tensor)

        def call(stream: int) -> None:
            p = _pointer(at)
            self._communicator.broadcast(p, p, tensor.nbytes, _BYTES, root, stream)
            _home(tensor, at)

        return self._run("broadcast", [tensor], call)

    def all_gather(self, outputs: Sequence[Any], tensor: Any, alone: bool) -> Work:
        given = _dense(tensor)
        row = _dense(outputs[0]) if len(outputs) == 1 else _row(outputs)

        def call(stream: int) -> None:
            self._communicator.allGather(
                _pointer(given), _pointer(row), given.nbytes, _BYTES, stream
            )
            _spread(row, outputs)

        return self._run("all_gather", list(outputs), call)

    def gather(self, outputs: Sequence[Any] | None, tensor: Any, root: int, alone: bool) -> Work:
        given = _dense(tensor)
        into = list(outputs or ()) if self.rank == root else []
        at = [_dense(t) for t in into]

        def call(stream: int) -> None:
            self._nccl.groupStart()
            for i, t in enumerate(at):
                self._communicator.recv(_pointer(t), t.nbytes, _BYTES, i, stream)
            self._communicator.send(_pointer(given), given.nbytes, _BYTES, root, stream)
            self._nccl.groupEnd()
            for t, landed in zip(into, at):
                _home(t, landed)

        return self._run("gather", into or [tensor], call)

    def scatter(self, tensor: Any, inputs: Sequence[Any] | None, root: int, alone: bool) -> Work:
        at = _dense(tensor)
        given = [_dense(t) for t in inputs or ()] if self.rank == root else []

        def call(stream: int) -> None:
            self._nccl.groupStart()
            for i, t in enumerate(given):
                self._communicator.send(_pointer(t), t.nbytes, _BYTES, i, stream)
            self._communicator.recv(_pointer(at), at.nbytes, _BYTES, root, stream)
            self._nccl.groupEnd()
            _home(tensor, at)

        return self._run("scatter", [tensor], call)

    def all_to_all(self, outputs: Sequence[Any], inputs: Sequence[Any], alone: bool) -> Work:
        given = [_dense(t) for t in inputs]
        at = [_dense(t) for t in outputs]

        def call(stream: int) -> None:
            self._nccl.groupStart()
            for i, (sent, got) in enumerate(zip(given, at)):
                self._communicator.send(_pointer(sent), sent.nbytes, _BYTES, i, stream)
                self._communicator.recv(_pointer(got), got.nbytes, _BYTES, i, stream)
            self._nccl.groupEnd()
            for t, landed in zip(outputs, at):
                _home(t, landed)

        return self._run("all_to_all", list(outputs), call)

    def barrier(self, alone: bool, seconds: float | None = None) -> Work:
        token = functions["zeros"]((1,), device="cuda")
        work = self.all_reduce(token, ReduceOp.SUM, alone)
        gpu.stream().synchronize()  # returns when the communicator is aborted
        if self._watchdog is not None:
            self._watchdog.check()
        return work

    # --- messages ---
    def send(self, tensor: Any, to: int, tag: int, alone: bool) -> Work:
        given = _dense(tensor)
        return self._run(
            "send",
            [tensor],
            lambda s: self._communicator.send(_pointer(given), given.nbytes, _BYTES, to, s),
        )

    def receive(self, tensor: Any, source: int | None, tag: int, alone: bool) -> Work:
        if source is None:
            raise RuntimeError("NCCL receives from a rank that is named: give src")
        at = _dense(tensor)

        def call(stream: int) -> None:
            self._communicator.recv(_pointer(at), at.nbytes, _BYTES, source, stream)
            _home(tensor, at)

        return self._run("receive", [tensor], call)

    def close(self) -> None:
        """Give the communicator back."""
        if self._watchdog is not None:
            self._watchdog.close()
            if self._watchdog.trouble:
                return  # it was aborted
        self._communicator.destroy()


def _packed(number: Any) -> bytes:
    """The number of a communicator: bytes in CuPy 14, a tuple of signed ones before."""
    if isinstance(number, bytes):
        return b"b" + base64.b64encode(number)
    return b"t" + base64.b64encode(bytes(x & 0xFF for x in number))


def _unpacked(packed: bytes) -> Any:
    number = base64.b64decode(packed[1:])
    return number if packed[:1] == b"b" else tuple(x - 256 if x > 127 else x for x in number)


def _dense(tensor: Any) -> Any:
    """A tensor in one piece: itself, or a copy."""
    if tensor.is_contiguous() and not put_off(tensor._array):
        return tensor.detach()
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _pointer(tensor: Any) -> int:
    return gpu.address(tensor._array)


def _home(tensor: Any, at: Any) -> None:
    """Bring what NCCL has written to the tensor it is for; autograd is told of the write."""
    if _pointer(tensor) == _pointer(at):
        increment_version(tensor)
        return
    with no_grad():
        tensor.detach().copy_(at)


def _row(tensors: Sequence[Any]) -> Any:
    if len(tensors) == 1:
        return _dense(tensors[0])
    return functions["cat"]([t.detach().reshape(-1) for t in tensors])


def _spread(row: Any, outputs: Sequence[Any]) -> None:
    if len(outputs) == 1:
        _home(outputs[0], row)
        return
    with no_grad():
        for part, t in zip(row.split([t.numel() for t in outputs]), outputs):
            t.detach().copy_(part.reshape(t.shape))
