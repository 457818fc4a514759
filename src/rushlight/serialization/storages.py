"""Memories as pickles refer to them: ("storage", class, key, location, number of elements).

`Saving` is part of a pickler: it writes tensors as calls of `rebuild`, and collects the memories
behind them, each once. `Storages` gives a memory that a pickle refers to, when it is first named.
"""

from __future__ import annotations

import pickle
import sys
from collections import OrderedDict
from types import BuiltinFunctionType
from typing import Any

from rushlight import dtypes
from rushlight.arrays import making
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import ByteBounds, in_memory, is_array, put_off, to_host
from rushlight.core.graph import TensorBase
from rushlight.ops.registry import is_function
from rushlight.serialization import rebuild
from rushlight.serialization.locations import location_tag
from rushlight.serialization.names import is_ours
from rushlight.storage import TypedStorage, UntypedStorage, is_storage
from rushlight.storage_types import LegacyStorageClass, of_dtype
from rushlight.tensor import Tensor
from rushlight.tensor_memory import _own_attributes
from rushlight.utils.hooks import warn_if_has_hooks


class StorageType:
    """The class of a memory, as a file names it: `StorageType("FloatStorage").dtype`.

    >>> torch.serialization.StorageType("LongStorage").dtype
    torch.int64
    """

    def __init__(self, name: str) -> None:
        self._dtype = dtype_named(name)

    @property
    def dtype(self) -> dtypes.dtype:
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


def dtype_named(name: str) -> dtypes.dtype:
    """The dtype of a class of storages."""
    for dtype, made in of_dtype.items():
        if made.__name__ == name:
            return dtype
    raise KeyError(f"pickle storage type '{name}' is not recognized")


# --- saving ---------------------------------------------------------------------------------------
class Memory:
    """A memory, and the dtype that a pickle says it has; None: bytes."""

    def __init__(self, root: Any, dtype: dtypes.dtype | None, location: str) -> None:
        self.root = root  # the array that owns it
        self.dtype = dtype
        self.location = location


