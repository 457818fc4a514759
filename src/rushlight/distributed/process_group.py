"""`ProcessGroup`: processes that call collectives together; and which groups there are."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from rushlight.distributed import nccl
from rushlight.distributed.reduce_op import ReduceOp
from rushlight.distributed.work import Work, together
from rushlight.ops.registry import functions

__all__ = ["Backend", "BackendConfig", "GroupMember", "ProcessGroup", "group"]
__dir__ = __all__.copy

NOT_INITIALIZED: Final = (
    "Default process group has not been initialized, please make sure to call init_process_group."
)


class Backend(str):
    """Backend(name): the name of a kind of process groups, in small letters.

    >>> torch.distributed.Backend("GLOO")
    'gloo'
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"

    def __new__(cls, name: str = "undefined") -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish: {name}")
        return super().__new__(cls, name.lower())


class BackendConfig:
    """BackendConfig(backend): which backend serves which device.

    >>> torch.distributed.BackendConfig(torch.distributed.Backend("cpu:gloo,cuda:nccl"))
    cpu:gloo,cuda:nccl
    """

    def __init__(self, backend: str) -> None:
        known = ("gloo", "mpi", "nccl")
        self.given = backend
        if backend == "undefined":
            self.device_backend_map = {"cpu": "gloo"}
            if nccl.is_available():
                self.device_backend_map["cuda"] = "nccl"
        elif ":" in backend:
            pairs = [pair.split(":") for pair in backend.lower().split(",")]
            if any(len(pair) != 2 for pair in pairs):
                raise ValueError(
                    f"The custom backend string argument is invalid: {backend}.\n"
                    "Write device and backend in pairs: `cpu:gloo,cuda:nccl`."
                )
            self.device_backend_map = dict(pairs)
        elif backend == "nccl":
            self.device_backend_map = {"cuda": "nccl"}
        else:
            self.device_backend_map = {"cpu": backend, "cuda": backend}
        for name in self.device_backend_map.values():
            if name not in known:
                raise AssertionError(
                    f"Unknown backend type {name}\nrushlight has {', '.join(known)}; gloo and mpi "
                    "are both MPI."
                )

    def get_device_backend_map(self) -> dict[str, str]:
        """The backend of each device."""
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())


