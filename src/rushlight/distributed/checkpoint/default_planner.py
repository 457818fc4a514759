"""The planners that are used when none is given.

Saving: every rank offers all it has; what several ranks have is written by one of them.
Loading: every rank reads the boxes of the checkpoint that overlap with the boxes it holds.
"""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rushlight.core.graph import TensorBase
from rushlight.distributed.checkpoint._dedup_save_plans import dedup_save_plans
from rushlight.distributed.checkpoint._nested_dict import FLATTEN_MAPPING, flatten_state_dict
from rushlight.distributed.checkpoint._traverse import set_element
from rushlight.distributed.checkpoint.metadata import (
    STATE_DICT_TYPE,
    STORAGE_TYPES,
    BytesStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from rushlight.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from rushlight.distributed.checkpoint.planner_helpers import (
    _create_read_items,
    _create_write_items,
    _init_state_dict,
    narrow_tensor_by_index,
)
from rushlight.distributed.checkpoint.resharding import is_inside, overlap
from rushlight.distributed.checkpoint.utils import find_state_dict_object
from rushlight.ops.registry import functions
from rushlight.serialization.save_load import load, save

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan",
    "create_default_global_save_plan", "create_default_local_load_plan",
    "create_default_local_save_plan",
]  # fmt: skip
__dir__ = __all__.copy

_logger = logging.getLogger(__name__)


class DefaultSavePlanner(SavePlanner):
    """DefaultSavePlanner(flatten_state_dict=True, flatten_sharded_tensors=True,
    dedup_replicated_tensors=None, dedup_save_to_lowest_rank=False, enable_plan_caching=False)

    Args:
        flatten_state_dict: whether tensors of nested dictionaries get names of their own.
        dedup_save_to_lowest_rank: whether what several ranks hold is written by the lowest of them;
            otherwise by the one with least to write.
        flatten_sharded_tensors, dedup_replicated_tensors, enable_plan_caching: of no effect here.
    """

    mappings: FLATTEN_MAPPING

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None, dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:  # fmt: skip
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.mappings = {}
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        if dedup_replicated_tensors is not None:
            _logger.warning(
                "DefaultSavePlanner's `dedup_replicated_tensors` argument is being deprecated, and "
                "no longer has any effect. Please remove this argument from your call."
            )

    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:  # fmt: skip
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> SavePlan:
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        plans, metadata = create_default_global_save_plan(
            dedup_save_plans(all_plans, self.dedup_save_to_lowest_rank)
        )
        if self.flatten_state_dict:
            paths: FLATTEN_MAPPING = {}
            for plan in reversed(plans):  # the first rank's word counts
                paths.update(plan.planner_data)
            metadata = replace(metadata, planner_data=paths)
        faults = _validate_global_plan(plans, metadata)
        if faults:
            text = "; ".join(faults)
            text = text[:500] + "... (truncated)" if len(text) > 500 else text
            raise ValueError(f"Failed to validate global plan: {text}")
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Any:
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """What `index` names in the state dict; for planners that look elsewhere."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """A value as it is written; for planners that change it on the way."""
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        data = io.BytesIO()
        save(object, data)
        return data


class DefaultLoadPlanner(LoadPlanner):
    """DefaultLoadPlanner(flatten_state_dict=True, flatten_sharded_tensors=True,
    allow_partial_load=False)

    Args:
        flatten_state_dict: whether the checkpoint was saved so; see `DefaultSavePlanner`.
        allow_partial_load: whether names that the checkpoint lacks keep the values they have.
        flatten_sharded_tensors: of no effect here.
    """

    original_state_dict: STATE_DICT_TYPE
    mappings: FLATTEN_MAPPING

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:  # fmt: skip
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.original_state_dict = {}
        self.mappings = {}
        self.allow_partial_load = allow_partial_load

    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:  # fmt: skip
        _init_state_dict(state_dict)
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.metadata = metadata
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None
        return create_default_local_load_plan(
            self.state_dict, self.metadata, not self.allow_partial_load
        )

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        return new_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        name, found = read_item.dest_index.fqn, load(value, weights_only=False)
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], found)
        else:
            self.state_dict[name] = found

    def resolve_tensor(self, read_item: ReadItem) -> Any:
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        return None  # it is a view of the state dict's: nothing to do

    def lookup_tensor(self, index: MetadataIndex) -> Any:
        """The tensor that `index` names in the state dict; for planners that look elsewhere."""
        return find_state_dict_object(self.state_dict, index)

    def transform_tensor(self, read_item: ReadItem, tensor: Any) -> Any:
        """The box of a tensor that an item is read into."""
        return narrow_tensor_by_index(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads into an empty dictionary all that a checkpoint holds, or what `keys` name: names, or
    the beginnings of nested ones."""

    def __init__(self, keys: Iterable[str] | None = None, *args: Any, **kwargs: Any) -> None:
        self.keys = None if keys is None else set(keys)
        super().__init__(*args, **kwargs)

    def _should_include_key(self, key: str, metadata: Metadata) -> bool:
        if self.keys is None or key in self.keys:
            return True
        path = list(map(str, (metadata.planner_data or {}).get(key, ())))
        return any(".".join(path[:n]) in self.keys for n in range(1, len(path)))

    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None,
        is_coordinator: bool = False,
    ) -> None:  # fmt: skip
        if state_dict:
            raise AssertionError("not state_dict")
        assert metadata is not None
        paths = metadata.planner_data or {}
        for key, entry in metadata.state_dict_metadata.items():
            if self._should_include_key(key, metadata):
                value: Any = entry
                if isinstance(entry, TensorStorageMetadata):
                    value = functions["empty"](entry.size, dtype=entry.properties.dtype)
                set_element(state_dict, paths.get(key, (key,)), value)
        super().set_up_planner(state_dict, metadata, is_coordinator)


