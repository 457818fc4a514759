"""Memory that several processes see.

It is a file without a name: `memfd_create` on Linux, elsewhere a temporary file that is unlinked as
soon as it is open. Processes hand each other its file descriptor. The system frees it when the last
descriptor and the last mapping are gone, however the processes end: there is nothing to clean up.
"""

from __future__ import annotations

import os
from typing import Any, Final
from weakref import finalize, ref

import numpy as np

from rushlight.arrays.host import root_of

_ALIGN: Final = 64  # where arrays of one file begin, for the sake of vector instructions

# By the id of an array that owns shared memory: a weak reference to it, and its file (-1: closed).
_SHARED: Final[dict[int, tuple[ref[Any], int]]] = {}


def make_file(nbytes: int) -> int:
    """The descriptor of a new file without a name."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("rushlight", os.MFD_CLOEXEC)
    else:
        import tempfile  # slow to import

        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    try:
        os.ftruncate(fd, max(nbytes, 1))
    except BaseException:
        os.close(fd)
        raise
    return fd


def _mapped(fd: int, nbytes: int) -> Any:
    import mmap  # wanted by those who share memory

    return mmap.mmap(fd, max(nbytes, 1))


def attach(fd: int, nbytes: int, keep: bool) -> Any:
    """All bytes of a file as an array. `keep`: the descriptor is kept, for the memory to be handed
    on, and closed when the array goes; else it is closed now."""
    array = np.frombuffer(_mapped(fd, nbytes), np.uint8, nbytes)
    if not keep:
        os.close(fd)
    _note(array, fd if keep else -1)
    return array


def _note(array: Any, fd: int) -> None:
    key = id(array)
    _SHARED[key] = ref(array), fd
    finalize(array, _forget, key, fd).atexit = False


def _forget(key: int, fd: int) -> None:
    _SHARED.pop(key, None)
    if fd >= 0:
        os.close(fd)


def is_shared(array: Any) -> bool:
    """Whether other processes can see the memory behind an array."""
    return id(root_of(array)) in _SHARED


def file_of(array: Any) -> int:
    """The file behind an array; -1 if there is none, or none that is still open."""
    return _SHARED.get(id(root_of(array)), (None, -1))[1]


def share(memory: Any) -> Any:
    """A copy of a flat array of bytes in shared memory."""
    fd = make_file(memory.size)
    copied = attach(fd, memory.size, keep=True)
    copied[...] = memory
    _enter(copied, fd)
    return copied


# --- many buffers in one file ---------------------------------------------------------------------
def write_buffers(buffers: list[Any]) -> tuple[int, list[int]]:
    """Buffers, one behind the other in a new file: its descriptor, and how long each is."""
    views = [memoryview(b).cast("B") for b in buffers]
    sizes = [view.nbytes for view in views]
    fd = make_file(sum(map(_rounded, sizes)))
    try:
        place = 0
        for view, size in zip(views, sizes):
            written = 0
            while written < size:  # the system writes 2 GB at once, at most
                written += os.pwrite(fd, view[written:], place + written)
            place += _rounded(size)
    except BaseException:
        os.close(fd)
        raise
    return fd, sizes


def read_buffers(fd: int, sizes: list[int]) -> list[Any]:
    """What `write_buffers` wrote, as arrays over the shared memory; closes the file."""
    whole = _mapped(fd, sum(map(_rounded, sizes)))
    os.close(fd)
    found, place = [], 0
    for size in sizes:
        array = np.frombuffer(whole, np.uint8, size, place)
        _note(array, -1)
        found.append(array)
        place += _rounded(size)
    return found


def _rounded(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


# --- memory that outlives its process -------------------------------------------------------------
def leave(fd: int, nbytes: int, path: str) -> None:
    """Write what a file without a name holds to a new one with a name."""
    with open(path, "xb") as file, _mapped(fd, nbytes) as memory:
        file.write(memory)


def take(path: str) -> int:
    """The descriptor of a file that was left, and has no name from now on; -1 if there is none."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1
    os.unlink(path)
    return fd


# --- memory of other processes --------------------------------------------------------------------
Key = tuple[int, int]  # the numbers of a file in the file system
_ADOPTED: Final[dict[Key, ref[Any]]] = {}


def key_of(fd: int) -> Key:
    """What a file is known by in every process."""
    where = os.fstat(fd)
    return where.st_dev, where.st_ino


def known(key: Key) -> Any:
    """The array that looks at a file already; None if there is none."""
    found = _ADOPTED.get(key)
    return None if found is None else found()


def adopt(fd: int, nbytes: int) -> Any:
    """The memory of a file that another process has sent: the array that looks at it already, if
    there is one; `fd` is closed then."""
    found = known(key_of(fd))
    if found is not None:
        os.close(fd)
        return found
    made = attach(fd, nbytes, keep=True)
    _enter(made, fd)
    return made


def _enter(array: Any, fd: int) -> None:
    """Let an array be found by its file."""
    key = key_of(fd)
    _ADOPTED[key] = ref(array)
    finalize(array, _ADOPTED.pop, key, None).atexit = False
