"""Automatic differentiation: `backward`, `grad`, your own `Function`s, and the modes.

>>> x = torch.tensor(2., requires_grad=True)
>>> torch.autograd.grad(x ** 3, x)
(tensor(12.),)
"""

import typing as _typing

from rushlight.autograd import grad_mode
from rushlight.autograd.api import backward, grad
from rushlight.autograd.grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from rushlight.autograd.grad_mode import is_multithreading_enabled as is_multithreading_enabled
from rushlight.autograd.gradcheck import gradcheck, gradgradcheck
from rushlight.missing import face as _face
from rushlight.ops.described import describe as _describe
from rushlight.ops.described import sign as _sign

__all__ = [
    "Function", "NestedIOFunction", "Variable", "backward", "detect_anomaly", "enable_grad",
    "enforce_grad_layout_policy", "grad", "grad_mode", "gradcheck", "gradgradcheck",
    "inference_mode", "no_grad", "set_detect_anomaly", "set_grad_enabled",
    "set_multithreading_enabled", "variable",
]  # fmt: skip

# Imported when first used, so that `import rushlight` stays quick: name, and its module.
_LATER = {
    "anomaly_mode": "", "forward_ad": "", "functional": "", "profiler": "", "profiler_util": "",
    "function": "", "graph": "", "variable": "", "Variable": "variable",
    "Function": "function", "NestedIOFunction": "function",
    "_profiler_enabled": "profiler",
    "detect_anomaly": "anomaly_mode", "set_detect_anomaly": "anomaly_mode",
}  # fmt: skip

if _typing.TYPE_CHECKING:
    from rushlight.autograd import anomaly_mode as anomaly_mode
    from rushlight.autograd import forward_ad as forward_ad
    from rushlight.autograd import function as function
    from rushlight.autograd import functional as functional
    from rushlight.autograd import graph as graph
    from rushlight.autograd import profiler as profiler
    from rushlight.autograd import profiler_util as profiler_util
    from rushlight.autograd import variable as variable
    from rushlight.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
    from rushlight.autograd.function import Function, NestedIOFunction
    from rushlight.autograd.variable import Variable
else:
    # Functions are given when first asked for: then their docstrings are completed.
    _functions = {
        name: globals().pop(name) for name in ("backward", "grad", "gradcheck", "gradgradcheck")
    }
    for _name, _fn in _functions.items():
        _sign(_fn, _name)

    def _given(name):
        fn = _functions.get(name)
        if fn is not None:
            _describe(fn)
        return fn

    __getattr__, __dir__ = _face(
        "torch.autograd", globals(), _LATER, ("is_multithreading_enabled",), _given
    )
