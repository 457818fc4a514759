"""`load`: a checkpoint into a state dict, every rank what it holds."""

from __future__ import annotations

import os
import warnings
from typing import Any

from rushlight.distributed.checkpoint._storage_utils import _storage_setup
from rushlight.distributed.checkpoint.default_planner import (
    DefaultLoadPlanner,
    _EmptyStateDictLoadPlanner,
)
from rushlight.distributed.checkpoint.metadata import Metadata
from rushlight.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from rushlight.distributed.checkpoint.state_dict_saver import without_group
from rushlight.distributed.checkpoint.stateful import Stateful
from rushlight.distributed.checkpoint.storage import StorageReader
from rushlight.distributed.checkpoint.utils import _DistWrapper

__all__ = ["load", "load_state_dict"]
__dir__ = __all__.copy


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: StorageReader, process_group: Any = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: LoadPlanner | None = None,
) -> None:  # fmt: skip
    """`load` by its older name."""
    warnings.warn(
        "`load_state_dict` is deprecated and will be removed in future versions. "
        "Please use `load` instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def load(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None, planner: LoadPlanner | None = None,
    process_group: Any = None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Load a checkpoint into the tensors of a state dict, in place. Each rank reads only what it
    holds, however many ranks wrote the checkpoint, and whatever part of a tensor each of them held.
    All ranks of the group must call it, with the same names.

    Args:
        state_dict: nested dictionaries that have the names to load. Tensors are overwritten,
            objects replaced; modules, optimisers and other objects with a `state_dict` are asked
            for it, and given it back.
        checkpoint_id: a folder.
        storage_reader: what reads; a `FileSystemReader` if it is not given.
        planner: what decides who reads what; a `DefaultLoadPlanner` if it is not given.
        process_group: the ranks that take part; all if it is not given.
        no_dist: whether this process loads alone.

    >>> import tempfile
    >>> import rushlight.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> _ = dcp.save({"w": torch.ones(2), "epoch": 3}, checkpoint_id=folder.name, no_dist=True)
    >>> state = {"w": torch.zeros(2), "epoch": 0}
    >>> dcp.load(state, checkpoint_id=folder.name, no_dist=True)
    >>> state
    {'w': tensor([1., 1.]), 'epoch': 3}
    """
    no_dist = without_group(no_dist, "load")
    reader = _storage_setup(storage_reader, checkpoint_id, reader=True)
    # in one order on all ranks: asking for a state may need the others
    states = {key: _state_of(state_dict[key]) for key in sorted(state_dict)}
    _load_state_dict(states, reader, process_group, no_dist=no_dist, planner=planner)
    for key, value in states.items():
        owner = state_dict[key]
        if isinstance(owner, Stateful):
            owner.load_state_dict(value)
        else:
            state_dict[key] = value


def _state_of(value: Any) -> Any:
    return value.state_dict() if isinstance(value, Stateful) else value


def _load_state_dict(
    state_dict: dict[str, Any], storage_reader: StorageReader, process_group: Any = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: LoadPlanner | None = None,
) -> None:  # fmt: skip
    """See `load`."""
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    plans = DefaultLoadPlanner() if planner is None else planner

    def plan_locally() -> LoadPlan:
        metadata, shared = _read_metadata(storage_reader, ranks.rank)
        plans.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        storage_reader.set_up_storage_reader(
            metadata, ranks.is_coordinator, rank=ranks.rank, use_collectives=shared
        )
        return storage_reader.prepare_local_plan(plans.create_local_plan())

    def plan_globally(local_plans: list[LoadPlan]) -> list[LoadPlan]:
        return storage_reader.prepare_global_plan(plans.create_global_plan(local_plans))

    def read() -> None:
        storage_reader.read_data(plans.finish_plan(plan), plans).wait()

    plan = ranks.reduce_scatter("plan", plan_locally, plan_globally)
    ranks.all_gather("read", read)


def _read_metadata(storage_reader: StorageReader, rank: int) -> tuple[Metadata, bool]:
    """What the checkpoint holds, and whether all ranks share that: each may have its own."""
    try:
        return storage_reader.read_metadata(), True
    except FileNotFoundError as error:
        try:
            return storage_reader.read_metadata(rank=rank), False
        except (FileNotFoundError, TypeError):
            raise error from None


def _load_state_dict_from_keys(
    keys: set[str] | str | None = None, *, checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None, process_group: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """What a checkpoint holds under some names, or all of it, in this process."""
    no_dist = without_group(False, "load")
    reader = _storage_setup(storage_reader, checkpoint_id, reader=True)
    state: dict[str, Any] = {}
    wanted = {keys} if isinstance(keys, str) else keys
    planner = _EmptyStateDictLoadPlanner(keys=wanted)
    _load_state_dict(state, reader, process_group, no_dist=no_dist, planner=planner)
    return state
