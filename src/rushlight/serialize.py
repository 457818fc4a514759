"""`save` and `load`: tensors, and what they stand in, to a file and back.

A file is a zip archive:

    rushlight/data.pkl    the object, pickled; a tensor is a call of `_tensor` there
    rushlight/data/0      the bytes of a memory, once for all tensors that share it
    rushlight/byteorder   little or big

How it gets to the disk and back stands in `serialize_archive`.

Note [Loading is not running]
    Unpickling calls whatever a file names. By default (`weights_only=True`) only the few functions
    of `_safe_globals` may be named, and each believes nothing that it is told; `serialize_safe`
    reads the pickle, and knows nothing that could do more. Whatever a file holds, `load` then gives
    what `save` wrote or raises one of

        RuntimeError              the archive is damaged, or a tensor does not fit its memory
        pickle.UnpicklingError    the pickle is damaged, or names what it may not
        EOFError                  the file is empty
        OSError                   the file cannot be opened or read
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, Final

from rushlight import dtypes
from rushlight.arrays import making
from rushlight.arrays import vocabulary as v
from rushlight.arrays.device import CPU, cuda_count, device
from rushlight.arrays.host import ByteBounds, device_of, make_array, move, to_host
from rushlight.core.graph import TensorBase
from rushlight.serialize_archive import Archive, corrupt, replacing, write_entry
from rushlight.serialize_safe import Reader, key_of
from rushlight.size import Size
from rushlight.storage import UntypedStorage, among
from rushlight.tensor import Tensor
from rushlight.tensor_memory import _CORE, _own_attributes, _rebuilt

__all__ = [
    "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save",
]  # fmt: skip
__dir__ = __all__.copy

_FOLDER: Final = "rushlight"
_DTYPES: Final = {str(d): d for d in dtypes.all_dtypes}


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
    array = to_host(t._array)
    bounds = ByteBounds(array)
    root, offset = bounds.root, bounds.offset
    if not root.flags.forc or not making.plain_bytes(root, array, offset):
        root, offset = v.copy(array), 0  # its memory has gaps, or is more than numbers
        array = root
    size = array.dtype.itemsize
    return _tensor, (
        Memory(root, str(device_of(t._array))), str(t.dtype), tuple(array.shape),
        tuple(s // size for s in array.strides), offset, bool(t.requires_grad), _kind(type(t)),
        _own_attributes(t),
    )  # fmt: skip


class Loaded:
    """The memory behind tensors, as a file had it, and the device that it goes to."""

    def __init__(self, raw: Any, where: device) -> None:
        self.raw = raw
        self.where = where


def _tensor(
    memory: Loaded, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int,
    requires_grad: bool, kind: Any, attributes: dict[str, Any],
) -> Any:  # fmt: skip
    if not isinstance(memory, Loaded) or dtype not in _DTYPES or type(attributes) is not dict:
        raise pickle.UnpicklingError("a tensor in this file is not as `save` writes it")
    raw = _DTYPES[dtype].numpy
    _check_place(shape, strides, offset, raw.itemsize)
    try:
        array = making.over(memory.raw, shape, strides, raw, offset)
    except (ValueError, OverflowError) as error:
        raise corrupt("reading a tensor", f"shape {shape}, strides {strides}: {error}") from error
    t = _rebuilt(_class(kind), move(array, memory.where))
    among(t)
    t._requires_grad = bool(requires_grad) and array.dtype.kind in "fcVW"
    for key, value in attributes.items():
        if type(key) is str and key not in _CORE and not hasattr(Tensor, key):
            vars(t)[key] = value
    return t


def _check_place(shape: Any, strides: Any, offset: Any, size: int) -> None:
    """Refuse a place in memory that no tensor has; `making.over` refuses what is outside it."""
    numbers = (*shape, *strides, offset) if type(shape) is type(strides) is tuple else (None,)
    if not all(type(n) is int and n >= 0 for n in numbers):
        raise corrupt("reading a tensor", "its shape, strides or offset are no natural numbers")
    if len(shape) != len(strides) or offset % size:
        raise corrupt(
            "reading a tensor", f"shape {shape}, strides {strides}, offset {offset} do not agree"
        )


def _dtype(name: str) -> dtypes.dtype:
    return _DTYPES[name]


def _size(sizes: list[int]) -> Size:
    if type(sizes) is not list or not all(type(n) is int for n in sizes):
        raise pickle.UnpicklingError("a size is not as `save` writes it")
    return Size(sizes)


def _device(name: str) -> device:
    return device(name)


_OURS = (_tensor, _dtype, _size, _device)


# --- saving ---------------------------------------------------------------------------------------
class _Saving:
    """Part of a pickler: writes tensors as calls, and collects their memories."""

    memories: list[Any]
    numbers: dict[int, int]

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


class _Pickler(_Saving, pickle.Pickler):
    """The pickler of files."""


def _pickled(obj: Any, module: Any, protocol: int) -> tuple[Any, list[Any]]:
    """An object as the bytes of a pickle, and the memories that the pickle refers to."""
    cls: Any = _Pickler
    if module is not pickle:
        cls = type("_Pickler", (_Saving, module.Pickler), {})
    data = io.BytesIO()
    pickler = cls(data, protocol)
    pickler.memories, pickler.numbers = [], {}
    pickler.dump(obj)
    return data.getbuffer(), pickler.memories


def _write(data: Any, memories: list[Any], file: IO[bytes]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{_FOLDER}/data.pkl", data)
        archive.writestr(f"{_FOLDER}/byteorder", sys.byteorder)
        for number, root in enumerate(memories):
            write_entry(archive, f"{_FOLDER}/data/{number}", memoryview(making.bytes_of(root)))


def save(
    obj: object, f: Any, pickle_module: Any = pickle, pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:  # fmt: skip
    """save(obj, f, pickle_module=pickle, pickle_protocol=2): an object to a path or an open file.

    A file at a path is replaced when the new one is complete: a save that fails or is killed
    leaves the old. A tensor that another thread writes meanwhile is saved as it is found.

    >>> import io
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'w': tensor([1., 1.])}
    """
    if isinstance(f, str | os.PathLike):
        data, memories = _pickled(obj, pickle_module, pickle_protocol)
        with replacing(os.fspath(f)) as file:
            _write(data, memories, file)
    elif hasattr(f, "write"):
        _write(*_pickled(obj, pickle_module, pickle_protocol), f)
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
    if encoding != "latin1":  # how protocol 2 writes bytes
        raise pickle.UnpicklingError(f"text in {encoding!r} is not what `save` writes")
    return text.encode(encoding)


def _bytearray(data: Any = b"", encoding: str = "latin1") -> bytearray:
    if type(data) is str:
        return bytearray(_encode(data, encoding))
    if type(data) is not bytes:  # of a number, it would be as long as that
        raise pickle.UnpicklingError("a bytearray is not as `save` writes it")
    return bytearray(data)


def _from_items(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes a container of what stands in a list, tuple or dictionary."""

    def made(items: Any = ()) -> Any:
        if type(items) not in (list, tuple, dict):
            raise pickle.UnpicklingError(f"{make.__name__} is not as `save` writes it")
        for item in items:
            key_of(item)
        return make(items)

    return made


