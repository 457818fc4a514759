"""How a `DataLoader` works inside: `collate`, `fetch`, `worker`, `pin_memory`."""

from rushlight.utils.data._utils import collate, fetch, pin_memory, worker

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory", "worker"]
__dir__ = __all__.copy

# Seconds after which one that waits looks whether the other process is still alive.
MP_STATUS_CHECK_INTERVAL = worker.MP_STATUS_CHECK_INTERVAL
