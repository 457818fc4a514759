"""Making and ending groups: `init_process_group`, `new_group`, `destroy_process_group`."""

from __future__ import annotations

import importlib.util
import itertools
import os
import socket
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import urlparse

from rushlight.arrays import nccl as gpu
from rushlight.distributed import attendance, nccl, process_group, world
from rushlight.distributed.constants import default_pg_nccl_timeout, default_pg_timeout
from rushlight.distributed.process_group import (
    Backend,
    BackendConfig,
    GroupMember,
    ProcessGroup,
    default_group,
    is_outsider,
    resolve,
)
from rushlight.distributed.rendezvous import Place, place_by_mpi, rendezvous, tell_environment
from rushlight.distributed.solo import SoloTransport
from rushlight.distributed.store import HashStore, PrefixStore
from rushlight.distributed.tcp_store import TCPStore

__all__ = [
    "destroy_process_group", "get_backend", "get_backend_config",
    "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank",
    "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "init_process_group",
    "is_available", "is_backend_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available",
    "is_xccl_available", "new_group", "new_subgroups", "new_subgroups_by_enumeration",
    "split_group",
]  # fmt: skip
__dir__ = __all__.copy

_inits = itertools.count()
_made = itertools.count()


# --- what there is --------------------------------------------------------------------------------
def is_available() -> bool:
    """is_available() -> bool: whether there are process groups: there are.

    >>> torch.distributed.is_available()
    True
    """
    return True


def is_mpi_available() -> bool:
    """is_mpi_available() -> bool: whether mpi4py is installed."""
    return importlib.util.find_spec("mpi4py") is not None


def is_gloo_available() -> bool:
    """is_gloo_available() -> bool: as `is_mpi_available`, for MPI answers the backend gloo."""
    return is_mpi_available()


def is_nccl_available() -> bool:
    """is_nccl_available() -> bool: whether CuPy is here with NCCL and a GPU."""
    return gpu.is_available()


def is_ucc_available() -> bool:
    """is_ucc_available() -> bool: never."""
    return False


def is_xccl_available() -> bool:
    """is_xccl_available() -> bool: never."""
    return False


def is_backend_available(backend: str) -> bool:
    """is_backend_available(backend) -> bool: whether groups of this kind can be made."""
    found = {"gloo": is_gloo_available, "mpi": is_mpi_available, "nccl": is_nccl_available}
    return backend.lower() in found and found[backend.lower()]()


def is_initialized() -> bool:
    """is_initialized() -> bool: whether `init_process_group` was called.

    >>> torch.distributed.is_initialized()
    False
    """
    return bool(process_group.default)