class Saving:
    """Part of a pickler. `legacy`: memories are referred to as the format before 1.6 does it."""

    memories: dict[int, tuple[str, Any, int]]  # by `identity`: key, array, bytes of an element
    kinds: dict[int, dtypes.dtype | None]
    named: set[tuple[str, str]]
    legacy: bool

    def begin(self, legacy: bool) -> None:
        self.memories, self.kinds, self.named, self.legacy = {}, {}, set(), legacy

    def persistent_id(self, obj: Any) -> Any:
        if is_storage(obj):
            obj = self.standing_alone(obj)
        if not isinstance(obj, Memory):
            return None
        root = obj.root
        mark = identity(root)
        size = 1 if obj.dtype is None else obj.dtype.itemsize
        if mark not in self.memories:
            self.memories[mark] = str(len(self.memories)), root, size
        cls: Any = UntypedStorage if obj.dtype is None else of_dtype[obj.dtype]
        count = int(root.nbytes) // size
        found = ("storage", cls, self.memories[mark][0], obj.location, count)
        return (*found, None) if self.legacy else found

    def standing_alone(self, storage: Any) -> Memory:
        """A storage that is saved by itself."""
        whole = making.bytes_of(storage._bytes)
        root = storage._bytes if whole.nbytes != storage.nbytes() else _owner(whole)
        dtype = storage.dtype if isinstance(storage, TypedStorage) else None
        if dtype not in of_dtype:
            dtype = None
        if self.kinds.setdefault(identity(root), dtype) is not dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                "types"
            )
        return Memory(root, dtype, location_tag(storage))

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, TensorBase):
            return self.reduced(obj)
        if isinstance(obj, (type, BuiltinFunctionType, dtypes.dtype)) or is_function(obj):
            module = getattr(obj, "__module__", None)
            if is_ours(module):
                name = obj.__reduce__() if isinstance(obj, dtypes.dtype) else obj.__qualname__
                self.named.add((str(module), name))
        elif isinstance(obj, dtypes.layout):
            return rebuild._get_layout, (str(obj),)
        above = getattr(super(), "reducer_override", None)
        return NotImplemented if above is None else above(obj)

    def reduced(self, t: Any) -> Any:
        """A tensor as a call of a function of `rebuild`."""
        cls = type(t)
        parameter = _is_parameter_class(cls)
        if cls.__reduce_ex__ not in (Tensor.__reduce_ex__, parameter and cls.__reduce_ex__):
            return NotImplemented  # a class of the user's that pickles itself
        warn_if_has_hooks(t)
        own = _own_attributes(t)
        if parameter:
            arguments: tuple[Any, ...] = (t.data, bool(t.requires_grad), OrderedDict())
            if own:
                return rebuild._rebuild_parameter_with_state, (*arguments, own)
            return rebuild._rebuild_parameter, arguments
        function, args = self.as_call(t)
        if cls is Tensor and not own:
            return function, args
        return rebuild._rebuild_from_type_v2, (function, cls, args, own)

    def as_call(self, t: Any) -> tuple[Any, tuple[Any, ...]]:
        if t.is_meta:
            facts = (t.dtype, tuple(t.shape), tuple(t.stride()), bool(t.requires_grad))
            return rebuild._rebuild_meta_tensor_no_storage, facts
        if t.layout is not dtypes.strided:
            from rushlight.ops.sparse.making import sparse_parts

            return rebuild._rebuild_sparse_tensor, sparse_parts(t)
        bits = put_off(t._array)
        root, array, offset = _memory_of(in_memory(t._array))
        dtype = dtypes.of(array.dtype)
        size = array.dtype.itemsize
        # a second dtype over the same memory, and those that came later, stand beside the storage
        said = self.kinds.setdefault(identity(root), dtype if dtype in of_dtype else None)
        location = location_tag(UntypedStorage._of(root))
        memory = Memory(root, said if said is dtype else None, location)
        strides = tuple(s // size for s in array.strides) if array.size else tuple(t.stride())
        place: tuple[Any, ...] = (
            memory, offset // size, tuple(array.shape), strides, bool(t.requires_grad),
            OrderedDict(),
        )  # fmt: skip
        put = ({name: True for bit, name in enumerate(("conj", "neg")) if bits >> bit & 1},)
        if said is dtype:
            return rebuild._rebuild_tensor_v2, place + put if bits else place
        return rebuild._rebuild_tensor_v3, (*place, dtype, *put) if bits else (*place, dtype)


def _is_parameter_class(cls: type) -> bool:
    module = sys.modules.get("rushlight.nn.parameter")  # without it there are no parameters
    return module is not None and issubclass(cls, module.Parameter)


def _memory_of(array: Any) -> tuple[Any, Any, int]:
    """The array that owns the memory, `array` as it lies there, and where it begins, in bytes."""
    bounds = ByteBounds(array)
    root, offset = bounds.root, bounds.offset
    if root.flags.forc and making.plain_bytes(root, array, offset):
        return root, array, offset
    alone = v.copy(array)  # its memory has gaps, or is more than numbers
    return alone, alone, 0


def identity(root: Any) -> int:
    """What tells one memory from another, as long as both are there."""
    return id(root) if is_array(root) else ByteBounds(root).start


def _owner(memory: Any) -> Any:
    return ByteBounds(memory).root


def as_bytes(root: Any) -> memoryview:
    """The bytes of a memory, on the host."""
    return memoryview(to_host(making.bytes_of(root)))


# --- loading --------------------------------------------------------------------------------------
def parse(name: Any) -> tuple[dtypes.dtype | None, str, str, int, Any]:
    """What a persistent id says: dtype (None: bytes), key, location, number of elements, and the
    part of an older memory that it is."""
    if type(name) is not tuple or not name or name[0] not in ("storage", b"storage"):
        raise pickle.UnpicklingError("unknown persistent id")
    if len(name) == 3:  # as rushlight 0.1 wrote them
        name = ("storage", UntypedStorage, name[1], name[2], -1)
    if len(name) not in (5, 6):
        raise pickle.UnpicklingError("unknown persistent id")
    kind, key, location, count = name[1:5]
    if isinstance(kind, StorageType | LegacyStorageClass):
        dtype: dtypes.dtype | None = kind.dtype
    elif kind is UntypedStorage:
        dtype = None
    else:
        raise pickle.UnpicklingError("a storage in this file is of no known type")
    key, location = (x.decode("latin1") if type(x) is bytes else x for x in (key, location))
    if type(key) is not str or type(location) is not str or type(count) is not int:
        raise pickle.UnpicklingError("unknown persistent id")
    return dtype, key, location, count, name[5] if len(name) == 6 else None


def typed(storage: UntypedStorage, dtype: dtypes.dtype | None) -> TypedStorage:
    """A memory as a storage of a dtype, without the warning that such are deprecated."""
    return TypedStorage._typed(storage._bytes, (dtype or dtypes.uint8).numpy)
