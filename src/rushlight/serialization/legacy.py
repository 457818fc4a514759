"""The formats before PyTorch 1.6: pickles one after the other, and older still, a tar archive.

    pickles    a magic number, the version of the format, facts about the machine, the object, the
               keys of the memories; then each memory, its number of elements first
    tar        storages, tensors and pickle: three files, of which the last refers to the others

The first is written too, by `_use_new_zipfile_serialization=False`.
"""

from __future__ import annotations

import io
import pickle
import struct
import sys
import tarfile
from collections.abc import Callable
from typing import IO, Any, Final

from rushlight import dtypes
from rushlight.arrays import making
from rushlight.arrays import vocabulary as v
from rushlight.arrays.device import CPU
from rushlight.arrays.host import device_of, make_array, move
from rushlight.serialization import rebuild
from rushlight.serialization.allowed import read_safely
from rushlight.serialization.locations import restored
from rushlight.serialization.storages import as_bytes, parse, typed
from rushlight.storage import TypedStorage, UntypedStorage
from rushlight.storage_types import LegacyStorageClass

MAGIC: Final = 0x1950A86A20F9469CFC6C
VERSION: Final = 1001
_DEEPEST: Final = 64  # dimensions of a tensor in a tar archive

Unpickle = Callable[[bytes, int, Callable[[Any], Any]], tuple[Any, int]]


