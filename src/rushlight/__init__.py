"""rushlight: the autograd system of PyTorch's tutorials, light and readable, on NumPy.

>>> import rushlight as torch
>>> x = torch.ones(2, 2, requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([[2., 2.],
        [2., 2.]])
"""

from __future__ import annotations

import importlib as _importlib
import math as _math
import typing as _typing

from rushlight import __config__ as __config__
from rushlight import dtypes as _dtypes
from rushlight import native as _native
from rushlight import ops as ops
from rushlight import random as random
from rushlight._version import __version__ as __version__
from rushlight.arrays.device import device as device
from rushlight.arrays.device import get_default_device as get_default_device
from rushlight.arrays.device import set_default_device as set_default_device
from rushlight.dtypes import *  # noqa: F403
from rushlight.missing import lacking as _lacking
from rushlight.ops.described import describe as _describe
from rushlight.ops.described import sign_all as _sign_all
from rushlight.ops.registry import functions as _functions
from rushlight.printing import set_printoptions as set_printoptions
from rushlight.random import Generator as Generator
from rushlight.random import default_generator as default_generator
from rushlight.random import get_rng_state as get_rng_state
from rushlight.random import initial_seed as initial_seed
from rushlight.random import manual_seed as manual_seed
from rushlight.random import seed as seed
from rushlight.random import set_rng_state as set_rng_state
from rushlight.settings import *  # noqa: F403
from rushlight.size import Size as Size
from rushlight.storage import TypedStorage as TypedStorage
from rushlight.storage import UntypedStorage as UntypedStorage
from rushlight.storage import is_storage as is_storage
from rushlight.tensor import Tensor as Tensor
from rushlight.tensor_memory import to_dlpack as to_dlpack
from rushlight.tensor_types import is_tensor as is_tensor
from rushlight.tensor_types import set_default_tensor_type as set_default_tensor_type
from rushlight.tensor_types import tensor_types as _tensor_types
from rushlight.tensor_types import typename as typename

from rushlight import autograd as autograd  # isort: skip  # it adds methods to Tensor
from rushlight.autograd.grad_mode import enable_grad as enable_grad
from rushlight.autograd.grad_mode import inference_mode as inference_mode
from rushlight.autograd.grad_mode import is_grad_enabled as is_grad_enabled
from rushlight.autograd.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from rushlight.autograd.grad_mode import no_grad as no_grad
from rushlight.autograd.grad_mode import set_grad_enabled as set_grad_enabled
from rushlight.autograd.methods import is_inference as is_inference

__config__.check_fresh()
_native.hide_internals()

e, inf, nan, pi, newaxis = _math.e, _math.inf, _math.nan, _math.pi, None

# Imported when first used, so that `import rushlight` stays quick: name, and where it is.
_LATER = {
    "cuda": "", "func": "", "library": "", "linalg": "", "nn": "", "optim": "", "profiler": "",
    "special": "", "testing": "", "types": "", "utils": "", "version": "",
    "Tag": "library", "vmap": "func",
    "load": "serialize", "save": "serialize",
    "is_anomaly_check_nan_enabled": "autograd.anomaly_mode",
    "is_anomaly_enabled": "autograd.anomaly_mode",
    "set_anomaly_enabled": "autograd.anomaly_mode",
}  # fmt: skip

_sign_all()
globals().update(_dtypes.aliases)
globals().update(_tensor_types)

if _typing.TYPE_CHECKING:
    from rushlight import nn as nn
    from rushlight import optim as optim
    from rushlight import profiler as profiler
    from rushlight import serialize as serialization  # noqa: F401
    from rushlight._functions import *  # noqa: F403  # the same, as tools/make_stubs.py writes it
    from rushlight.serialize import load as load
    from rushlight.serialize import save as save
else:

    def __getattr__(name: str) -> _typing.Any:
        fn = _functions.get(name)
        if fn is not None:
            _describe(fn)  # here, for a docstring cannot be made when it is read
            globals()[name] = fn
            return fn
        if name == "serialization":  # PyTorch's name for the module
            return _importlib.import_module(f"{__name__}.serialize")
        home = _LATER.get(name)
        if home is None:
            raise _lacking("torch", name, __dir__())
        found = _importlib.import_module(f"{__name__}.{home or name}")
        return getattr(found, name) if home else found

    # `tensor`, the function, over `tensor`, the module; the other functions come when first used
    for _name in _functions.keys() & globals().keys():
        __getattr__(_name)
    __all__ = sorted({*_functions, *(n for n in globals() if not n.startswith("_"))})


def __dir__() -> list[str]:
    return sorted({*globals(), *_functions, *_LATER, "serialization"})