class ProcessGroup:
    """Some of the processes. `init_process_group` makes the one of all, `new_group` others.

    `transports` are what its collectives run on, by kind of device.
    """

    BackendType = Backend

    def __init__(
        self, ranks: Sequence[int], rank: int, config: BackendConfig, transports: dict[str, Any],
        store: Any, timeout: timedelta, name: str, desc: str,
    ) -> None:  # fmt: skip
        self.ranks = list(ranks)  # of all processes
        self._rank = rank  # in the group
        self.config = config
        self.transports = transports
        self.store = store
        self.timeout = timeout
        self.group_name = name
        self.group_desc = desc
        self.barriers = itertools.count()
        self.bound_device_id: Any = None

    def rank(self) -> int:
        """The rank of this process in the group."""
        return self._rank

    def size(self) -> int:
        """How many processes it has."""
        return len(self.ranks)

    def name(self) -> str:
        """The name of its backend."""
        names = list(dict.fromkeys(self.config.device_backend_map.values()))
        return names[0] if len(names) == 1 else str(self.config)

    def _get_backend_name(self) -> str:
        return self.name()

    def get_group_store(self) -> Any:
        """The store of the group."""
        return self.store

    def set_timeout(self, timeout: timedelta) -> None:
        """Say how long collectives wait."""
        self.timeout = timeout
        for transport in self.transports.values():
            transport.seconds = timeout.total_seconds()

    def transport(self, tensor: Any = None) -> Any:
        """What moves a tensor: NCCL for one on a GPU, where the group has it."""
        kind = "cpu" if tensor is None else tensor.device.type
        found = self.transports.get(kind)
        if found is None and tensor is None:
            found = next(iter(self.transports.values()))
        if found is None:
            raise RuntimeError(
                f"No backend type associated with device type {kind}\nThis group has "
                f"{self.config}: name both, init_process_group('cpu:gloo,cuda:nccl')."
            )
        return found

    # The same collectives under the names that PyTorch's class has; `opts` may be a ReduceOp.
    def allreduce(self, tensors: Any, opts: Any = ReduceOp.SUM, timeout: Any = None) -> Work:
        """Start an all_reduce."""
        op = getattr(opts, "reduceOp", opts)
        return self._each(tensors, lambda t: self.transport(t).all_reduce(t, op, True))

    def broadcast(self, tensors: Any, opts: Any = 0, timeout: Any = None) -> Work:
        """Start a broadcast from rank `opts` of the group."""
        root = getattr(opts, "rootRank", opts)
        return self._each(tensors, lambda t: self.transport(t).broadcast(t, root, True))

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> Work:
        """Start an all_gather."""
        given = inputs[0] if isinstance(inputs, (list, tuple)) else inputs
        lists = outputs[0] if isinstance(outputs[0], (list, tuple)) else outputs
        work: Work = self.transport(given).all_gather(lists, given, True)
        return work

    def barrier(self, opts: Any = None, timeout: Any = None) -> Work:
        """Start a barrier."""
        work: Work = self.transport().barrier(True)
        return work

    def send(self, tensors: Any, dstRank: int, tag: int = 0) -> Work:
        """Start sending."""
        work: Work = self.transport(tensors[0]).send(tensors[0], dstRank, tag, True)
        return work

    def recv(self, tensors: Any, srcRank: int, tag: int = 0) -> Work:
        """Start receiving."""
        work: Work = self.transport(tensors[0]).receive(tensors[0], srcRank, tag, True)
        return work

    def _each(self, tensors: Any, start: Any) -> Work:
        given = list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]
        works = [start(t) for t in given]
        return works[0] if len(works) == 1 else together(works, given)

    def token(self) -> Any:
        """A small tensor where the group's collectives run."""
        kind = "cpu" if "cpu" in self.transports else "cuda"
        return functions["zeros"]((1,), device=kind)

    def __deepcopy__(self, memo: Any) -> ProcessGroup:
        return self

    def __reduce__(self) -> Any:
        return _find, (self.group_name,)


def _find(name: str) -> ProcessGroup:
    if name not in groups:
        raise RuntimeError(f"Could not resolve the process group registered under the name {name}")
    return groups[name]


class _Everyone(type):
    """`group.WORLD` and `GroupMember.WORLD` are the group of all, whichever it is now."""

    @property
    def WORLD(cls) -> ProcessGroup | None:
        return default[0] if default else None

    @WORLD.setter
    def WORLD(cls, value: ProcessGroup | None) -> None:
        default[:] = [] if value is None else [value]


class group(metaclass=_Everyone):
    """`group.WORLD`: the group of all processes; None before `init_process_group`."""


class GroupMember(metaclass=_Everyone):
    """`GroupMember.WORLD`, and what `new_group` gives those who are not in the group."""

    NON_GROUP_MEMBER = -100


default: list[ProcessGroup] = []  # the group of all, or nothing
groups: dict[str, ProcessGroup] = {}  # those that exist, by name


def default_group() -> ProcessGroup:
    """The group of all processes."""
    if not default:
        raise ValueError(NOT_INITIALIZED)
    return default[0]


def resolve(given: Any) -> ProcessGroup:
    """The group of an argument `group`: None is the one of all."""
    if given is None:
        return default_group()
    if isinstance(given, ProcessGroup):
        return given
    raise TypeError(f"Invalid function argument. Expected parameter `group` of type ProcessGroup "
                    f"but got {type(given)} instead.")  # fmt: skip


def is_outsider(given: Any) -> bool:
    """Whether a group is the one that those get who are not in it."""
    return bool(given == GroupMember.NON_GROUP_MEMBER)


def rank_in(of: ProcessGroup, rank: int) -> int:
    """The rank in a group of a process with a rank of all."""
    if rank not in of.ranks:
        raise ValueError(f"Global rank {rank} is not part of group {of.group_name}")
    return of.ranks.index(rank)
