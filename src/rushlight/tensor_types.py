"""The names that tensors had by dtype: `FloatTensor([1., 2.])`, `isinstance(x, FloatTensor)`.

Beside `tensor`, which it builds on. Kept because programs and tutorials use them; new code says
`torch.tensor(..., dtype=...)`.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

from rushlight import dtypes
from rushlight.core.graph import TensorBase
from rushlight.tensor import Tensor
from rushlight.tensor_legacy import legacy_new


class TypedTensor(type):
    """The class of `FloatTensor` and its like: makes tensors of one dtype, and knows them."""

    dtype: dtypes.dtype

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        return legacy_new(cls.dtype, args)

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, TensorBase)
            and instance._array.dtype == cls.dtype.numpy
            and not getattr(instance, "is_cuda", False)
        )

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


def _typed(dtype: dtypes.dtype) -> TypedTensor:
    title = dtype.scalar_type + "Tensor"
    doc = f"{title}(values) or {title}(*sizes): a tensor of {dtype}."
    made = TypedTensor(title, (), {"dtype": dtype, "__doc__": doc, "__module__": "torch"})
    return made


tensor_types: Final[dict[str, TypedTensor]] = {
    made.__name__: made
    for made in map(
        _typed,
        (
            dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int64,
            dtypes.int32, dtypes.int16, dtypes.int8, dtypes.uint8, dtypes.bool_,
        ),
    )
}  # fmt: skip
globals().update(tensor_types)


class CudaTensor(TypedTensor):
    """The class of `cuda.FloatTensor` and its like."""

    def __call__(cls, *args: Any, device: Any = None) -> Any:
        return super().__call__(*args).cuda()

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, TensorBase)
            and instance._array.dtype == cls.dtype.numpy
            and bool(getattr(instance, "is_cuda", False))
        )

    def __repr__(cls) -> str:
        return f"<class 'torch.cuda.{cls.__name__}'>"


@functools.cache
def cuda_types() -> dict[str, CudaTensor]:
    """`FloatTensor` and its like for tensors on a GPU."""
    return {
        name: CudaTensor(name, (), {"dtype": kind.dtype, "__module__": "torch.cuda"})
        for name, kind in tensor_types.items()
    }


def set_default_tensor_type(t: Any, /) -> None:
    """set_default_tensor_type(t): the type of tensors made from floats.

    Older than `set_default_dtype`.

    >>> torch.set_default_tensor_type(torch.DoubleTensor)
    >>> torch.tensor([1.5]).dtype
    torch.float64
    >>> torch.set_default_tensor_type("torch.FloatTensor")
    """
    if isinstance(t, str):
        title = t.rpartition(".")[2]
        if title not in tensor_types:
            raise AttributeError(f"module 'torch' has no attribute '{title}'")
        t = tensor_types[title]
    if not isinstance(t, TypedTensor):
        raise TypeError(f"invalid type object: {t!r} is no tensor type")
    dtypes.set_default_dtype(t.dtype)


def is_tensor(obj: object, /) -> bool:
    """is_tensor(obj) -> bool

    Whether `obj` is a tensor.

    >>> torch.is_tensor(torch.ones(2)), torch.is_tensor([1, 1])
    (True, False)
    """
    return isinstance(obj, Tensor)


def typename(obj: Any, /) -> str:
    """typename(obj) -> str

    The name of a type, or of the type of a thing; of a tensor, with its dtype.

    >>> torch.typename(torch.ones(2)), torch.typename(3)
    ('torch.FloatTensor', 'int')
    """
    if isinstance(obj, Tensor):
        return f"torch.{'cuda.' if obj.is_cuda else ''}{obj.dtype.scalar_type}Tensor"
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", "") or ""
    if module in ("builtins", "__builtin__", sys.__name__, ""):
        return str(kind.__qualname__)
    if module.split(".")[0] == "rushlight":
        module = "torch" if kind is Tensor else module.replace("rushlight", "torch", 1)
    return f"{module}.{kind.__qualname__}"
