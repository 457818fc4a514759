"""`torch.distributed.algorithms.ddp_comm_hooks`: ways in which `DistributedDataParallel` may send
gradients.

>>> from rushlight.distributed.algorithms.ddp_comm_hooks import DDPCommHookType
>>> [kind.name for kind in DDPCommHookType][:2]
['ALLREDUCE', 'FP16_COMPRESS']
"""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import Any

from rushlight.distributed.algorithms.ddp_comm_hooks import debugging_hooks, default_hooks

__all__ = ["DDPCommHookType", "register_ddp_comm_hook"]
__dir__ = __all__.copy


class DDPCommHookType(Enum):
    """Hooks by name. Each value is called with a model and a state, and registers its hook."""

    ALLREDUCE = partial(
        lambda model, state, hook: model.register_comm_hook(state, hook),
        hook=default_hooks.allreduce_hook,
    )
    FP16_COMPRESS = partial(
        lambda model, state, hook: model.register_comm_hook(state, hook),
        hook=default_hooks.fp16_compress_hook,
    )
    BF16_COMPRESS = partial(
        lambda model, state, hook: model.register_comm_hook(state, hook),
        hook=default_hooks.bf16_compress_hook,
    )
    NOOP = partial(
        lambda model, state, hook: model.register_comm_hook(state, hook),
        hook=debugging_hooks.noop_hook,
    )


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """register_ddp_comm_hook(comm_hook_type, model, state=None): register a hook by its name.

    >>> from rushlight.distributed.algorithms import ddp_comm_hooks
    >>> torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
    >>> ddp_comm_hooks.register_ddp_comm_hook(ddp_comm_hooks.DDPCommHookType.ALLREDUCE, net)
    >>> torch.distributed.destroy_process_group()
    """
    comm_hook_type.value(model=model, state=state)