def _ordered(items: Any = ()) -> Any:
    if type(items) not in (list, tuple, dict):
        raise pickle.UnpicklingError("OrderedDict is not as `save` writes it")
    made: OrderedDict[Any, Any] = OrderedDict()
    for key, value in items.items() if type(items) is dict else items:
        made[key_of(key)] = value
    return made


def _complex(real: float, imag: float) -> complex:
    return complex(float(real), float(imag))


_safe_globals: Final[dict[str, Callable[..., Any]]] = {
    **{_name(fn): fn for fn in _OURS},
    "collections.OrderedDict": _ordered,
    "collections.Counter": _from_items(Counter),
    "_codecs.encode": _encode,
    **{
        f"{module}.{name}": fn
        for module in ("builtins", "__builtin__")
        for name, fn in (
            ("bytearray", _bytearray), ("set", _from_items(set)), ("complex", _complex),
            ("frozenset", _from_items(frozenset)),
        )
    },
}  # fmt: skip


def _failed(what: str) -> pickle.UnpicklingError:
    """The error for a pickle that `weights_only=True` does not load."""
    return pickle.UnpicklingError(
        "Weights only load failed. Re-running `torch.load` with `weights_only` set to `False` may "
        "succeed, but it can result in arbitrary code execution. Do it only if you got the file "
        f"from a trusted source.\nWeightsUnpickler error: {what}"
    )


