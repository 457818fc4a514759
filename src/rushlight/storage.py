"""Storages: the memory behind tensors as objects, as `Tensor.storage()` shows it.

Made by `tensor_memory`. A storage looks at the memory, it does not own it: two storages of tensors
that share memory are equal, and writing into one writes into the tensors.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from typing import Any

from rushlight import dtypes
from rushlight.arrays import making
from rushlight.arrays import vocabulary as v
from rushlight.arrays.device import CPU, device
from rushlight.arrays.host import ByteBounds, address, device_of, make_array, root_of
from rushlight.core.graph import TensorBase
from rushlight.ops.memory import lent

__all__ = ["TypedStorage", "UntypedStorage", "enlarged", "is_storage"]


class _Storage:
    """What both kinds of storage share: a flat array over the memory."""

    _array: Any
    _bytes: Any

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
        return False

    def share_memory_(self) -> Any:
        return self

    def is_pinned(self, device: Any = "cuda") -> bool:
        return False

    def resizable(self) -> bool:
        """Whether the memory may grow: not if NumPy has it too."""
        return not lent(self._bytes)

    def get_device(self) -> int:
        return -1

    def cpu(self) -> Any:
        return self

    @property
    def device(self) -> device:
        return CPU

    @property
    def is_cuda(self) -> bool:
        return False

    @property
    def is_sparse(self) -> bool:
        return False

    @property
    def _cdata(self) -> int:
        return self.data_ptr()

    def __len__(self) -> int:
        return self.size()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._over(self._bytes_at(index))
        return self._array[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array[index] = value

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Storage)
            and self.data_ptr() == other.data_ptr()
            and self.nbytes() == other.nbytes()
        )

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))

    def __repr__(self) -> str:
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

    >>> import rushlight as torch
    >>> torch.ones(2, 3)[0].untyped_storage().nbytes()
    24
    """

    def __init__(self, size: Any = 0, *, device: Any = None) -> None:
        values = None if isinstance(size, int) else list(size)
        if values is not None and not all(isinstance(x, int) for x in values):
            raise TypeError("UntypedStorage(): expected a size, or a sequence of ints")
        count = size if values is None else len(values)
        self._bytes = make_array((count,), dtypes.uint8.numpy, CPU)
        self._array = self._bytes
        if values is not None:
            self._bytes[...] = values

    @classmethod
    def _of(cls, array: Any) -> UntypedStorage:
        made = object.__new__(cls)
        made._bytes = made._array = making.bytes_of(array)
        return made

    def untyped(self) -> UntypedStorage:
        return self

    def clone(self) -> UntypedStorage:
        return UntypedStorage._of(v.copy(self._bytes))

    def resize_(self, size: int) -> UntypedStorage:
        """Change the number of bytes, for all that share the memory.

        A tensor that needs more bytes than are left keeps looking at the old memory.
        """
        self._look_at(enlarged(self._bytes, size))
        return self

    def _over(self, memory: Any) -> UntypedStorage:
        return UntypedStorage._of(memory)

    def _title(self) -> str:
        return "torch.storage.UntypedStorage(device=cpu)"


class TypedStorage(_Storage):
    """Memory as elements of one dtype.

    >>> import rushlight as torch
    >>> TypedStorage._of(torch.arange(3).numpy()).tolist()
    [0, 1, 2]
    """

    _warned = False

    @classmethod
    def _of(cls, array: Any) -> TypedStorage:
        cls._warn()
        return cls._typed(making.bytes_of(array), array.dtype)

    @classmethod
    def _warn(cls) -> None:
        """Say once that PyTorch means to drop this class."""
        if cls._warned:
            return
        cls._warned = True
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will "
            "be the only storage class. This should only matter to you if you are using storages "
            "directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of "
            "tensor.storage()",
            UserWarning,
            stacklevel=4,
        )

    @classmethod
    def _typed(cls, memory: Any, dtype: Any) -> TypedStorage:
        made = object.__new__(cls)
        made._bytes = memory
        made._array = memory.view(dtype)
        return made

    @property
    def dtype(self) -> dtypes.dtype:
        return dtypes.of(self._array.dtype)

    def untyped(self) -> UntypedStorage:
        return UntypedStorage._of(self._bytes)

    def clone(self) -> TypedStorage:
        return TypedStorage._typed(v.copy(self._bytes), self._array.dtype)

    def pickle_storage_type(self) -> str:
        return self.dtype.scalar_type + "Storage"

    def _over(self, memory: Any) -> TypedStorage:
        return TypedStorage._typed(memory, self._array.dtype)

    def _title(self) -> str:
        return f"torch.storage.TypedStorage(dtype={self.dtype}, device=cpu)"


def enlarged(memory: Any, nbytes: int) -> Any:
    """Other memory, `nbytes` long, in place of `memory`, a flat array of bytes: tensors and
    storages that looked into the old one look into the new one.

    Memory does not know who looks into it: if there may be others, this goes through everything
    there is, which is slow and rare.
    """
    if lent(memory):
        raise RuntimeError("Trying to resize storage that is not resizable")
    grown = make_array((nbytes,), memory.dtype, device_of(memory))
    keep = min(nbytes, memory.size)
    v.overwrite(grown[:keep], memory[:keep])
    root = root_of(memory)
    for found in gc.get_objects() if keep else ():
        if issubclass(type(found), TensorBase):
            array = getattr(found, "array", None)
            if array is not None and root_of(array) is root:
                _follow(found, grown)
        elif issubclass(type(found), _Storage) and root_of(found._bytes) is root:
            found._look_at(grown)
    return grown


def _follow(t: Any, grown: Any) -> None:
    """Let a tensor see the same places in other memory, if they are there."""
    array = t.array
    size = array.dtype.itemsize
    offset = ByteBounds(array).offset
    steps = tuple([s // size for s in array.strides])
    last = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    if array.size and offset + last + size <= grown.size:
        t.array = making.over(grown, array.shape, steps, array.dtype, offset)


def is_storage(obj: object, /) -> bool:
    """is_storage(obj) -> bool: whether `obj` is a storage.

    >>> import rushlight as torch
    >>> torch.is_storage(torch.ones(2).untyped_storage())
    True
    """
    return isinstance(obj, _Storage)
