"""`save` and `load`: tensors, and what they stand in, to a file and back.

Imported by `rushlight`, which exports both. A file is a zip archive:

    rushlight/data.pkl    the object, pickled; a tensor is a call of `_tensor` there
    rushlight/data/0      the bytes of a memory, once for all tensors that share it
    rushlight/byteorder   little or big

Note [Loading is not running]
    Unpickling calls whatever a file names. By default (`weights_only=True`) only the few functions
    of `_safe_globals` may be named, and each load gets wrappers of its own around them, so that a
    file cannot leave a mark on the functions themselves.
"""

from __future__ import annotations

import io
import os
import pickle
import secrets
import shutil
import stat
import sys
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from rushlight import dtypes
from rushlight.arrays import making
from rushlight.arrays import vocabulary as v
from rushlight.arrays.device import CPU, cuda_count, device
from rushlight.arrays.host import ByteBounds, device_of, make_array, move, to_host
from rushlight.core.graph import TensorBase
from rushlight.size import Size
from rushlight.storage import UntypedStorage
from rushlight.tensor import Tensor
from rushlight.tensor_memory import _CORE, _own_attributes, _rebuilt

__all__ = [
    "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save",
]  # fmt: skip

_FOLDER = "rushlight"
_DTYPES = {str(d): d for d in dtypes.all_dtypes}
_CORRUPT = (
    "PytorchStreamReader failed reading zip archive: failed finding central directory. If you are "
    "seeing this error, there is a high likelihood that your checkpoint file is corrupted. This "
    "can happen if the checkpoint was not saved properly, was transferred incorrectly, or the file "
    "was modified after saving."
)


# --- tensors as calls -----------------------------------------------------------------------------
class Memory:
    """The memory behind tensors, as the pickle names it."""

    def __init__(self, root: Any, location: str) -> None:
        self.root = root
        self.location = location


def _kind(cls: type) -> Any:
    """How the pickle names a tensor's class: the two of our own by name, others as themselves."""
    if cls is Tensor:
        return "Tensor"
    if f"{cls.__module__}.{cls.__qualname__}" == "rushlight.nn.parameter.Parameter":
        return "Parameter"
    return cls


def _class(kind: Any) -> Any:
    if kind == "Tensor":
        return Tensor
    if kind == "Parameter":
        from rushlight.nn.parameter import Parameter

        return Parameter
    if isinstance(kind, type) and issubclass(kind, Tensor):
        return kind
    raise pickle.UnpicklingError(f"{kind!r} is no class of tensors")


def _reduced(t: Any) -> tuple[Any, ...]:
    """A tensor as a call of `_tensor`."""
    array = to_host(t.array)
    bounds = ByteBounds(array)
    root, offset = bounds.root, bounds.offset
    if not root.flags.forc:  # its memory has gaps
        root, offset = v.copy(array), 0
        array = root
    size = array.dtype.itemsize
    return _tensor, (
        Memory(root, str(device_of(t.array))),
        str(t.dtype),
        tuple(array.shape),
        tuple(s // size for s in array.strides),
        offset,
        bool(t.requires_grad),
        _kind(type(t)),
        _own_attributes(t),
    )


def _tensor(
    memory: tuple[Any, device],
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    requires_grad: bool,
    kind: Any,
    attributes: dict[str, Any],
) -> Any:
    raw, where = memory
    array = making.over(raw, tuple(shape), tuple(strides), _DTYPES[dtype].numpy, offset)
    t = _rebuilt(_class(kind), move(array, where))
    t.leaf = bool(requires_grad) and array.dtype.kind in "fcVW"
    for key, value in attributes.items():
        if key not in _CORE and not hasattr(type(t), key):
            setattr(t, key, value)
    return t


def _dtype(name: str) -> dtypes.dtype:
    return _DTYPES[name]


def _size(sizes: list[int]) -> Size:
    return Size(sizes)


def _device(name: str) -> device:
    return device(name)


_OURS = (_tensor, _dtype, _size, _device)


# --- saving ---------------------------------------------------------------------------------------
def _pickler(module: Any, out: IO[bytes], protocol: int) -> Any:
    """A pickler of `module` that writes tensors as calls, and collects their memories."""

    class Pickler(module.Pickler):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(out, protocol)
            self.memories: list[Any] = []
            self.numbers: dict[int, int] = {}

        def persistent_id(self, obj: Any) -> Any:
            if not isinstance(obj, Memory):
                return None
            number = self.numbers.setdefault(id(obj.root), len(self.memories))
            if number == len(self.memories):
                self.memories.append(obj.root)
            return ("storage", str(number), obj.location)

        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, TensorBase):
                return _reduced(obj)
            if isinstance(obj, dtypes.dtype):
                return _dtype, (str(obj),)
            if isinstance(obj, Size):
                return _size, (list(obj),)
            if isinstance(obj, device):
                return _device, (str(obj),)
            above = getattr(super(), "reducer_override", None)
            return NotImplemented if above is None else above(obj)

    return Pickler()


