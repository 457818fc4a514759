"""Automatic differentiation: `backward`, `grad`, your own `Function`s, and the modes.

>>> import rushlight as torch
>>> x = torch.tensor(2., requires_grad=True)
>>> torch.autograd.grad(x ** 3, x)
(tensor(12.),)
"""

import importlib as _importlib
import typing as _typing

from rushlight.autograd import function, grad_mode, graph, methods, variable
from rushlight.autograd.api import backward, grad
from rushlight.autograd.function import Function, NestedIOFunction
from rushlight.autograd.grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from rushlight.autograd.gradcheck import gradcheck, gradgradcheck
from rushlight.autograd.variable import Variable
from rushlight.missing import lacking as _lacking
from rushlight.ops.described import describe_all as _describe_all

__all__ = [
    "Function", "NestedIOFunction", "Variable", "anomaly_mode", "backward", "detect_anomaly",
    "enable_grad", "enforce_grad_layout_policy", "forward_ad", "function", "functional", "grad",
    "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode",
    "is_multithreading_enabled", "methods", "no_grad", "profiler", "profiler_util",
    "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled", "variable",
]  # fmt: skip

_describe_all(globals(), __all__)

# Imported when first used, so that `import rushlight` stays quick: name, and its module.
_LATER = {
    "anomaly_mode": "", "forward_ad": "", "functional": "", "profiler": "", "profiler_util": "",
    "detect_anomaly": "anomaly_mode", "set_detect_anomaly": "anomaly_mode",
}  # fmt: skip

if _typing.TYPE_CHECKING:
    from rushlight.autograd import anomaly_mode, forward_ad, functional, profiler, profiler_util
    from rushlight.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
else:

    def __getattr__(name: str) -> _typing.Any:
        module = _LATER.get(name)
        if module is None:
            raise _lacking("torch.autograd", name, __all__)
        found = _importlib.import_module(f"{__name__}.{module or name}")
        return getattr(found, name) if module else found
