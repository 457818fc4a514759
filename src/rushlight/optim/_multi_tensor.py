"""The optimisers with `foreach=True`, as PyTorch gave them once. Here they are no others.

>>> from rushlight.optim import _multi_tensor
>>> _multi_tensor.SGD([torch.ones(1, requires_grad=True)]).defaults["foreach"]
True
"""

from __future__ import annotations

from functools import partialmethod
from typing import Any

from rushlight import optim


def _foreach(base: Any) -> Any:
    return type(base.__name__, (base,), {"__init__": partialmethod(base.__init__, foreach=True)})


Adam = _foreach(optim.Adam)
AdamW = _foreach(optim.AdamW)
NAdam = _foreach(optim.NAdam)
SGD = _foreach(optim.SGD)
RAdam = _foreach(optim.RAdam)
RMSprop = _foreach(optim.RMSprop)
Rprop = _foreach(optim.Rprop)
ASGD = _foreach(optim.ASGD)
Adamax = _foreach(optim.Adamax)
Adadelta = _foreach(optim.Adadelta)
Adagrad = _foreach(optim.Adagrad)

__all__ = [
    "ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop",
    "Rprop",
]  # fmt: skip
__dir__ = __all__.copy
