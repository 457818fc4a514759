"""`torch.distributed`: several processes that work together, by MPI and by NCCL.

    rendezvous, store, tcp_store, file_store    how processes find each other
    world, pmi, attendance                      one MPI world, and who is there
    process_group, initialization               groups
    mpi, nccl, solo, buffers, work              what moves tensors
    collectives, point_to_point, objects        what programs call

>>> torch.distributed.is_available(), torch.distributed.is_initialized()
(True, False)
"""

from __future__ import annotations

import typing as _typing

from rushlight.absent import stand_in as _stand_in
from rushlight.distributed.collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
)
from rushlight.distributed.constants import default_pg_timeout
from rushlight.distributed.debug_level import (
    DebugLevel,
    get_debug_level,
    set_debug_level,
    set_debug_level_from_env,
)
from rushlight.distributed.errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
)
from rushlight.distributed.file_store import FileStore
from rushlight.distributed.initialization import (
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    split_group,
)
from rushlight.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from rushlight.distributed.point_to_point import (
    P2POp,
    batch_isend_irecv,
    irecv,
    isend,
    recv,
    send,
)
from rushlight.distributed.process_group import (
    Backend,
    BackendConfig,
    GroupMember,
    ProcessGroup,
    group,
)
from rushlight.distributed.process_group import default_group as _get_default_group
from rushlight.distributed.process_group import is_outsider as _is_outsider
from rushlight.distributed.reduce_op import ReduceOp
from rushlight.distributed.rendezvous import register_rendezvous_handler, rendezvous
from rushlight.distributed.store import HashStore, PrefixStore, Store
from rushlight.distributed.tcp_store import TCPStore
from rushlight.distributed.work import Work
from rushlight.missing import face as _face

__all__ = [
    "Backend", "BackendConfig", "DebugLevel", "DeviceMesh", "DistBackendError", "DistError",
    "DistNetworkError", "DistStoreError", "FileStore", "GradBucket", "GroupMember", "HashStore",
    "Logger", "P2POp", "PrefixStore", "ProcessGroup", "ProcessGroupGloo", "QueueEmptyError",
    "ReduceOp", "Reducer", "Store", "TCPStore", "Work", "all_gather", "all_gather_coalesced",
    "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv",
    "broadcast", "broadcast_object_list", "default_pg_timeout", "destroy_process_group", "gather",
    "gather_object", "get_backend", "get_backend_config", "get_debug_level",
    "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank",
    "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group",
    "init_device_mesh", "init_process_group", "irecv", "is_available", "is_backend_available",
    "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend",
    "monitored_barrier", "new_group", "new_subgroups", "new_subgroups_by_enumeration", "recv",
    "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_single",
    "reduce_scatter_tensor", "register_rendezvous_handler", "rendezvous", "scatter",
    "scatter_object_list", "send", "send_object_list", "set_debug_level",
    "set_debug_level_from_env", "split_group",
]  # fmt: skip


_all_gather_base, _reduce_scatter_base = all_gather_into_tensor, reduce_scatter_tensor
_rank_not_in_group = _is_outsider


def _get_default_store() -> _typing.Any:
    return _get_default_group().store


# Imported when first used.
_LATER = {
    "DeviceMesh": "device_mesh", "GradBucket": "grad_bucket", "_functional_collectives": "",
    "algorithms": "", "checkpoint": "", "constants": "", "device_mesh": "",
    "distributed_c10d": "", "elastic": "", "fsdp": "", "init_device_mesh": "device_mesh",
    "launch": "", "nn": "", "optim": "", "run": "", "tensor": "",
}  # fmt: skip

# Classes that programs ask about with isinstance; nothing here is one.
_REASON = "process groups are of one class"
Logger = _stand_in("torch.distributed.Logger", _REASON)
ProcessGroupGloo = _stand_in("torch.distributed.ProcessGroupGloo", _REASON)
Reducer = _stand_in("torch.distributed.Reducer", _REASON)

if _typing.TYPE_CHECKING:
    from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh
    from rushlight.distributed.grad_bucket import GradBucket
else:
    __getattr__, __dir__ = _face("torch.distributed", globals(), _LATER)
