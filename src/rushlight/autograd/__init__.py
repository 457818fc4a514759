"""Automatic differentiation: `backward`, `grad`, your own `Function`s, and the modes.

>>> import rushlight as torch
>>> x = torch.tensor(2., requires_grad=True)
>>> torch.autograd.grad(x ** 3, x)
(tensor(12.),)
"""

from rushlight.autograd import function, grad_mode, graph, methods, variable
from rushlight.autograd.api import backward, grad
from rushlight.autograd.function import Function
from rushlight.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from rushlight.autograd.variable import Variable

__all__ = [
    "Function", "Variable", "backward", "enable_grad", "function", "grad", "grad_mode", "graph",
    "inference_mode", "methods", "no_grad", "set_grad_enabled", "variable",
]  # fmt: skip
