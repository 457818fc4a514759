"""What saving and loading share: steps that all ranks take together, and finding things."""

from __future__ import annotations

import io
import pickle
import traceback
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from rushlight.core.graph import TensorBase
from rushlight.distributed.checkpoint.api import CheckpointException, Failure
from rushlight.distributed.checkpoint.metadata import MetadataIndex
from rushlight.size import Size

__all__ = ["find_state_dict_object", "find_tensor_shard"]
__dir__ = __all__.copy

T = TypeVar("T")
R = TypeVar("R")


class _Failed:
    """An error on its way to the other ranks."""

    def __init__(self, error: BaseException) -> None:
        self.failure: Failure = (_sendable(error), traceback.extract_tb(error.__traceback__))


def _sendable(error: BaseException) -> BaseException:
    """An error as another process can read it: some cannot be pickled, or not be read again."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _failures(results: Sequence[Any]) -> dict[int, Failure]:
    return {rank: x.failure for rank, x in enumerate(results) if isinstance(x, _Failed)}


def _attempt(step: Callable[[], T]) -> T | _Failed:
    # all ranks must take part in what follows, or those that succeeded would wait for ever
    try:
        return step()
    except BaseException as error:
        return _Failed(error)


class _DistWrapper:
    """Steps of a save or load. Each is taken on every rank; if it fails on one, all raise a
    `CheckpointException` that says what happened where. Without a group there is one rank."""

    def __init__(self, group: Any, use_dist: bool, coordinator_rank: int) -> None:
        self.group = group
        self.use_dist = use_dist
        self.coordinator_rank = coordinator_rank
        self.rank, self.global_coordinator_rank = 0, 0
        if use_dist:
            from rushlight import distributed as dist

            self.dist: Any = dist
            self.rank = self.dist.get_rank(group)
            self.global_coordinator_rank = (
                coordinator_rank
                if group is None
                else self.dist.get_global_rank(group, coordinator_rank)
            )
        self.is_coordinator = not use_dist or self.rank == coordinator_rank

    def get_rank(self) -> int:
        """The rank of this process."""
        return self.rank

    def get_world_size(self) -> int:
        """How many processes take part."""
        return int(self.dist.get_world_size(self.group)) if self.use_dist else 1

    def gather_object(self, object: T) -> list[T] | None:
        """What each rank gave, on the coordinator; None on the others."""
        if not self.use_dist:
            return [object]
        into: list[Any] | None = [None] * self.get_world_size() if self.is_coordinator else None
        self.dist.gather_object(object, into, dst=self.global_coordinator_rank, group=self.group)
        return into

    def all_gather_object(self, object: T) -> list[T]:
        """What each rank gave, on all of them."""
        if not self.use_dist:
            return [object]
        into: list[Any] = [None] * self.get_world_size()
        self.dist.all_gather_object(into, object, group=self.group)
        return into

    def broadcast_object(self, object: T | None) -> T:
        """What the coordinator gave, on all ranks."""
        given = [object]
        if self.use_dist:
            self.dist.broadcast_object_list(
                given, src=self.global_coordinator_rank, group=self.group
            )
        return cast(T, given[0])

    def scatter_object(self, object_list: list[T] | None) -> T:
        """The coordinator's n-th object, on the n-th rank."""
        if not self.use_dist:
            assert object_list is not None
            return object_list[0]
        into: list[Any] = [None]
        self.dist.scatter_object_list(
            into, object_list if self.is_coordinator else None,
            src=self.global_coordinator_rank, group=self.group,
        )  # fmt: skip
        return cast(T, into[0])

    def _centrally(
        self, step: str, local: Callable[[], T], central: Callable[[list[T]], R]
    ) -> R | CheckpointException | None:
        """Take a step everywhere and one with its results on the coordinator."""
        gathered = self.gather_object(_attempt(local))
        if gathered is None:
            return None
        failures = _failures(gathered)
        if not failures:
            found = _attempt(lambda: central(cast(list[T], gathered)))
            if not isinstance(found, _Failed):
                return found
            failures = {self.rank: found.failure}
        return CheckpointException(step, failures)

    def reduce_scatter(
        self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], list[R]]
    ) -> R:
        """`map_fun` everywhere, `reduce_fun` of the results on the coordinator; each rank gets its
        part of what that gives."""
        found = self._centrally(step, map_fun, reduce_fun)
        parts: list[Any] | None = cast(list[Any] | None, found)
        if isinstance(found, CheckpointException):
            parts = [found] * self.get_world_size()
        mine: R = _or_raise(self.scatter_object(parts))
        return mine

    def all_reduce(
        self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], R]
    ) -> R:
        """`map_fun` everywhere, `reduce_fun` of the results on the coordinator; all ranks get what
        that gives."""
        found = self.broadcast_object(self._centrally(step, map_fun, reduce_fun))
        whole: R = _or_raise(found)
        return whole

    def all_gather(self, step: str, map_fun: Callable[[], T]) -> list[T]:
        """`map_fun` everywhere; all ranks get all results."""
        results = self.all_gather_object(_attempt(map_fun))
        failures = _failures(results)
        if failures:
            raise CheckpointException(step, failures)
        return cast(list[T], results)

    def barrier(self) -> None:
        """Wait for the other ranks."""
        if self.use_dist:
            self.dist.barrier(group=self.group)


def _or_raise(found: Any) -> Any:
    if isinstance(found, CheckpointException):
        raise found
    return found


def find_tensor_shard(tensor: Any, index: MetadataIndex) -> Any:
    """The part of a tensor that this process holds and `index` names: a tensor."""
    if hasattr(tensor, "__get_tensor_shard__"):
        return tensor.__get_tensor_shard__(index)
    if index.offset is not None and index.offset != Size([0] * tensor.dim()):
        raise ValueError(
            f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'"
        )
    return tensor


def find_state_dict_object(state_dict: dict[str, Any], index: MetadataIndex) -> Any:
    """What `index` names in a flat state dict."""
    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    value = state_dict[index.fqn]
    if isinstance(value, TensorBase):
        return find_tensor_shard(value, index)
    if index.offset is not None:
        raise ValueError(
            f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'"
        )
    return value


def _all_gather_keys(state_dict: dict[str, Any], process_group: Any = None) -> set[str]:
    """The names that any rank has."""
    everyone = _DistWrapper(process_group, True, 0).all_gather_object(list(state_dict))
    return {key for keys in everyone for key in keys}


def _assert_same_keys(state_dict: dict[str, Any], process_group: Any = None) -> None:
    """Raise an AssertionError if another rank has names that this one lacks."""
    lacking = _all_gather_keys(state_dict, process_group) - set(state_dict)
    if lacking:
        raise AssertionError(
            f"Key(s) present in other ranks but not this one, difference: {lacking}"
        )


def read_exactly(stream: Any, offset: int, length: int, path: Any) -> io.BytesIO:
    """`length` bytes of a file from `offset` on; an error that names the file if it is shorter."""
    stream.seek(offset)
    data: bytes = stream.read(length)
    if len(data) != length:
        raise RuntimeError(
            f"{path} is damaged: it ends {length - len(data)} bytes before the end of a piece that "
            f"begins at byte {offset} and has {length} bytes"
        )
    return io.BytesIO(data)
