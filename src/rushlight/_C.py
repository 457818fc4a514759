"""Names of PyTorch's compiled core that programs use in Python: switches of `__torch_function__`.

>>> with torch._C.DisableTorchFunctionSubclass():
...     torch.ones(1) + 1
tensor([2.])
"""

from rushlight.core.graph import TensorBase as TensorBase
from rushlight.ops.overriding import DisableTorchFunction as DisableTorchFunction
from rushlight.ops.overriding import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from rushlight.ops.overriding import disabled_torch_function as _disabled_torch_function_impl
from rushlight.random import Generator as Generator
from rushlight.size import Size as Size

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "Generator", "Size", "TensorBase",
    "_disabled_torch_function_impl",
]  # fmt: skip
