"""`torch.distributed.distributed_c10d`: the names of `torch.distributed`, where they stand."""

from typing import Any

from rushlight import distributed as _distributed

__all__: list[str] = []
__dir__ = __all__.copy


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(
            f"module 'torch.distributed.distributed_c10d' has no attribute {name!r}"
        )
    return getattr(_distributed, name)