def _find(name: str) -> Any:
    """What a file names. See Note [Loading is not running]."""
    if name in _safe_globals:
        return _safe_globals[name]
    if name in _allowed:
        return _allowed[name]
    raise _Refused(name)


class _Refused(Exception):
    """A file names what it may not."""


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


def _load_safely(data: bytes, memories: Memories) -> Any:
    allowed = list(_allowed.values())
    calls = list(_safe_globals.values())
    try:
        return Reader(data, _find, memories.get, calls, allowed).load()
    except _Refused as refused:
        raise _refused(str(refused)) from None
    except pickle.UnpicklingError as error:
        raise _failed(str(error)) from None
    except (OSError, RuntimeError, MemoryError):
        raise
    except Exception as error:  # what it does not raise by itself, its numbers and names did
        raise _failed(f"the pickle is damaged: {type(error).__name__}: {error}") from error


# --- loading --------------------------------------------------------------------------------------
class Memories:
    """The memories of an archive, read when first named."""

    def __init__(self, archive: Archive, map_location: Any) -> None:
        self.archive = archive
        self.map_location = map_location
        self.found: dict[str, Loaded] = {}
        order = archive.read(f"{_FOLDER}/byteorder").decode("latin1")
        if order != sys.byteorder:
            raise RuntimeError(
                f"the file was saved on a {order}-endian machine, and this one is "
                f"{sys.byteorder}-endian: its numbers cannot be read here"
            )

    def get(self, name: Any) -> Loaded:
        if not (
            type(name) is tuple and len(name) == 3 and all(type(x) is str for x in name)
            and name[0] == "storage"
        ):  # fmt: skip
            raise pickle.UnpicklingError("unknown persistent id")
        number, location = name[1], name[2]
        if number not in self.found:
            entry = f"{_FOLDER}/data/{number}"
            raw = make_array((self.archive.size(entry),), dtypes.uint8.numpy, CPU)
            self.archive.read_into(entry, memoryview(raw))
            self.found[number] = Loaded(raw, self.place(raw, location))
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


class _Loading:
    """Part of an unpickler: knows the memories that the pickle refers to."""

    memories: Memories

    def persistent_load(self, name: Any) -> Any:
        return self.memories.get(name)


class _Unpickler(_Loading, pickle.Unpickler):
    """The unpickler of files that are trusted."""


def _read(
    file: IO[bytes], label: str, map_location: Any, module: Any, safe: bool, options: Any
) -> Any:
    start = file.tell()
    head = file.read(2)
    file.seek(start)
    if not head:
        raise EOFError(f"Ran out of input: {label} is empty")
    if head != b"PK":
        raise pickle.UnpicklingError(
            f"{label} is no file that `torch.save` wrote: it does not begin as a zip archive does"
        )
    archive = Archive(file, label)
    try:
        if f"{_FOLDER}/data.pkl" not in archive.names():
            raise RuntimeError(
                f"{label} was not written by rushlight's `save`: it has no entry "
                f"{_FOLDER}/data.pkl. A checkpoint of PyTorch's is loaded with PyTorch; give what "
                "is in it to rushlight as NumPy arrays."
            )
        memories = Memories(archive, map_location)
        data = archive.read(f"{_FOLDER}/data.pkl")
        if safe:
            return _load_safely(data, memories)
        cls: Any = _Unpickler
        if module is not pickle:
            cls = type("_Unpickler", (_Loading, module.Unpickler), {})
        unpickler = cls(io.BytesIO(data), **options)
        unpickler.memories = memories
        return unpickler.load()
    finally:
        archive.close()


def load(
    f: Any, map_location: Any = None, pickle_module: Any = None, *,
    weights_only: bool | None = None, mmap: bool | None = None, **pickle_load_args: Any,
) -> Any:  # fmt: skip
    """load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None): what `save`
    wrote.

    With `weights_only` the file may hold tensors, numbers, text and containers of them, and
    nothing else. `map_location` says on which device tensors go: a device, a dictionary from where
    they were to where they shall be, or a function. `mmap` changes nothing.

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
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return _read(file, os.fspath(f), map_location, module, safe, pickle_load_args)
    for method in ("seek", "tell", "read"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load "
                "from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead."
            )
    label = getattr(f, "name", None)
    label = label if isinstance(label, str) else f"a {type(f).__name__}"
    return _read(f, label, map_location, module, safe, pickle_load_args)
