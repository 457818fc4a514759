"""What the file `.metadata` of a checkpoint holds: which tensors there are, in which pieces.

Classes, their fields and their places are PyTorch's, because the file is a pickle of them: either
library reads the other's.

    Metadata
      state_dict_metadata   name -> TensorStorageMetadata: size, dtype, chunks   (or Bytes...)
      planner_data          name -> path in the nested state dict that was saved
      storage_data          MetadataIndex -> where that piece lies: file, offset, length
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from rushlight import dtypes
from rushlight.size import Size

__all__ = [
    "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta",
    "TensorProperties", "TensorStorageMetadata",
]  # fmt: skip
__dir__ = __all__.copy


@dataclass
class ChunkStorageMetadata:
    """A box within a tensor: where it begins, and how long it is, in each dimension."""

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(Enum):
    """A memory format as a number, since formats themselves cannot be pickled."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = {
    _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT: dtypes.contiguous_format,
    _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST: dtypes.channels_last,
    _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT: dtypes.preserve_format,
}


@dataclass
class TensorProperties:
    """What a tensor is made of, besides its size. Only the dtype is used today.

    >>> from rushlight.distributed.checkpoint.metadata import TensorProperties
    >>> TensorProperties.create_from_tensor(torch.ones(2, dtype=torch.float64)).dtype
    torch.float64
    """

    dtype: Any = field(default_factory=dtypes.get_default_dtype)
    layout: Any = field(default=dtypes.strided)
    requires_grad: bool = False
    memory_format: Any = field(default=dtypes.contiguous_format)
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        for encoded, memory_format in _FORMATS.items():
            if memory_format is self.memory_format:
                return self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory
        raise RuntimeError(f"Invalid torch.memory_format: {self.memory_format}")

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, encoded, self.pin_memory = state
        if encoded not in _FORMATS:
            raise RuntimeError(f"Invalid torch.memory_format encoding: {encoded}")
        self.memory_format = _FORMATS[encoded]

    @staticmethod
    def create_from_tensor(tensor: Any) -> TensorProperties:
        """The properties of a tensor."""
        return TensorProperties(
            dtype=tensor.dtype, layout=tensor.layout, requires_grad=tensor.requires_grad,
            memory_format=dtypes.contiguous_format, pin_memory=tensor.is_pinned(),
        )  # fmt: skip


@dataclass
class TensorStorageMetadata:
    """A tensor of the checkpoint, and the boxes of which it was put together."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """Something that is no tensor, and lies in the checkpoint as `torch.save` wrote it."""


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata
STATE_DICT_TYPE = dict[str, Any]


@dataclass
class StorageMeta:
    """Where and under which number a checkpoint was written, and read."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """All that is known of a checkpoint without reading its numbers."""

    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The name of a piece: of a tensor, the box that begins at `offset`.

    `index` only helps to find it: the place of the box among the chunks. Two indices are equal
    whatever it says.

    >>> from rushlight.distributed.checkpoint.metadata import MetadataIndex
    >>> MetadataIndex("w", [2, 0], 1) == MetadataIndex("w", [2, 0])
    True
    """

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(
        self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None
    ) -> None:
        # the class is frozen, so attributes are set past its back
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        if offset is not None:
            object.__setattr__(self, "offset", Size(offset))
