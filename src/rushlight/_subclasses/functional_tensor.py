"""`torch._subclasses.functional_tensor`: nothing is one."""

from typing import Any

from rushlight.absent import stand_in

__all__ = ["FunctionalTensor"]
__dir__ = __all__.copy

FunctionalTensor = stand_in(
    "torch._subclasses.functional_tensor.FunctionalTensor", "rushlight makes no graphs of operators"
)


def mb_unwrap_functional_tensor(tensor: Any) -> Any:
    """The tensor itself."""
    return tensor
