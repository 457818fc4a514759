"""The files behind `save` and `load`: a zip archive that is read with suspicion, and a file that
takes another's place when it is whole.

Nothing here knows of tensors.

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
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final

from rushlight.errors import sentence

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

_CHUNK: Final = 1 << 22
_HIGH: Final = (
    "If you are seeing this error, there is a high likelihood that your checkpoint file is "
    "corrupted. This can happen if the checkpoint was not saved properly, was transferred "
    "incorrectly, or the file was modified after saving."
)
_CURE: Final = (
    "Copy or download it again and compare the sizes, or save it again; part of a checkpoint "
    "cannot be loaded."
)
# What `zipfile` raises on files that are no zip archives, or no longer.
_BAD: Final = (
    zipfile.BadZipFile, ValueError, NotImplementedError, EOFError, struct.error, OverflowError,
    KeyError, IndexError, zlib.error, RuntimeError,
)  # fmt: skip


def corrupt(what: str, where: str) -> RuntimeError:
    """PyTorch's error for a file that is not as it was written; `where`: which, and what is wrong
    with it."""
    return RuntimeError(sentence(f"PytorchStreamReader failed {what}. {_HIGH}", where, _CURE))


# --- reading --------------------------------------------------------------------------------------
class Archive:
    """The entries of a zip file, none of which is believed before it was looked at: they are
    stored as they are, and all of them together are no longer than the file."""

    def __init__(self, file: IO[bytes], label: str) -> None:
        self.label = label
        self.length = file.seek(0, os.SEEK_END)
        what = "reading zip archive: failed finding central directory"
        try:
            self.zip = zipfile.ZipFile(file)
        except _BAD as error:
            raise corrupt(what, self.about("its end is missing or damaged")) from error
        except OSError as error:
            if error.errno != errno.EINVAL:  # else it was made to seek before its beginning
                raise
            raise corrupt(what, self.about("its end is missing or damaged")) from error
        entries = self.zip.infolist()
        self.entries = {entry.filename: entry for entry in entries}
        if len(self.entries) != len(entries):
            raise corrupt(what, self.about("two entries have the same name"))
        for entry in entries:
            if (
                entry.compress_type != zipfile.ZIP_STORED
                or entry.file_size != entry.compress_size
                or entry.flag_bits & 0x1
            ):
                raise corrupt(
                    f"reading file {entry.filename}: file read failed",
                    self.about("it is compressed or encrypted, which `save` never does"),
                )
        if sum(entry.file_size for entry in entries) > self.length:
            raise corrupt(what, self.about("its entries are longer than the file"))

    def about(self, why: str) -> str:
        return f"{self.label}, {self.length} bytes: {why}"

    def names(self) -> list[str]:
        return list(self.entries)

    def size(self, name: str) -> int:
        """How many bytes an entry has."""
        entry = self.entries.get(name)
        if entry is None:
            raise self.failed(name, "it is named in the file, but is not there")
        return entry.file_size

    def read(self, name: str) -> bytes:
        """A short entry."""
        room = bytearray(self.size(name))
        self.read_into(name, memoryview(room))
        return bytes(room)

    def read_into(self, name: str, room: memoryview) -> None:
        """An entry's bytes, checked, into memory of its size; a piece at a time."""
        try:
            with self.zip.open(self.entries[name]) as entry:
                at = 0
                while at < len(room):
                    piece = entry.read(min(_CHUNK, len(room) - at))
                    if not piece:
                        break
                    room[at : at + len(piece)] = piece
                    at += len(piece)
                if at < len(room) or entry.read(1):
                    raise self.failed(name, f"it has other than {len(room)} bytes")
        except _BAD as error:
            if isinstance(error, RuntimeError) and str(error).startswith("PytorchStreamReader"):
                raise
            raise self.failed(name, str(error)) from error
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise self.failed(name, "it lies outside the file") from error

    def failed(self, name: str, why: str) -> RuntimeError:
        short = name.partition("/")[2]
        return corrupt(f"reading file {short}: file read failed", self.about(f"in {name}, {why}"))

    def close(self) -> None:
        self.zip.close()


# --- writing --------------------------------------------------------------------------------------
def write_entry(archive: zipfile.ZipFile, name: str, data: memoryview) -> None:
    """Write memory as an entry. Others may be writing into it meanwhile: each piece is copied, so
    that the checksum is that of the bytes that were written, whichever they are."""
    with archive.open(name, "w", force_zip64=True) as entry:
        for at in range(0, len(data), _CHUNK):
            entry.write(bytes(data[at : at + _CHUNK]))


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
