"""Plans: who writes which piece of a state dict, and who reads which piece of a checkpoint.

save   set_up_planner -> create_local_plan   on every rank
       create_global_plan                    on the coordinator, which sees all local plans
       finish_plan -> resolve_data           on every rank, once for each item
load   the same steps, then load_bytes, or resolve_tensor and commit_tensor, for each item
"""

from __future__ import annotations

import abc
import io
import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from rushlight.distributed.checkpoint.metadata import (
    STATE_DICT_TYPE,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
)
from rushlight.size import Size

__all__ = [
    "BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan",
    "SavePlanner", "TensorWriteData", "WriteItem", "WriteItemType",
]  # fmt: skip
__dir__ = __all__.copy


class WriteItemType(Enum):
    """What is written: a whole tensor, a part of one, or an object."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """What is read: a tensor or a part of one, or an object."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes an object takes."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """A box of a tensor: the box, what the tensor is, and its whole size."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Size


@dataclass(frozen=True)
class WriteItem:
    """One piece to write."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """The bytes of the whole tensor that this is a piece of; None if it is no tensor."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.size) * int(self.tensor_data.properties.dtype.itemsize)


@dataclass(frozen=True)
class ReadItem:
    """A box to copy: of the checkpoint's piece `storage_index`, beginning at `storage_offsets`,
    into the state dict's tensor `dest_index` at `dest_offsets`."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Size
    storage_index: MetadataIndex
    storage_offsets: Size
    lengths: Size


@dataclass(frozen=True)
class SavePlan:
    """What one rank writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What one rank reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Decides what each rank writes. Derive from `DefaultSavePlanner` to change one step of it."""

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:  # fmt: skip
        """A save begins; on every rank."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """What this rank has to write; on every rank."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """The plans of all ranks, seen together, and what the checkpoint will hold; on the
        coordinator."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """This rank's plan as it came back from the coordinator; on every rank."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Any:
        """The tensor or the bytes of an item."""


class LoadPlanner(abc.ABC):
    """Decides what each rank reads. Derive from `DefaultLoadPlanner` to change one step of it."""

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:  # fmt: skip
        """A load into `state_dict` begins; on every rank."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """What this rank has to read; on every rank."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """The plans of all ranks, seen together; on the coordinator."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """This rank's plan as it came back from the coordinator; on every rank."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Put an object that is no tensor into the state dict."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Where the bytes of an item go; for readers that want to write into it."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Any:
        """The tensor into which an item is read: a view of the state dict's."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """The item was read into what `resolve_tensor` gave."""
