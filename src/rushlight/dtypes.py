"""Data types: the `dtype` objects, PyTorch's promotion rules, `finfo` and `iinfo`.

PyTorch names three of its types `float`, `int` and `bool`. A module that did the same would hide
Python's own, so those names are only in `aliases`, from which the package fills its namespace.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, Self, TypeAlias, TypeVar

import ml_dtypes
import numpy as np

# What `rushlight` exports; the package itself uses the rest of this file by `dtypes.name`.
__all__ = [
    "bfloat16", "can_cast", "cdouble", "cfloat", "chalf", "channels_last", "channels_last_3d",
    "complex32", "complex64", "complex128", "contiguous_format", "double", "dtype", "finfo",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float16", "float32", "float64", "get_default_dtype", "half", "iinfo", "int8", "int16", "int32",
    "int64", "layout", "legacy_contiguous_format", "long", "memory_format", "preserve_format",
    "promote_types",
    "set_default_dtype", "short", "sparse_bsc", "sparse_bsr", "sparse_coo", "sparse_csc",
    "sparse_csr", "strided", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip

NumpyDtype: TypeAlias = np.dtype[Any]


class _Singleton:
    """An immutable object that pickles and copies to itself, by its name in this module."""

    __slots__ = ("name",)
    name: str

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        raise TypeError(f"cannot create 'torch.{cls.__name__}' instances")

    def __setattr__(self, name: str, value: object) -> None:
        kind = f"torch.{type(self).__name__}"
        if hasattr(self, name):
            raise AttributeError(f"attribute {name!r} of {kind!r} objects is not writable")
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


def type_name(value: object) -> str:
    """A value's type as PyTorch's errors spell it: classes written in C have their module's name.

    >>> type_name(2.5), type_name(float32), type_name(np.float64(2.5))
    ('float', 'torch.dtype', 'numpy.float64')
    """
    cls = type(value)
    if cls.__module__ in ("rushlight.dtypes", "rushlight.size", "rushlight.arrays.device"):
        return f"torch.{cls.__name__}"
    in_python = cls.__flags__ & _HEAP_TYPE or cls.__module__ == "builtins"
    return cls.__name__ if in_python else f"{cls.__module__}.{cls.__name__}"


_HEAP_TYPE: Final = 1 << 9  # CPython's Py_TPFLAGS_HEAPTYPE


class dtype(_Singleton):
    """The type of a tensor's elements; one object a type, so compare with `is`.

    >>> torch.bfloat16, torch.bfloat16.itemsize, torch.float is torch.float32
    (torch.bfloat16, 2, True)
    """

    __slots__ = (
        "abbr", "is_complex", "is_floating_point", "is_signed", "itemsize", "numpy", "scalar_type",
    )  # fmt: skip
    numpy: NumpyDtype
    itemsize: int
    is_floating_point: bool
    is_complex: bool
    is_signed: bool
    scalar_type: str  # PyTorch's inner name, which its errors print: Float, Half, Long, ...
    abbr: str

    def to_complex(self) -> "dtype":
        """The complex type with parts of this type.

        >>> torch.float32.to_complex()
        torch.complex64
        """
        if self.is_complex:
            return self
        found = _COMPLEX.get(self)
        if found is None:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_type}")
        return found

    def to_real(self) -> "dtype":
        """The type of a complex type's parts; any other type gives itself.

        >>> torch.complex128.to_real()
        torch.float64
        """
        return _REAL.get(self, self)

    def __reduce__(self) -> str:
        return "bool_" if self.name == "bool" else self.name


aliases: Final[dict[str, dtype]] = {}
BY_NUMPY: Final[dict[NumpyDtype, dtype]] = {}

_Kind: TypeAlias = Literal["bool", "unsigned", "signed", "float", "complex"]


def _make(
    name: str, scalar: type[Any], kind: _Kind, scalar_type: str, abbr: str, *also: str
) -> dtype:
    """Makes the one object of a type, and enters it under its names and its NumPy type."""
    made = object.__new__(dtype)
    raw: NumpyDtype = np.dtype(scalar)
    fields: dict[str, object] = {
        "name": name,
        "numpy": raw,
        "itemsize": raw.itemsize,
        "is_floating_point": kind == "float",
        "is_complex": kind == "complex",
        # The one float without a sign bit: only powers of two, as scales of other numbers.
        "is_signed": kind in ("signed", "float", "complex") and name != "float8_e8m0fnu",
        "scalar_type": scalar_type,
        "abbr": abbr,
    }
    for field, value in fields.items():
        object.__setattr__(made, field, value)
    for key in (name, *also):
        aliases[key] = made
    BY_NUMPY[raw] = made
    return made


bool_ = _make("bool", np.bool_, "bool", "Bool", "b8")
uint8 = _make("uint8", np.uint8, "unsigned", "Byte", "u8")
int8 = _make("int8", np.int8, "signed", "Char", "i8")
int16 = short = _make("int16", np.int16, "signed", "Short", "i16", "short")
int32 = _make("int32", np.int32, "signed", "Int", "i32", "int")
int64 = long = _make("int64", np.int64, "signed", "Long", "i64", "long")
uint16 = _make("uint16", np.uint16, "unsigned", "UInt16", "u16")
uint32 = _make("uint32", np.uint32, "unsigned", "UInt32", "u32")
uint64 = _make("uint64", np.uint64, "unsigned", "UInt64", "u64")
float16 = half = _make("float16", np.float16, "float", "Half", "f16", "half")
bfloat16 = _make("bfloat16", ml_dtypes.bfloat16, "float", "BFloat16", "bf16")
float32 = _make("float32", np.float32, "float", "Float", "f32", "float")
float64 = double = _make("float64", np.float64, "float", "Double", "f64", "double")
complex32 = chalf = _make(
    "complex32", ml_dtypes.complex32, "complex", "ComplexHalf", "c32", "chalf"
)
complex64 = cfloat = _make("complex64", np.complex64, "complex", "ComplexFloat", "c64", "cfloat")
complex128 = cdouble = _make(
    "complex128", np.complex128, "complex", "ComplexDouble", "c128", "cdouble"
)
float8_e4m3fn = _make(
    "float8_e4m3fn", ml_dtypes.float8_e4m3fn, "float", "Float8_e4m3fn", "f8e4m3fn"
)
float8_e4m3fnuz = _make(
    "float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, "float", "Float8_e4m3fnuz", "f8e4m3fnuz"
)
float8_e5m2 = _make("float8_e5m2", ml_dtypes.float8_e5m2, "float", "Float8_e5m2", "f8e5m2")
float8_e5m2fnuz = _make(
    "float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, "float", "Float8_e5m2fnuz", "f8e5m2fnuz"
)
float8_e8m0fnu = _make(
    "float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, "float", "Float8_e8m0fnu", "f8e8m0fnu"
)

all_dtypes: Final[tuple[dtype, ...]] = tuple(BY_NUMPY.values())

_COMPLEX: Final = {
    float16: complex32, bfloat16: complex64, float32: complex64, float64: complex128
}  # fmt: skip
_REAL: Final = {complex32: float16, complex64: float32, complex128: float64}
_FLOAT8: Final = frozenset(d for d in all_dtypes if d.name.startswith("float8"))
_BARE_UNSIGNED: Final = frozenset((uint16, uint32, uint64))  # PyTorch promotes them to floats only
_LOW_PRECISION: Final = frozenset(d.numpy for d in (float16, bfloat16, *_FLOAT8))
_INTEGRAL: Final = frozenset(
    d.numpy for d in all_dtypes if not (d.is_floating_point or d.is_complex)
)


def of(raw: NumpyDtype) -> dtype:
    """The dtype of a NumPy type, or PyTorch's error where it has none."""
    found = BY_NUMPY.get(raw)
    if found is None:
        raise _unknown(raw)
    return found