def create_default_local_load_plan(
    state_dict: dict[str, Any], metadata: Metadata, strict: bool = True
) -> LoadPlan:
    """What one rank reads to fill a flat state dict."""
    items: list[ReadItem] = []
    for fqn, value in state_dict.items():
        if fqn not in metadata.state_dict_metadata:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {fqn}.")
            continue
        entry = metadata.state_dict_metadata[fqn]
        if isinstance(entry, TensorStorageMetadata) and isinstance(value, TensorBase):
            size = value.size()  # type: ignore[attr-defined]
            if entry.size != size:
                raise ValueError(
                    f"Size mismatch between saved {entry.size} and current: {size} for {fqn}"
                )
        items += _create_read_items(fqn, entry, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are: ranks read independently of each other."""
    return all_plans


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """What one rank has to write; the coordinator drops what others write too."""
    items: list[WriteItem] = []
    for fqn, value in state_dict.items():
        items += _create_write_items(fqn, value)
    return SavePlan(items)


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """What the checkpoint will hold, and the plans with the place of each box among all boxes of
    its tensor."""
    entries: dict[str, STORAGE_TYPES] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            fqn, data = item.index.fqn, item.tensor_data
            if item.type is not WriteItemType.SHARD and fqn in entries:
                raise AssertionError(f"{fqn} is written twice")
            if data is None:
                entries[fqn] = BytesStorageMetadata()
            else:
                entry = entries.setdefault(
                    fqn, TensorStorageMetadata(data.properties, data.size, [])
                )
                if not isinstance(entry, TensorStorageMetadata):
                    raise AssertionError(f"{fqn} is a tensor on one rank, and none on another")
                if rewrite_index_hints:
                    item = replace(item, index=replace(item.index, index=len(entry.chunks)))
                entry.chunks.append(data.chunk)
            items.append(item)
        plans.append(replace(plan, items=items))
    return plans, Metadata(entries)


def _validate_global_plan(global_plan: list[SavePlan], metadata: Metadata) -> list[str]:
    """What is wrong with the boxes of a checkpoint: outside their tensor, overlapping, or not all
    of it."""
    faults = []
    for key, entry in metadata.state_dict_metadata.items():
        if isinstance(entry, BytesStorageMetadata) or not entry.size:
            continue
        chunks = entry.chunks
        faults += [
            f"key:{key} has out of bounds chunk: tensor-size:{entry.size} chunk: {chunk}"
            for chunk in chunks
            if not is_inside(entry.size, chunk)
        ]
        faults += [
            f"key:{key} has overlapping chunks: {chunk} {other}"
            for n, chunk in enumerate(chunks)
            for other in chunks[:n]
            if overlap(chunk, other) is not None
        ]
        whole, covered = math.prod(entry.size), sum(math.prod(c.sizes) for c in chunks)
        if len(global_plan) > 1 and covered != whole:
            faults.append(f"key:{key} invalid fill tensor-volume: {whole} chunks-volume: {covered}")
    for fault in faults:
        _logger.warning(fault)
    return faults
