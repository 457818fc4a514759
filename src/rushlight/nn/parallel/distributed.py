"""`DistributedDataParallel` needs several processes that talk, which rushlight has not."""

from __future__ import annotations

from typing import Any

from rushlight.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]
__dir__ = __all__.copy


class DistributedDataParallel(Module):
    """DistributedDataParallel(module, ...): raises an error, for it needs torch.distributed."""

    def __init__(self, module: Any, *args: Any, **kwargs: Any) -> None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group.\nDistributedDataParallel needs torch.distributed, which rushlight "
            "has not: call the module itself."
        )
