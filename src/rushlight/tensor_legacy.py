"""What `Tensor(...)` and `FloatTensor(...)` make: PyTorch's oldest way of making tensors."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight import dtypes, tensor_memory
from rushlight.arrays.host import is_scalar
from rushlight.core.graph import TensorBase, wrap
from rushlight.core.record import finish
from rushlight.dtypes import type_name
from rushlight.ops.creation.tensor import raw_from
from rushlight.ops.registry import function
from rushlight.size import Size


def legacy_new(dtype: dtypes.dtype, args: tuple[Any, ...]) -> Any:
    """What `Tensor(...)` and `FloatTensor(...)` make: values, or memory of a given shape."""
    if not args:
        args = (0,)
    first = args[0]
    if len(args) == 1:
        if isinstance(first, TensorBase):
            return _alias(first, dtype)
        if isinstance(first, str):
            raise TypeError(f"new(): invalid data type '{type_name(first)}'")
        if isinstance(first, Size):
            args = tuple(first)
        elif isinstance(first, (float, complex, bool)) or first is None:
            raise TypeError(f"new(): data must be a sequence (got {type_name(first)})")
        elif not isinstance(first, int) and not is_scalar(first):
            return finish(wrap(raw_from(first, dtype)))
    for at, a in enumerate(args, 1):
        if not hasattr(a, "__index__"):
            raise TypeError(
                f"new(): argument 'size' (position {at}) must be tuple of ints, not {type_name(a)}"
            )
    sizes = [int(a.__index__()) for a in args]
    for n in sizes:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {sizes}")
    return tensor_memory.empty_tensor(tuple(sizes), dtype)


def _alias(t: Any, dtype: dtypes.dtype) -> Any:
    have = dtypes.of(t._array.dtype)
    if have is not dtype and dtype is not dtypes.default:
        _refuse_alias(have, dtype)
    return tensor_memory.alias_without_history(t)


def _refuse_alias(have: dtypes.dtype, want: dtypes.dtype) -> NoReturn:
    tail = (
        "device=cpu, layout=Strided, requires_grad=false (default), pinned_memory=false (default), "
        "memory_format=(nullopt))"
    )
    raise TypeError(
        f"expected TensorOptions(dtype={dtypes.c_name(want)}, {tail} "
        f"(got TensorOptions(dtype={dtypes.c_name(have)}, {tail})"
    )


@function(free=False)
def new(input: Any, *args: Any, device: Any = None) -> Any:
    """`new(values)` or `new(*sizes)`: of this tensor's dtype. Older than `new_tensor`.

    Args:
        args: values, or sizes.
    """
    return legacy_new(dtypes.of(input._array.dtype), args)
