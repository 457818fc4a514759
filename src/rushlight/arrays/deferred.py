"""Arrays whose conjugation or negation is put off: what tensors like `x.conj()` hold.

    Deferred     `plain`, an array as it lies in memory, and what is to be done to its elements
                 when they are read: CONJ, NEG or both

They are a kind of array as those of other devices are. Words that give views see `plain` through
them, and what was put off stays so; words that write do to the source what was put off (either
undoes itself) and write it into `plain`; all other words, and NumPy's functions, get the elements
as they are read, computed anew each time. `plain` may be NumPy's, CuPy's or a `Meta`.

Imported when the first one is made; nothing here is on the way of other arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.device import device
from rushlight.arrays.host import device_of
from rushlight.arrays.layouts import like_clone
from rushlight.arrays.vocabulary import Kind, primitives, register

CONJ: Final = 1
NEG: Final = 2
# methods that read elements: of the array as it is read
_READING: Final = frozenset(
    "all any argmax argmin argsort cumsum dot flatten item max mean min nonzero prod ravel repeat "
    "round squeeze std sum take tobytes tolist var".split()
)
_VIEWS: Final = frozenset(
    "reshape permute swap broadcast unsqueezed window strided diagonal windows restrided".split()
)
_MAKING: Final = frozenset("full empty empty_as iota constant".split())
_WRITES: Final = frozenset("overwrite store store_add".split())
_LIKE: Final = frozenset("empty_like zeros_like ones_like full_like shape ndim size".split())


def deferred(plain: Any, bits: int) -> Any:
    """An array with this put off; itself, if that is nothing."""
    return Deferred(plain, bits) if bits else plain


def settled(x: Any) -> Any:
    """An array with nothing put off: an ordinary one as it is. Lists and tuples likewise."""
    if isinstance(x, Deferred):
        return x.settled()
    if isinstance(x, (list, tuple)):
        return type(x)([settled(y) for y in x])
    return x


def done(x: Any, bits: int) -> Any:
    """The elements of an array, or a number, after what was put off was done to them."""
    if isinstance(x, (bool, int, float, complex)):
        y: Any = x.conjugate() if bits & CONJ else x
        return -y if bits & NEG else y
    x = settled(x)
    if bits & CONJ and x.dtype.kind in "cW":
        x = _conjugates(x)
    if bits & NEG:
        x = np.negative(x)
    return np.asarray(x) if isinstance(x, np.generic) else x


def _conjugates(x: Any) -> Any:
    if x.dtype.kind == "W":  # NumPy takes it for real
        x = v.copy(x)
        part = v.imag(x)
        part[...] = -part
        return x
    return np.conjugate(x)


class Deferred(np.lib.mixins.NDArrayOperatorsMixin):
    """An array whose elements are those of `plain`, conjugated, negated or both when read."""

    __slots__ = ("__weakref__", "plain", "put_off")
    __hash__ = object.__hash__

    def __init__(self, plain: Any, bits: int) -> None:
        self.plain = plain
        self.put_off = bits

    # --- what an array is asked ---------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.plain.shape
        return shape

    @property
    def dtype(self) -> Any:
        return self.plain.dtype

    @property
    def ndim(self) -> int:
        n: int = self.plain.ndim
        return n

    @property
    def size(self) -> int:
        n: int = self.plain.size
        return n

    @property
    def itemsize(self) -> int:
        n: int = self.plain.itemsize
        return n

    @property
    def nbytes(self) -> int:
        n: int = self.plain.nbytes
        return n

    @property
    def strides(self) -> tuple[int, ...]:
        strides: tuple[int, ...] = self.plain.strides
        return strides

    @property
    def flags(self) -> Any:
        return self.plain.flags

    @property
    def device(self) -> device:
        return device_of(self.plain)

    @property
    def base(self) -> Any:
        """Never None: the memory belongs to another array."""
        return self.plain if self.plain.base is None else self.plain.base

    @property
    def real(self) -> Any:
        return deferred(v.real(self.plain), self.put_off & NEG)

    @property
    def imag(self) -> Any:
        bits = self.put_off & NEG
        return deferred(v.imag(self.plain), bits ^ NEG if self.put_off & CONJ else bits)

    def __len__(self) -> int:
        return len(self.plain)

    def __repr__(self) -> str:
        return f"Deferred({self.plain!r}, {self.put_off})"

    # --- views --------------------------------------------------------------------------------
    def seen(self, plain: Any) -> Deferred:
        """Another array with the same put off."""
        return Deferred(np.asarray(plain) if isinstance(plain, np.generic) else plain, self.put_off)

    def __getitem__(self, index: Any) -> Any:
        return self.seen(self.plain[settled(index)])

    def transpose(self, *axes: Any) -> Any:
        return self.seen(self.plain.transpose(*axes))

    def swapaxes(self, a: int, b: int) -> Any:
        return self.seen(self.plain.swapaxes(a, b))

    def reshape(self, *shape: Any, **options: Any) -> Any:
        return self.seen(self.plain.reshape(*shape, **options))

    def diagonal(self, *args: Any) -> Any:
        return self.seen(self.plain.diagonal(*args))

    # --- elements -----------------------------------------------------------------------------
    def settled(self) -> Any:
        """An array of its own, nothing put off."""
        return done(self.plain, self.put_off)

    def copy(self, order: str = "K") -> Any:
        found = self.settled()
        return like_clone(found, self.plain) if order == "K" else found.copy(order)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        return self.settled().astype(dtype, copy=False)

    def get(self, order: str = "C") -> Any:
        """In the host's memory, as CuPy's arrays say it."""
        found = self.settled()
        return found if isinstance(found, np.ndarray) else found.get(order=order)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.get(), dtype)

    def __cupy_get_ndarray__(self) -> Any:
        """What CuPy's functions compute with."""
        return self.settled()

    def __getattr__(self, name: str) -> Any:
        if name not in _READING:
            raise AttributeError(f"'Deferred' object has no attribute {name!r}")
        return getattr(self.settled(), name)

    def __bool__(self) -> bool:
        return bool(self.settled())

    def __int__(self) -> int:
        return int(self.settled())

    def __index__(self) -> int:
        return int(self.settled().__index__())

    def __float__(self) -> float:
        return float(self.settled())

    def __complex__(self) -> complex:
        return complex(self.settled())

    # --- writes -------------------------------------------------------------------------------
    def undone(self, source: Any) -> Any:
        """What must lie in `plain` for `source`, an array or a number, to be read."""
        if hasattr(source, "dtype") and source.dtype != self.dtype:
            source = v.cast(source, self.dtype)
        return done(source, self.put_off)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.plain[settled(index)] = self.undone(value)

    def fill(self, value: Any) -> None:
        if isinstance(value, np.generic):
            value = value.item()
        self.plain.fill(self.undone(value))

    # --- NumPy --------------------------------------------------------------------------------
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if any(hasattr(x, "_storage") or hasattr(x, "has_batch_dim") for x in inputs):
            return NotImplemented  # a tensor or a batch answers for the arrays next to it
        targets = options.get("out", ())
        if any(isinstance(x, Deferred) for x in targets):
            del options["out"]
            made = getattr(ufunc, method)(*settled(inputs), **options)
            v.overwrite(targets[0], made)
            return targets[0]
        return getattr(ufunc, method)(*settled(inputs), **options)

    def __array_function__(self, fn: Any, types: Any, args: Any, options: Any) -> Any:
        if fn.__name__ in _LIKE:
            return fn(self.plain, *args[1:], **options)
        if fn.__name__ == "copyto" and args[0] is self:
            self[...] = args[1]
            return None
        return fn(*settled(args), **{name: settled(x) for name, x in options.items()})


