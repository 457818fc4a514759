"""rushlight: the autograd system of PyTorch's tutorials, light and readable, on NumPy.

>>> import rushlight as torch
>>> x = torch.ones(2, 2, requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([[2., 2.],
        [2., 2.]])
"""

import math as _math
import sys as _sys
import typing as _typing

from rushlight import importing as importing  # isort: skip  # it imports the most of what follows
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
from rushlight.missing import face as _face
from rushlight.ops.described import describe as _describe
from rushlight.ops.described import sign_all as _sign_all
from rushlight.ops.registry import functions as _functions
from rushlight.ops.registry import set_public_name as _place
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

globals().update(_dtypes.aliases)
_sign_all()
ops.after_filling.append(_sign_all)

# PyTorch has these in place as methods only: `x.add_(y)`, but no `torch.add_`.
_METHODS_ONLY = {name + "_" for name in """
    absolute addcdiv addcmul add arctan2 atan2 bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor copysign cumprod cumsum digamma divide div eq erfinv
    floor_divide fmod ge greater_equal greater gt heaviside hypot igammac igamma le lerp less_equal
    less lgamma logical_and logical_not logical_or logical_xor lt multiply mul mvlgamma ne
    nextafter not_equal pow remainder renorm sgn sign subtract sub tril triu true_divide
""".split()}  # fmt: skip

# Imported when first used, so that `import rushlight` stays quick: name, and its module.
_LATER = {
    "_C": "",
    "amp": "",
    "cpu": "",
    "cuda": "",
    "distributions": "",
    "fft": "",
    "func": "",
    "library": "",
    "linalg": "",
    "masked": "",
    "nn": "",
    "optim": "",
    "overrides": "",
    "DisableTorchFunction": "_C",
    "DisableTorchFunctionSubclass": "_C",
    "profiler": "",
    "signal": "",
    "sparse": "",
    "special": "",
    "testing": "",
    "types": "",
    "utils": "",
    "version": "",
    "serialization": "",
    "Tag": "library",
    "vmap": "func",
    "load": "serialization",
    "save": "serialization",
    "set_printoptions": "printing",
    "AcceleratorError": "accelerator",
    "Event": "stand_ins",
    "Future": "futures",
    "GradScaler": "amp",
    "OutOfMemoryError": "accelerator",
    "ScriptModule": "jit",
    "ScriptFunction": "jit",
    "CompilationUnit": "jit",
    "PyTorchFileReader": "stand_ins",
    "PyTorchFileWriter": "stand_ins",
    "ScriptObject": "stand_ins",
    "StorageBase": "storage",
    "Stream": "stand_ins",
    "get_device_module": "accelerator",
    "_dynamo": "",
    "_guards": "",
    "_jit_internal": "",
    "_ops": "",
    "_subclasses": "",
    "_tensor_str": "",
    "_tensor": "",
    "_utils": "",
    "_vmap_internals": "",
    "torch_version": "",
    "_inductor": "",
    "accelerator": "",
    "backends": "",
    "compile": "compiler",
    "compiler": "",
    "distributed": "",
    "export": "",
    "functional": "",
    "fx": "",
    "futures": "",
    "hub": "",
    "jit": "",
    "monitor": "",
    "mps": "",
    "mtia": "",
    "multiprocessing": "",
    "onnx": "",
    "package": "",
    "quasirandom": "",
    "xpu": "",
    "is_anomaly_check_nan_enabled": "autograd.anomaly_mode",
    "is_anomaly_enabled": "autograd.anomaly_mode",
    "set_anomaly_enabled": "autograd.anomaly_mode",
}
for _name in """
    BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage ComplexFloatStorage
    DoubleStorage FloatStorage HalfStorage IntStorage LongStorage ShortStorage Storage
""".split():
    _LATER[_name] = "storage_types"
for _name in """
    qint8 quint8 qint32 quint4x2 quint2x4 int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4
    uint5 uint6 uint7 float4_e2m1fn_x2
""".split():
    _LATER[_name] = "dtypes_unused"
