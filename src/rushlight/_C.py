"""Names of PyTorch's compiled core that programs use in Python: switches of `__torch_function__`.

>>> with torch._C.DisableTorchFunctionSubclass():
...     torch.ones(1) + 1
tensor([2.])
"""

from importlib import import_module
from typing import Any

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
__dir__ = __all__.copy


def _log_api_usage_once(name: str) -> None:
    """PyTorch counts the use of its parts where it is told to; here nobody counts."""


class _Names:
    """Functions under the names that PyTorch's compiled core has for them: `_linalg.linalg_norm`.
    Traced graphs print these."""

    def __init__(self, home: str, prefix: str) -> None:
        self._home, self._prefix = home, prefix

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(self._prefix) or name.startswith("__"):
            raise AttributeError(f"module 'torch._C.{self._home}' has no attribute {name!r}")
        return getattr(import_module(f"rushlight.{self._home}"), name.removeprefix(self._prefix))


_nn = _Names("nn.functional", "")
_linalg = _Names("linalg", "linalg_")
_special = _Names("special", "special_")
_fft = _Names("fft", "fft_")
