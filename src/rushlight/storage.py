"""Storages: the memory behind tensors as objects, as `Tensor.storage()` shows it.

Made by `tensor_memory`. A storage looks at the memory, it does not own it: two storages of tensors
that share memory are equal, and writing into one writes into the tensors. Here stands, too, how all
that look at one memory follow when it grows: see Note [Who shares memory] in `core.graph`.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Iterator
from typing import Any, Final
from weakref import ref

from rushlight import dtypes
from rushlight.arrays import making, shared
from rushlight.arrays import vocabulary as v
from rushlight.arrays.device import CPU, cuda_count, device
from rushlight.arrays.device import device as device_from
from rushlight.arrays.host import (
    ByteBounds,
    address,
    device_of,
    is_array,
    make_array,
    map_file,
    move,
    put_off_as,
    root_of,
    shares_root,
)  # fmt: skip
from rushlight.core.graph import Storage, TensorBase, extra_of, note, sharers_of
from rushlight.ops.shape.contiguous import lent
from rushlight.ops.warned import warn_caller

__all__ = ["TypedStorage", "UntypedStorage"]
__dir__ = __all__.copy


_FORMS: Final = (
    "TypedStorage.__init__ received an invalid combination of arguments. Expected one of:\n"
    " * (*, torch.device device, torch.dtype dtype)\n"
    " * (int size, *, torch.device device, torch.dtype dtype)\n"
    " * (Sequence data, *, torch.device device, torch.dtype dtype)\n"
    " * (*, UntypedStorage wrap_storage, torch.dtype dtype)\n"
)


class _Storage:
    """What both kinds of storage share: a flat array over the memory."""

    _array: Any
    _bytes: Any
    _memory: Storage
    _part = False  # a slice of another storage
    _file: str | None = None

    def data_ptr(self) -> int:
        """The address of the memory."""
        return address(self._bytes)

    def nbytes(self) -> int:
        return int(self._bytes.size)

    def size(self) -> int:
        """How many elements it holds."""
        return int(self._array.size)

    def element_size(self) -> int:
        return int(self._array.itemsize)

    def tolist(self) -> list[Any]:
        found: list[Any] = self._array.tolist()
        return found

    def fill_(self, value: Any) -> Any:
        self._array.fill(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Any:
        if source.size() != self.size():
            raise RuntimeError(
                f"size mismatch: expected {self.size()} elements but got {source.size()}"
            )
        v.overwrite(self._array, source._array)
        return self

    def is_shared(self) -> bool:
        """Whether other processes can see the memory."""
        return shared.is_shared(self._bytes)

    def share_memory_(self) -> Any:
        """Move the memory to where other processes can see it, for all that look at it."""
        self._look_at(move_to_shared(self._bytes, self._memory))
        return self

    def is_pinned(self, device: Any = "cuda") -> bool:
        return False

    def resizable(self) -> bool:
        """Whether the memory may grow: not if NumPy has it too, nor as a part of other memory."""
        return not self._part and not lent(self._bytes)

    def get_device(self) -> int:
        """The number of the GPU it is on; -1 on the CPU."""
        where = self.device
        return -1 if where is CPU else where.index or 0

    def cpu(self) -> Any:
        """The storage itself, or a copy on the CPU."""
        return self.to(device=CPU)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """The storage itself, or a copy on a GPU."""
        return self.to(device="cuda" if device is None else device)

    def to(self, *, device: Any, non_blocking: bool = False) -> Any:
        """The storage itself if it is on the device, or a copy there."""
        moved = move(self._bytes, device_from(device))
        return self if moved is self._bytes else self._over(moved)

    def pin_memory(self, device: Any = None) -> Any:
        """The storage itself: CuPy pins memory as it copies."""
        if cuda_count() == 0:
            raise RuntimeError("Cannot access accelerator device when none is available.")
        return self

    def _converted(self, dtype: dtypes.dtype) -> Any:
        """Its elements as those of another dtype, in memory of their own."""
        return TypedStorage._typed(making.bytes_of(v.cast(self._array, dtype.numpy)), dtype.numpy)

    @property
    def device(self) -> device:
        return device_of(self._bytes)

    @property
    def filename(self) -> str | None:
        """The file that the memory is, if `from_file` made it of one, shared."""
        return self._file

    @property
    def is_cuda(self) -> bool:
        return device_of(self._bytes) is not CPU

    @property
    def is_sparse_csr(self) -> bool:
        return False

    @property
    def is_sparse(self) -> bool:
        return False

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    def __copy__(self) -> Any:
        return self.clone()

    def __reduce__(self) -> Any:
        """The memory that tensors are pickled or copied with, and where it begins there."""
        memory, start = self._bytes, 0
        root = root_of(memory)
        if root.flags.forc and not root.dtype.hasobject:
            start = address(memory) - ByteBounds(root).start if memory.size else 0
            memory = root
        return _restored, (type(self), memory, start, self.nbytes(), dtypes.of(self._array.dtype))

    def clone(self) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return self.size()

    def __sizeof__(self) -> int:
        """What `sys.getsizeof` says: the object and its memory, by which tools sum up a network."""
        return object.__sizeof__(self) + self.nbytes()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = self._over(self._bytes_at(index))
            part._part = True
            return part
        return self._array[self._place(index)].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array[index if isinstance(index, slice) else self._place(index)] = value

    def _place(self, index: Any) -> int:
        """An index of one element, or PyTorch's error."""
        if not isinstance(index, int):
            name = f"torch.storage.{type(self).__name__}"
            raise RuntimeError(f"can't index a <class '{name}'> with {type(index)}")
        if not -self.size() <= index < self.size():
            raise IndexError(f"index {index} out of range for storage of size {self.size()}")
        return index

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Storage)
            and self.data_ptr() == other.data_ptr()
            and self.nbytes() == other.nbytes()
        )

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))

    def __repr__(self) -> str:
        if self.device.type == "meta":
            return f"...\n[{self._title()} of size {self.size()}]"
        lines = "\n ".join(str(x) for x in self.tolist())
        return f" {lines}\n[{self._title()} of size {self.size()}]"

    def _bytes_at(self, index: slice) -> Any:
        size = self._array.itemsize
        start, stop, step = index.indices(self.size())
        if step != 1:
            raise RuntimeError(
                f"Trying to slice with a step of {step}, but only a step of 1 is supported"
            )
        return self._bytes[start * size : max(stop, start) * size]

    def _over(self, memory: Any) -> Any:
        raise NotImplementedError

    def _look_at(self, memory: Any) -> None:
        self._bytes = memory
        self._array = memory.view(self._array.dtype)

    def _title(self) -> str:
        raise NotImplementedError


