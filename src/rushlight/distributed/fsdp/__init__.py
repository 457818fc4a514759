"""`torch.distributed.fsdp`: training with parameters, gradients and optimiser's state shared out
over the processes."""

import typing as _typing

from rushlight.distributed.fsdp._fully_shard import FSDPModule as FSDPModule
from rushlight.distributed.fsdp._fully_shard import UnshardHandle as UnshardHandle
from rushlight.distributed.fsdp._fully_shard import fully_shard as fully_shard
from rushlight.distributed.fsdp._fully_shard import (
    register_fsdp_forward_method as register_fsdp_forward_method,
)
from rushlight.distributed.fsdp.api import BackwardPrefetch as BackwardPrefetch
from rushlight.distributed.fsdp.api import CPUOffload as CPUOffload
from rushlight.distributed.fsdp.api import CPUOffloadPolicy as CPUOffloadPolicy
from rushlight.distributed.fsdp.api import FullStateDictConfig as FullStateDictConfig
from rushlight.distributed.fsdp.api import LocalStateDictConfig as LocalStateDictConfig
from rushlight.distributed.fsdp.api import MixedPrecision as MixedPrecision
from rushlight.distributed.fsdp.api import MixedPrecisionPolicy as MixedPrecisionPolicy
from rushlight.distributed.fsdp.api import OffloadPolicy as OffloadPolicy
from rushlight.distributed.fsdp.api import ShardedStateDictConfig as ShardedStateDictConfig
from rushlight.distributed.fsdp.api import ShardingStrategy as ShardingStrategy
from rushlight.distributed.fsdp.api import StateDictConfig as StateDictConfig
from rushlight.distributed.fsdp.api import StateDictSettings as StateDictSettings
from rushlight.distributed.fsdp.api import StateDictType as StateDictType
from rushlight.distributed.fsdp.fully_sharded_data_parallel import (
    FullyShardedDataParallel as FullyShardedDataParallel,
)
from rushlight.missing import face as _face

__all__ = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullStateDictConfig",
    "FullyShardedDataParallel", "LocalStateDictConfig", "MixedPrecision", "MixedPrecisionPolicy",
    "OffloadPolicy", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType", "UnshardHandle", "fully_shard",
    "register_fsdp_forward_method",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.distributed.fsdp", globals(), {"api": "", "wrap": ""})
