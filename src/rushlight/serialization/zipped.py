"""The format of `save`: a zip archive, as PyTorch has written it since 1.6.

    archive/data.pkl              the object, pickled; a tensor is a call of a function of `rebuild`
    archive/byteorder             little or big
    archive/data/0                the bytes of a memory, once for all tensors that share it
    archive/version and others    which format it is

`archive` is the name of the file without its ending, where it has one.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
from typing import IO, Any

from rushlight import dtypes
from rushlight.arrays.device import CPU
from rushlight.arrays.host import make_array
from rushlight.serialization import options
from rushlight.serialization.archive import Archive, ArchiveWriter
from rushlight.serialization.locations import restored
from rushlight.serialization.storages import as_bytes, parse, typed
from rushlight.storage import TypedStorage, UntypedStorage


def folder_of(path: Any) -> str:
    """What the entries of a file begin with: its name without the last ending."""
    name = os.path.basename(os.fsdecode(path))
    return name.rpartition(".")[0] or name


def write_archive(
    data: bytes, memories: list[tuple[str, Any, int]], file: IO[bytes], folder: str, byteorder: bool
) -> None:
    """Write a pickle and the memories it refers to."""
    writer = ArchiveWriter(file, folder)
    writer.write("data.pkl", data)
    writer.write(".format_version", b"1")
    writer.write(".storage_alignment", str(options.ALIGNMENT).encode())
    if byteorder:
        writer.write("byteorder", sys.byteorder.encode())
    skips = options.skips_data()
    for key, root, _ in memories:
        room = as_bytes(root)
        if skips:
            writer.write_zeros(f"data/{key}", len(room))
        else:
            writer.write(f"data/{key}", room)
    writer.write("version", b"3\n")
    mark = int.from_bytes(hashlib.blake2b(data, digest_size=16).digest(), "big")
    writer.write(".data/serialization_id", f"{mark:040d}".encode())
    writer.close()


class ZipStorages:
    """The memories of an archive, read when first named."""

    def __init__(self, archive: Archive, map_location: Any, mapped: bool) -> None:
        self.archive = archive
        self.map_location = map_location
        self.mapped = mapped
        self.found: dict[str, UntypedStorage] = {}
        order = options.default_byteorder()
        if archive.has("byteorder"):
            order = archive.read("byteorder").decode("latin1")
            if order not in ("little", "big"):
                raise archive.failed("byteorder", f"unknown endianness type: {order!r}")
        self.swaps = order != sys.byteorder

    def get(self, name: Any) -> TypedStorage:
        """The memory that a persistent id names."""
        dtype, key, location, count, _ = parse(name)
        if key not in self.found:
            entry = f"data/{key}"
            size = self.archive.size(entry)
            if count >= 0 and size != count * (1 if dtype is None else dtype.itemsize):
                raise self.archive.failed(entry, f"it has {size} bytes for {count} elements")
            if self.mapped:
                raw = self.archive.mapped(entry, options.maps_shared())
            else:
                raw = make_array((size,), dtypes.uint8.numpy, CPU)
                self.archive.read_into(entry, memoryview(raw))
            storage = UntypedStorage._of(raw)
            if self.swaps and dtype is not None:
                storage.byteswap(dtype)
            moved = restored(storage, location, self.map_location)
            if isinstance(moved, TypedStorage):
                moved = moved.untyped()
            if not isinstance(moved, UntypedStorage):
                raise TypeError(
                    "TypedStorage.__init__ received an invalid combination of arguments. "
                    f"Argument 'wrap_storage' must be UntypedStorage, but got {type(moved)}"
                )
            self.found[key] = moved
        return typed(self.found[key], dtype)


def open_archive(file: IO[bytes], label: str) -> Archive:
    """The archive in a file, if it is one that `save` writes."""
    archive = Archive(file, label)
    if archive.has("constants.pkl"):
        archive.close()
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. "
            "rushlight cannot load them at all: save the model's state_dict with PyTorch."
        )
    return archive


def read_pickle(archive: Archive) -> bytes:
    """The pickle of an archive."""
    data = archive.read("data.pkl")
    if not data:
        raise pickle.UnpicklingError(f"{archive.label}: its pickle is empty")
    return data