class UntypedStorage(_Storage):
    """Memory as bytes.

    >>> torch.ones(2, 3)[0].untyped_storage().nbytes()
    24
    """

    def __init__(self, size: Any = 0, *, device: Any = None) -> None:
        size = _whole(size)
        if not isinstance(size, int) and not hasattr(size, "__len__"):
            raise RuntimeError(
                "torch.UntypedStorage(): Expected a sequence type, but got "
                f"{dtypes.type_name(size)}"
            )
        values = None if isinstance(size, int) else list(size)
        for x in values or ():
            if not isinstance(x, int):
                raise RuntimeError(
                    "torch.UntypedStorage(): tried to construct a storage from a sequence "
                    f"({dtypes.type_name(size)}), but one of the items was of type "
                    f"{dtypes.type_name(x)} instead of int"
                )
        count = size if values is None else len(values)
        _refuse_negative(count)
        where = CPU if device is None else device_from(device)
        self._bytes = make_array((count,), dtypes.uint8.numpy, where)
        self._array = self._bytes
        self._memory = Storage()
        note(self._memory, self)
        if values is not None:
            v.overwrite(self._bytes, making.from_data(values, self._bytes.dtype, lambda x: None))

    @classmethod
    def _of(cls, array: Any, memory: Storage | None = None) -> UntypedStorage:
        """The memory behind an array. `memory`: what knows the tensors over it."""
        made = object.__new__(cls)
        made._bytes = made._array = making.bytes_of(array)
        made._memory = Storage() if memory is None else memory
        note(made._memory, made)
        return made

    def untyped(self) -> UntypedStorage:
        return self

    def clone(self) -> UntypedStorage:
        return UntypedStorage._of(v.copy(self._bytes))

    def resize_(self, size: int) -> UntypedStorage:
        """Change the number of bytes, for all that share the memory.

        A tensor that needs more bytes than are left keeps the old memory, until there are enough.
        """
        if self._part:
            raise RuntimeError("Trying to resize storage that is not resizable")
        self._look_at(enlarge(self._bytes, size, self._memory))
        return self

    def _over(self, memory: Any) -> UntypedStorage:
        made = object.__new__(UntypedStorage)
        made._bytes = made._array = memory
        made._memory = Storage()
        return made

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file, as memory. `shared`: what is written goes into the file, which
        grows to `nbytes` if it is shorter; else the file stays as it is.

        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     torch.UntypedStorage.from_file(file.name, True, 2).fill_(7).tolist()
        [7, 7]
        """
        name = os.fspath(filename)
        made = cls._of(map_file(name, bool(shared), int(nbytes)))
        made._file = name if shared else None
        return made

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0,
        dtype: Any = None,
    ) -> UntypedStorage:  # fmt: skip
        """A copy of the bytes of a buffer, in this machine's order of bytes.

        >>> torch.UntypedStorage.from_buffer(b"ab", "big", dtype=torch.int16).tolist()
        [98, 97]
        """
        if dtype is None:
            raise RuntimeError("argument 'dtype' cannot be None")
        if byte_order is None and dtype.itemsize > 1:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        if byte_order not in ("native", "little", "big", None):
            raise ValueError(
                f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')"
            )
        memory = making.bytes_in(buffer, dtype.itemsize, count, offset)
        made = cls._of(memory)
        if byte_order not in (None, "native", sys.byteorder):
            made.byteswap(dtype)
        return made

    def byteswap(self, dtype: dtypes.dtype) -> None:
        """Turn the order of the bytes of each number around; a complex number is two."""
        size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        making.swap_bytes(self._bytes[: self.nbytes() // size * size], size)

    def new(self) -> UntypedStorage:
        """An empty storage."""
        return UntypedStorage(0)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of its class; with a dtype, its bytes as elements of that."""
        return "torch.storage.UntypedStorage" if dtype is None else self._converted(dtype)

    def _title(self) -> str:
        return f"torch.storage.UntypedStorage(device={self.device})"


