"""`save` and `load`: tensors, and what they stand in, to a file and back.

save   pickle the object (`storages`, `names`), write pickle and memories (`zipped`, `legacy`),
       and put the file in place when it is whole (`replace`)
load   find out the format, read the pickle (`allowed`, `safe`, or Python's own unpickler), and
       each memory when the pickle names it (`locations` says where it goes)
"""

from __future__ import annotations

import io
import os
import pickle
from functools import partial
from typing import IO, Any

from rushlight.serialization import legacy, names, old, options, zipped
from rushlight.serialization.allowed import read_safely, unknown_names
from rushlight.serialization.replace import replacing
from rushlight.serialization.storages import Saving


# --- saving ---------------------------------------------------------------------------------------
class _Pickler(Saving, pickle.Pickler):
    """The pickler of files."""


def _pickled(
    obj: Any, module: Any, protocol: int, legacy: bool
) -> tuple[bytes, list[tuple[str, Any, int]]]:
    """An object as the bytes of a pickle, and the memories that the pickle refers to."""
    cls: Any = _Pickler
    if module is not pickle:
        cls = type("_Pickler", (Saving, module.Pickler), {})
    data = io.BytesIO()
    pickler = cls(data, protocol)
    pickler.begin(legacy)
    pickler.dump(obj)
    spelt = names.respell(data.getvalue(), pickler.named, protocol)
    return spelt, list(pickler.memories.values())


def save(
    obj: object, f: Any, pickle_module: Any = pickle, pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True, _disable_byteorder_record: bool = False,
) -> None:  # fmt: skip
    """save(obj, f, pickle_module=pickle, pickle_protocol=2): an object to a path or an open file,
    in PyTorch's format: PyTorch's `torch.load` reads it, too.

    A file at a path is replaced when the new one is complete: a save that fails or is killed
    leaves the old. A tensor that another thread writes meanwhile is saved as it is found.

    Args:
        obj: anything that pickle takes; best a `state_dict()`, which loads without its code.
        f: a path, or a file open for writing bytes.
        pickle_module, pickle_protocol: what pickles, and how.

    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'w': tensor([1., 1.])}
    """
    named = isinstance(f, str | os.PathLike)
    if not named and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )
    older = not _use_new_zipfile_serialization
    data, memories = _pickled(obj, pickle_module, pickle_protocol, older)

    def write(file: IO[bytes], folder: str) -> None:
        if older:
            legacy.write_legacy(data, memories, file, pickle_protocol)
        else:
            zipped.write_archive(data, memories, file, folder, not _disable_byteorder_record)

    if named:
        with replacing(os.fspath(f)) as file:
            write(file, zipped.folder_of(f))
    else:
        write(f, "archive")


# --- loading --------------------------------------------------------------------------------------
class _Loading:
    """Part of an unpickler of files that are trusted: knows what the pickle refers to, and whose
    names it spells."""

    get: Any

    def persistent_load(self, name: Any) -> Any:
        return self.get(name)

    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" in old.CALLS:
            return old.CALLS[f"{module}.{name}"]
        if names.is_theirs(module):
            return names.ours(module, name)
        return super().find_class(module, name)  # type: ignore[misc]


class _Unpickler(_Loading, pickle.Unpickler):
    """The unpickler of files that are trusted."""


def _unpickler(module: Any) -> Any:
    if module is pickle:
        return _Unpickler
    return type("_Unpickler", (_Loading, module.Unpickler), {})


def _read(
    file: IO[bytes], label: str, map_location: Any, module: Any, safe: bool, mapped: bool,
    given: dict[str, Any],
) -> Any:  # fmt: skip
    encoding = given.setdefault("encoding", "utf-8")
    unpickle = legacy.unpickler_of(_unpickler(module), given)
    if safe:
        unpickle = partial(read_safely, encoding=encoding)
    if not _is_zip(file, label):
        if mapped:
            raise RuntimeError(
                "mmap can only be used with files saved with `torch.save("
                f"{label}, _use_new_zipfile_serialization=True), please torch.save your checkpoint "
                "with this option in order to use mmap."
            )
        if legacy.is_tar(file):
            if safe:
                raise RuntimeError(
                    "Cannot use ``weights_only=True`` with files saved in the legacy .tar format. "
                    "Load it with `weights_only=False` if you trust it, and save it again."
                )
            return legacy.read_tar(file, label, map_location, unpickle)
        return legacy.read(file, label, map_location, unpickle)
    archive = zipped.open_archive(file, label)
    try:
        storages = zipped.ZipStorages(archive, map_location, mapped)
        return unpickle(zipped.read_pickle(archive), 0, storages.get)[0]
    finally:
        archive.close()


def _is_zip(file: IO[bytes], label: str) -> bool:
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    if not head:
        raise EOFError(f"Ran out of input: {label} is empty")
    return head[:2] == b"PK"


def _check_seekable(f: Any) -> str:
    """The name by which errors call an open file."""
    for method in ("seek", "tell", "read"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load "
                "from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead."
            )
    label = getattr(f, "name", None)
    return label if isinstance(label, str) else f"a {type(f).__name__}"


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *,
    weights_only: bool | None = None, mmap: bool | None = None, **pickle_load_args: Any,
) -> Any:  # fmt: skip
    """load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None): what `save`
    wrote, here or in PyTorch.

    Args:
        f: a path, or a file open for reading bytes.
        map_location: on which device tensors go: a device, a dictionary from where they were to
            where they shall be, or a function of a storage and where it was.
        pickle_module: what unpickles, in place of pickle; not with `weights_only`.
        weights_only: whether the file may hold tensors, numbers, text and containers of them, and
            nothing else. Without it a file may run any code: only for files you trust.
        mmap: whether numbers are read from the file when they are used.
        pickle_load_args: passed to the unpickler, such as `encoding="latin1"`.

    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save(torch.nn.Linear(2, 1).state_dict(), file)
    >>> _ = file.seek(0)
    >>> list(torch.load(file))
    ['weight', 'bias']
    """
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    safe = pickle_module is None if weights_only is None else weights_only
    module = pickle if pickle_module is None else pickle_module
    mapped = bool(mmap)
    if isinstance(f, str | os.PathLike):
        shared = mapped and options.maps_shared()
        with open(f, "r+b" if shared else "rb") as file:
            label = os.fsdecode(f)
            return _read(file, label, map_location, module, safe, mapped, pickle_load_args)
    if mapped:
        raise ValueError("f must be a file path in order to use the mmap argument")
    label = _check_seekable(f)
    return _read(f, label, map_location, module, safe, mapped, pickle_load_args)


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a file that `load` would refuse with `weights_only=True`.

    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save(torch.nn.Identity(), file)
    >>> _ = file.seek(0)
    >>> torch.serialization.get_unsafe_globals_in_checkpoint(file)[0]
    'torch.nn.modules.linear.Identity'
    """
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return _unsafe_in(file, os.fsdecode(f))
    return _unsafe_in(f, _check_seekable(f))


def _unsafe_in(file: IO[bytes], label: str) -> list[str]:
    if not _is_zip(file, label):
        raise ValueError("Expected input to be a checkpoint returned by torch.save")
    archive = zipped.open_archive(file, label)
    try:
        return unknown_names(zipped.read_pickle(archive))
    finally:
        archive.close()
