"""Modules whose parameters are not initialised."""

from __future__ import annotations

import inspect
from typing import Any

from rushlight.nn.modules.module import Module

__all__ = ["skip_init"]
__dir__ = __all__.copy


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """skip_init(module_cls, *args, **kwargs): a module with memory for its parameters, and no
    values in them: they are made without being drawn, on the device `meta`, and then given memory.

    The class must take `device`, which says where.

    >>> net = torch.nn.utils.skip_init(torch.nn.Linear, 2, 3)
    >>> net.weight.shape, net.weight.device
    (torch.Size([3, 2]), device(type='cpu'))
    """
    if not isinstance(module_cls, type) or not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    final = kwargs.pop("device", "cpu")
    kwargs["device"] = "meta"
    return module_cls(*args, **kwargs).to_empty(device=final)