class TypedStorage(_Storage):
    """Memory as elements of one dtype.

    >>> TypedStorage._of(torch.arange(3).numpy()).tolist()
    [0, 1, 2]
    """

    _warned = False
    _unread: list[Any] | None = None  # what is to be done when a file's numbers have been read

    def __new__(
        cls, *args: Any, wrap_storage: Any = None, dtype: Any = None, device: Any = None,
        _internal: bool = False,
    ) -> TypedStorage:  # fmt: skip
        if not _internal:
            cls._warn()
        if args and wrap_storage is not None:
            raise RuntimeError(
                _FORMS + "No positional arguments should be given when using 'wrap_storage'"
            )
        if len(args) > 1:
            raise RuntimeError(_FORMS + "Too many positional arguments")
        if wrap_storage is None:
            dtype = dtypes.get_default_dtype() if dtype is None else dtype
            if not isinstance(dtype, dtypes.dtype):
                raise RuntimeError(_FORMS + f"expected torch.dtype, but got {builtins.type(dtype)}")
        if dtype is None:
            raise RuntimeError(_FORMS + "Argument 'dtype' must be specified")
        if not isinstance(dtype, dtypes.dtype):
            raise TypeError(
                _FORMS + f"Argument 'dtype' must be torch.dtype, not {builtins.type(dtype)}"
            )
        if wrap_storage is not None and not isinstance(wrap_storage, UntypedStorage):
            raise TypeError(
                _FORMS + "Argument 'wrap_storage' must be UntypedStorage, but got "
                f"{builtins.type(wrap_storage)}"
            )
        where = CPU if device is None else device_from(device)
        return typed_storage_of(dtype, args, wrap_storage, where, _FORMS)

    @classmethod
    def _of(cls, array: Any, memory: Storage | None = None) -> TypedStorage:
        cls._warn()
        made = TypedStorage._typed(making.bytes_of(array), array.dtype)
        if memory is not None:
            made._memory = memory
            note(memory, made)
        return made

    @classmethod
    def _warn(cls) -> None:
        """Say once that PyTorch means to drop this class."""
        if TypedStorage._warned:
            return
        TypedStorage._warned = True
        warn_caller(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will "
            "be the only storage class. This should only matter to you if you are using storages "
            "directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of "
            "tensor.storage()"
        )

    @classmethod
    def _typed(cls, memory: Any, dtype: Any) -> TypedStorage:
        made = object.__new__(TypedStorage)
        whole = memory.size // dtype.itemsize * dtype.itemsize
        made._bytes = memory if whole == memory.size else memory[:whole]
        made._array = made._bytes.view(dtype)
        made._memory = Storage()
        return made

    @property
    def dtype(self) -> dtypes.dtype:
        return dtypes.of(self._array.dtype)

    def untyped(self) -> UntypedStorage:
        return UntypedStorage._of(self._bytes, self._memory)

    def clone(self) -> TypedStorage:
        return TypedStorage._typed(v.copy(self._bytes), self._array.dtype)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return super().__getitem__(index)

    def pickle_storage_type(self) -> str:
        """The name of its dtype's class of storages, as files spell it."""
        if self.dtype not in _legacy_classes():
            raise KeyError(f"dtype {self.dtype} is not recognized")
        return self.dtype.scalar_type + "Storage"

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self.untyped()

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first elements of a file, as memory: see `UntypedStorage.from_file`."""
        dtype = cls._class_dtype("from_file")
        memory = UntypedStorage.from_file(filename, shared, size * dtype.itemsize)
        made = cls._typed(memory._bytes, dtype.numpy)
        made._file = memory._file
        return made

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0,
        dtype: Any = None,
    ) -> TypedStorage:  # fmt: skip
        """A copy of the elements in a buffer: see `UntypedStorage.from_buffer`."""
        dtype = dtype or cls._class_dtype("from_buffer")
        memory = UntypedStorage.from_buffer(buffer, byte_order, count, offset, dtype)
        return cls._typed(memory._bytes, dtype.numpy)

    @classmethod
    def _class_dtype(cls, what: str) -> dtypes.dtype:
        dtype = vars(cls).get("dtype")
        if not isinstance(dtype, dtypes.dtype):
            raise RuntimeError(f"{what}: only valid for a class with a dtype, as FloatStorage is")
        return dtype

    def resize_(self, size: int) -> None:
        """Change the number of elements, for all that share the memory."""
        if self._part:
            raise RuntimeError("Trying to resize storage that is not resizable")
        self._look_at(enlarge(self._bytes, size * self.element_size(), self._memory))

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of its class; with another class or dtype, its elements as those of that."""
        if dtype is None:
            home = "torch.cuda" if self.is_cuda else "torch"
            return f"{home}.{self.pickle_storage_type()}"
        if isinstance(dtype, str):
            named = {f"torch.{x.__name__}": x for x in _legacy_classes().values()}
            if dtype not in named:
                raise RuntimeError(f"Invalid storage type: {dtype}")
            dtype = named[dtype]
        return self._converted(getattr(dtype, "dtype", dtype))

    def _over(self, memory: Any) -> TypedStorage:
        return TypedStorage._typed(memory, self._array.dtype)

    def _title(self) -> str:
        return f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device})"


