"""DLPack: one memory for arrays of several libraries.

>>> from rushlight.utils.dlpack import from_dlpack, to_dlpack
>>> from_dlpack(to_dlpack(torch.arange(3)))
tensor([0, 1, 2])
"""

import enum

from rushlight.tensor_memory import from_dlpack
from rushlight.tensor_memory import to_dlpack as to_dlpack

__all__ = ["DLDeviceType", "from_dlpack"]
__dir__ = [*__all__, "to_dlpack"].copy


class DLDeviceType(enum.IntEnum):
    """How DLPack numbers devices."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
