"""`torch.utils._python_dispatch`: `__torch_dispatch__` is not called: there are no modes."""

from __future__ import annotations

from typing import Any

from rushlight.absent import stand_in

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]
__dir__ = __all__.copy

TorchDispatchMode = stand_in(
    "torch.utils._python_dispatch.TorchDispatchMode",
    "rushlight does not call __torch_dispatch__; torch.overrides.TorchFunctionMode sees each call",
)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor is made of others that it wraps: by `__tensor_flatten__`."""
    return hasattr(type(t), "__tensor_flatten__") and hasattr(type(t), "__tensor_unflatten__")


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """The same of a class."""
    return hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def _get_current_dispatch_mode() -> None:
    return None


def _get_current_dispatch_mode_stack() -> list[Any]:
    return []


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is active: never."""
    return False