def _legacy_classes() -> dict[dtypes.dtype, Any]:
    """`FloatStorage` and its like, by their dtypes."""
    from rushlight.storage_types import of_dtype

    return of_dtype


def typed_storage_of(
    dtype: dtypes.dtype, args: tuple[Any, ...], wrapped: UntypedStorage | None, where: device,
    forms: str,
) -> TypedStorage:  # fmt: skip
    """What `TypedStorage(...)` and `FloatStorage(...)` make. `forms`: the first words of errors."""
    raw = dtype.numpy
    if wrapped is not None:
        made = TypedStorage._typed(wrapped._bytes, raw)
        made._memory = wrapped._memory
        note(made._memory, made)
        return made
    first = _whole(args[0]) if args else 0
    if isinstance(first, int):
        _refuse_negative(first)
        return TypedStorage._typed(
            make_array((first * raw.itemsize,), dtypes.uint8.numpy, where), raw
        )
    if isinstance(first, TensorBase) or not hasattr(first, "__len__"):
        raise TypeError(f"{forms}Argument type not recognized: {type(first)}")
    values = making.from_data(list(first), raw, lambda x: None)
    return TypedStorage._typed(making.bytes_of(move(values, where)), raw)


def _whole(size: Any) -> Any:
    """What counts as an int, NumPy's too, as one; all else as it is."""
    counts = hasattr(size, "__index__") and not hasattr(size, "__len__")
    return int(size.__index__()) if counts and not isinstance(size, TensorBase) else size


