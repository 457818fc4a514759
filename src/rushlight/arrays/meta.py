"""Arrays of the device `meta`: a shape, strides and a dtype, and no numbers.

They answer to the vocabulary as other kinds of array do. What a word gives follows from the shapes
of what it gets, so a model of any size can be made, and run, in no memory.

Note [What a word gives]
    Views are worked out by NumPy on a phantom, an array with the same strides over memory that is
    not there, which is never read. Element-wise words, reductions, products and a few others have a
    rule below; their dtype is what NumPy gives for arrays with one element. Any other word is run
    on one number, repeated: that takes the memory of its result, and is refused where it is large.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.device import device
from rushlight.arrays.host import NO_DATA, put_off
from rushlight.arrays.making import row_strides
from rushlight.arrays.vocabulary import Kind, register

META: Final = device("meta")
NO_ITEM: Final = "Tensor.item() cannot be called on meta tensors"
_LARGEST: Final = 1 << 26  # elements of what a word without a rule may be run on


def dense_strides(shape: tuple[int, ...], like: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Strides without gaps, the axes in the order of the strides `like`."""
    order = sorted(range(len(shape)), key=lambda d: -like[d])
    inner = row_strides(tuple(shape[d] for d in order), size)
    found = [0] * len(shape)
    for stride, d in zip(inner, order, strict=True):
        found[d] = stride
    return tuple(found)


