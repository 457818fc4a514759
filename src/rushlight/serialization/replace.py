"""A file that takes another's place when it is whole. Nothing here knows what is written.

Note [Old or new]
    What stands at a path is the old file until the new one is complete and on the disk, and then
    the new one: a save that fails, or is killed, leaves the old. On Linux the new file has no name
    while it is written, so what a killed save wrote goes with it. It has the name `.NAME.CRC.part`
    for the moment in which it is moved into place, and all the time where files cannot be without a
    name; the next save to the same path writes over what it finds there. Where the folder cannot be
    written, or the file not be replaced (a mounted file), the file itself is written, as PyTorch
    always does; then a killed save leaves half a file.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

_CHUNK: Final = 1 << 22


@contextmanager
def replacing(path: str) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` when all of it is written. See Note [Old or new]."""
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    old = os.stat(path) if os.path.exists(path) else None
    if old is not None and not stat.S_ISREG(old.st_mode):
        with open(path, "wb") as there:  # a device or a pipe: nothing to replace
            yield there
        return
    part = os.path.join(folder, f".{name[:40]}.{zlib.crc32(os.fsencode(name)):08x}.part")
    try:
        file, part, named = _new_file(folder, part)
    except OSError as error:
        if old is None or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        with open(path, "wb") as there:  # the folder is closed to us, the file is not
            yield there
        return
    with file:
        try:
            yield file
            file.flush()
            if old is not None and hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
            os.fsync(file.fileno())
            if os.name == "nt":
                file.close()  # there, what is open cannot be moved
            _put_in_place(file, part, named, path)
        except BaseException:
            if named and os.path.exists(part):
                file.close()
                os.remove(part)
            raise


def _new_file(folder: str, part: str) -> tuple[IO[bytes], str, bool]:
    """A file to write, the name it has or will have, and whether it has that already."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        try:
            made = os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o666)
            return os.fdopen(made, "w+b"), part, False
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC):
                raise
    return _named_file(part)


def _named_file(part: str) -> tuple[IO[bytes], str, bool]:
    """`_new_file` where files must have a name: over what a killed save left, if nobody writes."""
    if fcntl is not None:
        made = os.open(part, os.O_RDWR | os.O_CREAT, 0o666)  # not emptied: it may be another's
        file = os.fdopen(made, "r+b")
        if _is_mine(made, part):
            file.truncate(0)
            return file, part, True
        file.close()
    part = f"{part[:-5]}.{secrets.token_hex(4)}.part"
    return open(part, "x+b"), part, True


def _is_mine(made: int, part: str) -> bool:
    """Whether nobody else writes the open file, nor has moved it into place meanwhile."""
    try:
        fcntl.flock(made, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(made), os.stat(part))
    except OSError:
        return False


def _put_in_place(file: IO[bytes], part: str, named: bool, path: str) -> None:
    """Give a complete file its name."""
    try:
        if named:
            os.replace(part, path)
            return
        with _turn(os.path.dirname(path)):
            try:
                _link(file.fileno(), part)
            except FileExistsError:  # left by a killed save
                _remove(part)
                _link(file.fileno(), part)
            os.replace(part, path)
        return
    except OSError as error:
        if file.closed or error.errno not in (errno.EBUSY, errno.EACCES, errno.EPERM, errno.EXDEV):
            raise
        _remove(part)
        if not os.path.exists(path):
            raise
        file.seek(0)
        with open(path, "wb") as there:  # it cannot be replaced, but perhaps be written
            shutil.copyfileobj(file, there, _CHUNK)


@contextmanager
def _turn(folder: str) -> Iterator[None]:
    """One save at a time between giving a file its first name and its last: what another took the
    name from could not be given one again. A killed process leaves no lock behind."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        if fcntl is not None:
            with suppress(OSError):  # some file systems have no locks
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _link(made: int, part: str) -> None:
    """Give an open file without a name this one."""
    folder = os.open("/proc/self/fd", os.O_RDONLY)
    try:
        os.link(str(made), part, src_dir_fd=folder)
    finally:
        os.close(folder)


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except FileNotFoundError:
        return
