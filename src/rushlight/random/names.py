"""PyTorch's names for dtypes in error messages, and the errors that use them."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

import numpy as np

from rushlight import dtypes

Dtype = np.dtype[Any]

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
UNSIGNED = ("uint16", "uint32", "uint64")

DIGITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
LARGEST = {
    "bfloat16": float.fromhex("0x1.fep127"), "float16": 65504.0,
    "float32": float(np.finfo(np.float32).max), "float64": float(np.finfo(np.float64).max),
}  # fmt: skip


@functools.cache
def dtype_name(dtype: Dtype) -> str:
    """`dtype.name`, which NumPy takes a microsecond to put together."""
    return dtype.name


def scalar_type(dtype: Dtype) -> str:
    """'Float' for float32, 'Long' for int64, ..."""
    return dtypes.of(dtype).scalar_type


def c_type(dtype: Dtype) -> str:
    """'float' for float32, 'long int' for int64, ..."""
    return dtypes.c_name(dtypes.of(dtype))


def not_implemented(kernel: str, dtype: Dtype) -> NoReturn:
    """Raise PyTorch's error for a function that has no kernel for a dtype."""
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type(dtype)}'")