def is_torchelastic_launched() -> bool:
    """is_torchelastic_launched() -> bool: whether a launcher like torchrun started this."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_default_backend_for_device(device: Any) -> str:
    """The backend for tensors on a device."""
    kind = getattr(device, "type", str(device)).split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise ValueError(f"Default backend not registered for device : {device}")
    return "nccl" if kind == "cuda" else "gloo"


# --- the group of all -----------------------------------------------------------------------------
def init_process_group(
    backend: str | None = None, init_method: str | None = None, timeout: timedelta | None = None,
    world_size: int = -1, rank: int = -1, store: Any = None, group_name: str = "",
    pg_options: Any = None, device_id: Any = None, _ranks: list[int] | None = None,
) -> None:  # fmt: skip
    """Meet the other processes: after this all of them are one group.

    backend: `gloo` and `mpi` move tensors by MPI, `nccl` those on GPUs by NCCL;
        `cpu:gloo,cuda:nccl` both. Without one: MPI, and NCCL where there are GPUs.
    init_method: how to meet, `env://`, `tcp://host:port` or `file:///path`; not needed under
        `mpiexec` and `rushlight launch`. Or give a `store`.
    timeout: how long a collective waits for a process that does not come; 30 minutes.

    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1,
    ...                                      store=torch.distributed.HashStore())
    >>> torch.distributed.get_world_size()
    1
    >>> torch.distributed.destroy_process_group()
    """
    if process_group.default:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )
    config = BackendConfig(Backend("undefined" if backend is None else backend))
    place = place_by_mpi()
    limit = timeout or (
        default_pg_nccl_timeout
        if set(config.device_backend_map.values()) == {"nccl"}
        else default_pg_timeout
    )
    host = "127.0.0.1"
    if place is not None and place.size > 1:
        rank, world_size, store = _under_mpiexec(place, rank, world_size, store)
    elif store is not None:
        if world_size <= 0 or rank < 0:
            raise (
                ValueError("world_size must be positive if using store")
                if (world_size <= 0)
                else ValueError("rank must be non-negative if using store")
            )
        host = getattr(store, "host", "") or socket.gethostname()
        place = None
    else:
        if place is not None and init_method is None and "RANK" not in os.environ:
            tell_environment(place)
            store, rank, world_size = HashStore(), 0, 1
        elif world_size == 1 and rank <= 0 and init_method is None and "RANK" not in os.environ:
            store, rank = HashStore(), 0
        else:
            where = init_method or "env://"
            store, rank, world_size = next(rendezvous(where, rank, world_size, timeout=limit))
            host = _host_of(where)
        place = None
    own = PrefixStore(f"default_pg/{next(_inits)}", store)
    made = _make(range(world_size), rank, config, own, limit, group_name or "0", place, host)
    made.group_desc = "default_pg"
    made.bound_device_id = device_id
    process_group.default[:] = [made]
    _register(made)
    made.transport().barrier(False).wait()  # from here on all are known to be there


def _under_mpiexec(place: Place, rank: int, size: int, store: Any) -> tuple[int, int, Any]:
    """Rank, size and store of a process that `mpiexec` started."""
    for told, known, name in ((rank, place.rank, "rank"), (size, place.size, "world_size")):
        if told not in (-1, known):
            raise ValueError(
                f"{name}={told}, but mpiexec started this process with {name}={known}: leave the "
                "argument out, or pass what RANK and WORLD_SIZE say."
            )
    tell_environment(place)
    return place.rank, place.size, store if store is not None else _store_over_mpi(place)


def _store_over_mpi(place: Place) -> Any:
    """A TCPStore whose address MPI tells to all."""
    mpi = world._load()
    if not mpi.Is_initialized():
        mpi.Init_thread(mpi.THREAD_MULTIPLE)
    everyone = mpi.COMM_WORLD
    names = everyone.allgather(mpi.Get_processor_name())
    host = "127.0.0.1" if len(set(names)) == 1 else names[0]
    if place.rank == 0:
        store = TCPStore(host, 0, None, True, wait_for_workers=False)
        everyone.bcast(store.port, root=0)
        return store
    return TCPStore(host, everyone.bcast(None, root=0), wait_for_workers=False)


def _host_of(address: str) -> str:
    parts = urlparse(address)
    if parts.scheme == "env":
        return os.environ["MASTER_ADDR"]
    return parts.hostname or "127.0.0.1"


def _make(
    ranks: Sequence[int], rank: int, config: BackendConfig, store: Any, limit: timedelta,
    name: str, place: Place | None, host: str,
) -> ProcessGroup:  # fmt: skip
    """A group of these processes, of which this one is `ranks[rank]`."""
    transports: dict[str, Any] = {}
    size, seconds = len(ranks), limit.total_seconds()
    backends = config.device_backend_map
    if "cpu" in backends:
        transports["cpu"] = (
            SoloTransport()
            if size == 1
            else _over_mpi(ranks, rank, store, name, seconds, place, host)
        )
        transports["cuda"] = transports["cpu"]
    if backends.get("cuda") == "nccl":
        if not gpu.is_available():
            raise RuntimeError(
                "Distributed package doesn't have NCCL built in: it needs CuPy with NCCL, and a "
                "GPU.\nWithout GPUs take the backend gloo."
            )
        attending = _attend(store, rank, size, host) if size > 1 else None
        transports["cuda"] = nccl.NCCLTransport(
            store, rank, ranks, f"group {name}", seconds, attending
        )
    return ProcessGroup(ranks, rank, config, transports, store, limit, name, "undefined")


def _attend(store: Any, rank: int, size: int, host: str) -> Any:
    """Who is there, for a group that MPI does not serve."""
    if (entered := world.current()) is not None:
        return entered.attendance
    if not _attendance:
        started = attendance.start(
            rank, host,
            lambda port: store.set("rushlight/attendance", str(port)),
            lambda: int(store.get("rushlight/attendance")),
            lambda: "in a program on a GPU",
        )  # fmt: skip
        _attendance.append(started)
    return _attendance[0]


_attendance: list[Any] = []


def _over_mpi(
    ranks: Sequence[int], rank: int, store: Any, name: str, seconds: float, place: Place | None,
    host: str,
) -> Any:  # fmt: skip
    from rushlight.distributed.mpi import MPITransport

    store.set_timeout(timedelta(seconds=seconds))
    entered = world.current() if process_group.default else None
    if entered is None:
        entered = world.enter(place, store, rank, len(ranks), host)
    # Making a communicator waits in MPI for all of the group: so have them come here first.
    store.barrier("rushlight/communicator", len(ranks))
    return MPITransport(entered, ranks, f"group {name}", seconds, store)


def _register(made: ProcessGroup) -> None:
    process_group.groups[made.group_name] = made


def destroy_process_group(group: Any = None) -> None:
    """End a group; without one, all of them."""
    if is_outsider(group):
        return
    ending = default_group() if group is None else resolve(group)
    gone = list(process_group.groups.values()) if ending in process_group.default else [ending]
    for one in gone:
        for transport in one.transports.values():
            transport.close()
        process_group.groups.pop(one.group_name, None)
    if ending in process_group.default:
        process_group.default.clear()
        process_group.groups.clear()


# --- other groups ---------------------------------------------------------------------------------
def new_group(
    ranks: Sequence[int] | None = None, timeout: timedelta | None = None,
    backend: str | None = None, pg_options: Any = None, use_local_synchronization: bool = False,
    group_desc: str | None = None, device_id: Any = None, sort_ranks: bool = True,
) -> Any:  # fmt: skip
    """Make a group of some processes. All processes call this, also those that are not in it; they
    get `GroupMember.NON_GROUP_MEMBER`."""
    everyone = default_group()
    chosen = list(everyone.ranks) if ranks is None else list(ranks)
    if len(chosen) > everyone.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by "
            "init_process_group"
        )
    for rank in chosen:
        if not 0 <= rank < everyone.size():
            raise ValueError("The new group's rank should be within the world_size set by "
                             "init_process_group")  # fmt: skip
    if len(set(chosen)) != len(chosen):
        raise ValueError("the new group's ranks should not have duplicates")
    if sort_ranks:
        chosen.sort()
    number = next(_made)
    name = f"{number + 1}"
    if use_local_synchronization:  # those who are not in it do not call: a count would not agree
        name = "of ranks " + " ".join(map(str, chosen))
    here = everyone.ranks[everyone.rank()]
    if here not in chosen:
        return GroupMember.NON_GROUP_MEMBER
    config = everyone.config if backend is None else BackendConfig(Backend(backend))
    store = PrefixStore(f"group {name}", everyone.store)
    made = _make(
        chosen, chosen.index(here), config, store, timeout or everyone.timeout, name, None, ""
    )
    made.group_desc = group_desc or "undefined"
    _register(made)
    return made


def new_subgroups(
    group_size: int | None = None, group: Any = None, timeout: timedelta | None = None,
    backend: str | None = None, pg_options: Any = None, group_desc: str | None = None,
) -> Any:  # fmt: skip
    """Groups of `group_size` processes each; the result is the own one, and all of them."""
    everyone = resolve(group)
    size = _per_host() if group_size is None else group_size
    if size <= 0:
        raise ValueError(f"The arg 'group_size' ({size}) must be positive")
    total = everyone.size()
    if total < size:
        raise ValueError(f"The arg 'group_size' ({size}) must not exceed the world size ({total})")
    if total % size:
        raise ValueError(f"The world size ({total}) must be divisible by 'group_size={size}'")
    lists = [everyone.ranks[i : i + size] for i in range(0, total, size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def _per_host() -> int:
    return int(os.environ.get("LOCAL_WORLD_SIZE", 1))


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]], timeout: timedelta | None = None,
    backend: str | None = None, pg_options: Any = None, group_desc: str | None = None,
) -> Any:  # fmt: skip
    """Groups of the processes in each list; the result is the own one, and all of them."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: set[int] = set()
    for ranks in ranks_per_subgroup_list:
        if both := seen.intersection(ranks):
            raise ValueError(f"Rank {min(both)} has appeared in both subgroups")
        seen.update(ranks)
    own, made = None, []
    for ranks in ranks_per_subgroup_list:
        one = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        made.append(one)
        if not is_outsider(one):
            own = one
    return own, made


