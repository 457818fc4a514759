"""The closed vocabulary of array functions. Ops are written in these primitives and no others.

Two sorts of primitive:
- `ufuncs`: NumPy's own element-wise objects. Every kind of array answers to them through
  `__array_ufunc__`; on NumPy arrays calling one costs exactly what NumPy costs.
- the functions below, made by `primitive`: shapes, reductions, gathering and the like. Those of
  linear algebra stand in `arrays.lapack`.

Beside these an op may use Python's arithmetic and comparison operators, `x.shape`, `x.ndim`, and
`x.dtype` (`x.size` is a method on tensors). A law in the tests runs every op and rule on recorded
arrays, which answer to this list alone: that is what keeps it closed.

Axes are tuples of ints (None: all). `like` arguments name an array whose kind and device is meant.

Note [Kinds of array]
    On NumPy arrays a primitive computes. If an argument is of a kind that was registered (a tensor,
    a CuPy, batched or recorded array), that kind answers.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

import ml_dtypes
import numpy as np

from rushlight.arrays import kernels
from rushlight.arrays.host import move, settled
from rushlight.arrays.layouts import in_rows, lay_out_picked, like_clone, shown_strides
from rushlight.arrays.quick import sum_at, sum_at_several
from rushlight.arrays.sums import (
    FEW,
    WIDE,
    add_by_place,
    in_turns,
    multiply_over,
    running_in_wide,
    squared_deviations,
    sum_by_place,
    sum_over,
)
from rushlight.random.exact import dense_like

# --- kinds of array: see Note [Kinds of array] ----------------------------------------------------
F = TypeVar("F", bound=Callable[..., Any])


class Kind(NamedTuple):
    """A kind of array other than NumPy's: who answers for it, and whom it outranks."""

    rank: int
    answer: Callable[[str, Callable[..., Any], tuple[Any, ...]], Any]


_VARIADIC: Final = 0x04  # CO_VARARGS: the function takes *args
primitives: Final[dict[str, Callable[..., Any]]] = {}
_kinds: Final[dict[type, Kind | None]] = {np.ndarray: None, int: None, float: None, tuple: None}


def register(cls: type, kind: Kind) -> None:
    """Let `kind.answer(name, numpy_function, args)` serve arrays of type `cls`.

    Where several kinds meet in one call the highest rank answers: a tensor over the arrays that
    it wraps. Subclasses are served too.
    """
    for known in [k for k in _kinds if issubclass(k, cls)]:
        del _kinds[known]
    _kinds[cls] = kind


def _kind_of(cls: type) -> Kind | None:
    for base in cls.__mro__:
        found = _kinds.get(base)
        if found is not None:
            _kinds[cls] = found
            return found
    _kinds[cls] = None
    return None


def primitive(fn: F) -> F:
    """Make a function over NumPy arrays a primitive. Arguments are positional.

    The parameters annotated as arrays decide who answers; most have one, the first.
    """
    name = fn.__name__
    # `inspect.signature` would cost a tenth of the package's import time
    code = getattr(fn, "__wrapped__", fn).__code__  # of what a decorator stands around
    count = code.co_argcount + bool(code.co_flags & _VARIADIC)
    kinds = [str(fn.__annotations__.get(p, "")) for p in code.co_varnames[:count]]
    single = "list" not in kinds[0] and not any("Array" in k for k in kinds[1:])
    call = _one(name, fn) if single else _many(name, fn)
    primitives[name] = call
    return call  # type: ignore[return-value]  # same signature, positional