for _name in """
    SymBool SymFloat SymInt sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not
    sym_sqrt sym_sum
""".split():
    _LATER[_name] = "symbolic"
for _name in """
    autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache
    get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled
    is_autocast_cpu_enabled is_autocast_enabled set_autocast_cache_enabled set_autocast_cpu_dtype
    set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype
""".split():
    _LATER[_name] = "amp.autocast_mode"
for _name in """
    BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor
    LongTensor ShortTensor is_tensor set_default_tensor_type typename
""".split():
    _LATER[_name] = "tensor_types"

# What PyTorch has not, so that `dir` does not show it; imported when first used, likewise.
_OURS = {"viz": "", "explain": "explaining", "why": "reasons"}
_OURS |= {"load_ipython_extension": "notebook", "unload_ipython_extension": "notebook"}
_OURS |= {"compat": "", "absent": "", "notebook": ""}  # not to be looked for among all ops first

# Shown by `dir`; PyTorch does not give them to `from torch import *`.
_NOT_STARRED = set("""
    BFloat16Storage ComplexDoubleStorage ComplexFloatStorage HalfStorage Storage
    BFloat16Tensor HalfTensor broadcast_shapes channels_last channels_last_3d contiguous_format eig
    from_dlpack legacy_contiguous_format lstsq lu matrix_rank preserve_format set_default_dtype
    set_grad_enabled solve sparse_bsc sparse_bsr sparse_coo sparse_csc sparse_csr
    strided symeig to_dlpack unique pca_lowrank segment_reduce svd_lowrank while_loop
    autograd ops random return_types storage StorageBase
""".split())  # fmt: skip

_here = {n for n, x in globals().items() if n[0] != "_" and type(x) is not type(_math)}
_here.update(name for name, home in _LATER.items() if home)
_here.add("export")  # a module that PyTorch gives too

if _typing.TYPE_CHECKING:
    from rushlight import nn as nn
    from rushlight import optim as optim
    from rushlight import overrides as overrides
    from rushlight import profiler as profiler
    from rushlight import serialization as serialization
    from rushlight import viz as viz
    from rushlight._C import DisableTorchFunction as DisableTorchFunction
    from rushlight._C import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
    from rushlight._functions import *  # noqa: F403  # the same, as tools/make_stubs.py writes it
    from rushlight.explaining import explain as explain
    from rushlight.printing import set_printoptions as set_printoptions
    from rushlight.reasons import why as why
    from rushlight.serialization import load as load
    from rushlight.serialization import save as save
    from rushlight.tensor_types import is_tensor as is_tensor
    from rushlight.tensor_types import set_default_tensor_type as set_default_tensor_type
    from rushlight.tensor_types import typename as typename
else:

    def _given(name: str) -> _typing.Any:
        """A function of the table, when it is first asked for: then its docstring is completed.
        What the table does not have yet may be in a folder that is imported late."""
        if name == "__all__":
            ops.fill_rest()
            shown = (_here | _functions.keys()) - _METHODS_ONLY - _NOT_STARRED
            return sorted(name for name in shown if not name.startswith("_"))
        if name in _METHODS_ONLY or name.startswith("__"):
            return None
        if name in _OURS:
            import importlib

            home = importlib.import_module(f"rushlight.{_OURS[name] or name}")
            return getattr(home, name) if _OURS[name] else home
        if name == "torch":  # PyTorch's module has itself as an attribute
            return _sys.modules[__name__]
        while name not in _functions and ops.fill_more():
            continue
        fn = _functions.get(name)
        if fn is not None:
            _describe(fn)
            _place(fn, __name__, name)
        return fn

    __getattr__, __dir__ = _face("torch", globals(), _LATER, _NOT_STARRED, _given)
    for _name in _functions.keys() & globals().keys():  # `tensor`, the function, not the module
        del globals()[_name]