def _unknown(raw: NumpyDtype) -> Exception:
    if raw.newbyteorder("=") in BY_NUMPY:
        return ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Conversion between byte orders is currently not supported."
        )
    return TypeError(
        f"can't convert np.ndarray of type {raw.type.__module__}.{raw.type.__name__}. The only "
        "supported types are: float64, float32, float16, complex64, complex128, int64, int32, "
        "int16, int8, uint64, uint32, uint16, uint8, and bool."
    )


# The default types. `set_default_dtype` rebinds these three: read them as `dtypes.default`, since
# a name taken by `from dtypes import default` would stay behind.
default: dtype = float32
default_numpy: NumpyDtype = float32.numpy
default_complex: dtype = complex64
when_default_changes: list[Callable[[], None]] = []  # who chose something by them


def get_default_dtype() -> dtype:
    """The type of tensors made from Python floats.

    >>> torch.get_default_dtype()
    torch.float32
    """
    return default


def set_default_dtype(d: dtype, /) -> None:
    """Sets the type of tensors made from Python floats, and with it that of complex ones.

    >>> torch.set_default_dtype(torch.float64)
    >>> torch.get_default_dtype()
    torch.float64
    >>> torch.set_default_dtype(torch.float32)
    """
    global default, default_numpy, default_complex
    if not isinstance(d, dtype):
        raise TypeError(
            "invalid dtype object: only floating-point types are supported as the default type"
        )
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d in _FLOAT8:
        raise TypeError(f"couldn't find storage object {d.scalar_type}Storage")
    default, default_numpy, default_complex = d, d.numpy, d.to_complex()
    for call in when_default_changes:
        call()