def _one(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    kinds = _kinds

    @functools.wraps(fn)
    def call(x: Any, *args: Any) -> Any:
        cls = type(x)
        kind = kinds[cls] if cls in kinds else _kind_of(cls)
        return fn(x, *args) if kind is None else kind.answer(name, fn, (x, *args))

    return call


def _many(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    kinds = _kinds

    @functools.wraps(fn)
    def call(*args: Any) -> Any:
        best: Kind | None = None
        for arg in args:
            cls = type(arg)
            if cls is list:
                for item in arg:
                    kind = kinds[type(item)] if type(item) in kinds else _kind_of(type(item))
                    if kind is not None and (best is None or kind.rank > best.rank):
                        best = kind
                continue
            kind = kinds[cls] if cls in kinds else _kind_of(cls)
            if kind is not None and (best is None or kind.rank > best.rank):
                best = kind
        return fn(*args) if best is None else best.answer(name, fn, args)

    return call


Array = Any  # a raw array of any kind, or a tensor, or a number
ALL: Final = slice(None)  # an axis as it is, in an index

# --- ufuncs, typed loosely: other kinds of array answer to them too ------------------------------
absolute: Final[Any] = np.absolute
add: Final[Any] = np.add
arccos: Final[Any] = np.arccos
arccosh: Final[Any] = np.arccosh
arcsin: Final[Any] = np.arcsin
arcsinh: Final[Any] = np.arcsinh
arctan: Final[Any] = np.arctan
arctan2: Final[Any] = np.arctan2
arctanh: Final[Any] = np.arctanh
bitwise_and: Final[Any] = np.bitwise_and
bitwise_or: Final[Any] = np.bitwise_or
bitwise_xor: Final[Any] = np.bitwise_xor
ceil: Final[Any] = np.ceil
conjugate: Final[Any] = np.conjugate
copysign: Final[Any] = np.copysign
cos: Final[Any] = np.cos
cosh: Final[Any] = np.cosh
deg2rad: Final[Any] = np.deg2rad
divide: Final[Any] = np.divide
equal: Final[Any] = np.equal
exp: Final[Any] = np.exp
exp2: Final[Any] = np.exp2
expm1: Final[Any] = np.expm1
floor: Final[Any] = np.floor
floor_divide: Final[Any] = np.floor_divide
fmax: Final[Any] = np.fmax
fmin: Final[Any] = np.fmin
fmod: Final[Any] = np.fmod
gcd: Final[Any] = np.gcd
greater: Final[Any] = np.greater
greater_equal: Final[Any] = np.greater_equal
heaviside: Final[Any] = np.heaviside
hypot: Final[Any] = np.hypot
invert: Final[Any] = np.invert
isfinite: Final[Any] = np.isfinite
isinf: Final[Any] = np.isinf
isnan: Final[Any] = np.isnan
lcm: Final[Any] = np.lcm
ldexp: Final[Any] = np.ldexp
left_shift: Final[Any] = np.left_shift
less: Final[Any] = np.less
less_equal: Final[Any] = np.less_equal
log: Final[Any] = np.log
log1p: Final[Any] = np.log1p
log2: Final[Any] = np.log2
log10: Final[Any] = np.log10
logaddexp: Final[Any] = np.logaddexp
logaddexp2: Final[Any] = np.logaddexp2
logical_and: Final[Any] = np.logical_and
logical_not: Final[Any] = np.logical_not
logical_or: Final[Any] = np.logical_or
logical_xor: Final[Any] = np.logical_xor
matmul: Final[Any] = np.matmul
maximum: Final[Any] = np.maximum
minimum: Final[Any] = np.minimum
multiply: Final[Any] = np.multiply
negative: Final[Any] = np.negative
nextafter: Final[Any] = np.nextafter
not_equal: Final[Any] = np.not_equal
positive: Final[Any] = np.positive
power: Final[Any] = np.power
rad2deg: Final[Any] = np.rad2deg
reciprocal: Final[Any] = np.reciprocal
remainder: Final[Any] = np.remainder
right_shift: Final[Any] = np.right_shift
rint: Final[Any] = np.rint
sign: Final[Any] = np.sign
signbit: Final[Any] = np.signbit
sin: Final[Any] = np.sin
sinh: Final[Any] = np.sinh
sqrt: Final[Any] = np.sqrt
square: Final[Any] = np.square
subtract: Final[Any] = np.subtract
tan: Final[Any] = np.tan
tanh: Final[Any] = np.tanh
trunc: Final[Any] = np.trunc

ufuncs: Final[dict[str, np.ufunc]] = {
    name: value for name, value in list(globals().items()) if isinstance(value, np.ufunc)
}
specials: Final = (
    "erf", "erfc", "erfinv", "erfcx", "gammaln", "digamma", "ndtr", "ndtri", "log_ndtr", "i0",
    "i0e", "i1", "i1e", "xlogy", "xlog1py", "expit", "log_expit", "entr", "polygamma", "zeta",
    "gammainc", "gammaincc", "sinc", "j0", "j1", "y0", "y1",
)  # fmt: skip
_special: Final[dict[str, Any]] = {}
_low: Final[dict[Any, bool]] = {}
_HALF_COMPLEX: Final = np.dtype(ml_dtypes.complex32)


def low_precision(dtype: Any) -> bool:
    """Whether a raw dtype has fewer than 32 bits of float: sums are then kept in float32."""
    answer = _low.get(dtype)
    if answer is None:
        is_float = dtype.kind == "f" or (dtype.kind == "V" and "float" in dtype.name)
        answer = is_float and dtype.itemsize < 4
        _low[dtype] = answer
    return answer


def _wide(x: Array) -> Array:
    """What sums and products of low precision are kept in; anything else as it is."""
    if low_precision(x.dtype):
        return x.astype(np.float32)
    return x.astype(np.complex64) if x.dtype == _HALF_COMPLEX else x


@primitive
def special(x: Array, name: str, *others: Array) -> Array:
    """A special function of SciPy's by name (`specials`), imported when first used."""
    fn = _special.get(name)
    if fn is None:
        fn = _special[name] = getattr(importlib.import_module("scipy.special"), name)
    if low_precision(x.dtype):
        return fn(x.astype(np.float32), *others).astype(x.dtype)
    return fn(x, *others)


# --- making ---------------------------------------------------------------------------------------
@primitive
def full(like: Array, shape: tuple[int, ...], value: Any, dtype: Any) -> Array:
    """An array of one value, on the device of `like`."""
    if not isinstance(like, np.ndarray):
        return np.full_like(like, value, dtype=dtype, shape=shape)
    made = kernels.filled(shape, value, dtype.num)
    if made is not None:
        return made
    out = np.empty(shape, dtype)
    out.fill(value)
    return out


@primitive
def empty(like: Array, shape: tuple[int, ...], dtype: Any) -> Array:
    """An array whose values do not matter, on the device of `like`."""
    return np.empty_like(like, dtype=dtype, shape=shape, order="C", subok=False)


@primitive
def empty_as(like: Array, dtype: Any) -> Array:
    """An array whose values do not matter, in the shape and order of strides of `like`."""
    if 0 in like.strides and type(like) is np.ndarray:
        return dense_like(like, dtype)
    return np.empty_like(like, dtype=dtype, subok=False)


@primitive
def iota(like: Array, n: int, dtype: Any) -> Array:
    """0, 1, …, n-1 on the device of `like`."""
    return np.arange(n, dtype=dtype)


@primitive
def constant(like: Array, value: Any, dtype: Any) -> Array:
    """An array from numbers in Python or NumPy, on the device of `like`."""
    return np.asarray(value, dtype)


# --- one array ------------------------------------------------------------------------------------
@primitive
def cast(x: Array, dtype: Any) -> Array:
    """The same values in another dtype (the same array if it has it). Complex to real drops the
    imaginary part, as a gradient of a real input must."""
    if x.dtype == dtype:
        return x
    made = kernels.recast(np.dtype(dtype).num, x)
    if made is not None:
        return made
    kind = np.dtype(dtype).kind
    if x.dtype.kind == "c" and kind not in "cbW":
        x = x.real
    if kind in "iu" and x.dtype.kind == "f" and type(x) is np.ndarray:
        with np.errstate(invalid="ignore"):  # NaN and infinity become some integer, as in PyTorch
            return _densely(x.astype(dtype), x)
    if kind in "fV" and type(x) is np.ndarray and np.dtype(dtype).itemsize <= x.itemsize:
        with np.errstate(over="ignore"):  # too large for a narrow float: infinity
            return _densely(x.astype(dtype), x)
    return _densely(x.astype(dtype), x)


def _densely(y: Array, x: Array) -> Array:
    """A copy in the layout of a clone of `x`: NumPy has other ideas where axes are expanded."""
    return like_clone(y, x) if 0 in x.strides else y


@primitive
def moved(x: Array, where: Any) -> Array:
    """The array on another device (itself if it is there)."""
    return move(x, where)


@primitive
def copy(x: Array) -> Array:
    """A copy with its strides in the same order."""
    made = kernels.copied(x)
    if made is not None:
        return made
    if 0 not in x.strides:
        return x.copy("K")
    if type(x) is not np.ndarray:
        return x.copy("C")
    out = dense_like(x)
    np.copyto(out, x)
    return out


@primitive
def laid_out(x: Array, order: tuple[int, ...] | None) -> Array:
    """A copy whose axes lie in memory in the given order, widest stride first (None: rows)."""
    if order is None:
        made = kernels.in_new_rows(x)
        return x.copy("C") if made is None else made
    back = sorted(range(len(order)), key=lambda d: order[d])
    return x.transpose(order).copy("C").transpose(back)


@primitive
def contiguous(x: Array) -> Array:
    """The same values in row order, copied only if they are not."""
    if x.flags.c_contiguous:
        return x
    made = kernels.in_new_rows(x)
    return x.copy("C") if made is None else made


@primitive
def real(x: Array) -> Array:
    return as_pairs(x)[..., 0] if x.dtype.kind == "W" else x.real  # NumPy takes W for real


@primitive
def imag(x: Array) -> Array:
    return as_pairs(x)[..., 1] if x.dtype.kind == "W" else x.imag


@primitive
def complex_of(re: Array, im: Array) -> Array:
    """re + i·im, without the rounding or NaNs that multiplying by i would bring."""
    if re.dtype == np.float16 and im.dtype == np.float16:
        return as_complex(np.stack([re, im], -1))
    out = np.empty_like(re, dtype=np.result_type(re.dtype, np.complex64), shape=re.shape)
    out.real = re
    out.imag = im
    return out


_PARTS: Final = {
    np.dtype(np.float16): np.dtype(ml_dtypes.complex32),
    np.dtype(np.float32): np.dtype(np.complex64),
    np.dtype(np.float64): np.dtype(np.complex128),
}


@primitive
def as_pairs(x: Array) -> Array:
    """A view of complex numbers as real ones, with a last axis of two: real and imaginary part."""
    return x[..., None].view(next(part for part, whole in _PARTS.items() if whole == x.dtype))


@primitive
def as_complex(x: Array) -> Array:
    """A view of pairs (the last axis, of two that lie side by side) as complex numbers."""
    return x.view(_PARTS[x.dtype])[..., 0]


@primitive
def conjugated(x: Array) -> Array:
    """A view of complex numbers as their conjugates, which are computed when they are read."""
    return _deferring().deferred(x, 1)


@primitive
def negated(x: Array) -> Array:
    """A view of numbers with the other sign, which is changed when they are read."""
    return _deferring().deferred(x, 2)


def _deferring() -> Any:
    """The module of arrays that something is put off of, imported when one is first made."""
    from rushlight.arrays import deferred

    return deferred


@primitive
def frexp(x: Array) -> tuple[Array, Array]:
    """Mantissa (0.5 to 1) and exponent: x = mantissa · 2**exponent."""
    mantissa, exponent = np.frexp(x)
    return mantissa, exponent


@primitive
def polygamma(x: Array, n: int) -> Array:
    """The derivative number `n` of the digamma function."""
    if n == 0:
        return special(x, "digamma")
    zeta = importlib.import_module("scipy.special").zeta
    if n == 1:  # the one that PyTorch continues to the left, by reflection
        left = x < 0.5
        right = zeta(x.dtype.type(2), np.where(left, 1 - x, x))
        return np.where(left, (math.pi / np.sin(math.pi * x)) ** 2 - right, right)
    return (float(math.factorial(n)) * (1 if n % 2 else -1)) * zeta(x.dtype.type(n + 1), x)


@primitive
def bits(x: Array, dtype: Any) -> Array:
    """The same memory read as another dtype."""
    return x.view(dtype)


# --- shapes: views where the strides allow --------------------------------------------------------
@primitive
def reshape(x: Array, shape: tuple[int, ...]) -> Array:
    return x.reshape(shape)


@primitive
def permute(x: Array, axes: tuple[int, ...]) -> Array:
    return x.transpose(axes)


@primitive
def swap(x: Array, a: int, b: int) -> Array:
    """Exchange two axes."""
    return x.swapaxes(a, b)


def matrices(a: Array, b: Array) -> Array:
    """`matmul`, of two matrices or batches of them. For two of NumPy's matrices or vectors `dot` is
    half a microsecond quicker, but fills a large result with zeros first; for batches of columns
    times rows a product of elements takes a third of the time; any other kind of array answers to
    `matmul`."""
    if type(a) is np.ndarray and type(b) is np.ndarray:
        if a.ndim == 2 and b.ndim == 2 and len(a) * b.shape[1] < 8192:
            return a.dot(b)
        if a.ndim == 1 and b.ndim == 1 and a.dtype.kind == "f":
            return a.dot(b)
        if a.ndim > 2 and b.ndim > 2 and a.shape[-1] == 1 and b.shape[-2] == 1:
            return multiply(a, b)
    return matmul(settled(a), settled(b))  # CuPy's asks no operand that is not its own


@primitive
def turned(x: Array) -> Array:
    """The last two axes exchanged, ready to be the right factor of a product: a small matrix is
    copied, since BLAS takes longer over a transposed right factor (64x64: 8.6 µs against 7.4)."""
    y = x.swapaxes(-1, -2)
    return y.copy() if y.ndim == 2 and y.size <= 4096 else y


@primitive
def broadcast(x: Array, shape: tuple[int, ...]) -> Array:
    """A view with size-1 axes repeated (stride 0) and new axes in front."""
    if isinstance(x, np.generic):
        x = np.asarray(x)
    if type(x) is not np.ndarray:
        return np.broadcast_to(x, shape)
    if x.ndim == 0 and x.dtype.kind != "V":
        # NumPy's own broadcast_to costs ten times as much
        return np.ndarray(shape, x.dtype, x, 0, (0,) * len(shape))
    out = np.broadcast_to(x, shape)
    if 1 in shape and 1 in x.shape and 0 not in shape:
        # NumPy drops the strides of axes of size 1 that stay so
        own = (0,) * (len(shape) - x.ndim) + shown_strides(x)
        steps = [s if n == 1 else t for s, t, n in zip(own, out.strides, shape, strict=True)]
        return _through(x, out.shape, tuple(steps), 0)
    if x.flags.writeable:
        out.flags.writeable = True  # a view like any other; internal overlap is checked on writing
    return out


@primitive
def unsqueezed(x: Array, dim: int) -> Array:
    """A view with a new axis of size 1 at `dim` (negative) of the result, in PyTorch's strides:
    as if it were contiguous with what follows. (NumPy's new axes have stride 0.)"""
    at = x.ndim + 1 + dim
    shape = (*x.shape[:at], 1, *x.shape[at:])
    if x.flags.c_contiguous and 1 not in x.shape:
        return x.reshape(shape)
    step = x.shape[at] * x.strides[at] if at < x.ndim else x.dtype.itemsize
    return _through(x, shape, (*x.strides[:at], step, *x.strides[at:]), 0)


@primitive
def window(x: Array, index: Any) -> Array:
    """Basic indexing: ints, slices, None, ellipsis. Always a view."""
    return x[index]


@primitive
def strided(x: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Array:
    """A view of all the memory behind `x` by explicit strides and offset, in elements."""
    root = x
    while isinstance(root.base, type(root)):
        root = root.base
    size = x.dtype.itemsize
    flat = root.reshape(-1, order="A") if root.flags.forc else root
    flat = flat.view(x.dtype)
    return np.lib.stride_tricks.as_strided(
        flat[offset:] if offset else flat, shape, tuple(s * size for s in strides)
    )


@primitive
def diagonal(x: Array, offset: int, a: int, b: int) -> Array:
    """A view of a diagonal, as the last axis."""
    out = x.diagonal(offset, a, b)
    if type(out) is np.ndarray and x.flags.writeable:
        out.flags.writeable = True
    return out


@primitive
def windows(x: Array, axis: int, size: int, step: int) -> Array:
    """A view of sliding windows along an axis; the window is the last axis."""
    count = (x.shape[axis] - size) // step + 1
    shape = [*x.shape, size]
    strides = [*x.strides, x.strides[axis]]
    axis %= x.ndim
    shape[axis] = count
    strides[axis] = strides[axis] * step
    return _through(x, tuple(shape), tuple(strides), 0)


def _through(x: Array, shape: tuple[int, ...], strides: tuple[int, ...], start: int) -> Array:
    """A view of the memory behind `x` by strides in bytes, `start` bytes from its first element.

    Made with a buffer rather than by `as_strided`, which hides the array that owns the memory.
    """
    if type(x) is not np.ndarray:
        return type(x)(shape, x.dtype, x.data + start, strides)
    root = x
    while type(root.base) is np.ndarray:
        root = root.base
    order = sorted(range(root.ndim), key=lambda d: -root.strides[d])
    flat = root.transpose(order)
    if not flat.flags.c_contiguous:  # not dense: memory of somebody else's
        return np.lib.stride_tricks.as_strided(x, shape, strides)
    flat = flat.reshape(-1)
    place = x.__array_interface__["data"][0] - flat.__array_interface__["data"][0] if x.size else 0
    return np.ndarray(shape, x.dtype, flat.view(np.uint8), place + start, strides)


def _reaches(x: Array, shape: tuple[int, ...], strides: tuple[int, ...], start: int) -> bool:
    """Whether the memory behind `x` has all that strides in elements show from `start` on."""
    if type(x) is not np.ndarray or 0 in shape or x.size == 0:
        return True
    root = x
    while type(root.base) is np.ndarray:
        root = root.base
    low, high = np.lib.array_utils.byte_bounds(root)
    size = x.dtype.itemsize
    first = x.__array_interface__["data"][0] + start * size
    last = first + size * (1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)))
    return bool(low <= first and last <= high)


def _cells(shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """The position in memory of each element of an array of these strides, in elements."""
    places = np.zeros(shape, np.int64)
    for d, n in enumerate(shape):
        places += (np.arange(n) * strides[d]).reshape(-1, *[1] * (len(shape) - d - 1))
    return places


@primitive
def restrided(x: Array, shape: Any, strides: Any, start: int, inside: Any) -> Array:
    """What strides (in elements), beginning `start` elements from its first, show of the memory
    of an `x` whose own strides are `inside`. A view if `x` has those strides; otherwise a copy.
    There may be less memory behind a gradient than behind its tensor: beyond it are zeros."""
    x = np.asarray(x) if isinstance(x, np.generic) else x
    size = x.dtype.itemsize
    if tuple(s // size for s, n in zip(x.strides, x.shape, strict=True) if n > 1) == tuple(
        s for s, n in zip(inside, x.shape, strict=True) if n > 1
    ) and _reaches(x, shape, strides, start):
        return _through(x, shape, tuple(s * size for s in strides), start * size)
    own, there, lowest, length = _shared_cells(x.shape, inside, shape, strides, start)
    cells = np.empty_like(x, shape=(length,))
    cells[...] = 0
    cells[own - lowest] = x
    return cells[there - lowest]


@primitive
def unstrided(g: Array, shape: Any, strides: Any, start: int, inside: Any) -> Array:
    """The adjoint of `restrided`, to an array of `shape` and strides `inside`: each place of the
    memory gets the sum of what looked at it, shared out where `inside` itself overlaps."""
    dtype = g.dtype
    g = _wide(g)
    repeated = tuple([d for d in range(g.ndim) if strides[d] == 0])
    if repeated:  # many looked at one place: `reduce_sum` adds them up with more care
        g = reduce_sum(g, repeated, False)
        strides = [s for s in strides if s != 0]
    own, there, lowest, length = _shared_cells(shape, inside, g.shape, strides, start)
    cells = sum_by_place(g.reshape(-1), (there - lowest).reshape(-1), length)
    cells = cells.astype(dtype, copy=False)
    counts = np.bincount((own - lowest).reshape(-1), minlength=length)
    out = cells[own - lowest]
    if counts.size and counts.max() > 1:
        out = (out / np.asarray(counts[own - lowest], g.real.dtype)).astype(dtype)
    return out


def _shared_cells(shape: Any, inside: Any, other: Any, strides: Any, start: int) -> Any:
    own, there = _cells(shape, inside), _cells(other, strides) + start
    ends = [a for p in (own, there) if p.size for a in (int(p.min()), int(p.max()))] or [0]
    return own, there, min(ends), max(ends) - min(ends) + 1


@primitive
def concat(xs: list[Array], axis: int) -> Array:
    made = kernels.joined(axis, *xs)
    return in_rows(np.concatenate(xs, axis)) if made is None else made


@primitive
def pad(x: Array, widths: tuple[tuple[int, int], ...], value: Any) -> Array:
    """A copy with `value` around it."""
    flat = tuple([n for pair in reversed(widths) for n in pair])
    made = kernels.padded(flat, value, x)
    if made is not None:
        return made
    return in_rows(np.pad(x, widths, mode="constant", constant_values=value))


@primitive
def flip(x: Array, axes: tuple[int, ...]) -> Array:
    """A copy with the order along `axes` turned round (strides are never negative here)."""
    made = kernels.flipped(axes, x)
    return like_clone(np.flip(x, axes).copy("K"), x) if made is None else made


@primitive
def roll(x: Array, shifts: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    made = kernels.rolled(shifts, axes, x)
    return np.roll(x, shifts, axes) if made is None else made


@primitive
def tile(x: Array, repeats: tuple[int, ...]) -> Array:
    made = kernels.tiled(repeats, x)
    return np.tile(x, repeats) if made is None else made


@primitive
def triangle(x: Array, k: int, lower: bool) -> Array:
    """Zero outside the lower (or upper) triangle of the last two axes."""
    made = kernels.triangle(k, lower, x)
    if made is not None:
        return made
    return np.tril(x, k) if lower else np.triu(x, k)


# --- reductions -----------------------------------------------------------------------------------
@primitive
def reduce_sum(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Array:
    """Sum; low precision is summed in float32 and rounded once. Integers keep their dtype."""
    dtype = x.dtype
    kind = dtype.kind
    if kind == "c" or (kind == "f" and dtype.itemsize > 2):
        made = kernels.sum_over(axes, keep)(x)
        if made is not None:
            return made
        if x.size > FEW:
            return sum_over(x, axes, keep)
        return add.reduce(x, axis=axes, keepdims=keep)
    if kind in "iu":
        return add.reduce(x, axis=axes, dtype=dtype, keepdims=keep)
    if kind == "b":
        return add.reduce(x, axis=axes, keepdims=keep)
    return sum_over(_wide(x), axes, keep).astype(dtype)


@primitive
def deviations(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Array:
    """The sum of the squared distances from the mean, in float64 where the squares of float32 would
    leave its range: n times the variance."""
    return squared_deviations(_wide(x), axes, keep)


@primitive
def product(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Array:
    """Product; low precision is multiplied in float32 and rounded once. Integers keep their
    dtype."""
    if x.dtype.kind in "iub":
        return multiply.reduce(x, axis=axes, dtype=x.dtype, keepdims=keep)
    wide = _wide(x)
    y = multiply_over(wide, axes, keep)
    return y if wide is x else y.astype(x.dtype)


@primitive
def reduce_max(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Array:
    return maximum.reduce(x, axis=axes, keepdims=keep)


@primitive
def reduce_min(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Array:
    return minimum.reduce(x, axis=axes, keepdims=keep)


@primitive
def reduce_any(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Array:
    return logical_or.reduce(x, axis=axes, keepdims=keep)


@primitive
def reduce_all(x: Array, axes: tuple[int, ...] | None, keep: bool) -> Array:
    return logical_and.reduce(x, axis=axes, keepdims=keep)


@primitive
def argmax(x: Array, axis: int | None, keep: bool) -> Array:
    return np.argmax(x, axis=axis, keepdims=keep)


@primitive
def argmin(x: Array, axis: int | None, keep: bool) -> Array:
    return np.argmin(x, axis=axis, keepdims=keep)


@primitive
def cumsum(x: Array, axis: int) -> Array:
    """Running sum, kept in the next wider type and rounded at the end. Integers keep their
    dtype."""
    made = kernels.running(False, False, axis, x)
    if made is not None:
        return made
    return _running(add, x, axis)


@primitive
def cumprod(x: Array, axis: int) -> Array:
    """Running product, kept in the next wider type and rounded at the end. Integers keep their
    dtype."""
    return _running(multiply, x, axis)


def _running(ufunc: Any, x: Array, axis: int) -> Array:
    if x.ndim == 0:
        x = x.reshape(1)
    wide = _wide(x)
    if wide is x:
        return running_in_wide(ufunc, x, axis)
    return ufunc.accumulate(wide, axis).astype(x.dtype)


@primitive
def running(x: Array, axis: int, most: bool) -> Array:
    """Running maximum (or minimum) along an axis."""
    return (maximum if most else minimum).accumulate(x, axis=axis)


@primitive
def narrow_matmul(a: Array, b: Array) -> Array:
    """Matrix product of types below 32 bits: floats are summed in float32 and rounded once."""
    if low_precision(a.dtype):
        return matmul(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)
    return matmul(a, b)


# --- choosing, gathering, scattering --------------------------------------------------------------
@primitive
def where(condition: Array, a: Array, b: Array) -> Array:
    return np.where(condition, a, b)


@primitive
def gather(x: Array, axis: int, index: Array) -> Array:
    """out[…, i, …] = x[…, index[…, i, …], …]: `take_along_axis` with PyTorch's smaller index.

    The index is not negative and in range.
    """
    made = kernels.gathered(axis, x, index)
    if made is not None:
        return made
    if x.ndim == 0:
        return x.reshape(1)[index.reshape(-1)].reshape(index.shape)
    if type(x) is np.ndarray and x.size:
        # positions in row order: `take` of one array is five times as fast
        return x.reshape(-1).take(_positions(index, axis, x.shape))
    cut = tuple(
        slice(None) if d == axis % x.ndim else slice(0, n) for d, n in enumerate(index.shape)
    )
    return np.take_along_axis(x[cut], index, axis)


def _positions(index: Array, axis: int, shape: tuple[int, ...]) -> Array:
    """An index along an axis as positions in row order of an array of `shape`."""
    axis %= len(shape)
    rank = len(shape)
    stride = 1
    found: Any = 0
    for d in range(rank - 1, -1, -1):
        if d == axis:
            found = found + (index if stride == 1 else index * stride)
        elif index.shape[d] > 1:
            others = np.arange(0, index.shape[d] * stride, stride)
            found = found + others.reshape((-1,) + (1,) * (rank - 1 - d))
        stride *= shape[d]
    return found.astype(np.intp, copy=False)


@primitive
def ungather(g: Array, shape: tuple[int, ...], axis: int, index: Array) -> Array:
    """The adjoint of `gather`: zeros of `shape` with `g` added where it was gathered from."""
    if type(g) is np.ndarray:
        return _add_along(np.zeros(shape, g.dtype), axis, index, g)
    return _add_along(np.zeros_like(g, shape=shape, order="C"), axis, index, g)


@primitive
def scatter(x: Array, axis: int, index: Array, source: Array) -> Array:
    """A copy of `x` with x[…, index, …] = source (the last write wins)."""
    out = x.copy()
    store_along(out, axis, index, source)
    return out


@primitive
def scatter_add(x: Array, axis: int, index: Array, source: Array) -> Array:
    """A copy of `x` with source added at x[…, index, …], repeated places included."""
    return _add_along(x.copy("C"), axis, index, source)


def _add_along(out: Array, axis: int, index: Array, source: Array) -> Array:
    """`scatter_add` into `out`, which is new and in row order."""
    if index.size == 0 or kernels.put_along(axis, True, out, index, source):
        return out
    if type(out) is not np.ndarray:
        _at(add, out, _along(index, axis, out.ndim), source)
        return out
    dtype = out.dtype
    if low_precision(dtype):
        out = out.astype(np.float32)
    _join_along(add, out, axis, index, source)
    return out.astype(dtype) if out.dtype != dtype else out


def _join_along(ufunc: Any, out: Array, axis: int, index: Array, source: Array) -> None:
    """`ufunc.at` along an axis of `out`, which is in row order."""
    # one flat index: NumPy's `ufunc.at` is quick in one dimension only
    places = _positions(index, axis, out.shape).reshape(-1)
    source = np.broadcast_to(np.asarray(source, out.dtype), index.shape).reshape(-1)
    flat = out.reshape(-1)
    if ufunc is add and flat.size * FEW <= source.size and out.dtype in WIDE:
        add_by_place(flat, source, places)
    else:
        ufunc.at(flat, places, source)


def _at(ufunc: Any, out: Array, index: Any, source: Array) -> None:
    """`ufunc.at`, by the module that the array is of: CuPy's arrays answer to no `np.add.at`."""
    if type(out) is not np.ndarray:
        module = importlib.import_module(type(out).__module__.split(".")[0])
        ufunc = getattr(module, ufunc.__name__)
    ufunc.at(out, index, source)


def _linear(places: tuple[Array, ...], shape: tuple[int, ...]) -> Array:
    """Index arrays, one an axis of `shape`, as one array of positions in row order.

    Negative indices count from the end; those out of range raise NumPy's IndexError.
    """
    linear: Any = 0
    for d, (place, n) in enumerate(zip(places, shape, strict=True)):
        if place.size:
            low, high = int(place.min()), int(place.max())
            if high >= n or low < -n:
                bad = high if high >= n else low
                raise IndexError(f"index {bad} is out of bounds for axis {d} with size {n}")
            if low < 0:
                place = np.where(place < 0, place + n, place)
        linear = linear * n + place.astype(np.intp, copy=False)
    return linear if places else np.zeros((), np.intp)


def _along(index: Array, axis: int, rank: int) -> tuple[Any, ...]:
    axis %= max(rank, 1)
    places: list[Any] = []
    for d in range(rank):
        if d == axis:
            places.append(index)
        else:
            shape = [1] * rank
            shape[d] = index.shape[d]
            places.append(np.arange(index.shape[d]).reshape(shape))
    if type(index) is not np.ndarray:
        lib = importlib.import_module(type(index).__module__.split(".")[0])
        places = [lib.asarray(p) if type(p) is np.ndarray else p for p in places]
    return tuple(places)


def _rows_at(index: Any, arrays: tuple[Array, ...]) -> int | None:
    """The axis from which on an index has arrays, if it has nothing else."""
    if len(index) == len(arrays):
        return 0
    if len(arrays) == 1 and index[0] is Ellipsis and index[1] is SLOT:
        return 1 - len(index)
    return None


@primitive
def pick(x: Array, index: Any, *arrays: Array) -> Array:
    """Advanced indexing. `index` is a tuple; each `Slot` in it stands for the next of `arrays`."""
    axis = _rows_at(index, arrays)
    if axis is not None:
        made = kernels.picked(axis, x, *arrays)
        if made is None and axis == 0 and len(arrays) == 1:
            made = kernels.masked(x, arrays[0])
        if made is not None:
            return made
    if len(arrays) == 1 and type(x) is np.ndarray:
        array = arrays[0]
        if array.dtype.kind == "i":  # `take` is up to five times as fast as x[array]
            if len(index) == 1:
                return lay_out_picked(x.take(array, 0), x, index, arrays)
            if index[0] is Ellipsis and index[1] is SLOT:
                return lay_out_picked(x.take(array, 1 - len(index)), x, index, arrays)
        elif len(index) == 1:
            return lay_out_picked(x[array], x, index, arrays)
    return lay_out_picked(x[_filled(index, arrays)], x, index, arrays)


@primitive
def unpick(g: Array, shape: tuple[int, ...], index: Any, *arrays: Array) -> Array:
    """The adjoint of `pick`: zeros of `shape` with `g` added where it was picked from."""
    if type(g) is np.ndarray:
        axis = _rows_at(index, arrays)
        if axis is not None:
            made = kernels.unpicked(axis, shape, g, *arrays)
            if made is None and axis == 0 and len(arrays) == 1 and arrays[0].shape == shape:
                made = kernels.unmasked(g, arrays[0])
            if made is not None:
                return made
        if len(arrays) == 1:
            quick = sum_at(g, shape, index, arrays[0])
        else:
            quick = sum_at_several(g, shape, index, arrays)
        if quick is not None:
            return quick
        if len(arrays) == 1 and arrays[0].dtype.kind == "b":  # a mask names no place twice
            out = np.zeros(shape, g.dtype)
            out[_filled(index, arrays)] = g
            return out
        fast = _row_sums(g, shape, _filled(index, arrays))
        if fast is not None:
            return fast
    if type(g) is not np.ndarray:
        out = np.zeros_like(g, shape=shape)
        _at(add, out, _filled(index, arrays), g)
        return out
    wide = _wide(g)
    out = np.zeros(shape, wide.dtype)
    add.at(out, _filled(index, arrays), wide)
    return out.astype(g.dtype, copy=False)


@primitive
def place(x: Array, value: Array, index: Any, *arrays: Array) -> Array:
    """A copy of `x` with x[index] = value."""
    out = x.copy()
    axis = _rows_at(index, arrays)
    if axis is None or not kernels.put_rows(axis, False, out, value, *arrays):
        out[_filled(index, arrays)] = value
    return out


@primitive
def place_add(x: Array, value: Array, index: Any, *arrays: Array) -> Array:
    """A copy of `x` with value added at x[index], repeated places included."""
    out = x.copy()
    store_add(out, value, index, *arrays)
    return out


def _row_sums(value: Array, shape: tuple[int, ...], index: tuple[Any, ...]) -> Array | None:
    """`add.at(zeros(shape), index, value)` as sums of rows; None if `index` is not that simple.

    Many rows are added by SciPy's sparse product, thirty times as fast as `add.at`.
    """
    found = _as_rows(value, shape, index)
    if found is None:
        return None
    rows, where, axes, rest = found
    sums = _sum_rows(rows, where, math.prod(shape[d] for d in axes))
    first = sums.reshape([shape[d] for d in (*axes, *rest)])
    return in_rows(first.transpose(sorted(range(len(shape)), key=lambda d: [*axes, *rest][d])))


def _as_rows(value: Array, shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    """`value`, which `index` names the places of, as rows; the place of each among the indexed
    axes, put first and taken as one; those axes, and the others. None if it is not that simple."""
    places, axes = _int_places(index, len(shape))
    if not axes:
        return None
    rest = [d for d in range(len(shape)) if d not in axes]
    together = axes[-1] - axes[0] == len(axes) - 1
    linear = _linear(tuple(places), tuple(shape[d] for d in axes))
    front = axes[0] if together else 0  # where the dimensions of the index stand in `value`
    picked = linear.shape
    sizes = [shape[d] for d in rest]
    value = np.broadcast_to(value, (*sizes[:front], *picked, *sizes[front:]))
    moved = [*range(front, front + len(picked)), *range(front)]
    moved += range(front + len(picked), value.ndim)
    rows = value.transpose(moved).reshape(linear.size, math.prod(sizes))
    return rows, linear.reshape(-1), axes, rest


def _sum_rows(rows: Array, where: Array, count: int) -> Array:
    """out[where[i]] += rows[i], for `count` rows of zeros."""
    width = rows.shape[1]
    dtype = rows.dtype
    rows = _wide(rows)
    n = len(where)
    if width > 1 and rows.size > 20_000 and dtype.kind != "b":
        sparse = importlib.import_module("scipy.sparse")
        ones = np.ones(n, rows.dtype)
        where, turns = in_turns(where, count)
        shape = (turns * count, n)
        sums = sparse.csc_array((ones, where, np.arange(n + 1)), shape=shape) @ rows
        if turns > 1:
            sums = reduce_sum(sums.reshape(turns, count, width), (0,), False)
    else:
        places = where if width == 1 else (where[:, None] * width + np.arange(width)).reshape(-1)
        sums = sum_by_place(rows.reshape(-1), places, count * width).reshape(count, width)
    return sums if sums.dtype == dtype else sums.astype(dtype)


def _int_places(index: tuple[Any, ...], rank: int) -> tuple[list[Array], list[int]]:
    """The index arrays of `index` and the axes they index; none if there is more than arrays
    and full slices. Masks become the places where they are true."""
    places: list[Array] = []
    axes: list[int] = []
    d = 0
    for position, item in enumerate(index):
        if item is Ellipsis:
            after = index[position + 1 :]
            wide = sum(i.ndim if _is_mask(i) else 1 for i in after)
            d = rank - wide
        elif isinstance(item, slice):
            if item != slice(None):
                return [], []
            d += 1
        elif _is_mask(item):
            for place_ in item.nonzero():
                places.append(place_)
                axes.append(d)
                d += 1
        elif type(item) is np.ndarray:
            places.append(item)
            axes.append(d)
            d += 1
        else:
            return [], []
    return places, axes


def _is_mask(x: Any) -> bool:
    return type(x) is np.ndarray and x.dtype.kind == "b"


class Slot:
    """Stands in an index for an array that is passed next to it."""

    def __repr__(self) -> str:
        return "SLOT"


SLOT: Final = Slot()


def _filled(index: Any, arrays: tuple[Array, ...]) -> Any:
    rest = iter(arrays)
    return tuple(next(rest) if item is SLOT else item for item in index)


@primitive
def reduce_along(
    x: Array, axis: int, index: Array, source: Array, how: str, include: bool
) -> Array:
    """A copy of `x` with each x[…, index, …] joined with its sources: "sum", "prod", "amax" or
    "amin". Unless `include`, the old value of such a place does not take part."""
    ufunc, start = _JOINS[how]
    out = x.copy("C")
    dtype = out.dtype
    if low_precision(dtype):
        out = out.astype(np.float32)
    if not include:
        if start is None:
            least = how == "amin"
            if dtype.kind in "iu":
                limits = np.iinfo(dtype)
                start = limits.max if least else limits.min
            else:
                start = least if dtype.kind == "b" else np.inf if least else -np.inf
        out[_along(index, axis, x.ndim)] = start
    if type(out) is np.ndarray:
        _join_along(ufunc, out, axis, index, source)
    else:
        _at(ufunc, out, _along(index, axis, x.ndim), source)
    return out.astype(dtype) if out.dtype != dtype else out


_JOINS: Final[dict[str, tuple[Any, Any]]] = {
    "sum": (add, 0), "prod": (multiply, 1), "amax": (maximum, None), "amin": (minimum, None),
}  # fmt: skip


@primitive
def sort(x: Array, axis: int, descending: bool, stable: bool) -> Array:
    """Indices that sort `x`; NaN counts as the largest."""
    made = kernels.ranked(axis, descending, -1, False, x)
    if made is not None:
        return made
    if descending:
        n = x.shape[axis]
        turned = np.flip(x, axis)
        order = np.argsort(turned, axis=axis, kind="stable")
        return contiguous(np.flip(n - 1 - order, axis))
    return np.argsort(x, axis=axis, kind="stable" if stable else None)


@primitive
def nonzero(x: Array) -> tuple[Array, ...]:
    """Where `x` is not zero, one array an axis. Its length depends on the values."""
    if type(x) is np.ndarray:
        made = kernels.nonzero_places(x if x.dtype.kind == "b" else x != 0)
        if made is not None:
            return tuple(made)
    found = x.nonzero()
    if type(x) is np.ndarray and x.ndim > 1:  # NumPy's lie in memory element by element
        return tuple(np.asarray(found))
    return tuple(found)


@primitive
def searchsorted(sorted_: Array, x: Array, right: bool) -> Array:
    return np.searchsorted(sorted_, x, side="right" if right else "left")


@primitive
def bincount(x: Array, weights: Array | None, least: int) -> Array:
    return np.bincount(x, weights, least)


@primitive
def unique(x: Array) -> tuple[Array, Array, Array]:
    """Sorted distinct values, where each element went, and how many there were of each."""
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return values, inverse.reshape(x.shape), counts


# --- writing, for in-place ops --------------------------------------------------------------------
@primitive
def overwrite(target: Array, source: Array) -> None:
    """target[...] = source, casting as PyTorch casts."""
    if source.dtype.kind == "c" and target.dtype.kind not in "cbW":
        source = source.real
    if type(target) is not np.ndarray:
        target[...] = source
    elif target.dtype == source.dtype:
        np.copyto(target, source)
    else:
        with np.errstate(over="ignore", invalid="ignore"):  # what does not fit, PyTorch wraps too
            np.copyto(target, source, casting="unsafe")


@primitive
def store(target: Array, value: Array, index: Any, *arrays: Array) -> None:
    """target[index] = value: `place` without the copy."""
    axis = _rows_at(index, arrays)
    if axis is not None and kernels.put_rows(axis, False, target, value, *arrays):
        return
    if len(arrays) == 1 and type(target) is np.ndarray and _is_mask(arrays[0]):
        mask = arrays[0]
        if mask.shape == target.shape and getattr(value, "ndim", 0) == 0:
            np.copyto(target, value, casting="unsafe", where=mask)  # twice as fast
            return
    target[_filled(index, arrays)] = value


@primitive
def store_add(target: Array, value: Array, index: Any, *arrays: Array) -> None:
    """target[index] += value, repeated places included: `place_add` without the copy."""
    axis = _rows_at(index, arrays)
    if axis is not None and kernels.put_rows(axis, True, target, value, *arrays):
        return
    filled = _filled(index, arrays)
    if type(target) is np.ndarray:
        value = np.asarray(value, target.dtype)
        few = target.size > 16 * value.size  # summing touches every element of the target
        if len(arrays) == 1 and arrays[0].dtype.kind == "b":
            target[filled] += value
            return
        sums = None if few else _row_sums(value, target.shape, filled)
        if sums is not None:
            target += sums
            return
        if _wide(value) is not value:
            _add_narrow(target, value, filled)
            return
    _at(add, target, filled, value)


def _add_narrow(target: Array, value: Array, index: tuple[Any, ...]) -> None:
    """add.at(target, index, value) for low precision: what goes to one place is added up in a wider
    type and rounded once, and no other place is touched."""
    found = _as_rows(value, target.shape, index)
    if found is None:
        wide = _wide(target)
        add.at(wide, index, _wide(value))
        target[...] = wide.astype(target.dtype)
        return
    rows, where, axes, rest = found
    places, which = np.unique(where, return_inverse=True)
    sums = _sum_rows(_wide(rows), which, places.size)
    at = np.unravel_index(places, [target.shape[d] for d in axes])
    seen = target.transpose(axes + rest)
    old = seen[at]
    seen[at] = (_wide(old) + sums.reshape(old.shape)).astype(target.dtype)


@primitive
def store_along(target: Array, axis: int, index: Array, source: Array) -> None:
    """target[…, index, …] = source: `scatter` without the copy."""
    if kernels.put_along(axis, False, target, index, source):
        return
    if type(target) is np.ndarray and target.flags.c_contiguous and target.size:
        target.reshape(-1)[_positions(index, axis, target.shape)] = source
    else:
        target[_along(index, axis, target.ndim)] = source
