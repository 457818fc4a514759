"""The errors of process groups and their stores."""

from __future__ import annotations

__all__ = [
    "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "QueueEmptyError",
]  # fmt: skip
__dir__ = __all__.copy


class DistError(RuntimeError):
    """An error of `torch.distributed`; the others are kinds of it."""


class DistBackendError(DistError):
    """A collective failed: a process died, left or kept the others waiting too long."""


class DistNetworkError(DistError):
    """A process could not be reached."""


class DistStoreError(DistError):
    """A store has not what was asked for."""


class QueueEmptyError(DistStoreError):
    """A queue of a store has nothing in it."""


for _error in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _error.__module__ = "torch.distributed"