def strides_of_view(x: Meta, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides in which an array, not empty, can be seen in another shape; None: it cannot."""
    runs: list[list[int]] = []  # axes that lie as one: how many elements, and how far apart
    for n, stride in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if runs and n != 1 and stride == runs[-1][0] * runs[-1][1]:
            runs[-1][0] *= n
        elif n != 1:
            runs.append([n, stride])
    if not runs:
        return row_strides(shape, x.itemsize)
    found: list[int] = []
    at, taken = 0, 1  # the run, and how many of its elements are used up
    for n in reversed(shape):
        if n == 1 and taken == 1 and at > 0:  # it belongs to the run that is used up
            found.append(runs[at - 1][0] * runs[at - 1][1])
            continue
        if at == len(runs):
            return None
        length, step = runs[at]
        found.append(step * taken)
        taken *= n
        if length % taken:
            return None
        if taken == length:
            at, taken = at + 1, 1
    return tuple(reversed(found))


class _Memory:
    """The memory behind arrays that share it: how long it would be."""

    __slots__ = ("__weakref__", "ptr", "size")

    def __init__(self, size: int) -> None:
        self.ptr = 0
        self.size = size


class _Place:
    """Where in its memory an array begins."""

    __slots__ = ("mem", "ptr")

    def __init__(self, mem: _Memory, ptr: int) -> None:
        self.mem = mem
        self.ptr = ptr

    def __add__(self, offset: int) -> _Place:
        return _Place(self.mem, self.ptr + offset)


class _Flags:
    """What NumPy's flags say, of a shape and its strides."""

    __slots__ = ("c_contiguous", "f_contiguous", "forc", "owndata", "writeable")

    def __init__(self, x: Meta) -> None:
        rows = _lies(x.shape, x.strides, x.itemsize)
        columns = _lies(x.shape[::-1], x.strides[::-1], x.itemsize)
        self.c_contiguous = rows
        self.f_contiguous = columns
        self.forc = rows or columns
        self.owndata = x.base is None
        self.writeable = True


def _lies(shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> bool:
    """Whether an array lies row by row; axes of one element lie anywhere."""
    if 0 in shape:
        return True
    want = size
    for n, stride in zip(reversed(shape), reversed(strides), strict=True):
        if n != 1 and stride != want:
            return False
        want *= n
    return True


class Meta(np.lib.mixins.NDArrayOperatorsMixin):
    """An array without numbers; see the head of this file."""

    __slots__ = ("__weakref__", "base", "data", "dtype", "shape", "strides")

    def __init__(
        self, shape: Any, dtype: Any, place: _Place | None = None, strides: Any = None,
        base: Meta | None = None,
    ) -> None:  # fmt: skip
        self.shape: tuple[int, ...] = tuple(shape)
        self.dtype = np.dtype(dtype)
        size = self.dtype.itemsize
        self.strides: tuple[int, ...] = (
            row_strides(self.shape, size) if strides is None else tuple(strides)
        )
        if place is None:
            reach = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
            place = _Place(_Memory(0 if 0 in self.shape else reach + size), 0)
        self.data = place
        self.base = base

    # --- what an array is asked ---------------------------------------------------------------
    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        n: int = self.dtype.itemsize
        return n

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def flags(self) -> _Flags:
        return _Flags(self)

    @property
    def device(self) -> device:
        return META

    @property
    def real(self) -> Any:
        return v.real(self)

    @property
    def imag(self) -> Any:
        return v.imag(self)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Meta({self.shape}, {self.dtype})"

    # --- views and copies ---------------------------------------------------------------------
    def seen(self, shape: Any, strides: Any, start: int, dtype: Any = None) -> Meta:
        """A view, `start` bytes behind the beginning."""
        root = self if self.base is None else self.base
        return Meta(shape, self.dtype if dtype is None else dtype, self.data + start, strides, root)

    def all_bytes(self) -> Meta:
        """All the memory behind the array, as a flat array of bytes."""
        root = self if self.base is None else self.base
        return root.seen((self.data.mem.size,), (1,), -root.data.ptr, np.uint8)

    def phantom(self) -> Any:
        """An array with these strides that is never read. See Note [What a word gives]."""
        whole = np.zeros(1, np.dtype((np.void, self.itemsize)))
        return np.lib.stride_tricks.as_strided(whole, self.shape, self.strides)

    def _like(self, view: Callable[[Any], Any]) -> Meta:
        """The view that a function makes of the phantom."""
        before = self.phantom()
        after = view(before)
        start = after.__array_interface__["data"][0] - before.__array_interface__["data"][0]
        return self.seen(after.shape, after.strides, start)

    def __getitem__(self, index: Any) -> Meta:
        parts = index if isinstance(index, tuple) else (index,)
        if any(p is Ellipsis for p in parts):
            return self._like(lambda x: x[parts])
        return self._like(lambda x: x[(*parts, ...)])  # or NumPy reads where nothing is left

    def __setitem__(self, index: Any, value: Any) -> None:
        """There is nothing to write."""

    def transpose(self, *axes: Any) -> Meta:
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return self._like(lambda x: x.transpose(*order) if order else x.T)

    def swapaxes(self, a: int, b: int) -> Meta:
        return self._like(lambda x: x.swapaxes(a, b))

    def reshape(self, *shape: Any, order: str = "C") -> Meta:
        want = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        want = (want,) if isinstance(want, int) else tuple(want)
        if -1 in want:
            known = math.prod(n for n in want if n != -1)
            want = tuple(self.size // known if n == -1 else n for n in want)
        if 0 in self.shape:
            return self.seen(want, row_strides(want, self.itemsize), 0)
        if order == "A" and not self.flags.c_contiguous and self.flags.f_contiguous:
            return self.transpose().reshape(want)
        if math.prod(want) != self.size:
            raise ValueError(f"cannot reshape array of size {self.size} into shape {want}")
        strides = strides_of_view(self, want)
        return Meta(want, self.dtype) if strides is None else self.seen(want, strides, 0)

    def view(self, dtype: Any = None) -> Meta:
        if dtype is None or np.dtype(dtype) == self.dtype:
            return self.seen(self.shape, self.strides, 0)
        size = np.dtype(dtype).itemsize
        if size == self.itemsize:
            return self.seen(self.shape, self.strides, 0, dtype)
        last = self.shape[-1] * self.itemsize // size
        return self.seen((*self.shape[:-1], last), (*self.strides[:-1], size), 0, dtype)

    def copy(self, order: str = "C") -> Meta:
        if order == "C":
            return Meta(self.shape, self.dtype)
        return self.astype(self.dtype)

    def astype(self, dtype: Any, copy: bool = True) -> Meta:
        raw = np.dtype(dtype)
        return Meta(self.shape, raw, None, dense_strides(self.shape, self.strides, raw.itemsize))

    def fill(self, value: Any) -> None:
        """There is nothing to write."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Meta:
        return Meta(self.shape, self.dtype, None, self.strides)

    # --- numbers, of which there are none -----------------------------------------------------
    def get(self, order: str = "C") -> Any:
        raise NotImplementedError(NO_DATA)

    def tolist(self) -> Any:
        raise NotImplementedError(NO_DATA)

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError(NO_DATA)

    def item(self) -> Any:
        raise RuntimeError(NO_ITEM)

    def _no_item(self) -> Any:
        raise RuntimeError(NO_ITEM)

    __bool__ = __int__ = __float__ = __complex__ = __index__ = _no_item
    __hash__ = object.__hash__

    # --- element by element -------------------------------------------------------------------
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if any(put_off(x) for x in inputs):
            return NotImplemented  # it answers itself
        target = options.pop("out", None)
        if method != "__call__":
            raise NotImplementedError(f"no meta arrays for {ufunc.__name__}.{method}")
        if ufunc is np.matmul:
            made: Any = _product(*inputs)
        else:
            with np.errstate(all="ignore"):
                small = ufunc(*[_one_element(x) for x in inputs], **options)
            shape = np.broadcast_shapes(*[np.shape(x) if not _is(x) else x.shape for x in inputs])
            parts = small if isinstance(small, tuple) else (small,)
            found = tuple(_laid_out(shape, np.asarray(p).dtype, inputs) for p in parts)
            made = found if isinstance(small, tuple) else found[0]
        return made if target is None else target[0]

    def __array_function__(self, fn: Any, types: Any, args: Any, options: Any) -> Any:
        name = fn.__name__
        if name in ("empty_like", "zeros_like", "ones_like", "full_like"):
            dtype = options.get("dtype") or self.dtype
            shape = options.get("shape")
            return Meta(self.shape if shape is None else _sizes(shape), dtype)
        if name == "broadcast_to":
            return broadcast(*args)
        if name == "shape":
            return self.shape
        if name == "copyto":
            return None
        return _run_on_ones(fn, args, options)


def _is(x: Any) -> bool:
    return isinstance(x, Meta)


def _is_mask(x: Any) -> bool:
    return isinstance(x, Meta) and x.dtype.kind == "b"


def _sizes(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _one_element(x: Any) -> Any:
    return np.ones((1,) * x.ndim, x.dtype) if isinstance(x, Meta) else (
        x.reshape(-1)[:1].reshape((1,) * x.ndim) if isinstance(x, np.ndarray) and x.size else x
    )  # fmt: skip


def _laid_out(shape: tuple[int, ...], dtype: Any, inputs: Any) -> Meta:
    """A result in the order of the first operand of its shape that does not lie row by row."""
    for x in inputs:
        if isinstance(x, Meta) and x.shape == shape and not x.flags.c_contiguous:
            return Meta(shape, dtype, None, dense_strides(shape, x.strides, dtype.itemsize))
    return Meta(shape, dtype)


def _product(a: Any, b: Any) -> Meta:
    """What `matmul` gives."""
    dtype = np.result_type(a.dtype, b.dtype)
    rows, columns = a.shape[-2:-1], b.shape[-1:] if b.ndim > 1 else ()
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise ValueError(f"matmul: shapes {a.shape} and {b.shape} do not fit")
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return Meta((*lead, *rows, *columns), dtype)


def broadcast(x: Any, shape: tuple[int, ...]) -> Meta:
    """A view of a larger shape."""
    found: Meta = x._like(lambda p: np.broadcast_to(p, shape))
    return found


# --- words ----------------------------------------------------------------------------------------
_rules: Final[dict[str, Callable[..., Any]]] = {}
_REDUCES: Final = frozenset(
    "reduce_sum product reduce_max reduce_min reduce_any reduce_all deviations".split()
)
_WRITES: Final = frozenset("overwrite store store_add store_along".split())
_KEEPS_SHAPE: Final = frozenset("flip roll triangle".split())
_KEEPS_SIZES: Final = frozenset("cumsum cumprod running special polygamma".split())
_BY_NUMBERS: Final = frozenset("nonzero unique bincount".split())  # shapes follow from the numbers
_AS_ON_CUDA: Final = frozenset(  # written in methods of arrays, which these have too
    "contiguous laid_out reshape permute swap turned window bits conjugated negated".split()
)


def _rule(fn: Callable[..., Any]) -> Callable[..., Any]:
    _rules[fn.__name__.removesuffix("_word")] = fn
    return fn


@_rule
def full(like: Any, shape: Any, value: Any, dtype: Any) -> Meta:
    return Meta(shape, dtype)


@_rule
def empty(like: Any, shape: Any, dtype: Any) -> Meta:
    return Meta(shape, dtype)


@_rule
def empty_as(like: Any, dtype: Any) -> Meta:
    found: Meta = like.astype(dtype)
    return found


@_rule
def iota(like: Any, n: int, dtype: Any) -> Meta:
    return Meta((n,), dtype)


@_rule
def constant(like: Any, value: Any, dtype: Any) -> Meta:
    return Meta(np.shape(value), dtype)


@_rule
def cast(x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else x.astype(dtype)


@_rule
def copy(x: Any) -> Meta:
    found: Meta = x.copy("K")
    return found


@_rule
def broadcast_word(x: Any, shape: tuple[int, ...]) -> Meta:
    return broadcast(x, shape)


@_rule
def unsqueezed(x: Any, dim: int) -> Meta:
    at = x.ndim + 1 + dim
    step = x.shape[at] * x.strides[at] if at < x.ndim else x.itemsize
    found: Meta = x.seen(
        (*x.shape[:at], 1, *x.shape[at:]), (*x.strides[:at], step, *x.strides[at:]), 0
    )
    return found


@_rule
def strided(x: Any, shape: Any, strides: Any, offset: int) -> Meta:
    steps = tuple(s * x.itemsize for s in strides)
    found: Meta = x.seen(shape, steps, offset * x.itemsize - x.data.ptr)
    return found


@_rule
def windows(x: Any, axis: int, size: int, step: int) -> Meta:
    axis %= x.ndim
    shape, strides = [*x.shape, size], [*x.strides, x.strides[axis]]
    shape[axis] = (x.shape[axis] - size) // step + 1
    strides[axis] *= step
    found: Meta = x.seen(shape, strides, 0)
    return found


@_rule
def diagonal(x: Any, offset: int, a: int, b: int) -> Meta:
    found: Meta = x._like(lambda p: p.diagonal(offset, a, b))
    return found


def _part(x: Any, start: int) -> Meta:
    if x.dtype.kind not in "cW":
        found: Meta = x.seen(x.shape, x.strides, 0) if start == 0 else Meta(x.shape, x.dtype)
        return found
    half = v.real(np.ones(1, x.dtype)).dtype
    part: Meta = x.seen(x.shape, x.strides, start * half.itemsize, half)
    return part


@_rule
def real(x: Any) -> Meta:
    return _part(x, 0)


@_rule
def imag(x: Any) -> Meta:
    return _part(x, 1)


@_rule
def as_pairs(x: Any) -> Meta:
    half = v.real(np.ones(1, x.dtype)).dtype
    found: Meta = x.seen((*x.shape, 2), (*x.strides, half.itemsize), 0, half)
    return found


@_rule
def as_complex(x: Any) -> Meta:
    whole = v.as_complex(np.ones(2, x.dtype)).dtype
    found: Meta = x.seen(x.shape[:-1], x.strides[:-1], 0, whole)
    return found


@_rule
def concat(xs: Any, axis: int) -> Meta:
    first = xs[0]
    shape = list(first.shape)
    shape[axis] = sum(x.shape[axis] for x in xs)
    return Meta(shape, np.result_type(*[x.dtype for x in xs]))


@_rule
def where(condition: Any, a: Any, b: Any) -> Meta:
    small = v.where(*[_one_element(x) for x in (condition, a, b)])
    shape = np.broadcast_shapes(*[x.shape if _is(x) else np.shape(x) for x in (condition, a, b)])
    return Meta(shape, small.dtype)


@_rule
def gather(x: Any, axis: int, index: Any) -> Meta:
    return Meta(index.shape, x.dtype)


@_rule
def narrow_matmul(a: Any, b: Any) -> Meta:
    return _product(a, b)


def _reduced(fn: Callable[..., Any], x: Any, axes: Any, keep: bool) -> Any:
    small = fn(np.ones((1,) * x.ndim, x.dtype), axes, True)
    gone = range(x.ndim) if axes is None else axes
    gone = {d % x.ndim for d in ((gone,) if isinstance(gone, int) else gone)}
    if keep:
        shape = [1 if d in gone else n for d, n in enumerate(x.shape)]
    else:
        shape = [n for d, n in enumerate(x.shape) if d not in gone]
    return Meta(shape, np.asarray(small).dtype)


def _run_on_ones(fn: Callable[..., Any], args: Any, options: Any) -> Any:
    """What a word gives, found by running it. See Note [What a word gives]."""

    def filled(x: Any) -> Any:
        if isinstance(x, Meta):
            if x.size > _LARGEST:
                raise NotImplementedError(
                    f"{fn.__name__}: attempted to run this operator with Meta tensors, but there "
                    "was no fake impl or Meta kernel registered, and they are too large to try"
                )
            one = np.zeros((), x.dtype) if x.dtype.kind in "iub" else np.ones((), x.dtype)
            return np.broadcast_to(one, x.shape).copy()
        if isinstance(x, list | tuple):
            return type(x)([filled(y) for y in x])
        return x

    with np.errstate(all="ignore"):
        found = fn(*[filled(a) for a in args], **options)
    return _without_numbers(found)


def _without_numbers(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(_without_numbers(y) for y in x)
    if isinstance(x, np.ndarray | np.generic):
        return Meta(x.shape, x.dtype, None, x.strides if x.size else None)
    return x


def answers_by_rule(name: str) -> bool:
    """Whether what a word gives follows from shapes, so that it need not be run."""
    known = _REDUCES | _WRITES | _KEEPS_SHAPE | _KEEPS_SIZES | _AS_ON_CUDA
    return name in _rules or name in known


def _answer(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    rule = _rules.get(name)
    if rule is not None:
        return rule(*args)
    if name in _WRITES:
        target = args[0]
        if not isinstance(target, Meta):
            raise NotImplementedError(NO_DATA)
        return None
    if name in _REDUCES or name in ("argmax", "argmin"):
        return _reduced(fn, *args)
    if name in _AS_ON_CUDA:
        return fn(*args)
    if name in _KEEPS_SHAPE:
        return Meta(args[0].shape, args[0].dtype)
    if name in _KEEPS_SIZES:
        small = np.asarray(fn(*[_one_element(a) for a in args]))
        shapes = [a.shape for a in args if hasattr(a, "shape")]
        return Meta(np.broadcast_shapes(*shapes), small.dtype)
    if name == "moved":
        return fn(*args)
    if name in _BY_NUMBERS or (name == "pick" and any(_is_mask(a) for a in args[2:])):
        raise NotImplementedError(
            f"The register_meta function for torch.{name}() raises unimplemented by default, as a "
            "correct data-independent implementation does not exist: how many there are is told by "
            "numbers, of which a tensor on the device meta has none."
        )
    return _run_on_ones(fn, args, {})


register(Meta, Kind(6, _answer))
