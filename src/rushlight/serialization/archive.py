"""Zip archives as PyTorch writes them: read with suspicion, and written.

Each entry is stored as it is, its name begins with the archive's own (`archive/data/0`), and its
bytes begin at a multiple of 64, so that a file can be mapped into memory. Nothing here knows of
tensors.
"""

from __future__ import annotations

import errno
import os
import struct
import zipfile
import zlib
from typing import IO, Any, Final

from rushlight.arrays.host import map_open, part_of
from rushlight.errors import sentence
from rushlight.serialization import options

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
_LOCAL: Final = struct.Struct("<4s5H3I2H")  # what stands before an entry: its header


def corrupt(what: str, where: str) -> RuntimeError:
    """PyTorch's error for a file that is not as it was written; `where`: which, and what is wrong
    with it."""
    return RuntimeError(sentence(f"PytorchStreamReader failed {what}. {_HIGH}", where, _CURE))


# --- reading --------------------------------------------------------------------------------------
class Archive:
    """The entries of a zip file, none of which is believed before it was looked at: they are
    stored as they are, and all of them together are no longer than the file."""

    def __init__(self, file: IO[bytes], label: str) -> None:
        self.file = file
        self.label = label
        self.map: Any = None
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
        # `set_crc32_options(False)` has files written without checksums
        self.checked = any(entry.CRC for entry in entries)
        self.folder = self._find_folder()

    def _find_folder(self) -> str:
        """The name that all entries begin with."""
        found = [n for n in self.entries if n.endswith("/data.pkl") and n.count("/") == 1]
        if len(found) != 1:
            raise corrupt(
                "locating file data.pkl: file not found",
                self.about("it has no entry of that name, or several"),
            )
        return found[0].removesuffix("data.pkl")

    def about(self, why: str) -> str:
        return f"{self.label}, {self.length} bytes: {why}"

    def has(self, name: str) -> bool:
        """Whether there is an entry."""
        return self.folder + name in self.entries

    def size(self, name: str) -> int:
        """How many bytes an entry has."""
        return self._entry(name).file_size

    def _entry(self, name: str) -> zipfile.ZipInfo:
        entry = self.entries.get(self.folder + name)
        if entry is None:
            raise self.failed(name, "it is named in the file, but is not there")
        return entry

    def _start(self, name: str) -> int:
        """Where in the file the bytes of an entry begin."""
        entry = self._entry(name)
        at = entry.header_offset
        if not 0 <= at <= self.length - _LOCAL.size:
            raise self.failed(name, "it lies outside the file")
        self.file.seek(at)
        header = _LOCAL.unpack(self.file.read(_LOCAL.size))
        title = self.file.read(header[9])
        start: int = at + _LOCAL.size + header[9] + header[10]
        if header[0] != b"PK\x03\x04" or title != entry.filename.encode():
            raise self.failed(name, "its beginning is damaged")
        if start + entry.file_size > self.length:
            raise self.failed(name, "it lies outside the file")
        return start

    def read(self, name: str) -> bytes:
        """A short entry."""
        room = bytearray(self.size(name))
        self.read_into(name, memoryview(room))
        return bytes(room)

    def read_into(self, name: str, room: memoryview) -> None:
        """An entry's bytes, checked, into memory of its size; a piece at a time."""
        try:
            self.file.seek(self._start(name))
            at = sum_ = 0
            while at < len(room):
                count = self._read_piece(room[at : at + _CHUNK])
                if not count:
                    raise self.failed(name, f"it has other than {len(room)} bytes")
                sum_ = zlib.crc32(room[at : at + count], sum_)
                at += count
        except (struct.error, ValueError) as error:
            raise self.failed(name, str(error)) from error
        if self.checked and sum_ != self._entry(name).CRC:
            raise self.failed(name, "its bytes are not those that were written (bad CRC-32)")

    def _read_piece(self, room: memoryview) -> int:
        """Read into memory, as much as comes; how many bytes."""
        if hasattr(self.file, "readinto"):
            count: int = self.file.readinto(room)
            return count
        piece = self.file.read(len(room))
        room[: len(piece)] = piece
        return len(piece)

    def mapped(self, name: str, shared: bool) -> Any:
        """An entry's bytes as they lie in the file, read when they are used."""
        if self.map is None:
            self.map = map_open(self.file.fileno(), self.length, shared)
        return part_of(self.map, self._start(name), self.size(name))

    def failed(self, name: str, why: str) -> RuntimeError:
        where = self.about(f"in {self.folder}{name}, {why}")
        return corrupt(f"reading file {name}: file read failed", where)

    def close(self) -> None:
        self.zip.close()


# --- writing --------------------------------------------------------------------------------------
class ArchiveWriter:
    """Writes an archive to an open file, entry by entry."""

    def __init__(self, file: IO[bytes], folder: str) -> None:
        self.zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self.folder = folder

    def write(self, name: str, data: Any) -> None:
        """Write bytes, or memory, as an entry. Others may be writing into it meanwhile: each piece
        is copied, so that the checksum is that of the bytes that were written, whichever they are.
        """
        room = memoryview(data)
        with self._open(name, len(room)) as entry:
            for at in range(0, len(room), _CHUNK):
                entry.write(bytes(room[at : at + _CHUNK]))

    def write_zeros(self, name: str, size: int) -> None:
        """Write an entry of zeros."""
        with self._open(name, size) as entry:
            for at in range(0, size, _CHUNK):
                entry.write(bytes(min(_CHUNK, size - at)))

    def _open(self, name: str, size: int) -> IO[bytes]:
        info = zipfile.ZipInfo(f"{self.folder}/{name}")
        info.file_size = size
        assert self.zip.fp is not None
        at = self.zip.fp.tell() + _LOCAL.size + len(info.filename.encode())
        if size * 1.05 > zipfile.ZIP64_LIMIT:
            at += 20  # the lengths, which `zipfile` writes there itself
        room = -(at + 4) % options.ALIGNMENT
        info.extra = struct.pack("<2sH", b"FB", room) + b"Z" * room
        return self.zip.open(info, "w")

    def close(self) -> None:
        for entry in self.zip.infolist():
            entry.extra = b""  # the room before an entry is not told again in the list at the end
            if not options.get_crc32_options():
                entry.CRC = 0
        self.zip.close()
