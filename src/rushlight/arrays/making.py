"""Raw arrays from what users write: numbers, nested lists, buffers, NumPy's arrays.

Dtypes are inferred by
PyTorch's rules: bool, int64, the default float, and the own dtype of a NumPy scalar or a tensor.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np

from rushlight import dtypes
from rushlight.arrays import cuda
from rushlight.arrays.host import cupy, device_of, in_memory

_NUMBERS: Final = (bool, int, float, complex)
_SEQUENCES: Final = frozenset((list, tuple))
_DEEPEST: Final = 128

# The names of C's types, which PyTorch's texts about single numbers use.
_C_NAMES: Final = {
    "bool": "bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int",
    "int64": "int64_t", "uint16": "uint16_t", "uint32": "uint32_t", "uint64": "uint64_t",
    "float16": "at::Half", "bfloat16": "at::BFloat16", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip

Unwrap = Callable[[Any], Any]


def from_data(data: Any, dtype: Any, unwrap: Unwrap) -> Any:
    """A new array of numbers that stand in nested sequences, or of one number.

    `dtype` None: inferred. `unwrap` gives the raw array of a tensor, and None for anything else.
    """
    shape: list[int] = []
    level: list[Any] = [data]
    while True:
        kinds = set(map(type, level))
        if kinds.issubset(_NUMBERS):
            break
        if not kinds <= _SEQUENCES:
            return _from_anything(data, dtype, unwrap)
        lengths = set(map(len, level))
        if len(lengths) > 1:
            _walk(data, [*shape, len(level[0])], 0, [])
        shape.append(lengths.pop())
        level = list(chain.from_iterable(level))
        if not level:
            kinds = {float}
            break
    if dtype is None:
        dtype = (
            dtypes.default_complex if complex in kinds
            else dtypes.default if float in kinds
            else dtypes.int64 if int in kinds
            else dtypes.bool_
        ).numpy  # fmt: skip
    return _store(level, kinds, dtype).reshape(shape)


def _store(level: list[Any], kinds: set[type], dtype: Any) -> Any:
    """Python numbers as a flat array, with PyTorch's complaints about those that do not fit."""
    kind = dtype.kind
    if kind in "iu":
        if complex in kinds:
            raise TypeError("'complex' object cannot be interpreted as an integer")
        if float in kinds:
            level = [_integer(x, dtype) for x in level]
        return _integers(level, dtype)
    if complex in kinds and kind != "b" and not dtypes.of(dtype).is_complex:
        raise TypeError("must be real number, not complex")
    with np.errstate(over="ignore"):
        try:
            return np.array(level, dtype)
        except OverflowError:
            raise OverflowError("int too large to convert to float") from None


def _integer(x: Any, dtype: Any) -> int:
    if isinstance(x, float) and not math.isfinite(x):
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
    return int(x)


def _integers(level: list[int], dtype: Any) -> Any:
    try:
        return np.array(level, dtype)
    except OverflowError:
        pass
    top = (1 << 64) if dtype.name == "uint64" else (1 << 63)
    if any(not -(1 << 63) <= x < top for x in level):
        raise ValueError("Overflow when unpacking long long")
    for x in level:
        if not fits(x, dtype):
            raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
    mask = (1 << (dtype.itemsize * 8)) - 1
    return np.array([x & mask for x in level], np.uint64).astype(dtype)


def fits(x: int, dtype: Any) -> bool:
    """Whether an integer dtype holds `x`; unsigned ones take negatives too, wrapped round."""
    info = np.iinfo(dtype)
    low = -int(info.max) if info.min == 0 else int(info.min)
    return low <= x <= int(info.max)


# --- any sequences, NumPy scalars, tensors in lists -----------------------------------------------
def _from_anything(data: Any, dtype: Any, unwrap: Unwrap) -> Any:
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    shape = _sizes(data, unwrap)
    if dtype is None:
        found = _infer(data, unwrap)
        dtype = (dtypes.default if found is None else found).numpy
    flat: list[Any] = []
    _walk(data, shape, 0, flat)
    numbers = [_scalar(x, dtype, unwrap) for x in flat]
    return _store(numbers, set(map(type, numbers)), dtype).reshape(shape)


def _is_sequence(x: Any) -> bool:
    if isinstance(x, (list, tuple, range, str, bytes, bytearray, np.ndarray)):
        return True
    if isinstance(x, (dict, np.generic)):
        return False
    return hasattr(x, "__getitem__") and hasattr(x, "__len__")


def _sizes(data: Any, unwrap: Unwrap) -> list[int]:
    shape: list[int] = []
    while unwrap(data) is None and _is_sequence(data):
        shape.append(len(data))
        if len(shape) > _DEEPEST:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if shape[-1] == 0:
            break
        data = data[0]
    return shape