def of_scalar(value: complex) -> dtype:
    """The dtype that PyTorch gives a Python number."""
    if isinstance(value, bool):  # before int, whose subclass it is
        return bool_
    if isinstance(value, int):
        return int64
    if isinstance(value, float):
        return default
    if isinstance(value, complex):
        return default_complex
    raise TypeError(f"must be a number, not {type_name(value)}")


# Promotion. Three strengths of operand: a tensor with dimensions, a 0-d tensor, a Python number.
# A weaker operand changes the result only if its kind (bool < int < float < complex) is higher.
Category: TypeAlias = Literal["dim", "zero", "number"]

_promoted: Final[dict[tuple[dtype, dtype], dtype]] = {}


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest type, of the higher kind, that holds both.

    >>> torch.promote_types(torch.uint8, torch.int8), torch.promote_types(torch.half, torch.long)
    (torch.int16, torch.float16)
    """
    if type1 is type2 and isinstance(type1, dtype):
        return type1
    type1, type2 = _of_python(type1), _of_python(type2)
    _check("promote_types", type1=type1, type2=type2)
    found = _promoted.get((type1, type2))
    if found is None:
        found = _promoted[type1, type2] = _join(type1, type2)
    return found


def _of_python(kind: object) -> Any:
    """The dtype that one of Python's number types stands for; others as they are."""
    if kind is float:
        return float64
    if kind is int:
        return int64
    if kind is complex:
        return complex128
    return bool_ if kind is bool else kind


def _check(function: str, **arguments: object) -> None:
    for position, (name, value) in enumerate(arguments.items(), 1):
        if not isinstance(value, dtype):
            raise TypeError(
                f"{function}(): argument {name!r} (position {position}) "
                f"must be torch.dtype, not {type_name(value)}"
            )


def _join(a: dtype, b: dtype) -> dtype:
    if a in _FLOAT8 or b in _FLOAT8:
        raise _no_promotion("Float8 Types", a, b)
    if a in _BARE_UNSIGNED or b in _BARE_UNSIGNED:
        if a.is_floating_point:
            return a
        if b.is_floating_point:
            return b
        raise _no_promotion("uint16, uint32, uint64 types", a, b)
    low, high = sorted((a, b), key=_rank)
    if high.is_complex and (low.is_floating_point or low.is_complex):
        return _join_floats(low.to_real(), high.to_real()).to_complex()
    if low.is_floating_point:
        return _join_floats(low, high)
    if low is uint8 and high is int8:
        return int16
    return high


