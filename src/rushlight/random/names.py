"""PyTorch's names for dtypes in error messages, and the errors that use them."""

from __future__ import annotations

import functools
from typing import Any, NoReturn

import numpy as np

Dtype = np.dtype[Any]

SCALAR_TYPES = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int",
    "int64": "Long", "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "float16": "Half",
    "bfloat16": "BFloat16", "float32": "Float", "float64": "Double", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}  # fmt: skip

C_TYPES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int",
    "int32": "int", "int64": "long int", "uint16": "short unsigned int", "uint32": "unsigned int",
    "uint64": "long unsigned int", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "float32": "float", "float64": "double", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip

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
    return SCALAR_TYPES.get(dtype.name, dtype.name.capitalize())


def c_type(dtype: Dtype) -> str:
    """'float' for float32, 'long int' for int64, ..."""
    return C_TYPES.get(dtype.name, "c10::" + scalar_type(dtype))


def not_implemented(kernel: str, dtype: Dtype) -> NoReturn:
    """Raise PyTorch's error for a function that has no kernel for a dtype."""
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_type(dtype)}'")