def _infer(x: Any, unwrap: Unwrap) -> dtypes.dtype | None:
    """The dtype of one number, or of all the numbers of a sequence; None if it has none."""
    raw = unwrap(x)
    if raw is not None:
        return dtypes.of(raw.dtype)
    if isinstance(x, np.generic):
        return dtypes.of(x.dtype)
    if isinstance(x, (bool, int, float, complex)):
        return dtypes.of_scalar(x)
    if isinstance(x, np.ndarray):
        return dtypes.of(x.dtype)
    if isinstance(x, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(x).__name__}'")
    if not _is_sequence(x):
        raise RuntimeError(f"Could not infer dtype of {type(x).__name__}")
    found: dtypes.dtype | None = None
    for item in x:
        one = _infer(item, unwrap)
        if one is not None:
            found = one if found is None else dtypes.promote_types(found, one)
    return found


def _walk(x: Any, shape: list[int], dim: int, flat: list[Any]) -> None:
    """Collect the leaves of nested sequences into `flat`; refuse ragged ones."""
    if dim == len(shape):
        flat.append(x)
        return
    try:
        items = list(x)
    except TypeError:
        raise TypeError("not a sequence") from None
    if len(items) != shape[dim]:
        raise ValueError(
            f"expected sequence of length {shape[dim]} at dim {dim} (got {len(items)})"
        )
    for item in items:
        _walk(item, shape, dim + 1, flat)


def _scalar(x: Any, dtype: Any, unwrap: Unwrap) -> Any:
    """One leaf as a Python number that can be stored in `dtype`."""
    raw = unwrap(x)
    if raw is not None:
        if raw.size != 1:
            if dtype.kind in "iu":
                raise TypeError(
                    "only integer tensors of a single element can be converted to an index"
                )
            raise RuntimeError(f"a Tensor with {raw.size} elements cannot be converted to Scalar")
        return raw.item()
    if isinstance(x, np.generic):
        return x.item()
    if type(x) in _NUMBERS:
        return x
    for number in _NUMBERS:  # subclasses of Python's numbers
        if isinstance(x, number):
            made: Any = number
            return made(x)
    if dtype.kind == "b":
        return bool(x)
    if dtype.kind in "iu":
        return operator.index(x)
    if dtype.kind == "c":
        return complex(x)
    if not hasattr(x, "__float__"):
        raise TypeError(f"must be real number, not {dtypes.type_name(x)}")
    return float(x)


# --- NumPy's arrays and buffers -------------------------------------------------------------------
def check_ndarray(array: Any) -> Any:
    """A NumPy array as a tensor may share it, or PyTorch's error."""
    dtypes.of(array.dtype)
    for stride in array.strides:
        if stride < 0:
            raise ValueError(
                "At least one stride in the given numpy array is negative, and tensors with "
                "negative strides are not currently supported. (You can probably work around this "
                "by making a copy of your array  with array.copy().) "
            )
        if array.size and stride % array.itemsize:
            raise ValueError(
                "given numpy array strides not a multiple of the element byte size. Copy the numpy "
                "array to reallocate the memory."
            )
    return array if type(array) is np.ndarray else array.view(np.ndarray)


def writable(buffer: Any) -> bool:
    """Whether a buffer, or a NumPy array, may be written."""
    if isinstance(buffer, np.ndarray):
        return bool(buffer.flags.writeable)
    return not memoryview(buffer).readonly


def from_buffer(buffer: Any, dtype: dtypes.dtype, count: int, offset: int) -> Any:
    """An array over the memory of a buffer."""
    try:
        length = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    size = dtype.itemsize
    if length <= 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({length} bytes) minus 1"
        )
    if count < 0:
        if (length - offset) % size:
            raise ValueError(
                f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a "
                f"multiple of element size ({size})"
            )
        count = (length - offset) // size
    if offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must "
            f"not be greater than actual buffer length ({length} bytes)"
        )
    raw = np.frombuffer(buffer, np.uint8, count * size, offset)
    return raw.view(dtype.numpy)


def bytes_in(buffer: Any, itemsize: int, count: int, offset: int) -> Any:
    """A copy of `count` items of a buffer (all if negative) as a flat array of bytes."""
    length = memoryview(buffer).nbytes
    if offset < 0 or (length and offset >= length):
        raise ValueError(
            f"offset must be non-negative and no greater than buffer length ({length}) minus 1, "
            f"but got {offset}"
        )
    if count < 0:
        if (length - offset) % itemsize:
            raise ValueError(
                f"buffer size ({length}) must be a multiple of element size ({itemsize})"
            )
        count = (length - offset) // itemsize
    if offset + count * itemsize > length:
        raise ValueError(
            f"buffer has only {length - offset} elements after offset {offset}, but specified a "
            f"size of {count}"
        )
    if not count:
        return np.empty(0, np.uint8)
    return np.frombuffer(buffer, np.uint8, count * itemsize, offset).copy()


