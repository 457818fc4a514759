"""`torch.distributed`: rushlight runs in one process. What asks whether there are more is told so;
what needs them raises.

>>> torch.distributed.is_available()
False
"""

from __future__ import annotations

import typing as _typing
from collections.abc import Callable
from typing import Any, NoReturn

from rushlight.missing import face as _face

__all__ = [
    "all_gather", "all_gather_object", "all_reduce", "barrier", "broadcast",
    "broadcast_object_list", "destroy_process_group", "gather", "get_backend", "get_rank",
    "get_world_size", "init_process_group", "is_available", "is_backend_available",
    "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "new_group", "recv", "reduce", "reduce_scatter", "scatter", "send",
]  # fmt: skip


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


all_gather, all_gather_object, all_reduce, barrier, broadcast, broadcast_object_list = map(
    _needing_group,
    "all_gather all_gather_object all_reduce barrier broadcast broadcast_object_list".split(),
)
destroy_process_group, gather, get_backend, get_rank, get_world_size, new_group = map(
    _needing_group,
    "destroy_process_group gather get_backend get_rank get_world_size new_group".split(),
)
recv, reduce, reduce_scatter, scatter, send = map(
    _needing_group, "recv reduce reduce_scatter scatter send".split()
)


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.distributed", globals())
