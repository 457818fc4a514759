"""`torch.distributed`: rushlight runs in one process. What asks whether there are more is told so;
what needs them raises.

>>> torch.distributed.is_available()
False
"""

from __future__ import annotations

import enum as _enum
import typing as _typing
from collections.abc import Callable
from datetime import timedelta as _timedelta
from typing import Any, NoReturn

from rushlight.absent import stand_in as _stand_in
from rushlight.missing import face as _face

_NEEDING_GROUP = """
    all_gather all_gather_coalesced all_gather_into_tensor all_gather_object all_gather_single
    all_reduce all_reduce_coalesced all_to_all all_to_all_single barrier batch_isend_irecv broadcast
    broadcast_object_list destroy_process_group gather gather_object get_backend get_backend_config
    get_global_rank get_group_rank get_pg_count get_process_group_ranks get_rank get_world_size
    init_device_mesh irecv isend monitored_barrier new_group new_subgroups
    new_subgroups_by_enumeration recv recv_object_list reduce reduce_scatter reduce_scatter_single
    reduce_scatter_tensor scatter scatter_object_list send send_object_list split_group
    _get_default_group _get_default_store
""".split()
_STAND_INS = """
    BackendConfig DeviceMesh FileStore GradBucket HashStore Logger P2POp PrefixStore ProcessGroup
    ProcessGroupGloo Reducer Store TCPStore Work
""".split()

__all__ = [
    "Backend", "BackendConfig", "DeviceMesh", "DistBackendError", "DistError", "DistNetworkError",
    "DistStoreError", "FileStore", "GradBucket", "GroupMember", "HashStore", "Logger", "P2POp",
    "PrefixStore", "ProcessGroup", "ProcessGroupGloo", "ReduceOp", "Reducer", "Store", "TCPStore",
    "Work", "default_pg_timeout", "get_node_local_rank", "group", "init_process_group",
    "is_available", "is_backend_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available",
    "is_xccl_available",
]  # fmt: skip
__all__ += [name for name in _NEEDING_GROUP if not name.startswith("_")]

default_pg_timeout = _timedelta(minutes=30)


class DistError(RuntimeError):
    """An error of process groups; rushlight has none, and never raises it."""


class DistBackendError(DistError):
    """Likewise."""


class DistNetworkError(DistError):
    """Likewise."""


class DistStoreError(DistError):
    """Likewise."""


class ReduceOp(_enum.Enum):
    """How values of several processes become one: a default argument of many functions.

    >>> torch.distributed.ReduceOp.SUM.name
    'SUM'
    """

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8


ReduceOp.RedOpType = ReduceOp  # type: ignore[attr-defined]  # what PyTorch calls the enumeration


class GroupMember:
    """The group of all processes, which is not there, and what others have in place of it."""

    WORLD = None
    NON_GROUP_MEMBER = -100


class group:
    """The group of all processes: none."""

    WORLD = None


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

    def __new__(cls, name: str) -> Backend:
        return super().__new__(cls, name.lower())


def is_available() -> bool:
    """is_available() -> bool: never, there are no process groups here."""
    return False


def is_initialized() -> bool:
    """is_initialized() -> bool: never."""
    return False


def is_backend_available(backend: str) -> bool:
    """is_backend_available(backend) -> bool: never."""
    return False


is_gloo_available = is_mpi_available = is_nccl_available = is_torchelastic_launched = is_available
is_ucc_available = is_xccl_available = is_available


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """init_process_group(...): raises: rushlight has no process groups."""
    raise RuntimeError(
        "Distributed package doesn't have process groups built in: rushlight runs in one process. "
        "Leave init_process_group out where torch.distributed.is_available() is False."
    )


def _needing_group(name: str) -> Callable[..., NoReturn]:
    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group.\nrushlight runs in one process: torch.distributed.is_available() "
            "is False."
        )

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{name}(...): raises: it needs a process group, and there is none."
    return call


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """get_node_local_rank(fallback_rank=None) -> int: the fallback, for nobody launched this."""
    if fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank")
    return fallback_rank


_AT_HAND = {name: _needing_group(name) for name in _NEEDING_GROUP}
_AT_HAND |= {
    name: _stand_in(f"torch.distributed.{name}", "rushlight runs in one process")
    for name in _STAND_INS
}
globals().update(_AT_HAND)


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face(
        "torch.distributed", globals(), {"constants": "", "distributed_c10d": ""}
    )