def swap_bytes(memory: Any, size: int) -> None:
    """Turn around, in place, the order of the bytes of numbers `size` bytes long."""
    if size > 1:
        memory.view(f"u{size}").byteswap(inplace=True)


# --- ranges ---------------------------------------------------------------------------------------
def arange(start: Any, end: Any, step: Any, dtype: Any) -> Any:
    """start, start + step, … before `end`, with PyTorch's length and rounding."""
    integral = dtype.kind in "iu" and not any(isinstance(x, float) for x in (start, end, step))
    for name in (start, end):
        if isinstance(name, float) and not math.isfinite(name):
            raise RuntimeError(f"unsupported range: {_shown(start)} -> {_shown(end)}")
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (step > 0 and end < start) or (step < 0 and end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if dtype == np.int64:  # PyTorch counts in the dtype itself here, in double elsewhere
        start, end, step = int(start), int(end), int(step)
        if step == 0:
            raise ValueError("step must be nonzero")
        integral = True
    if integral:
        count = -((start - end) // step)
    else:
        count = math.ceil((end - start) / step)
    if dtype.kind in "iu":
        first, by = int(start), int(step)
        if -(1 << 63) <= first + max(count - 1, 0) * by < (1 << 63):
            return (np.arange(count, dtype=np.int64) * by + first).astype(dtype, copy=False)
        return np.array([first + i * by for i in range(count)], dtype)
    inside = dtype if dtype.kind == "f" and dtype.itemsize >= 4 else np.dtype(np.float32)
    # PyTorch accumulates in double for double and for float alike, then rounds once
    values = np.arange(count, dtype=np.float64) * float(step) + float(start)
    return values.astype(inside, copy=False).astype(dtype, copy=False)


def closed_range(start: Any, end: Any, step: Any, dtype: Any) -> Any:
    """start, start + step, … up to `end` itself."""
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (step > 0 and end < start) or (step < 0 and end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = math.floor((end - start) / step) + 1
    return (np.arange(count) * step + start).astype(dtype)


def space_evenly(start: Any, end: Any, count: int, dtype: Any, base: Any) -> Any:
    """Evenly spaced numbers, or `base` to their power: counted from both ends, as PyTorch does."""
    kind = dtype.kind
    if kind in "iu":
        start, end = int(start), int(end)
    inside = np.dtype(np.complex128 if kind == "c" else np.float64)
    first, last = np.asarray(start, inside), np.asarray(end, inside)
    step = (last - first) / max(count - 1, 1)
    place = np.arange(count)
    values = np.where(place < count // 2, first + step * place, last - step * (count - 1 - place))
    if count == 1:
        values = np.full(1, first)
    if base is not None:
        values = np.power(np.asarray(base, inside), values)
    if kind in "iu":
        values = np.trunc(values)
    return values.astype(dtype)


def _shown(x: Any) -> str:
    return f"{x:g}" if isinstance(x, float) else str(x)


def fill_number(value: Any, dtype: Any) -> Any:
    """A Python number as it is filled into a dtype, or PyTorch's error where it does not fit."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise OverflowError("int too big to convert")
    kind = dtype.kind
    if kind == "b":
        return bool(value)
    if kind == "c":
        value = complex(value)
        top = dtypes.finfo(dtypes.of(dtype)).max
        for part in (value.real, value.imag):
            if abs(part) > top and math.isfinite(part):
                raise RuntimeError(_overflow(dtype))
        return value
    if isinstance(value, complex):
        if value.imag != 0:
            raise RuntimeError(_overflow(dtype))
        value = value.real
    if kind in "iu":
        if isinstance(value, float):
            below = kind == "u" and value < 0
            if not math.isfinite(value) or not fits(int(value), dtype) or below:
                raise RuntimeError(_overflow(dtype))
            value = int(value)
        if not fits(int(value), dtype):
            raise RuntimeError(_overflow(dtype))
        bits = dtype.itemsize * 8
        value = int(value) & ((1 << bits) - 1)
        return value - (1 << bits) if kind == "i" and value >> (bits - 1) else value
    value = float(value)
    if math.isfinite(value) and dtype.itemsize < 8:
        limits = dtypes.finfo(dtypes.of(dtype))
        if abs(value) > limits.max:
            raise RuntimeError(_overflow(dtype))
    return value


def _overflow(dtype: Any) -> str:
    name = _C_NAMES.get(dtype.name, dtype.name)
    return f"value cannot be converted to type {name} without overflow"


# --- memory ---------------------------------------------------------------------------------------
def row_strides(shape: tuple[int, ...], unit: int = 1) -> tuple[int, ...]:
    """Strides of a row-major array, in elements (or in bytes, if `unit` is the size of one), as
    PyTorch counts them: size 0 counts as 1."""
    strides = [unit] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        strides[d] = strides[d + 1] * max(shape[d + 1], 1)
    return tuple(strides)


def bytes_of(array: Any) -> Any:
    """All the memory behind an array, as a flat array of bytes that shares it."""
    array = in_memory(array)
    if cuda.is_cuda(array):
        return cuda.bytes_of(array)
    if not isinstance(array, np.ndarray) and device_of(array).type == "meta":
        return array.all_bytes()
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if root.ndim != 1 or not root.flags.c_contiguous:
        root = root.transpose(sorted(range(root.ndim), key=lambda d: -root.strides[d]))
        if not root.flags.c_contiguous:
            raise RuntimeError("the memory behind this tensor has gaps and cannot be seen as bytes")
        root = root.reshape(-1)
    return root.view(np.uint8)


def plain_bytes(root: Any, array: Any, offset: int) -> bool:
    """Whether the bytes of `root` say all about `array`, which begins `offset` bytes into it."""
    size = array.dtype.itemsize
    return (
        not root.dtype.hasobject
        and offset % size == 0
        and all(s % size == 0 for s in array.strides)
    )


def over(
    memory: Any, shape: tuple[int, ...], strides: tuple[int, ...], dtype: Any, offset: int
) -> Any:
    """An array over a flat array of bytes; strides in elements, `offset` in bytes."""
    size = dtype.itemsize
    need = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if need and offset + need * size > memory.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset "
            f"{offset // size}, and itemsize {size} requiring a storage size of "
            f"{offset + need * size} are out of bounds for storage of size {memory.nbytes}"
        )
    if cuda.is_cuda(memory):
        return cuda.over_memory(memory, shape, strides, dtype, offset)
    if not isinstance(memory, np.ndarray) and device_of(memory).type == "meta":
        return memory.seen(shape, [s * size for s in strides], offset, dtype)
    if need == 0:
        offset = 0  # it may lie behind the memory, which holds none of its elements
    return np.ndarray(shape, dtype, memory, offset, [s * size for s in strides])


_DLPACK_CUDA: Final = 2


class _Capsule:
    """A bare DLPack capsule behind the protocol that NumPy wants."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(source: Any) -> Any:
    """An array that shares the memory another library exports."""
    if not hasattr(source, "__dlpack__"):
        source = _Capsule(source)
    if source.__dlpack_device__()[0] == _DLPACK_CUDA:
        return cupy().from_dlpack(source)
    try:
        return np.from_dlpack(source)
    except BufferError:
        raise
    except RuntimeError as error:
        raise BufferError(str(error)) from None


# --- comparing ------------------------------------------------------------------------------------
class Mismatch(NamedTuple):
    """Where and how much two arrays differ."""

    shape: tuple[int, ...]
    wrong: int
    total: int
    absolute: Any
    absolute_at: tuple[int, ...]
    relative: Any
    relative_at: tuple[int, ...]
    actual: Any
    expected: Any


def compare(
    actual: Any, expected: Any, rtol: float, atol: float, equal_nan: bool
) -> Mismatch | None:
    """None if all elements are within tolerance of the expected ones, else what differs most."""
    exact = actual.dtype.kind in "biu" and expected.dtype.kind in "biu"
    if exact:
        inside: Any = np.int64
    elif "c" in actual.dtype.kind + expected.dtype.kind:
        inside = np.complex128
    else:
        inside = np.float64
    a, e = actual.astype(inside), expected.astype(inside)
    with np.errstate(all="ignore"):
        difference = np.abs(a - e)
        size = np.abs(e)
        same = (a == e) | (np.isfinite(difference) & (difference <= atol + rtol * size))
        if equal_nan:
            same |= np.isnan(a) & np.isnan(e)
        if same.all():
            return None
        # matching elements do not count, even where they are infinite
        difference = np.where(same, 0, difference)
        relative = np.where(same, 0, difference / size)
    shown = np.dtype(np.float32) if exact else _real_dtype(actual.dtype, expected.dtype)
    worst, farthest = _greatest(difference), _greatest(relative)
    gap = difference[worst]
    return Mismatch(
        actual.shape,
        int((~same).sum()),
        int(actual.size),
        int(gap) if exact else float(gap.astype(shown)),
        worst,
        float(relative[farthest].astype(shown)),
        farthest,
        actual.item() if actual.size == 1 else None,
        expected.item() if expected.size == 1 else None,
    )


def _real_dtype(a: Any, b: Any) -> Any:
    """The dtype in which PyTorch would tell the difference of two."""
    return dtypes.promote_types(dtypes.of(a), dtypes.of(b)).to_real().numpy


def _greatest(x: Any) -> tuple[int, ...]:
    """Where the largest element is; NaN counts as larger than any number."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(x)), x.shape))