def _refuse_negative(count: int) -> None:
    if count < 0:
        raise RuntimeError(f"alloc_cpu() seems to have been called with negative number: {count}")


def _add_conversions() -> None:
    """`storage.float()` and its like, for both classes."""
    for title, dtype in (
        ("bfloat16", dtypes.bfloat16), ("bool", dtypes.bool_), ("byte", dtypes.uint8),
        ("char", dtypes.int8), ("complex_double", dtypes.complex128),
        ("complex_float", dtypes.complex64), ("double", dtypes.float64), ("float", dtypes.float32),
        ("float8_e4m3fn", dtypes.float8_e4m3fn), ("float8_e4m3fnuz", dtypes.float8_e4m3fnuz),
        ("float8_e5m2", dtypes.float8_e5m2), ("float8_e5m2fnuz", dtypes.float8_e5m2fnuz),
        ("half", dtypes.float16), ("int", dtypes.int32), ("long", dtypes.int64),
        ("short", dtypes.int16),
    ):  # fmt: skip

        def convert(self: Any, dtype: dtypes.dtype = dtype) -> Any:
            return self._converted(dtype)

        convert.__name__ = convert.__qualname__ = title
        convert.__doc__ = f"The elements as {dtype}, in memory of their own."
        setattr(_Storage, title, convert)


_add_conversions()


# --- memory that grows ----------------------------------------------------------------------------
_ROOTS: Final[dict[int, tuple[ref[Any], Storage]]] = {}


def among(t: Any) -> None:
    """Note a tensor that was made over memory that others may have, known by the raw array alone:
    one that was unpickled or copied."""
    _enter(t, t._array, t._storage)


def _enter(x: Any, array: Any, memory: Storage) -> None:
    root = root_of(array)
    known = _ROOTS.get(id(root))
    if known is None:
        _remember(root, memory)
    else:
        join(known[1], memory)
    note(memory, x)


def _restored(cls: Any, root: Any, start: int, count: int, dtype: dtypes.dtype) -> Any:
    """A storage that was pickled or copied."""
    made = object.__new__(cls)
    made._bytes = making.bytes_of(root)[start : start + count]
    made._array = made._bytes.view(dtype.numpy)
    made._memory = Storage()
    _enter(made, made._bytes, made._memory)
    return made


