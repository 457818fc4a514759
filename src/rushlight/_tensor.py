"""`torch._tensor`: the names in it that programs and pickles use."""

from rushlight.serialization.rebuild import _rebuild_from_type_v2 as _rebuild_from_type_v2
from rushlight.tensor import Tensor as Tensor

__all__ = ["Tensor"]
__dir__ = ["Tensor", "_rebuild_from_type_v2"].copy