def _join_floats(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    # Equal in size and different: float16 and bfloat16, of which neither holds the other.
    return float32 if a.itemsize == b.itemsize else max(a, b, key=lambda d: d.itemsize)


def _rank(d: dtype) -> tuple[int, int, bool]:
    kind = 3 if d.is_complex else 2 if d.is_floating_point else 0 if d is bool_ else 1
    return kind, d.itemsize, d.is_signed


def _no_promotion(which: str, a: dtype, b: dtype) -> RuntimeError:
    return RuntimeError(
        f"Promotion for {which} is not supported, "
        f"attempted to promote {a.scalar_type} and {b.scalar_type}"
    )


def promote(operands: Iterable[tuple[dtype, Category]]) -> dtype:
    """The type an operation computes in, from the type and strength of each operand."""
    dim: dtype | None = None
    zero: dtype | None = None
    number: dtype | None = None
    for d, category in operands:
        if category == "dim":
            dim = d if dim is None else promote_types(dim, d)
        elif category == "zero":
            zero = d if zero is None else promote_types(zero, d)
        else:
            if d.is_floating_point:
                d = default
            elif d.is_complex:
                d = default_complex
            number = d if number is None else promote_types(number, d)
    result = _combine(dim, _combine(zero, number))
    if result is None:
        raise ValueError("promote() needs at least one operand")
    return result


def _combine(strong: dtype | None, weak: dtype | None) -> dtype | None:
    if strong is None or weak is None:
        return weak if strong is None else strong
    if strong.is_complex:
        return strong
    if strong.is_floating_point:
        return strong.to_complex() if weak.is_complex else strong
    if weak.is_complex:  # for uint16 too, which `promote_types` refuses
        return weak
    if strong is bool_ or weak.is_floating_point:
        return promote_types(strong, weak)
    return strong


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a result of one type may be written into a tensor of another: never to a lower kind.

    >>> torch.can_cast(torch.double, torch.float), torch.can_cast(torch.float, torch.int)
    (True, False)
    """
    from_, to = _of_python(from_), _of_python(to)
    _check("can_cast", from_=from_, to=to)
    return _rank(from_)[0] <= _rank(to)[0]


def is_low_precision(raw: NumpyDtype) -> bool:
    """Whether a type holds fewer bits than float32, so that PyTorch computes in float32 for it."""
    return raw in _LOW_PRECISION


def sum_dtype(raw: NumpyDtype) -> NumpyDtype:
    """The type of a sum or product of such elements: int64 for bools and integers, else itself."""
    return int64.numpy if raw in _INTEGRAL else raw


_limits: Final[Callable[[NumpyDtype], Any]] = ml_dtypes.finfo  # NumPy's types too; it is untyped


class finfo:
    """The numerical limits of a floating-point type (for a complex one, those of its parts).

    >>> torch.finfo(torch.float16).max
    65504.0
    """

    __slots__ = (
        "bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny"
    )  # fmt: skip
    __hash__ = None  # type: ignore[assignment]  # unhashable, as PyTorch's

    def __init__(self, type: dtype | None = None) -> None:
        if type is None:
            type = default
        type = _of_python(type)
        _check("finfo", type=type)
        of = type.to_real()
        if not of.is_floating_point:
            raise TypeError(
                "torch.finfo() requires a floating point input type. "
                "Use torch.iinfo to handle 'torch.finfo'"
            )
        raw = _limits(of.numpy)
        self.bits: int = of.itemsize * 8
        self.dtype: str = of.name
        # PyTorch says half of the true distance from 1 to the next number for this one type.
        self.eps: float = 0.125 if of is float8_e5m2fnuz else float(raw.eps)
        self.max: float = float(raw.max)
        self.min: float = float(raw.min)
        self.smallest_normal: float = float(raw.smallest_normal)
        self.tiny: float = self.smallest_normal
        # Ten to the minus the number of decimal digits that survive; read, so as not to round.
        self.resolution: float = float(f"1e-{int(-math.log10(float(raw.eps)))}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self.dtype == other.dtype

    def __repr__(self) -> str:
        fields = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        shown = ", ".join(f"{name}={getattr(self, name):g}" for name in fields)
        return f"finfo({shown}, dtype={self.dtype})"


class iinfo:
    """The numerical limits of an integer type.

    >>> torch.iinfo(torch.int8)
    iinfo(min=-128, max=127, dtype=int8)
    """

    __slots__ = ("bits", "dtype", "max", "min")
    __hash__ = None  # type: ignore[assignment]  # unhashable, as PyTorch's

    def __init__(self, type: dtype) -> None:
        type = _of_python(type)
        _check("iinfo", type=type)
        if type is bool_:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if type.is_floating_point or type.is_complex:
            raise TypeError(
                "torch.iinfo() requires an integer input type. "
                "Use torch.finfo to handle 'torch.iinfo'"
            )
        raw = np.iinfo(type.numpy)
        self.bits: int = raw.bits
        self.dtype: str = type.name
        self.max: int = int(raw.max)
        self.min: int = int(raw.min)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __repr__(self) -> str:
        # As doubles of six digits: PyTorch prints int32's limits so.
        return f"iinfo(min={float(self.min):g}, max={float(self.max):g}, dtype={self.dtype})"


class layout(_Singleton):
    """How a tensor lies in memory: `strided`, or one of the sparse layouts.

    >>> torch.strided
    torch.strided
    """

    __slots__ = ()


class memory_format(_Singleton):
    """The order in which a tensor's dimensions lie in memory.

    >>> torch.channels_last
    torch.channels_last
    """

    __slots__ = ()


_C_NAMES: Final = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int",
    "int32": "int", "int64": "long int", "uint16": "short unsigned int", "uint32": "unsigned int",
    "uint64": "long unsigned int", "float32": "float", "float64": "double",
    "complex32": "c10::complex<c10::Half>", "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}  # fmt: skip


def c_name(d: dtype) -> str:
    """The C++ type of a dtype's elements, which some of PyTorch's texts name.

    >>> c_name(float32), c_name(int64), c_name(bfloat16)
    ('float', 'long int', 'c10::BFloat16')
    """
    return _C_NAMES.get(d.name, f"c10::{d.scalar_type}")


T = TypeVar("T", bound=_Singleton)


def _name(cls: type[T], name: str) -> T:
    made = object.__new__(cls)
    object.__setattr__(made, "name", name)
    return made


strided = _name(layout, "strided")
sparse_coo = _name(layout, "sparse_coo")
sparse_csr = _name(layout, "sparse_csr")
sparse_csc = _name(layout, "sparse_csc")
sparse_bsr = _name(layout, "sparse_bsr")
sparse_bsc = _name(layout, "sparse_bsc")
contiguous_format = _name(memory_format, "contiguous_format")
legacy_contiguous_format = contiguous_format
preserve_format = _name(memory_format, "preserve_format")
channels_last = _name(memory_format, "channels_last")
channels_last_3d = _name(memory_format, "channels_last_3d")
