"""A stand-in for CuPy on machines without a GPU: NumPy arrays that behave as CuPy's do.

It is as strict as CuPy, which is the point: no implicit conversion to NumPy, no host arrays in
arithmetic, no NumPy scalars as results, `ufunc.reduce` and `ufunc.at` only where CuPy has them,
arguments that CuPy's functions do not know refused, flags without `writeable`, indices that wrap
round. What it cannot show is what CuPy's kernels compute.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np

from tests.device import fakenccl

_UNKNOWN = (
    "float8_",
    "float4_",
    "float6_",
    "int4",
    "int2",
    "uint4",
    "uint2",
    "complex32",
    "bcomplex",
)
_ATOMIC = frozenset("ilqILQefd")
_REDUCES = {"add", "multiply"}
_COMPARES = {"greater", "greater_equal", "less", "less_equal", "equal", "not_equal"}
_NUMBERS = (bool, int, float, complex, np.generic)


def _supported(dtype: Any) -> Any:
    found = np.dtype(dtype)
    if found.name.startswith(_UNKNOWN) or found.kind in "OSUMm":
        raise ValueError(f"Unsupported dtype {found}")
    return found


class Memory:
    """One allocation: the NumPy array that owns it, where it starts and how long it is."""

    def __init__(self, owner: Any) -> None:
        low, high = np.lib.array_utils.byte_bounds(owner)
        self.owner, self.ptr, self.size = owner, int(low), int(high - low) if owner.size else 0


class MemoryPointer:
    """A place in an allocation."""

    def __init__(self, mem: Memory, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, 0

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr - self.mem.ptr + offset)


class Device:
    """GPU number 0, the only one."""

    def __init__(self, device: int = 0) -> None:
        if device != 0:
            raise RuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        self.id = device

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def use(self) -> None:
        pass

    def synchronize(self) -> None:
        pass


class Flags:
    """CuPy's flags: there is no `writeable` among them."""

    def __init__(self, array: Any, owns: bool) -> None:
        self.c_contiguous = array.flags.c_contiguous
        self.f_contiguous = array.flags.f_contiguous
        self.owndata = owns

    @property
    def forc(self) -> bool:
        return self.c_contiguous or self.f_contiguous

    @property
    def fnc(self) -> bool:
        return self.f_contiguous and not self.c_contiguous


def _raw(x: Any) -> Any:
    """The NumPy array inside; host arrays are refused, as in CuPy's kernels."""
    if isinstance(x, ndarray):
        return x._a
    if isinstance(x, np.ndarray):
        raise TypeError(f"Unsupported type {type(x)}")
    if isinstance(x, (list, tuple)):
        return type(x)(_raw(i) for i in x)
    if not isinstance(x, _NUMBERS):
        raise TypeError(f"Unsupported type {type(x)}")
    return x


def _refuse_tensor(name: str, x: Any) -> None:
    """CuPy reads a tensor's numbers, and forgets its history: here that is an error."""
    if hasattr(x, "__cuda_array_interface__"):
        raise TypeError(f"cupy's {name} of an array and a tensor gives an array")


def _new(a: Any) -> Any:
    if isinstance(a, tuple):
        return tuple(_new(i) for i in a)
    a = np.asarray(a)
    if a.base is not None or not a.flags.writeable:
        a = a.copy("K")  # a result is an array of its own
    made = object.__new__(ndarray)
    made._a, made._base, made._memory = a, None, Memory(a)
    return made


def _view(x: ndarray, a: Any) -> ndarray:
    made = object.__new__(ndarray)
    made._a = a
    made._base = x if x._base is None else x._base
    made._memory = x._memory
    return made


def _basic(index: Any) -> bool:
    items = index if isinstance(index, tuple) else (index,)
    return not any(isinstance(i, (list, np.ndarray, ndarray, bool, np.bool_)) for i in items)


