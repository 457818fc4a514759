"""Options of sharded training: policies of `fully_shard`, and enumerations and configurations of
`FullyShardedDataParallel`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullStateDictConfig",
    "LocalStateDictConfig", "MixedPrecision",
    "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig", "StateDictSettings",
    "StateDictType",
]  # fmt: skip
__dir__ = __all__.copy


# --- fully_shard ----------------------------------------------------------------------------------
@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes in which a module computes; what is kept of parameters stays in their own.

    param_dtype: of parameters while they are whole, and of inputs with `cast_forward_inputs`.
    reduce_dtype: in which gradients are averaged; `param_dtype` if it is not given.
    output_dtype: of what `forward` returns.

    >>> from rushlight.distributed.fsdp import MixedPrecisionPolicy
    >>> MixedPrecisionPolicy(param_dtype=torch.bfloat16).cast_forward_inputs
    True
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Nothing is kept elsewhere."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parts of parameters, their gradients and the optimiser's state are kept on the CPU."""

    pin_memory: bool = True


# --- FullyShardedDataParallel ---------------------------------------------------------------------
class ShardingStrategy(Enum):
    """What is shared out, and for how long.

    FULL_SHARD: parameters are whole in forward, and again in backward.
    SHARD_GRAD_OP: parameters are whole from forward to the end of backward.
    NO_SHARD: nothing is shared out; not supported here, `DistributedDataParallel` does it.
    HYBRID_SHARD, _HYBRID_SHARD_ZERO2: the same two inside groups of processes; a mesh says which.
    """

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When parameters are gathered for backward: here always when they are used first."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass
class MixedPrecision:
    """Dtypes in which a wrapped module computes."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type] = ()


@dataclass
class CPUOffload:
    """Whether parameters are kept on the CPU."""

    offload_params: bool = False


class StateDictType(Enum):
    """What `state_dict` of a wrapped module holds: whole tensors, or this process's parts."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class StateDictConfig:
    """offload_to_cpu: whether tensors are moved to the CPU."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """rank0_only: whether only rank 0 gets the tensors, and the others an empty dictionary."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """This process's parts."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """This process's parts, as DTensors."""

    _use_dtensor: bool = False


@dataclass
class StateDictSettings:
    """What a module's state dicts hold now."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: Any = None
