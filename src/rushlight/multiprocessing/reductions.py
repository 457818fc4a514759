"""How tensors and storages go to other processes: as shared memory, by its file descriptor.

Two tensors over one memory arrive over one memory, in one message or in several: a process knows
the files it has by their numbers in the file system.

Note [Left behind]
    A descriptor is fetched from the process that sent it, when the message is read. A child process
    that ends before that leaves the memory in a file with a name, which the message tells. Who
    reads the message opens and removes it; what nobody reads is removed when the main process
    ends. Only processes that are killed, or end by `os._exit`, leave nothing.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import itertools
import os
from multiprocessing import context, process, reduction, resource_sharer, util
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import shared
from rushlight.arrays.host import ByteBounds, in_memory, is_array, put_off
from rushlight.core.graph import requires_grad
from rushlight.locks import lock
from rushlight.nn.parameter import Parameter
from rushlight.storage import TypedStorage, UntypedStorage, _restored
from rushlight.tensor import Tensor
from rushlight.tensor_memory import NON_LEAF, _own_attributes, _unpickled, place_of

__all__ = [
    "init_reductions", "rebuild_storage_fd", "rebuild_tensor", "reduce_storage", "reduce_tensor",
]  # fmt: skip
__dir__ = __all__.copy


def reduce_tensor(tensor: Any) -> Any:
    """How a tensor is pickled for another process: its memory's file, and what it shows of it."""
    if requires_grad(tensor) and tensor._node is not None:
        raise RuntimeError(NON_LEAF)
    if not is_array(in_memory(tensor._array)) or tensor._array.size == 0:
        return tensor.__reduce_ex__(2)
    tensor.share_memory_()
    array = in_memory(tensor._array)
    where = place_of(array, ByteBounds(array).offset, put_off(tensor._array))
    file = _reduce_file(array)
    arguments = (type(tensor), *file, where, requires_grad(tensor))
    return rebuild_tensor, arguments, _own_attributes(tensor) or None


def rebuild_tensor(
    cls: Any, handle: Any, nbytes: int, key: shared.Key, where: tuple[Any, ...], requires_grad: bool
) -> Any:
    """A tensor over memory that another process has shared."""
    memory = _received(handle, nbytes, key)
    if issubclass(cls, Parameter):
        data = _unpickled(Tensor, memory, where, False)
        return cls(data, requires_grad=requires_grad)
    return _unpickled(cls, memory, where, requires_grad)


def _reduce_file(array: Any) -> tuple[Any, int, shared.Key]:
    fd, nbytes = shared.file_of(array), ByteBounds(array).root.nbytes
    starting = context.get_spawning_popen() is not None or not reduction.HAVE_SEND_HANDLE
    handle = reduction.DupFd(fd) if starting else Sent(fd, nbytes)
    return handle, nbytes, shared.key_of(fd)


def _received(handle: Any, nbytes: int, key: shared.Key) -> Any:
    """The memory of a file. Its descriptor comes from the process that sent it: where that has
    ended, a file that came from here may still be known here, or one may have been left."""
    try:
        fd = handle.detach()
    except (OSError, EOFError):
        fd = shared.take(handle.path) if isinstance(handle, Sent) else -1
        known = shared.known(key)
        if known is None and fd < 0:
            raise
        if known is not None:
            if fd >= 0:
                os.close(fd)
            return known
    return shared.adopt(fd, nbytes)


# --- descriptors on their way ---------------------------------------------------------------------
_sharer: Final[Any] = resource_sharer._resource_sharer  # type: ignore[attr-defined]  # what DupFd has
_numbers: Final = itertools.count()
_sending: Final = lock()
_waiting: Final[dict[str, tuple[int, int]]] = {}  # descriptors that nobody has fetched, by `path`


class Sent:
    """A descriptor that another process will fetch from this one, or from what it leaves; see
    Note [Left behind]."""

    def __init__(self, fd: int, nbytes: int) -> None:
        self.path = f"{_common_name()}-{os.getpid()}-{next(_numbers)}"
        mine = os.dup(fd)
        path = self.path

        def send(connection: Any, pid: int) -> None:
            with _sending:
                _waiting.pop(path, None)
                reduction.send_handle(connection, mine, pid)

        def close() -> None:
            _waiting.pop(path, None)  # in a child that was forked, it may be there still
            os.close(mine)

        _waiting[path] = mine, nbytes
        self.ticket = _sharer.register(send, close)

    def detach(self) -> int:
        """The descriptor, from the process that sent it. It comes once."""
        with _sharer.get_connection(self.ticket) as connection:
            return reduction.recv_handle(connection)


def _common_name() -> str:
    """How the files begin that processes of one family leave. They have a key in common."""
    family = hashlib.sha256(bytes(process.current_process().authkey)).hexdigest()[:24]
    return os.path.join(_folder(), f"rushlight-{family}")


def _folder() -> str:
    if os.access("/dev/shm", os.W_OK):  # in memory
        return "/dev/shm"
    import tempfile  # slow to import

    return tempfile.gettempdir()


def prepare_end() -> None:
    """See to what a process leaves. Not when it first sends: that may be as late as at its end,
    when queues send what is in them still."""
    util.Finalize(None, end, exitpriority=-10)  # after queues, and the end of its children


def end() -> None:
    """At the end of a process."""
    if process.parent_process() is None:
        remove_files()
    else:
        leave_files()


def leave_files() -> None:
    """Leave what nobody has fetched yet."""
    left: dict[shared.Key, str] = {}
    _sending.acquire()  # for good: who asks from now on will find a file when this has ended
    for path, (fd, nbytes) in list(_waiting.items()):
        key = shared.key_of(fd)
        if key in left:
            os.link(left[key], path)  # one memory stays one
        else:
            shared.leave(fd, nbytes, path)
            left[key] = path


def remove_files() -> None:
    """Remove what was left and nobody has read."""
    for path in glob.glob(f"{glob.escape(_common_name())}-*"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def reduce_storage(storage: Any) -> Any:
    """How a storage is pickled for another process."""
    if not storage.nbytes() or not is_array(storage._bytes):
        return storage.__reduce__()
    storage.share_memory_()
    start = ByteBounds(storage._bytes).offset
    place = (start, storage.nbytes(), dtypes.of(storage._array.dtype))
    return rebuild_storage_fd, (type(storage), *_reduce_file(storage._bytes), *place)


def rebuild_storage_fd(
    cls: Any, handle: Any, size: int, key: shared.Key, start: int, nbytes: int, dtype: dtypes.dtype
) -> Any:
    """A storage over memory that another process has shared."""
    return _restored(cls, _received(handle, size, key), start, nbytes, dtype)


def init_reductions() -> None:
    """Have queues and pipes of `multiprocessing` send tensors so."""
    for tensors in (Tensor, Parameter):
        reduction.ForkingPickler.register(tensors, reduce_tensor)
    for storages in (UntypedStorage, TypedStorage):
        reduction.ForkingPickler.register(storages, reduce_storage)
    prepare_end()
    util.register_after_fork(prepare_end, lambda _: prepare_end())