def _index(index: Any, shape: tuple[int, ...]) -> Any:
    """An index for NumPy, integers wrapped round as CuPy wraps them."""
    items = list(index) if isinstance(index, tuple) else [index]
    plain = [
        i._a if isinstance(i, ndarray) else np.asarray(i) if isinstance(i, list) else i
        for i in items
    ]
    wide = sum(
        0
        if i is None or i is Ellipsis
        else i.ndim
        if isinstance(i, np.ndarray) and i.dtype.kind == "b"
        else 1
        for i in plain
    )
    axis, out = 0, []
    for i in plain:
        if i is None:
            pass
        elif i is Ellipsis:
            axis += len(shape) - wide
        elif isinstance(i, np.ndarray) and i.dtype.kind == "b":
            axis += i.ndim
        elif isinstance(i, np.ndarray):
            if i.dtype.kind not in "iu":
                raise IndexError(
                    "arrays used as indices must be of integer or boolean type. "
                    f"(actual: {i.dtype.type})"
                )
            if shape[axis]:
                i = i % shape[axis]
            axis += 1
        else:
            axis += 1
        out.append(i)
    return tuple(out)


class ndarray:
    """An array "on the GPU"."""

    __module__ = "cupy"
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: Any = None,
        strides: Any = None,
        order: str = "C",
    ) -> None:
        dtype = _supported(dtype)
        self._base: Any = None  # also of an array made over memory, as in CuPy
        if memptr is None:
            self._a = np.empty(shape, dtype, order)
            self._memory = Memory(self._a)
            return
        self._memory = memptr.mem
        owner = memptr.mem.owner
        flat = np.lib.stride_tricks.as_strided(owner, (owner.size,), (owner.itemsize,)).view(
            np.uint8
        )
        start = memptr.ptr - memptr.mem.ptr if owner.size else 0
        self._a = (
            np.ndarray(shape, dtype, flat, start, strides) if flat.size else np.empty(shape, dtype)
        )

    # --- what it is
    @property
    def shape(self) -> tuple[int, ...]:
        return self._a.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self._a.strides

    @property
    def dtype(self) -> Any:
        return self._a.dtype

    ndim = property(lambda self: self._a.ndim)
    size = property(lambda self: self._a.size)
    itemsize = property(lambda self: self._a.itemsize)
    nbytes = property(lambda self: self._a.nbytes)
    flags = property(lambda self: Flags(self._a, self._base is None))
    base = property(lambda self: self._base)
    device = property(lambda self: Device(0))
    T = property(lambda self: self.transpose())

    @property
    def data(self) -> MemoryPointer:
        here = self._a.__array_interface__["data"][0]
        return MemoryPointer(self._memory, here - self._memory.ptr if self._a.size else 0)

    @property
    def real(self) -> Any:
        return _view(self, self._a.real) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self._a.real = _raw(value)

    @property
    def imag(self) -> Any:
        return _view(self, self._a.imag) if self.dtype.kind == "c" else _new(np.zeros_like(self._a))

    @imag.setter
    def imag(self, value: Any) -> None:
        self._a.imag = _raw(value)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.data.ptr, False),
            "version": 3,
        }

    # --- to the host, only when asked
    def get(
        self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True
    ) -> Any:
        return np.array(self._a, order=order)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct "
            "a NumPy array explicitly."
        )

    def item(self) -> Any:
        if self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self._a.item()

    def tolist(self) -> Any:
        return self._a.tolist()

    def __bool__(self) -> bool:
        return bool(self._a)

    def __int__(self) -> int:
        return int(self._a)

    def __index__(self) -> int:
        return self._a.__index__()

    def __float__(self) -> float:
        return float(self._a)

    def __complex__(self) -> complex:
        return complex(self._a)

    def __len__(self) -> int:
        return len(self._a)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return repr(self._a)

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __reduce__(self) -> Any:
        return array, (self.get(order="A"),)

    # --- views and copies
    def reshape(self, *shape: Any, order: str = "C", copy: Any = None) -> Any:
        a = self._a.reshape(*shape, order=order)
        return _view(self, a) if np.may_share_memory(a, self._a) and a.size else _new(a)

    def transpose(self, *axes: Any) -> Any:
        return _view(self, self._a.transpose(*axes))

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        return _view(self, self._a.swapaxes(axis1, axis2))

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        a = self._a.diagonal(offset, axis1, axis2)
        a.flags.writeable = True
        return _view(self, a)

    def view(self, dtype: Any = None, type: Any = None) -> Any:
        return _view(self, self._a.view() if dtype is None else self._a.view(dtype))

    def ravel(self, order: str = "C") -> Any:
        return self.reshape(-1, order=order)

    def flatten(self, order: str = "C") -> Any:
        return _new(self._a.flatten(order))

    def squeeze(self, axis: Any = None) -> Any:
        return _view(self, self._a.squeeze(axis))

    def copy(self, order: str = "C") -> Any:
        return _new(self._a.copy(order))

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: Any = None,
        subok: Any = None,
        copy: bool = True,
    ) -> Any:
        if casting is not None or subok is not None:
            raise TypeError("casting is not supported yet")
        dtype = _supported(dtype)
        if dtype == self.dtype and not copy:
            return self
        with np.errstate(all="ignore"):
            return _new(self._a.astype(dtype, order=order))

    def fill(self, value: Any) -> None:
        if isinstance(value, ndarray):
            value = value._a
        if np.ndim(value):
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        self._a.fill(np.asarray(value, dtype=self.dtype)[()])

    def take(self, indices: Any, axis: Any = None, out: Any = None) -> Any:
        indices = indices._a if isinstance(indices, ndarray) else indices
        return _new(self._a.take(indices, axis, mode="wrap"))

    def nonzero(self) -> Any:
        return tuple(_new(i) for i in self._a.nonzero())

    def conj(self) -> Any:
        return _new(self._a.conj())

    def __getitem__(self, index: Any) -> Any:
        if _basic(index):
            a = self._a[index]
            return _view(
                self,
                a
                if isinstance(a, np.ndarray)
                else self._a[(*index, ...) if isinstance(index, tuple) else (index, ...)],
            )
        return _new(self._a[_index(index, self.shape)])

    def __setitem__(self, index: Any, value: Any) -> None:
        if _basic(index):
            if isinstance(value, np.ndarray) and value.ndim:
                raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
            value = value._a if isinstance(value, ndarray) else np.asarray(value, self.dtype)
        else:
            index = _index(index, self.shape)
            value = value._a if isinstance(value, ndarray) else np.asarray(value, self.dtype)
        with np.errstate(all="ignore"):
            self._a[index] = value.astype(self.dtype)

    # --- NumPy's protocols
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        name = ufunc.__name__
        module = sys.modules[__name__]
        fn = getattr(module, name, None)
        if not isinstance(fn, Ufunc):
            return NotImplemented
        if method != "__call__":
            fn = getattr(fn, method, None)
            if fn is None:
                return NotImplemented
        if "out" in kwargs:
            (kwargs["out"],) = kwargs["out"]
        for x in inputs:
            if name == "matmul" and hasattr(x, "__cupy_get_ndarray__"):
                raise TypeError(f"Argument 'b' has incorrect type (got {type(x).__name__})")
            if not isinstance(x, ndarray):
                _refuse_tensor(name, x)
            if not isinstance(x, (ndarray, np.ndarray, *_NUMBERS, tuple)):
                return NotImplemented
        if name in _COMPARES:
            inputs = tuple(
                x.item() if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in inputs
            )
        return fn(*inputs, **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        place: Any = sys.modules[__name__]
        for part in func.__module__.split(".")[1:]:
            place = getattr(place, part, None)
        fn = getattr(place, func.__name__, None)
        if fn is None:
            return NotImplemented
        for t in types:
            if not issubclass(t, (ndarray, np.ndarray)):
                return NotImplemented
        return fn(*args, **kwargs)


def _method(name: str) -> None:
    def reduce(
        self: ndarray, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        if axis == ():
            raise ValueError("CuPy reduces over no axes in its own way: do not ask it to")
        kind = {} if dtype is None else {"dtype": dtype}
        with np.errstate(all="ignore"):
            return _new(getattr(self._a, name)(axis=axis, keepdims=keepdims, **kind))

    setattr(ndarray, name, reduce)


for _name in ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin"):
    _method(_name)


def _operator(name: str, ufunc: Any, swapped: bool) -> None:
    def call(self: ndarray, other: Any) -> Any:
        rule = getattr(other, "__array_ufunc__", 0)
        if rule is None:
            return NotImplemented
        if not isinstance(other, ndarray):
            _refuse_tensor(name, other)
        return ufunc(other, self) if swapped else ufunc(self, other)

    setattr(ndarray, name, call)


for _name, _ufunc in (
    ("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("truediv", np.true_divide),
    ("floordiv", np.floor_divide), ("mod", np.remainder), ("pow", np.power), ("matmul", np.matmul),
    ("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor),
    ("lshift", np.left_shift), ("rshift", np.right_shift),
):  # fmt: skip
    _operator(f"__{_name}__", _ufunc, False)
    _operator(f"__r{_name}__", _ufunc, True)
for _name, _ufunc in (
    ("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal),
    ("gt", np.greater), ("ge", np.greater_equal),
):  # fmt: skip
    _operator(f"__{_name}__", _ufunc, False)
for _name, _ufunc in (
    ("neg", np.negative),
    ("pos", np.positive),
    ("abs", np.absolute),
    ("invert", np.invert),
):
    setattr(ndarray, f"__{_name}__", lambda self, _ufunc=_ufunc: _ufunc(self))


def _inplace(name: str, ufunc: Any) -> None:
    def call(self: ndarray, other: Any) -> Any:
        ufunc(self._a, _raw(other), out=self._a, casting="same_kind")
        return self

    setattr(ndarray, name, call)


for _name, _ufunc in (
    ("iadd", np.add),
    ("isub", np.subtract),
    ("imul", np.multiply),
    ("itruediv", np.true_divide),
):
    _inplace(f"__{_name}__", _ufunc)


class Ufunc:
    """A ufunc of CuPy's: what it takes, and which of its methods exist."""

    def __init__(self, ufunc: Any) -> None:
        self.ufunc, self.__name__ = ufunc, ufunc.__name__

    def __call__(
        self, *args: Any, out: Any = None, dtype: Any = None, casting: str = "same_kind"
    ) -> Any:
        raw = [_raw(x) for x in args]
        with np.errstate(all="ignore"):
            if out is not None:
                self.ufunc(*raw, out=out._a, casting=casting)
                return out
            kwargs = {} if dtype is None else {"dtype": dtype}
            return _new(self.ufunc(*raw, **kwargs))

    def reduce(
        self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Any:
        if self.__name__ not in _REDUCES:
            raise NotImplementedError(f"`cupy_{self.__name__}.reduce` is not supported yet")
        return getattr(array, "sum" if self.__name__ == "add" else "prod")(axis, out, keepdims)

    def accumulate(self, array: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        if self.__name__ not in _REDUCES:
            raise NotImplementedError(f"`cupy_{self.__name__}.accumulate` is not supported yet")
        return _new(self.ufunc.accumulate(array._a, axis, dtype))

    def at(self, a: Any, indices: Any, b: Any = None) -> None:
        if self.__name__ != "add":
            raise NotImplementedError(f"`cupy_{self.__name__}.at` is not supported yet")
        b = b._a if isinstance(b, ndarray) else np.asarray(b)
        masks = [
            i
            for i in (indices if isinstance(indices, tuple) else (indices,))
            if isinstance(i, (ndarray, np.ndarray))
        ]
        if _basic(indices):
            a._a[indices] += b
            return
        masked = len(masks) == 1 and masks[0].dtype.kind == "b"
        if not masked and a.dtype.char not in _ATOMIC:
            raise TypeError(
                "cupy.add.at only supports int32, int64, float16, float32, float64, uint32, "
                "uint64 as data type"
            )
        np.add.at(a._a, _index(indices, a.shape), b.astype(a.dtype))


def _ufuncs() -> dict[str, Any]:
    names = """absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and
        bitwise_or bitwise_xor ceil conjugate copysign cos cosh deg2rad divide equal exp exp2 expm1
        floor floor_divide fmax fmin fmod frexp gcd greater greater_equal heaviside hypot invert
        isfinite isinf isnan lcm ldexp left_shift less less_equal log log10 log1p log2 logaddexp
        logaddexp2 logical_and logical_not logical_or logical_xor matmul maximum minimum multiply
        negative nextafter not_equal positive power rad2deg reciprocal remainder right_shift rint
        sign signbit sin sinh sqrt square subtract tan tanh true_divide trunc"""
    return {name: Ufunc(getattr(np, name)) for name in names.split()}


globals().update(_ufuncs())


# --- functions: the arguments that CuPy's have ----------------------------------------------------
def array(
    obj: Any, dtype: Any = None, copy: Any = True, order: Any = "K", subok: Any = False
) -> Any:
    a = obj._a if isinstance(obj, ndarray) else np.asarray(obj)
    if dtype is None:
        _supported(a.dtype)
    return _new(np.array(a, dtype if dtype is None else _supported(dtype), order=order or "K"))


def asarray(a: Any, dtype: Any = None, order: Any = None) -> Any:
    if isinstance(a, ndarray):
        return a if dtype is None or a.dtype == dtype else a.astype(dtype)
    return array(a, dtype, order=order)


def empty(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    return ndarray(shape, dtype, order=order)


def zeros(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    return _new(np.zeros(shape, _supported(dtype), order))


def ones(shape: Any, dtype: Any = float, order: str = "C") -> Any:
    return _new(np.ones(shape, _supported(dtype), order))


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str = "C") -> Any:
    if isinstance(fill_value, ndarray):
        fill_value = fill_value._a
    return _new(np.full(shape, fill_value, dtype if dtype is None else _supported(dtype), order))


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    return _new(
        np.arange(start, dtype=dtype) if stop is None else np.arange(start, stop, step, dtype)
    )


def _refuse_subok(subok: Any) -> None:
    if subok is not None:
        raise TypeError("subok is not supported yet")


def empty_like(
    a: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None
) -> Any:
    _refuse_subok(subok)
    return _new(np.empty_like(a._a, dtype, order, shape=shape))


def zeros_like(
    a: Any, dtype: Any = None, order: str = "K", subok: Any = None, shape: Any = None
) -> Any:
    _refuse_subok(subok)
    return _new(np.zeros_like(a._a, dtype, order, shape=shape))


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if any(getattr(i, "dtype", np.dtype("f")).kind == "V" for i in (x, y)):
        raise TypeError("Wrong type of arguments for cupy_where")
    return _new(np.where(condition.astype("?", copy=False)._a, _raw(x), _raw(y)))


def concatenate(
    tup: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Any:
    return _new(np.concatenate([_raw(x) for x in tup], axis))


def broadcast_to(a: Any, shape: Any) -> Any:
    wide = np.broadcast_to(a._a, shape)
    wide.flags.writeable = True
    return _view(a, wide)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    return _view(a, np.moveaxis(a._a, source, destination))


def flip(m: Any, axis: Any = None) -> Any:
    return _view(m, np.flip(m._a, axis))


def _whole(x: Any) -> Any:
    """An argument that must be on the GPU."""
    if not isinstance(x, ndarray):
        raise TypeError(f"expected cupy.ndarray, got {type(x)}")
    return x._a


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    return _new(np.roll(_whole(a), shift, axis))


def tile(A: Any, reps: Any) -> Any:
    return _new(np.tile(_whole(A), reps))


def argmax(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
) -> Any:
    return _new(np.argmax(_whole(a), axis, keepdims=keepdims).astype("q"))


def argmin(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
) -> Any:
    return _new(np.argmin(_whole(a), axis, keepdims=keepdims).astype("q"))


def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return _new(np.cumsum(_whole(a), axis, dtype))


def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    return _new(np.cumprod(_whole(a), axis, dtype))


def take_along_axis(a: Any, indices: Any, axis: Any) -> Any:
    return _new(np.take_along_axis(_whole(a), _whole(indices), axis))


def argsort(a: Any, axis: Any = -1, kind: Any = None) -> Any:
    if kind not in (None, "stable"):
        raise ValueError("kind can only be None or 'stable'")
    if _whole(a).ndim == 0:
        raise ValueError("Sorting arrays with the rank of zero is not supported")
    return _new(np.argsort(a._a, axis, kind="stable"))


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    if _whole(a).ndim != 1:
        raise ValueError("object of too small depth for desired array")
    return _new(np.searchsorted(a._a, v._a if isinstance(v, ndarray) else v, side))


def bincount(x: Any, weights: Any = None, minlength: Any = None) -> Any:
    return _new(
        np.bincount(_whole(x), None if weights is None else _whole(weights), minlength or 0)
    )


def unique(
    ar: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: Any = None, *, equal_nan: bool = True,
) -> Any:  # fmt: skip
    return _new(
        np.unique(
            _whole(ar), return_index, return_inverse, return_counts, axis, equal_nan=equal_nan
        )
    )


def stack(tup: Any, axis: int = 0) -> Any:
    return _new(np.stack([_whole(x) for x in tup], axis))


def lexsort(keys: Any) -> Any:
    return _new(np.lexsort(_whole(keys)))


def einsum(subscripts: str, *operands: Any) -> Any:
    return _new(np.einsum(subscripts, *[_whole(x) for x in operands]))


def ones_like(
    a: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None
) -> Any:
    _refuse_subok(subok)
    return _new(np.ones_like(a._a, dtype, order, shape=shape))


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: Any = "K",
    subok: Any = None,
    shape: Any = None,
) -> Any:
    _refuse_subok(subok)
    return _new(np.full_like(a._a, fill_value, dtype, order, shape=shape))


def from_dlpack(source: Any, **options: Any) -> Any:
    return array(source._a if isinstance(source, ndarray) else source)


def get_default_memory_pool() -> Any:
    return types.SimpleNamespace(
        used_bytes=lambda: 0, total_bytes=lambda: 0, free_all_blocks=lambda: None
    )


# --- submodules -----------------------------------------------------------------------------------
def _as_strided(x: Any, shape: Any = None, strides: Any = None) -> Any:
    return ndarray(shape, x.dtype, x.data, strides)


lib = types.SimpleNamespace(stride_tricks=types.SimpleNamespace(as_strided=_as_strided))


def _transform(name: str) -> Any:
    def call(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        return _new(getattr(np.fft, name)(_whole(a), s, axes, norm))

    return call


fft = types.SimpleNamespace(**{n: _transform(n) for n in ("fftn", "ifftn", "rfftn", "irfftn")})


class CUDARuntimeError(RuntimeError):
    """What the CUDA runtime raises."""


_STREAM = types.SimpleNamespace(ptr=0, synchronize=lambda: None)
cuda = types.SimpleNamespace(
    Device=Device,
    MemoryPointer=MemoryPointer,
    get_current_stream=lambda: _STREAM,
    nccl=fakenccl,
    runtime=types.SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDeviceCount=lambda: 1,
        getDeviceProperties=lambda index: {
            "name": b"Imaginary GPU", "major": 9, "minor": 0, "totalGlobalMem": 1 << 30,
            "multiProcessorCount": 1,
        },
        memGetInfo=lambda: (1 << 29, 1 << 30),
    ),
)  # fmt: skip


class _Special(types.ModuleType):
    """`cupyx.scipy.special`: SciPy's functions, on arrays of this module alone."""

    def __getattr__(self, name: str) -> Any:
        import scipy.special

        fn = getattr(scipy.special, name)

        def call(*args: Any) -> Any:
            if any(getattr(x, "dtype", np.dtype("f")).kind == "V" for x in args):
                raise TypeError(f"Wrong type of arguments for {name}")
            with np.errstate(all="ignore"):
                return _new(fn(*[_raw(x) for x in args]))

        return call


class _Matrix:
    """A matrix of `cupyx.scipy.sparse`."""

    def __init__(self, inside: Any) -> None:
        if inside.dtype.char not in "?fdFD":
            raise ValueError("Only bool, float32, float64, complex64 and complex128 are supported")
        self.inside = inside
        self.shape = inside.shape

    def tocsr(self) -> _Matrix:
        return _Matrix(self.inside.tocsr())

    def tocoo(self) -> Any:
        made = self.inside.tocoo()
        parts = {name: _new(getattr(made, name)) for name in ("row", "col", "data")}
        return types.SimpleNamespace(**parts, shape=made.shape)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, _Matrix):
            return _Matrix(self.inside @ other.inside)
        return _new(self.inside @ _whole(other))

    def __rmatmul__(self, other: Any) -> Any:
        return _new(_whole(other) @ self.inside)


class _Sparse(types.ModuleType):
    """`cupyx.scipy.sparse`: SciPy's matrices, of arrays of this module alone."""

    def __getattr__(self, name: str) -> Any:
        import scipy.sparse

        def make(parts: Any, shape: Any) -> _Matrix:
            raw = [tuple(map(_whole, p)) if isinstance(p, tuple) else _whole(p) for p in parts]
            return _Matrix(getattr(scipy.sparse, name)(tuple(raw), shape=shape))

        return make


def modules() -> dict[str, Any]:
    """What stands in `sys.modules` where CuPy is installed."""
    me = sys.modules[__name__]
    cupyx, scipy = types.ModuleType("cupyx"), types.ModuleType("cupyx.scipy")
    special = _Special("cupyx.scipy.special")
    sparse = _Sparse("cupyx.scipy.sparse")
    cupyx.scipy, scipy.special = scipy, special  # type: ignore[attr-defined]
    scipy.sparse = sparse  # type: ignore[attr-defined]
    return {
        "cupy": me, "cupyx": cupyx, "cupyx.scipy": scipy, "cupyx.scipy.special": special,
        "cupyx.scipy.sparse": sparse, "cupy.cuda": cuda, "cupy.cuda.nccl": fakenccl,
    }  # fmt: skip


__all__ = ["modules", "ndarray"]
del _name, _ufunc
