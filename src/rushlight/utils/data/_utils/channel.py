"""The channel between a `DataLoader` and one of its workers: a socket for both directions.

A message is a pickle. What the arrays in it hold does not go through the socket: it is written to
a file without a name, in memory (see `arrays.shared`), whose descriptor goes with the message, and
the other process looks at the same memory. A message that is never read leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import select
import socket
from multiprocessing import reduction
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import making, shared
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import is_array
from rushlight.core.graph import TensorBase, requires_grad
from rushlight.tensor import Tensor
from rushlight.tensor_memory import NON_LEAF as _NON_LEAF
from rushlight.tensor_memory import _own_attributes, _root, _unpickled

_FILES: Final = os.name == "posix"
_HUNG_UP: Final = getattr(select, "POLLRDHUP", 0) | getattr(select, "POLLHUP", 0)
_PLAIN: Final = Tensor.__reduce_ex__
Packet = tuple[bytes, list[int], int]  # a pickle, the sizes of its arrays, and their file


class _Pickler(reduction.ForkingPickler):
    """Writes tensors as bytes of their memory, once for all that share it."""

    def __init__(self, file: Any, buffers: list[Any]) -> None:
        out_of_band = buffers.append if _FILES else None
        super().__init__(file, 5, True, out_of_band)
        self._memories: dict[int, tuple[Any, Any]] = {}

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, TensorBase):
            return NotImplemented
        if type(obj).__reduce_ex__ is not _PLAIN or not is_array(obj._array):
            return obj.__reduce_ex__(5)
        if requires_grad(obj) and obj._node is not None:
            raise RuntimeError(_NON_LEAF)
        root, array, offset = _root(obj._array)
        if root.nbytes > 2 * array.nbytes + 1024 and array.nbytes < root.nbytes:
            root = array = v.copy(array)  # the rest of the memory is not worth sending
            offset = 0
        known = self._memories.get(id(root))
        if known is None:
            known = self._memories[id(root)] = root, making.bytes_of(root)
        where = (array.shape, array.strides, offset, dtypes.of(array.dtype))
        state = _own_attributes(obj) or None
        return _unpickled, (type(obj), known[1], where, requires_grad(obj)), state


def pack(message: Any) -> Packet:
    """A message as it goes through the channel."""
    buffers: list[Any] = []
    file = io.BytesIO()
    _Pickler(file, buffers).dump(message)
    fd, sizes = shared.write_buffers(buffers) if buffers else (-1, [])
    return file.getvalue(), sizes, fd


def send_packet(connection: Any, packet: Packet) -> None:
    """Send a message, and close its file."""
    data, sizes, fd = packet
    try:
        connection.send_bytes(pickle.dumps(sizes) + data)
        if fd >= 0:
            reduction.send_handle(connection, fd, None)
    finally:
        if fd >= 0:
            os.close(fd)


def receive(connection: Any) -> Any:
    """The next message. EOFError: the other process is gone."""
    file = io.BytesIO(connection.recv_bytes())
    sizes = pickle.load(file)
    buffers = shared.read_buffers(reduction.recv_handle(connection), sizes) if sizes else None
    return pickle.load(file, buffers=buffers)


def hang_up(connection: Any) -> None:
    """End the channel at once, for both sides, whoever else has inherited this end of it."""
    if os.name == "posix":
        end = socket.socket(fileno=os.dup(connection.fileno()))
        with end, contextlib.suppress(OSError):  # the other side may have been first
            end.shutdown(socket.SHUT_RDWR)
    connection.close()


def is_hung_up(connection: Any) -> bool:
    """Whether the other side has hung up, perhaps with messages still to read."""
    if not _HUNG_UP:
        return False
    poll = select.poll()
    poll.register(connection.fileno(), _HUNG_UP)
    return bool(poll.poll(0))
