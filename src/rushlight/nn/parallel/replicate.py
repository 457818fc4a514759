"""Copies of a module for several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["replicate"]
__dir__ = __all__.copy


def replicate(network: Any, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """A replica of a module for each device: other modules over values that depend on the
    module's own, so that gradients come together there.

    >>> m = torch.nn.Linear(1, 1)
    >>> first, second = torch.nn.parallel.replicate(m, ["cpu", "cpu"])
    >>> (first(torch.ones(1, 1)) + second(torch.ones(1, 1))).sum().backward()
    >>> m.weight.grad
    tensor([[2.]])
    """
    return [_replica(network, device, detach, {}) for device in devices]


def _replica(module: Any, device: Any, detach: bool, made: dict[int, Any]) -> Any:
    if id(module) in made:
        return made[id(module)]
    replica = module._replicate_for_data_parallel()
    made[id(module)] = replica
    own = replica.__dict__
    for name, child in module._modules.items():
        own["_modules"][name] = None if child is None else _replica(child, device, detach, made)
    for name, param in module._parameters.items():
        value = None
        if param is not None:
            there = param.detach() if detach else param
            value = there.to(device)
            if value is param:
                value = param.view_as(param)  # a tensor of its own, whose gradient goes to param
        own["_parameters"].pop(name, None)
        own[name] = value
    for name, buffer in module._buffers.items():
        own["_buffers"][name] = None if buffer is None else buffer.to(device)
    return replica