def _remember(root: Any, known: Storage) -> None:
    """Let `known` be found by the array that owns the memory, as long as there is one."""
    key = id(root)
    _ROOTS[key] = ref(root, lambda gone: _ROOTS.pop(key, None)), known


def join(a: Storage, b: Storage) -> None:
    """Let two storages over one memory know each other's tensors."""
    if a is b:
        return
    mine, other = sharers_of(a), sharers_of(b)
    for storage in (a, b):
        owner = None if storage.owner is None else storage.owner()
        if owner is not None:
            mine.add(storage.owner, id(owner))
    if mine is not other:
        for key, sharer in list(other.refs.items()):
            mine.add(sharer, key)
        other.merged_into = mine
        other.refs = mine.refs  # for a thread that has found it already


def _looking(memory: Storage) -> list[Any]:
    """The tensors and storages that `memory` leads to; some may have moved elsewhere since."""
    first = sharers_of(memory)
    found: dict[int, Any] = {}
    refs = [*first.refs.values(), memory.owner]
    while refs:
        sharer = refs.pop()
        x = None if sharer is None else sharer()
        if x is None or id(x) in found:
            continue
        found[id(x)] = x
        if isinstance(x, TensorBase):
            if x._storage is not memory:
                refs.append(x._storage.owner)
            if x._view is not None:
                found.setdefault(id(x._view.base), x._view.base)
    return list(found.values())


def enlarge(memory: Any, nbytes: int, known: Storage) -> Any:
    """Other memory, `nbytes` long, in place of `memory`, a flat array of bytes: tensors and
    storages that looked into the old one, found by `known`, look into the new one."""
    if lent(memory):
        raise RuntimeError("Trying to resize storage that is not resizable")
    grown = make_array((nbytes,), memory.dtype, device_of(memory))
    keep = min(nbytes, memory.size)
    v.overwrite(grown[:keep], memory[:keep])
    _move(memory, grown, known)
    return grown


def move_to_shared(memory: Any, known: Storage) -> Any:
    """The same bytes in memory that other processes can see, in place of `memory`, a flat array
    of bytes: as `enlarge`."""
    if shared.file_of(memory) >= 0 or not is_array(memory):
        return memory
    moved = shared.share(memory)
    _move(memory, moved, known)
    return moved


def _move(memory: Any, grown: Any, known: Storage) -> None:
    """Let all that looked into `memory` look into `grown`."""
    root = root_of(memory)
    for found in _looking(known):
        if isinstance(found, TensorBase):
            if shares_root(found._array, memory) or _waits(found, root):
                _follow(found, grown)
        elif not found._part and shares_root(found._bytes, memory):
            found._look_at(grown)
    _remember(grown, known)


def _waits(t: TensorBase, root: Any) -> bool:
    """Whether a tensor kept older memory when this became too short for it."""
    waits = None if t._extra is None else t._extra.waits
    return waits is not None and waits[0]() is root and waits[1]() is t._array


def _follow(t: Any, grown: Any) -> None:
    """Let a tensor see the same places in other memory; if they are not there, when they are."""
    array = t._array
    size = array.dtype.itemsize
    offset = ByteBounds(array).offset
    steps = tuple([s // size for s in array.strides])
    last = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    if not array.size:
        return
    if offset + last + size <= grown.size:
        seen = making.over(grown, array.shape, steps, array.dtype, offset)
        t._array = put_off_as(seen, array)
    else:
        extra_of(t).waits = ref(grown), ref(array)


def is_storage(obj: object, /) -> bool:
    """is_storage(obj) -> bool: whether `obj` is a storage.

    >>> torch.is_storage(torch.ones(2).untyped_storage())
    True
    """
    return isinstance(obj, _Storage)


StorageBase = _Storage  # PyTorch's name, which programs ask `isinstance` for
