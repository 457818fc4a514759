"""`torch._ops`: the classes of operators, by the names that libraries ask `isinstance` for."""

from rushlight.absent import stand_in
from rushlight.library.operator import OpOverload as OpOverload
from rushlight.library.operator import OpOverloadPacket as OpOverloadPacket

__all__ = ["HigherOrderOperator", "OpOverload", "OpOverloadPacket"]
__dir__ = __all__.copy

HigherOrderOperator = stand_in(
    "torch._ops.HigherOrderOperator", "rushlight makes no graphs of operators"
)
