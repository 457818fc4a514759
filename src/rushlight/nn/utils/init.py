"""Making modules without drawing first values for them."""

from __future__ import annotations

import inspect
from typing import Any

from rushlight.nn.modules.module import Module

__all__ = ["skip_init"]
__dir__ = __all__.copy


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """A module whose parameters hold whatever was in memory: values are loaded next.

    >>> torch.nn.utils.skip_init(torch.nn.Linear, 1, 5)
    Linear(in_features=1, out_features=5, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    from rushlight import random

    place = kwargs.pop("device", "cpu")
    state = random.get_rng_state()
    try:  # drawn and forgotten: the stream of random numbers goes on as if nothing were drawn
        module = module_cls(*args, device=place, **kwargs)
    finally:
        random.set_rng_state(state)
    return module.to_empty(device=place)
