"""How tensors and storages go to other processes: as shared memory, by its file descriptor.

Two tensors over one memory arrive over one memory, in one message or in several: a process knows
the files it has by their numbers in the file system.
"""

from __future__ import annotations

from multiprocessing import reduction
from typing import Any

from rushlight import dtypes
from rushlight.arrays import shared
from rushlight.arrays.host import ByteBounds, in_memory, is_array, put_off
from rushlight.core.graph import requires_grad
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
    fd = shared.file_of(array)
    return reduction.DupFd(fd), ByteBounds(array).root.nbytes, shared.key_of(fd)


def _received(handle: Any, nbytes: int, key: shared.Key) -> Any:
    """The memory of a file. Its descriptor comes from the process that sent it, and from no other:
    where that has ended, a file that came from here may still be known here."""
    try:
        fd = handle.detach()
    except (OSError, EOFError):
        known = shared.known(key)
        if known is None:
            raise
        return known
    return shared.adopt(fd, nbytes)


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