def _write(obj: Any, file: IO[bytes], module: Any, protocol: int) -> None:
    data = io.BytesIO()
    pickler = _pickler(module, data, protocol)
    pickler.dump(obj)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{_FOLDER}/data.pkl", data.getbuffer())
        archive.writestr(f"{_FOLDER}/byteorder", sys.byteorder)
        for number, root in enumerate(pickler.memories):
            with archive.open(f"{_FOLDER}/data/{number}", "w", force_zip64=True) as entry:
                entry.write(memoryview(making.bytes_of(root)))


@contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` when all of it is written, and not before."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "wb") as file:  # a device or a pipe: nothing to replace
            yield file
        return
    part = f"{path}.{secrets.token_hex(4)}.part"
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            shutil.copymode(path, part)
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.remove(part)
        raise


def save(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """save(obj, f, pickle_module=pickle, pickle_protocol=2): an object to a path or an open file.

    A file at a path is replaced when the new one is complete: an interrupted save leaves the old.

    >>> import io
    >>> import rushlight as torch
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'w': tensor([1., 1.])}
    """
    if isinstance(f, str | os.PathLike):
        with _replacing(os.fspath(f)) as file:
            _write(obj, file, pickle_module, pickle_protocol)
    elif hasattr(f, "write"):
        _write(obj, f, pickle_module, pickle_protocol)
    else:
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
        )


# --- what a file may name -------------------------------------------------------------------------
_allowed: dict[str, Any] = {}


def _name(obj: Any) -> str:
    return f"{obj.__module__}.{obj.__qualname__}"


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let files that are loaded with `weights_only=True` name these classes and functions.

    >>> import rushlight as torch
    >>> class Config:
    ...     pass
    >>> torch.serialization.add_safe_globals([Config])
    >>> torch.serialization.get_safe_globals() == [Config]
    True
    >>> torch.serialization.clear_safe_globals()
    """
    for item in safe_globals:
        thing, name = item if isinstance(item, tuple) else (item, _name(item))
        _allowed[name] = thing


def get_safe_globals() -> list[Any]:
    """What was added by `add_safe_globals`."""
    return list(_allowed.values())


def clear_safe_globals() -> None:
    """Forget what was added by `add_safe_globals`."""
    _allowed.clear()


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """`add_safe_globals` for the length of a `with` block."""
    before = dict(_allowed)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _allowed.clear()
        _allowed.update(before)


def _encode(text: str, encoding: str) -> bytes:
    return text.encode(encoding)  # how protocol 2 writes bytes


_safe_globals: dict[str, Callable[..., Any]] = {
    **{_name(fn): fn for fn in _OURS},
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "_codecs.encode": _encode,
    "builtins.bytearray": bytearray,
    "builtins.set": set,
    "builtins.frozenset": frozenset,
    "builtins.complex": complex,
    "__builtin__.bytearray": bytearray,
    "__builtin__.set": set,
    "__builtin__.frozenset": frozenset,
    "__builtin__.complex": complex,
}


def _wrapped(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of its own around a safe one. See Note [Loading is not running]."""

    def call(*args: Any) -> Any:
        return fn(*args)

    return call


def _refused(name: str) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(
        "Weights only load failed. This file can still be loaded, to do so you have two options, "
        "do those steps only if you trust the source of the checkpoint. \n"
        "\t(1) Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but "
        "it can result in arbitrary code execution. Do it only if you got the file from a trusted "
        "source.\n"
        "\t(2) Alternatively, to load with `weights_only=True` please check the recommended steps "
        "in the following error message.\n"
        f"\tWeightsUnpickler error: Unsupported global: GLOBAL {name} was not an allowed global by "
        f"default. Please use `torch.serialization.add_safe_globals([{name}])` or the "
        f"`torch.serialization.safe_globals([{name}])` context manager to allowlist this global if "
        "you trust this class/function."
    )


# --- loading --------------------------------------------------------------------------------------
class Memories:
    """The memories of an archive, read when first named."""

    def __init__(self, archive: zipfile.ZipFile, map_location: Any) -> None:
        self.archive = archive
        self.map_location = map_location
        self.found: dict[str, tuple[Any, device]] = {}
        order = archive.read(f"{_FOLDER}/byteorder").decode("ascii")
        if order != sys.byteorder:
            raise RuntimeError(
                f"the file was saved on a {order}-endian machine, and this one is "
                f"{sys.byteorder}-endian: its numbers cannot be read here"
            )

    def get(self, name: Any) -> tuple[Any, device]:
        if not (isinstance(name, tuple) and len(name) == 3 and name[0] == "storage"):
            raise pickle.UnpicklingError(f"unknown persistent id: {name!r}")
        number, location = str(name[1]), str(name[2])
        if number not in self.found:
            entry = self.archive.getinfo(f"{_FOLDER}/data/{number}")
            raw = make_array((entry.file_size,), dtypes.uint8.numpy, CPU)
            with self.archive.open(entry) as file:
                if file.readinto(memoryview(raw)) != entry.file_size:  # type: ignore[attr-defined]
                    raise RuntimeError(_CORRUPT)
            self.found[number] = raw, self.place(raw, location)
        return self.found[number]

    def place(self, raw: Any, location: str) -> device:
        """Where a memory that was at `location` goes."""
        wanted = self.map_location
        if isinstance(wanted, dict):
            wanted = wanted.get(location, location)
        elif callable(wanted):
            moved = wanted(UntypedStorage._of(raw), location)
            wanted = location if moved is None else CPU  # storages of rushlight are on the CPU
        where = device(location if wanted is None else wanted)
        if where.type == "cuda" and cuda_count() == 0:
            raise RuntimeError(
                "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() "
                "is False. If you are running on a CPU-only machine, please use torch.load with "
                "map_location=torch.device('cpu') to map your storages to the CPU."
            )
        return where


def _unpickler(module: Any, data: bytes, memories: Memories, safe: bool, options: Any) -> Any:
    class Unpickler(module.Unpickler):  # type: ignore[misc]
        def persistent_load(self, name: Any) -> Any:
            return memories.get(name)

        def find_class(self, module_name: str, name: str) -> Any:
            if not safe:
                return super().find_class(module_name, name)
            whole = f"{module_name}.{name}"
            if whole in _safe_globals:
                return _wrapped(_safe_globals[whole])
            if whole in _allowed:
                return _allowed[whole]
            raise _refused(whole)

    return Unpickler(io.BytesIO(data), **options)


def _read(file: IO[bytes], map_location: Any, module: Any, safe: bool, options: Any) -> Any:
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    if not head:
        raise EOFError("Ran out of input")
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile:
        if head[:2] == b"PK":
            raise RuntimeError(_CORRUPT) from None
        raise pickle.UnpicklingError("this is no file that `torch.save` wrote") from None
    with archive:
        if f"{_FOLDER}/data.pkl" not in archive.namelist():
            raise RuntimeError(
                "this archive was not written by rushlight's `save`: it has no entry "
                f"{_FOLDER}/data.pkl"
            )
        memories = Memories(archive, map_location)
        data = archive.read(f"{_FOLDER}/data.pkl")
        return _unpickler(module, data, memories, safe, options).load()


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None): what `save`
    wrote.

    With `weights_only` the file may hold tensors, numbers, text and containers of them, and
    nothing else. `map_location` says on which device tensors go: a device, a dictionary from where
    they were to where they shall be, or a function. `mmap` changes nothing.

    >>> import io
    >>> import rushlight as torch
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
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return _read(file, map_location, module, safe, pickle_load_args)
    for method in ("seek", "tell", "read"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load "
                "from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead."
            )
    return _read(f, map_location, module, safe, pickle_load_args)
