"""From a value of a state dict to the items that write it, and to those that read it.

A tensor that is one part of a larger one says itself which part it is, by three methods:
`__create_write_items__(fqn, tensor)`, `__create_chunk_list__()` and `__get_tensor_shard__(index)`.
`DTensor` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.core.graph import TensorBase
from rushlight.distributed.checkpoint.metadata import (
    STORAGE_TYPES,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from rushlight.distributed.checkpoint.planner import (
    LoadItemType,
    ReadItem,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from rushlight.distributed.checkpoint.resharding import overlap
from rushlight.ops.registry import functions
from rushlight.size import Size

__all__ = ["create_read_items_for_chunk_list"]
__dir__ = __all__.copy


def whole_chunk(tensor: Any) -> ChunkStorageMetadata:
    """The box that is all of a tensor."""
    return ChunkStorageMetadata(Size([0] * tensor.dim()), Size(tensor.shape))


def write_item_for_box(
    fqn: str, chunk: ChunkStorageMetadata, properties: TensorProperties, size: Size,
    kind: WriteItemType = WriteItemType.SHARD,
) -> WriteItem:  # fmt: skip
    """The item that writes a box of a tensor."""
    return WriteItem(
        index=MetadataIndex(fqn, chunk.offsets), type=kind,
        tensor_data=TensorWriteData(chunk=chunk, properties=properties, size=size),
    )  # fmt: skip


def _create_write_items(fqn: str, object: Any) -> list[WriteItem]:
    """The items that write a value."""
    if hasattr(object, "__create_write_items__"):
        found: list[WriteItem] = object.__create_write_items__(fqn, object)
        return found
    if isinstance(object, TensorBase):
        tensor: Any = object
        properties = TensorProperties.create_from_tensor(tensor)
        chunk = whole_chunk(tensor)
        return [write_item_for_box(fqn, chunk, properties, chunk.sizes, WriteItemType.TENSOR)]
    return [WriteItem(index=MetadataIndex(fqn), type=WriteItemType.BYTE_IO)]


def _create_chunk_list(tensor: Any) -> list[ChunkStorageMetadata]:
    """The boxes that this process holds of a tensor."""
    if hasattr(tensor, "__create_chunk_list__"):
        found: list[ChunkStorageMetadata] = tensor.__create_chunk_list__()
        return found
    if isinstance(tensor, TensorBase):
        return [whole_chunk(tensor)]
    raise ValueError(
        f"Unsupported Type, expecting one of [Tensor, DTensor, ShardedTensor] ,but got "
        f"{type(tensor)}"
    )


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: Sequence[ChunkStorageMetadata]
) -> list[ReadItem]:
    """What has to be read to fill boxes of a tensor that was saved in other boxes.

    >>> from rushlight.distributed.checkpoint.metadata import (
    ...     ChunkStorageMetadata, TensorProperties, TensorStorageMetadata)
    >>> from rushlight.distributed.checkpoint.planner_helpers import (
    ...     create_read_items_for_chunk_list)
    >>> rows = lambda a, n: ChunkStorageMetadata(torch.Size([a]), torch.Size([n]))
    >>> saved = TensorStorageMetadata(TensorProperties(), torch.Size([4]), [rows(0, 2), rows(2, 2)])
    >>> [tuple(i.lengths) for i in create_read_items_for_chunk_list("w", saved, [rows(0, 3)])]
    [(2,), (1,)]
    """
    items = []
    for i, wanted in enumerate(local_chunks):
        for j, saved in enumerate(checkpoint_md.chunks):
            region = overlap(saved, wanted)
            if region is None:
                continue
            in_saved, in_wanted, lengths = region
            item = ReadItem(
                LoadItemType.TENSOR, MetadataIndex(fqn, wanted.offsets, i), Size(in_wanted),
                MetadataIndex(fqn, saved.offsets, j), Size(in_saved), Size(lengths),
            )  # fmt: skip
            items.append(item)
    return items


def _create_read_items(fqn: str, md: STORAGE_TYPES, obj: Any) -> list[ReadItem]:
    """The items that read a value."""
    if isinstance(md, BytesStorageMetadata):
        index, zero = MetadataIndex(fqn), Size([0])
        return [ReadItem(LoadItemType.BYTE_IO, index, zero, index, zero, zero)]
    try:
        chunks = _create_chunk_list(obj)
    except ValueError as error:
        raise ValueError(
            f"Invalid checkpoint metadata for {fqn}, expected BytesStorageMetadata but found "
            f"{type(md)}"
        ) from error
    return create_read_items_for_chunk_list(fqn, md, chunks)


def _init_state_dict(state_dict: dict[str, Any]) -> None:
    """Give tensors on the device "meta" memory, in place: they are about to be read."""
    for key, value in state_dict.items():
        state_dict[key] = map_tensors(value, _with_memory)


def _with_memory(tensor: Any) -> Any:
    return functions["empty_like"](tensor, device="cpu") if tensor.is_meta else tensor


def map_tensors(value: Any, change: Callable[[Any], Any]) -> Any:
    """Replace the tensors of nested containers; dictionaries are changed in place."""
    if isinstance(value, TensorBase):
        return change(value)
    if isinstance(value, dict):
        for key, inner in value.items():
            value[key] = map_tensors(inner, change)
    elif type(value) in (list, tuple):
        return type(value)(map_tensors(inner, change) for inner in value)
    return value


def narrow_tensor_by_index(tensor: Any, offsets: Sequence[int], sizes: Sequence[int]) -> Any:
    """The box of a tensor that begins at `offsets`, as a view."""
    for dim, (offset, size) in enumerate(zip(offsets, sizes)):
        if size < tensor.size(dim):
            tensor = tensor.narrow(dim, offset, size)
    return tensor
