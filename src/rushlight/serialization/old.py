"""What the files of rushlight 0.1 call. They are archives as those of `zipped`, of a pickle in
words of its own."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays.device import device
from rushlight.serialization import rebuild
from rushlight.serialization.archive import corrupt
from rushlight.size import Size
from rushlight.tensor import Tensor

_MODULE: Final = "rushlight.serialize"
_DTYPES: Final = {str(d): d for d in dtypes.all_dtypes}


def _tensor(
    memory: Any, dtype: Any, shape: Any, strides: Any, offset: Any, requires_grad: Any, kind: Any,
    attributes: Any,
) -> Any:  # fmt: skip
    size = _dtype(dtype).itemsize
    if type(offset) is not int or offset % size:
        raise corrupt("reading a tensor", f"it begins at {offset}, between two elements")
    made = rebuild._rebuild_tensor_v3(
        memory, offset // size, shape, strides, requires_grad, None, _dtype(dtype)
    )
    if kind == "Parameter":
        made = rebuild._rebuild_parameter(made.detach(), requires_grad, None)
    elif kind != "Tensor":
        if not isinstance(kind, type) or not issubclass(kind, Tensor):
            raise pickle.UnpicklingError(f"{kind!r} is no class of tensors")
        made = made.detach().as_subclass(kind)
        made._requires_grad = bool(requires_grad)
    return rebuild._with_attributes(made, attributes)


def _dtype(name: Any) -> dtypes.dtype:
    if type(name) is not str or name not in _DTYPES:
        raise pickle.UnpicklingError("there is no such dtype")
    return _DTYPES[name]


def _size(sizes: Any) -> Size:
    if type(sizes) not in (list, tuple) or not all(type(n) is int for n in sizes):
        raise pickle.UnpicklingError("a size is not as `save` writes it")
    return Size(sizes)


def _device(*args: Any) -> device:
    return device(*args)


CALLS: Final[dict[str, Callable[..., Any]]] = {
    f"{_MODULE}.{fn.__name__}": fn for fn in (_tensor, _dtype, _size, _device)
}