def split_group(
    parent_pg: Any = None, split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None, pg_options: Any = None, group_desc: str | None = None,
    backend: Any = None,
) -> Any:  # fmt: skip
    """Split a group into several; the result is the one this process is in, or None."""
    parent = resolve(parent_pg)
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    own = None
    for ranks in split_ranks:
        chosen = [parent.ranks[r] for r in sorted(ranks)]
        one = new_group(chosen, timeout, backend, pg_options, group_desc=group_desc)
        if not is_outsider(one):
            own = one
    return own


# --- questions ------------------------------------------------------------------------------------
def get_rank(group: Any = None) -> int:
    """The rank of this process, of all or in a group; -1 where it is not in it."""
    return -1 if is_outsider(group) else resolve(group).rank()


def get_world_size(group: Any = None) -> int:
    """How many processes there are, or are in a group; -1 where this one is not in it."""
    return -1 if is_outsider(group) else resolve(group).size()


def get_backend(group: Any = None) -> Backend:
    """The name of a group's backend."""
    if is_outsider(group):
        raise ValueError("Invalid process group specified")
    return Backend(resolve(group).config.given)


def get_backend_config(group: Any = None) -> str:
    """The backends of a group, by device: `cpu:gloo,cuda:gloo`."""
    return repr(resolve(group).config)


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The ranks, of all processes, of those in a group."""
    return list(resolve(group).ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The rank, of all processes, of one with a rank in a group."""
    ranks = resolve(group).ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The rank in a group of a process with a rank of all."""
    return process_group.rank_in(resolve(group), global_rank)


def get_pg_count() -> int:
    """How many groups there are."""
    return len(process_group.groups)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank of this process on its host, as the launcher told it."""
    place = place_by_mpi()
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if place is not None:
        return place.local_rank
    if fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank")
    return int(fallback_rank)


def warn_outsider(name: str) -> None:
    """Say that a collective was called by a process that is not in the group."""
    warnings.warn(
        f"Running {name} on global rank {get_rank()} which does not belong to the given group.",
        stacklevel=3,
    )
