"""`save`: a state dict to a checkpoint, every rank what it holds."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any

from rushlight.distributed.checkpoint._storage_utils import _storage_setup
from rushlight.distributed.checkpoint.default_planner import DefaultSavePlanner
from rushlight.distributed.checkpoint.metadata import STATE_DICT_TYPE, Metadata
from rushlight.distributed.checkpoint.planner import SavePlan, SavePlanner
from rushlight.distributed.checkpoint.staging import AsyncStager, DefaultStager
from rushlight.distributed.checkpoint.stateful import Stateful
from rushlight.distributed.checkpoint.storage import StorageWriter, WriteResult
from rushlight.distributed.checkpoint.utils import _DistWrapper

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]
__dir__ = __all__.copy


class AsyncCheckpointerType(Enum):
    """What `async_save` writes in: here always a thread."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """What `async_save` returns where copying takes its time too: both as futures."""

    staging_completion: Future[None]
    upload_completion: Future[None]


def save_state_dict(
    state_dict: STATE_DICT_TYPE, storage_writer: StorageWriter, process_group: Any = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: SavePlanner | None = None,
) -> Metadata:  # fmt: skip
    """`save` by its older name."""
    warnings.warn(
        "`save_state_dict` is deprecated and will be removed in future versions."
        "Please use `save` instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_writer.reset()
    return _save_state_dict(
        state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner
    )


def without_group(no_dist: bool, what: str) -> bool:
    """Whether there is but this process; with a warning if so."""
    from rushlight import distributed as dist

    alone = no_dist or not dist.is_available() or not dist.is_initialized()
    if alone:
        warnings.warn(
            "torch.distributed is disabled, unavailable or uninitialized, assuming the intent is "
            f"to {what} in a single process.",
            stacklevel=3,
        )
    return alone


def save(
    state_dict: STATE_DICT_TYPE, *, checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
    process_group: Any = None, no_dist: bool = False, use_collectives: bool = True,
) -> Metadata:  # fmt: skip
    """Save a state dict, of all ranks together: each writes what it alone holds, and what all hold
    is written once. All ranks of the group must call it.

    Args:
        state_dict: nested dictionaries of tensors and objects; modules, optimisers and other
            objects with a `state_dict` are asked for it.
        checkpoint_id: a folder.
        storage_writer: what writes; a `FileSystemWriter` if it is not given.
        planner: what decides who writes what; a `DefaultSavePlanner` if it is not given.
        process_group: the ranks that take part; all if it is not given.
        no_dist: whether this process saves alone.
        use_collectives: whether there is one checkpoint; otherwise each rank writes a `.metadata`
            of its own, and nobody waits.

    >>> import tempfile
    >>> import rushlight.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> model = torch.nn.Linear(2, 1)
    >>> metadata = dcp.save({"model": model, "epoch": 3}, checkpoint_id=folder.name, no_dist=True)
    >>> sorted(metadata.state_dict_metadata)
    ['epoch', 'model.bias', 'model.weight']
    """
    no_dist = without_group(no_dist, "save")
    writer = _storage_setup(storage_writer, checkpoint_id)
    return _save_state_dict(
        _stateful_to_state_dict(state_dict), writer, process_group, no_dist=no_dist,
        planner=planner, use_collectives=use_collectives,
    )  # fmt: skip


def async_save(
    state_dict: STATE_DICT_TYPE, *, checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None, planner: SavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: AsyncStager | None = None, no_dist: bool = False, use_collectives: bool = True,
) -> Future[Metadata]:  # fmt: skip
    """`save` in another thread: the state dict is copied to the CPU, and then training may go on.

    The thread speaks to other ranks' threads through a group of its own, if `process_group` is not
    given: what this thread sends and receives meanwhile does not come between.

    Returns a `concurrent.futures.Future` of what `save` returns.

    >>> import tempfile
    >>> import rushlight.distributed.checkpoint as dcp
    >>> folder = tempfile.TemporaryDirectory()
    >>> w = torch.ones(2)
    >>> saved = dcp.async_save({"w": w}, checkpoint_id=folder.name, no_dist=True)
    >>> _ = w.zero_()
    >>> _ = saved.result()
    >>> dcp.load({"w": w}, checkpoint_id=folder.name, no_dist=True)
    >>> w
    tensor([1., 1.])
    """
    no_dist = without_group(no_dist, "save")
    writer = _storage_setup(storage_writer, checkpoint_id)
    group = process_group if no_dist or process_group is not None else _own_group()
    owned = None
    stager: Any = async_stager
    if stager is None:
        stager = writer if isinstance(writer, AsyncStager) else DefaultStager()
        owned = stager if storage_writer is None else None
    staged = stager.stage(_stateful_to_state_dict(state_dict))

    def write() -> Metadata:
        copy = staged.result() if isinstance(staged, Future) else staged
        try:
            return _save_state_dict(
                copy, writer, group, no_dist=no_dist, planner=planner,
                use_collectives=use_collectives,
            )  # fmt: skip
        finally:
            if owned is not None:
                owned.close()

    thread = ThreadPoolExecutor(1, thread_name_prefix="async_save")
    try:
        return thread.submit(write)
    finally:
        thread.shutdown(wait=False)


_groups: dict[int, tuple[Any, Any]] = {}  # by the id of the group of all: that, and the threads'


def _own_group() -> Any:
    """A group of all ranks in which nobody but the threads of `async_save` speaks."""
    from rushlight import distributed as dist

    world: Any = dist.group.WORLD
    known = _groups.get(id(world))
    if known is None or known[0] is not world:
        _groups.clear()
        known = _groups[id(world)] = (world, dist.new_group(backend="gloo"))
    return known[1]


def _stateful_to_state_dict(state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
    """The state dict, with what its objects remember in place of the objects."""
    return {
        key: value.state_dict() if isinstance(value, Stateful) else value
        for key, value in state_dict.items()
    }


def _save_state_dict(
    state_dict: STATE_DICT_TYPE, storage_writer: StorageWriter, process_group: Any = None,
    coordinator_rank: int = 0, no_dist: bool = False, planner: SavePlanner | None = None,
    use_collectives: bool = True,
) -> Metadata:  # fmt: skip
    """See `save`. Plans are made on each rank and brought together on the coordinator; then each
    rank writes, and at the end the coordinator writes what there is."""
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    plans = DefaultSavePlanner() if planner is None else planner
    metadata: Metadata | None = None

    def plan_locally() -> SavePlan:
        plans.set_up_planner(
            state_dict=state_dict, storage_meta=storage_writer.storage_meta(),
            is_coordinator=ranks.is_coordinator,
        )  # fmt: skip
        storage_writer.set_up_storage_writer(
            ranks.is_coordinator, rank=ranks.rank, use_collectives=use_collectives
        )
        return storage_writer.prepare_local_plan(plans.create_local_plan())

    def plan_globally(local_plans: list[SavePlan]) -> list[SavePlan]:
        nonlocal metadata
        local_plans, metadata = plans.create_global_plan(local_plans)
        return storage_writer.prepare_global_plan(local_plans)

    def write() -> list[WriteResult]:
        return storage_writer.write_data(plans.finish_plan(plan), plans).wait()

    def finish(results: list[list[WriteResult]]) -> Metadata:
        assert metadata is not None
        storage_writer.finish(metadata, results)
        return metadata

    if use_collectives:
        plan = ranks.reduce_scatter("plan", plan_locally, plan_globally)
        return ranks.all_reduce("write", write, finish)
    (plan,) = plan_globally([plan_locally()])
    found = finish([write()])
    ranks.barrier()
    return found