# --- pickles --------------------------------------------------------------------------------------
def write_legacy(
    data: bytes, memories: list[tuple[str, Any, int]], file: IO[bytes], protocol: int
) -> None:
    """Write a pickle and the memories it refers to."""
    sizes = {"short": 2, "int": 4, "long": 4}
    machine = {
        "protocol_version": VERSION, "little_endian": sys.byteorder == "little",
        "type_sizes": sizes,
    }  # fmt: skip
    for value in (MAGIC, VERSION, machine):
        file.write(pickle.dumps(value, protocol))
    file.write(data)
    file.write(pickle.dumps([key for key, _, _ in memories], protocol))
    for _, root, size in memories:
        room = as_bytes(root)
        file.write(struct.pack("=q", len(room) // size))
        file.write(bytes(room))


def _no_memory(name: Any) -> Any:
    raise pickle.UnpicklingError("unknown persistent id")


def _short(length: int, more: int) -> RuntimeError:
    return RuntimeError(
        f"unexpected EOF, expected {more} more bytes. The file might be corrupted.\n"
        f"It has {length} bytes: copy or download it again, or save it again."
    )


class LegacyStorages:
    """The memories of a file, made when first named and filled at the end. All together are no
    longer than the file."""

    def __init__(self, room: int, map_location: Any) -> None:
        self.room = room
        self.map_location = map_location
        self.found: dict[str, tuple[UntypedStorage, dtypes.dtype]] = {}
        self.unread: list[Callable[[], None]] = []

    def get(self, name: Any) -> Any:
        """What a persistent id names."""
        if type(name) is tuple and len(name) == 4 and name[0] in ("module", b"module"):
            return name[1]  # a class, and the source it had
        kind, key, location, count, part = parse(name)
        dtype = kind or dtypes.uint8
        if key not in self.found:
            self.room -= count * dtype.itemsize
            if count < 0 or self.room < 0:
                raise _short(0, max(-self.room, 1))
            raw = make_array((count * dtype.itemsize,), dtypes.uint8.numpy, CPU)
            storage = restored(UntypedStorage._of(raw), location, self.map_location)
            if isinstance(storage, TypedStorage):
                storage = storage.untyped()
            self.found[key] = storage, dtype
        storage, dtype = self.found[key]
        if part is not None:
            storage = self.part(storage, dtype, part)
        made = typed(storage, dtype)
        made._unread = self.unread
        return made

    def part(self, storage: UntypedStorage, dtype: dtypes.dtype, part: Any) -> UntypedStorage:
        """A part of a memory, which was a storage of its own in files of long ago."""
        if type(part) is not tuple or len(part) != 3 or type(part[1]) is not int:
            raise pickle.UnpicklingError("a part of a storage is not as `save` writes it")
        _, offset, count = part
        if type(count) is not int or offset < 0 or count < 0:
            raise pickle.UnpicklingError("a part of a storage is not as `save` writes it")
        size = dtype.itemsize
        found: UntypedStorage = storage[offset * size : (offset + count) * size]
        return found

    def fill(self, key: Any, data: bytes, at: int, swaps: bool) -> int:
        """Fill a memory with what stands in a file at `at`; where that ends."""
        key = key.decode("latin1") if type(key) is bytes else key
        if type(key) is not str or key not in self.found:
            raise pickle.UnpicklingError("a storage in this file is named by nothing")
        storage, dtype = self.found[key]
        if at + 8 > len(data):
            raise _short(len(data), at + 8 - len(data))
        count = int.from_bytes(data[at : at + 8], sys.byteorder, signed=True)
        if swaps:
            count = int.from_bytes(data[at : at + 8], _other_order(), signed=True)
        at += 8
        if count * dtype.itemsize != storage.nbytes():
            raise RuntimeError(
                f"storage has wrong byte size: expected {storage.nbytes()} got "
                f"{count * dtype.itemsize}"
            )
        end = at + storage.nbytes()
        if end > len(data):
            raise _short(len(data), end - len(data))
        fill_storage(storage, data[at:end], dtype if swaps else None)
        return end


def _other_order() -> Any:
    return "big" if sys.byteorder == "little" else "little"


def fill_storage(storage: UntypedStorage, data: bytes, swapped: dtypes.dtype | None) -> None:
    """Put bytes into a memory, on any device. `swapped`: their dtype, if in the other order."""
    host = UntypedStorage._of(making.bytes_in(data, 1, -1, 0) if data else _empty())
    if swapped is not None:
        host.byteswap(swapped)
    v.overwrite(storage._bytes, move(host._bytes, device_of(storage._bytes)))


def _empty() -> Any:
    return make_array((0,), dtypes.uint8.numpy, CPU)


def read(file: IO[bytes], label: str, map_location: Any, unpickle: Unpickle) -> Any:
    """What a file of pickles holds. `unpickle` reads the pickle at a place of the file's bytes, and
    says where it ends."""
    start = file.tell()
    data = file.read()
    if not data:
        raise EOFError(f"Ran out of input: {label} is empty")
    swaps, at = _read_head(data, label)
    storages = LegacyStorages(len(data), map_location)
    found, at = unpickle(data, at, storages.get)
    keys, at = _plain(data, at)
    if type(keys) is not list:
        raise pickle.UnpicklingError(f"{label}: the keys of its storages are no list")
    for key in keys:
        at = storages.fill(key, data, at, swaps)
    missing = storages.found.keys() - {k.decode("latin1") if type(k) is bytes else k for k in keys}
    if missing:
        raise RuntimeError(f"{label}: its storages {sorted(missing)} are not there")
    for finish in storages.unread:
        finish()
    file.seek(start + at)
    return found


def _plain(data: bytes, at: int) -> tuple[Any, int]:
    """A pickle of numbers, texts and lists."""
    if at >= len(data):
        raise EOFError("Ran out of input: the file ends before its storages")
    return read_safely(data, at, _no_memory, "latin1")


def _read_head(data: bytes, label: str) -> tuple[bool, int]:
    """Whether the bytes of numbers are in the other order, and where the object's pickle begins."""
    try:
        magic, at = _plain(data, 0)
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(
            f"{label} is no file that `torch.save` wrote: it begins as no zip archive does, and as "
            "no older format"
        ) from error
    if magic != MAGIC:
        raise RuntimeError(f"Invalid magic number; corrupt file?\n{label}, {len(data)} bytes")
    version, at = _plain(data, at)
    if version != VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    machine, at = _plain(data, at)
    little = machine.get("little_endian", True) if type(machine) is dict else True
    return bool(little) is not (sys.byteorder == "little"), at


# --- tar ------------------------------------------------------------------------------------------
def is_tar(file: IO[bytes]) -> bool:
    """Whether a file is a tar archive; it is left where it was."""
    start = file.tell()
    head = file.read(512)
    file.seek(start)
    return len(head) == 512 and head[257:262] == b"ustar"


def read_tar(file: IO[bytes], label: str, map_location: Any, unpickle: Unpickle) -> Any:
    """What a tar archive of long ago holds."""
    parts: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                name = member.name.removeprefix("./")
                if member.isfile() and name in ("storages", "tensors", "pickle"):
                    inner = tar.extractfile(member)
                    assert inner is not None
                    parts[name] = inner.read()
    except tarfile.TarError as error:
        raise RuntimeError(f"{label}: the tar archive is damaged: {error}") from error
    if parts.keys() != {"storages", "tensors", "pickle"}:
        raise RuntimeError(f"{label}: a tar archive, but not one that `torch.save` wrote")
    try:
        objects = _tar_storages(parts["storages"], map_location)
        objects.update(_tar_tensors(parts["tensors"], objects))
    except (struct.error, KeyError, TypeError, ValueError) as error:
        raise RuntimeError(f"{label}: the tar archive is damaged: {error}") from error

    def get(name: Any) -> Any:
        if type(name) is tuple:
            return name[0]  # a class, and the source it had
        if str(name) not in objects:
            raise pickle.UnpicklingError("unknown persistent id")
        return objects[str(name)]

    return unpickle(parts["pickle"], 0, get)[0]


def _tar_storages(data: bytes, map_location: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    count, at = _plain(data, 0)
    for _ in range(count):
        (key, location, kind), at = _plain(data, at)
        if not isinstance(kind, LegacyStorageClass):
            raise pickle.UnpicklingError("a storage in this file is of no known type")
        (length,) = struct.unpack_from("<q", data, at)
        end = at + 8 + length * kind.dtype.itemsize
        if length < 0 or end > len(data):
            raise _short(len(data), max(end - len(data), 1))
        raw = make_array((end - at - 8,), dtypes.uint8.numpy, CPU)
        storage = restored(UntypedStorage._of(raw), str(location), map_location)
        fill_storage(storage, data[at + 8 : end], None)
        found[str(key)] = typed(storage, kind.dtype)
        at = end
    views, at = _plain(data, at)
    for key, root, offset, size in views:
        dtype = found[str(root)].dtype
        part = slice(offset * dtype.itemsize, (offset + size) * dtype.itemsize)
        found[str(key)] = typed(found[str(root)].untyped()[part], dtype)
    return found


def _tar_tensors(data: bytes, storages: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    count, at = _plain(data, 0)
    for _ in range(count):
        (key, storage, _kind), at = _plain(data, at)
        (ndim,) = struct.unpack_from("<i", data, at)
        if not 0 <= ndim <= _DEEPEST:
            raise RuntimeError(f"a tensor in this file has {ndim} dimensions")
        at += 8
        size = struct.unpack_from(f"<{ndim}q", data, at)
        stride = struct.unpack_from(f"<{ndim}q", data, at + 8 * ndim)
        (offset,) = struct.unpack_from("<q", data, at + 16 * ndim)
        at += 16 * ndim + 8
        found[str(key)] = rebuild._rebuild_tensor(storages.get(str(storage)), offset, size, stride)
    return found


# --- what is trusted ------------------------------------------------------------------------------
def unpickler_of(cls: Any, options: dict[str, Any]) -> Unpickle:
    """`unpickle` for files that are trusted, by a class of unpicklers."""

    def unpickle(data: bytes, at: int, get: Callable[[Any], Any]) -> tuple[Any, int]:
        file = io.BytesIO(data)
        file.seek(at)
        unpickler = cls(file, **options)
        unpickler.get = get
        return unpickler.load(), file.tell()

    return unpickle