# --- words ----------------------------------------------------------------------------------------
def _answer(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    x, rest = args[0], args[1:]
    word = primitives[name]
    if not isinstance(x, Deferred):
        return word(*settled(args))
    if name in _VIEWS:
        return x.seen(word(x.plain, *rest))
    rule = _rules.get(name)
    if rule is not None:
        return rule(x, *rest)
    if name in _MAKING:
        return word(x.plain, *settled(rest))
    if name in _WRITES:
        return word(x.plain, x.undone(rest[0]), *settled(rest[1:]))
    return word(*settled(args))


_rules: Final[dict[str, Callable[..., Any]]] = {}


def _rule(fn: Callable[..., Any]) -> Callable[..., Any]:
    _rules[fn.__name__] = fn
    return fn


@_rule
def conjugated(x: Deferred) -> Any:
    return deferred(x.plain, x.put_off ^ CONJ)


@_rule
def negated(x: Deferred) -> Any:
    return deferred(x.plain, x.put_off ^ NEG)


@_rule
def real(x: Deferred) -> Any:
    return x.real


@_rule
def imag(x: Deferred) -> Any:
    return x.imag


@_rule
def as_pairs(x: Deferred) -> Any:
    if x.put_off & CONJ:  # one of each pair only: no view shows that
        return v.as_pairs(x.settled())
    return x.seen(v.as_pairs(x.plain))


@_rule
def as_complex(x: Deferred) -> Any:
    return x.seen(v.as_complex(x.plain))


@_rule
def cast(x: Deferred, dtype: Any) -> Any:
    return x if x.dtype == dtype else v.cast(x.settled(), dtype)


@_rule
def contiguous(x: Deferred) -> Any:
    return x if x.flags.c_contiguous else v.contiguous(x.settled())


@_rule
def copy(x: Deferred) -> Any:
    return x.copy()


@_rule
def moved(x: Deferred, where: device) -> Any:
    here = device_of(x)
    same = here.type == where.type and (where.index is None or here.index == where.index)
    return x if same else v.moved(x.settled(), where)


@_rule
def store_along(x: Deferred, axis: int, index: Any, source: Any) -> None:
    v.store_along(x.plain, axis, settled(index), x.undone(source))


register(Deferred, Kind(8, _answer))
