"""A batched array: one array that stands for many, of which the code that runs sees one.

`vmap` puts these at the bottom of tensors. `inside` is an array of any kind (NumPy's, CuPy's, a
tensor, or another batched array), whose first axis, the batch, is hidden from whoever asks for
`shape`; if not `hidden`, all members of the batch share `inside` as it is. Every word of the
vocabulary has its rule here, so each op and each derivative rule runs on batches without knowing.
Ops that can do better than their words say so themselves (`Op.align`).

Note [Which level]
    A batch belongs to a level, one `vmap` in progress, and levels opened later have larger depths.
    A word works at the deepest level among its arrays; others are shared by that level's batch.

Note [Memory to write into]
    What a word makes anew may be written into by the op that asked for it, so `full`, `empty`,
    `copy` and their like give each member of the batch its own, even where all are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import address
from rushlight.arrays.kinds import Kind, register, words

__all__ = [
    "Batched", "bottom", "deepest", "insert_axes", "joined", "lacks", "members", "numbers",
    "with_batch",
]  # fmt: skip

_ALL: Final = slice(None)
_rules: Final[dict[str, Callable[..., Any]]] = {}

CONTROL_FLOW: Final = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. "
    "We don't support that yet, please file an issue at "
    "https://github.com/pytorch/pytorch/issues .\n"
    "Under vmap a tensor has many values at once: choose with `torch.where(condition, a, b)`."
)
ITEM: Final = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error "
    "is occurring somewhere inside PyTorch internals, please file a bug report."
)
NO_STORAGE: Final = "Cannot access data pointer of Tensor that doesn't have storage"
NO_MEMORY: Final = "Cannot access storage of BatchedTensorImpl"
INPLACE: Final = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor "
    "`other` in extra_args that has more elements than `self`. This happened due to `other` being "
    "vmapped over but `self` not being vmapped over in a vmap. Please try to use out-of-place "
    "operators instead of inplace arithmetic. If said operator is being called inside the PyTorch "
    "framework, please file a bug report instead.\n"
    "A tensor to write into can be made batched too: `x.new_zeros(...)`, with x one of the batch."
)


ESCAPED: Final = (
    "Either your tensor may have escaped from inside a function being vmapped and this is a user "
    "error (see https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal "
    "functorch error in `gen_vmap_plumbing` Please file an issue if it looks like the latter\n"
    "A tensor of a batch was used after its vmap had ended: return it from the function instead of "
    "keeping it elsewhere."
)


def bottom(x: Any) -> Any:
    """The raw array behind an array or tensor: what its dtype and strides are asked of."""
    while not isinstance(x, np.ndarray):
        if type(x) is Batched:
            x = x.inside
        elif hasattr(x, "memory"):  # a tensor
            x = x.array
        else:
            break
    return x


def outer(x: Any) -> Any:
    """The array of a tensor; an array as it is."""
    return x.array if hasattr(x, "memory") else x


def numbers(x: Any) -> Any:
    """An array without the histories of tensors that may stand inside it: for what is computed
    without derivatives, or by words that tensors have no answer to."""
    if type(x) is not Batched:
        return x
    return Batched(numbers(outer(x.inside)), x.level, x.hidden)


class Place:
    """The address of a batched array: that of its first member, for comparisons of two views."""

    __slots__ = ("ptr",)

    def __init__(self, array: Any) -> None:
        self.ptr = address(bottom(array))

    @property
    def mem(self) -> Any:
        raise NotImplementedError(NO_MEMORY)


class Batched:
    """Many arrays of one shape and dtype as one; see the head of this file."""

    __slots__ = ("_dtype", "hidden", "inside", "level")

    def __init__(self, inside: Any, level: Any, hidden: bool = True) -> None:
        self.inside = inside
        self.level = level
        self.hidden = hidden
        self._dtype: Any = None

    # --- what an array is asked ---------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        shape = tuple(self.inside.shape)
        return shape[1:] if self.hidden else shape

    @property
    def ndim(self) -> int:
        rank: int = self.inside.ndim
        return rank - 1 if self.hidden else rank

    @property
    def dtype(self) -> Any:
        found = self._dtype  # asked for again and again
        if found is None:
            found = self._dtype = bottom(self.inside).dtype
        return found

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        n: int = self.dtype.itemsize
        return self.size * n

    @property
    def strides(self) -> tuple[int, ...]:
        array = outer(self.inside)
        strides: tuple[int, ...] = array.strides
        if not self.hidden:
            return strides
        if array.shape[0] == 0:  # NumPy's strides of nothing are 0
            strides = np.empty((1, *array.shape[1:]), self.dtype).strides
        return strides[1:]

    @property
    def base(self) -> None:
        """Never another batched array: who shares memory is known to the arrays inside."""

    @property
    def flags(self) -> Any:
        """Of one member."""
        array = outer(self.inside)
        if self.hidden and not isinstance(array, Batched):
            array = array[0] if array.shape[0] else np.empty(array.shape[1:], array.dtype)
        return array.flags

    @property
    def itemsize(self) -> int:
        n: int = self.dtype.itemsize
        return n

    @property
    def device(self) -> Any:
        return bottom(self).device

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        return v.cast(self, np.dtype(dtype))

    def copy(self, order: str = "K") -> Any:
        return v.copy(self)

    def fill(self, value: Any) -> None:
        v.overwrite(self, v.constant(self, value, self.dtype))

    def __repr__(self) -> str:
        return f"Batched({self.inside!r}, hidden={self.hidden})"

    def __len__(self) -> int:
        return self.shape[0]

    # --- what a batch cannot say, unless all members share it -----------------------------------
    def told(self, how: Callable[[Any], Any], error: str) -> Any:
        """What an array that all members share says; the error for one that has many values."""
        if self.hidden:
            raise RuntimeError(error)
        return how(outer(self.inside))

    def __bool__(self) -> bool:
        return bool(self.told(bool, CONTROL_FLOW))

    def item(self) -> Any:
        return self.told(lambda x: x.item(), ITEM)

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def tolist(self) -> Any:
        return self.told(lambda x: x.tolist(), NO_STORAGE)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(NO_STORAGE)

    def get(self, *args: Any, **kwargs: Any) -> Any:
        """What CuPy calls the way to the host's memory."""
        raise RuntimeError(NO_STORAGE)

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(NO_STORAGE)

    @property
    def data(self) -> Place:
        """Where the memory is, as CuPy's arrays say it."""
        return Place(self)

    @property
    def __array_interface__(self) -> Any:
        raise RuntimeError(NO_STORAGE)

    # --- operators ----------------------------------------------------------------------------
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or any(hasattr(x, "memory") for x in inputs):
            return NotImplemented  # a tensor answers for the arrays beside it
        return matmul(*inputs) if ufunc is np.matmul else elementwise(ufunc, inputs)

    def __add__(self, other: Any) -> Any:
        return pair(v.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return pair(v.add, other, self)

    def __sub__(self, other: Any) -> Any:
        return pair(v.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return pair(v.subtract, other, self)

    def __mul__(self, other: Any) -> Any:
        return pair(v.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return pair(v.multiply, other, self)

    def __truediv__(self, other: Any) -> Any:
        return pair(v.divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return pair(v.divide, other, self)

    def __floordiv__(self, other: Any) -> Any:
        return pair(v.floor_divide, self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return pair(v.floor_divide, other, self)

    def __mod__(self, other: Any) -> Any:
        return pair(v.remainder, self, other)

    def __rmod__(self, other: Any) -> Any:
        return pair(v.remainder, other, self)

    def __pow__(self, other: Any) -> Any:
        return pair(v.power, self, other)

    def __rpow__(self, other: Any) -> Any:
        return pair(v.power, other, self)

    def __and__(self, other: Any) -> Any:
        return pair(v.bitwise_and, self, other)

    def __rand__(self, other: Any) -> Any:
        return pair(v.bitwise_and, other, self)

    def __or__(self, other: Any) -> Any:
        return pair(v.bitwise_or, self, other)

    def __ror__(self, other: Any) -> Any:
        return pair(v.bitwise_or, other, self)

    def __xor__(self, other: Any) -> Any:
        return pair(v.bitwise_xor, self, other)

    def __rxor__(self, other: Any) -> Any:
        return pair(v.bitwise_xor, other, self)

    def __lshift__(self, other: Any) -> Any:
        return pair(v.left_shift, self, other)

    def __rlshift__(self, other: Any) -> Any:
        return pair(v.left_shift, other, self)

    def __rshift__(self, other: Any) -> Any:
        return pair(v.right_shift, self, other)

    def __rrshift__(self, other: Any) -> Any:
        return pair(v.right_shift, other, self)

    def __lt__(self, other: Any) -> Any:
        return pair(v.less, self, other)

    def __le__(self, other: Any) -> Any:
        return pair(v.less_equal, self, other)

    def __gt__(self, other: Any) -> Any:
        return pair(v.greater, self, other)

    def __ge__(self, other: Any) -> Any:
        return pair(v.greater_equal, self, other)

    def __eq__(self, other: Any) -> Any:
        return pair(v.equal, self, other)

    def __ne__(self, other: Any) -> Any:
        return pair(v.not_equal, self, other)

    def __neg__(self) -> Any:
        return elementwise(v.negative, (self,))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return elementwise(v.absolute, (self,))

    def __invert__(self) -> Any:
        return elementwise(v.invert, (self,))

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self)

    __hash__ = object.__hash__


# --- taking batches apart -------------------------------------------------------------------------
def deepest(xs: Any) -> Any:
    """The deepest level among arrays (and lists of them), or None. See Note [Which level]."""
    level: Any = None
    for x in xs:
        found: Any = None
        if type(x) is Batched:
            found = x.level
        elif type(x) is list:
            found = deepest(x)
        if found is not None and (level is None or found.depth > level.depth):
            if not found.alive:
                raise RuntimeError(ESCAPED)
            level = found
    return level


def members(x: Any, level: Any) -> tuple[Any, bool]:
    """What stands for `x` beneath `level`, and whether its first axis is that level's batch."""
    if type(x) is Batched and x.level is level:
        return x.inside, x.hidden
    return x, False


def insert_axes(x: Any, count: int) -> Any:
    """New axes of size 1 behind the batch."""
    return v.window(x, (_ALL, *[None] * count)) if count > 0 else x


def with_batch(x: Any, level: Any, like: Any = None) -> Any:
    """`x` beneath the level, with a batch axis in front. `like` is an array to take a number to."""
    inside, hidden = members(x, level)
    if hidden:
        return inside
    if not hasattr(inside, "shape"):
        inside = v.constant(like, inside, bottom(like).dtype)
    return v.broadcast(inside, (level.size, *inside.shape))


def lacks(x: Any, other: Any) -> bool:
    """Whether `other` could not be written into `x`, for want of a batch, at any depth: one that
    `x` does not belong to, or that shares `x` where `other` differs from member to member."""
    mine: Any = x
    while type(other) is Batched:
        while type(mine) is Batched and mine.level is not other.level:
            mine = outer(mine.inside)
        if type(mine) is not Batched or (other.hidden and not mine.hidden):
            return True
        other = outer(other.inside)
    return False


def joined(x: Any, other: Any) -> Any:
    """`x` with a member for each batch that `other` belongs to, so that `other` can be written into
    it: in memory of its own, if it had none."""
    return x + v.full(other, (), 0, bottom(x).dtype) if lacks(x, other) else x


def rank_of(x: Any) -> int:
    """How many axes an array has, or a number."""
    rank: int = getattr(x, "ndim", 0)
    return rank


def wrapped(y: Any, level: Any, hidden: bool) -> Any:
    """What a word gave beneath the level, as that level sees it."""
    if y is None:
        return None
    if isinstance(y, tuple):
        return tuple([wrapped(part, level, hidden) for part in y])
    if isinstance(y, np.generic):
        y = np.asarray(y)
    return Batched(y, level, hidden)


def elementwise(fn: Any, xs: Any) -> Any:
    """A function of elements: hidden batches line up, whatever the members' ranks."""
    level = deepest(xs)
    rank = 0
    some = False
    parts: list[Any] = []
    for x in xs:
        inside, hidden = members(x, level)
        k = rank_of(inside)
        if hidden:
            some = True
            k -= 1
        rank = max(rank, k)
        parts.append((inside, hidden, k))
    ready = [insert_axes(x, rank - k) if hidden else x for x, hidden, k in parts]
    return wrapped(fn(*ready), level, some)


def pair(fn: Any, a: Any, b: Any) -> Any:
    """An operator. A tensor answers for the array beside it."""
    if hasattr(a, "memory") or hasattr(b, "memory"):
        return NotImplemented
    return elementwise(fn, (a, b))


# --- the words' rules -----------------------------------------------------------------------------
def rule(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function the rule of the word of its name. It is called with the word, the level and
    the word's arguments."""
    name = fn.__name__.strip("_")
    if name not in words:
        raise ValueError(f"{name!r} is no word of the vocabulary")
    _rules[name] = fn
    return fn


# Words that no op on tensors answers to: ops without derivatives use them.
_UNRECORDED: Final = frozenset(
    ("bincount", "frexp", "householder_qr", "least_squares", "lu", "row_order", "searchsorted")
)


def _answer(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    level = deepest(args)
    if name in _UNRECORDED:
        args = tuple([numbers(x) for x in args])
    return _rules[name](words[name], level, *args)


register(Batched, Kind(9, _answer))


def _same(word: Any, level: Any, x: Any, *args: Any) -> Any:
    """Words that leave leading axes alone: the batch is one more of them."""
    inside, hidden = members(x, level)
    return wrapped(word(inside, *args), level, hidden)


for _name in (
    "cast", "moved", "contiguous", "real", "imag", "as_pairs", "as_complex", "frexp", "polygamma",
    "bits", "turned", "unsqueezed", "triangle", "cholesky", "inv", "det", "slogdet", "cofactors",
    "eigh", "eig", "svd", "householder_qr", "lu", "row_order", "pinv",
):  # fmt: skip
    _rules[_name] = _same


def _elements(word: Any, level: Any, *xs: Any) -> Any:
    return elementwise(word, xs)


_rules["where"] = _elements


@rule
def complex_of(word: Any, level: Any, re: Any, im: Any) -> Any:
    return Batched(word(with_batch(re, level), with_batch(im, level)), level)


def _dynamic(word: Any, level: Any, *args: Any) -> Any:
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to "
        f"vmap over aten::{word.__name__}. Please file an issue at "
        "https://github.com/pytorch/pytorch/issues if you need this feature."
    )


for _name in ("nonzero", "unique"):
    _rules[_name] = _dynamic


@rule
def bincount(word: Any, level: Any, x: Any, weights: Any, least: int) -> Any:
    places = with_batch(x, level)
    extra = None if weights is None else with_batch(weights, level)
    found = [
        word(v.window(places, (i,)), None if extra is None else v.window(extra, (i,)), least)
        for i in range(level.size)
    ]
    if not found:
        kind = np.dtype(np.int64) if extra is None else bottom(extra).dtype
        return Batched(v.full(places, (0, least), 0, kind), level)
    if any(y.shape != (least,) for y in found):  # how long it is depends on the values
        _dynamic(word, level)
    return Batched(v.concat([v.window(y, (None,)) for y in found], 0), level)


@rule
def special(word: Any, level: Any, x: Any, name: str, *others: Any) -> Any:
    return elementwise(lambda x, *others: word(x, name, *others), (x, *others))


@rule
def qr(word: Any, level: Any, x: Any, mode: str) -> Any:
    inside, hidden = members(x, level)
    q, r = word(inside, mode)
    return wrapped(q, level, hidden and mode != "r"), wrapped(r, level, hidden)


def _matrices(word: Any, level: Any, a: Any, b: Any, *args: Any) -> Any:
    """Words of two batches of matrices that broadcast."""
    left, right = with_batch(a, level), with_batch(b, level)
    rank = max(left.ndim, right.ndim)
    left, right = insert_axes(left, rank - left.ndim), insert_axes(right, rank - right.ndim)
    return wrapped(word(left, right, *args), level, True)


for _name in ("solve", "solve_triangular", "least_squares"):
    _rules[_name] = _matrices


# --- making: see Note [Memory to write into] ------------------------------------------------------
@rule
def full(word: Any, level: Any, like: Any, shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
    inside, hidden = members(like, level)
    return Batched(
        word(inside, (level.size, *shape) if hidden else shape, value, dtype), level, hidden
    )


@rule
def empty(word: Any, level: Any, like: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    inside, hidden = members(like, level)
    return Batched(word(inside, (level.size, *shape) if hidden else shape, dtype), level, hidden)


@rule
def empty_as(word: Any, level: Any, like: Any, dtype: Any) -> Any:
    inside, hidden = members(like, level)
    return Batched(word(inside, dtype), level, hidden)


@rule
def iota(word: Any, level: Any, like: Any, n: int, dtype: Any) -> Any:
    inside, _ = members(like, level)
    return Batched(word(inside, n, dtype), level, False)


@rule
def constant(word: Any, level: Any, like: Any, value: Any, dtype: Any) -> Any:
    inside, _ = members(like, level)
    return Batched(word(inside, value, dtype), level, False)


@rule
def copy(word: Any, level: Any, x: Any) -> Any:
    return Batched(word(with_batch(x, level)), level)


@rule
def laid_out(word: Any, level: Any, x: Any, order: tuple[int, ...] | None) -> Any:
    inside = with_batch(x, level)
    below = None if order is None else (0, *[d + 1 for d in order])
    return Batched(word(inside, below), level)


# --- shapes ---------------------------------------------------------------------------------------
def _axis(d: int, rank: int) -> int:
    """An axis counted from the end, where the batch changes nothing."""
    return d if d < 0 else d - rank


@rule
def reshape(word: Any, level: Any, x: Any, shape: tuple[int, ...]) -> Any:
    inside, hidden = members(x, level)
    if not hidden:
        return Batched(word(inside, shape), level, False)
    if -1 in shape:
        known = -math.prod(shape)
        shape = tuple([x.size // known if n == -1 else n for n in shape])
    return Batched(word(inside, (level.size, *shape)), level)


@rule
def permute(word: Any, level: Any, x: Any, axes: tuple[int, ...]) -> Any:
    inside, hidden = members(x, level)
    if hidden:
        axes = (0, *[d % x.ndim + 1 for d in axes])
    return Batched(word(inside, axes), level, hidden)


@rule
def swap(word: Any, level: Any, x: Any, a: int, b: int) -> Any:
    inside, hidden = members(x, level)
    return Batched(word(inside, _axis(a, x.ndim), _axis(b, x.ndim)), level, hidden)


@rule
def broadcast(word: Any, level: Any, x: Any, shape: tuple[int, ...]) -> Any:
    inside, hidden = members(x, level)
    if hidden:
        inside = insert_axes(inside, len(shape) - x.ndim)
        shape = (level.size, *shape)
    return Batched(word(inside, shape), level, hidden)


@rule
def window(word: Any, level: Any, x: Any, index: Any) -> Any:
    inside, hidden = members(x, level)
    if hidden:
        index = (_ALL, *(index if isinstance(index, tuple) else (index,)))
    return wrapped(word(inside, index), level, hidden)


@rule
def diagonal(word: Any, level: Any, x: Any, offset: int, a: int, b: int) -> Any:
    inside, hidden = members(x, level)
    return Batched(word(inside, offset, _axis(a, x.ndim), _axis(b, x.ndim)), level, hidden)


@rule
def windows(word: Any, level: Any, x: Any, axis: int, size: int, step: int) -> Any:
    inside, hidden = members(x, level)
    return Batched(word(inside, _axis(axis, x.ndim), size, step), level, hidden)


def _span(shape: Any, inside: Any, other: Any, strides: Any, start: int) -> int:
    """How many elements of memory one member of a strided view may touch."""
    reach = sum((n - 1) * s for n, s in zip(shape, inside, strict=True) if n)
    there = start + sum((n - 1) * s for n, s in zip(other, strides, strict=True) if n)
    return int(max(reach, there, 0) + 1 + max(-start, 0))


@rule
def strided(word: Any, level: Any, x: Any, shape: Any, strides: Any, offset: int) -> Any:
    raise NotImplementedError("a batched array has no memory of its own to stride over")


@rule
def restrided(
    word: Any, level: Any, x: Any, shape: Any, strides: Any, start: int, inside: Any
) -> Any:
    array, hidden = members(x, level)
    if not hidden:
        return Batched(word(array, shape, strides, start, inside), level, False)
    size = x.dtype.itemsize
    step = outer(array).strides[0] // size
    if tuple(s // size for s in x.strides) != tuple(inside):
        step = _span(x.shape, inside, shape, strides, start)
    below = word(array, (level.size, *shape), (step, *strides), start, (step, *inside))
    return Batched(below, level)


@rule
def unstrided(
    word: Any, level: Any, g: Any, shape: Any, strides: Any, start: int, inside: Any
) -> Any:
    array, hidden = members(g, level)
    if hidden:
        step = _span(shape, inside, g.shape, strides, start)
        shape, strides, inside = (level.size, *shape), (step, *strides), (step, *inside)
    return Batched(word(array, shape, strides, start, inside), level, hidden)


@rule
def concat(word: Any, level: Any, xs: list[Any], axis: int) -> Any:
    rank = xs[0].ndim
    hidden = any(members(x, level)[1] for x in xs)
    parts = [with_batch(x, level) if hidden else members(x, level)[0] for x in xs]
    return Batched(word(parts, _axis(axis, rank)), level, hidden)


@rule
def pad(word: Any, level: Any, x: Any, widths: Any, value: Any) -> Any:
    inside, hidden = members(x, level)
    return Batched(word(inside, ((0, 0), *widths) if hidden else widths, value), level, hidden)


@rule
def flip(word: Any, level: Any, x: Any, axes: Any) -> Any:
    inside, hidden = members(x, level)
    axes = range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    return Batched(word(inside, tuple([_axis(d, x.ndim) for d in axes])), level, hidden)


@rule
def roll(word: Any, level: Any, x: Any, shifts: Any, axes: Any) -> Any:
    inside, hidden = members(x, level)
    if axes is None:
        flat = reshape(v.reshape, level, x, (x.size,))
        return v.reshape(roll(word, level, flat, shifts, (-1,)), x.shape)
    axes = (axes,) if isinstance(axes, int) else axes
    return Batched(word(inside, shifts, tuple([_axis(d, x.ndim) for d in axes])), level, hidden)


@rule
def tile(word: Any, level: Any, x: Any, repeats: tuple[int, ...]) -> Any:
    inside, hidden = members(x, level)
    if hidden:
        inside = insert_axes(inside, len(repeats) - x.ndim)
        repeats = (1,) * (inside.ndim - len(repeats)) + tuple(repeats)
    return Batched(word(inside, repeats), level, hidden)


# --- along axes -----------------------------------------------------------------------------------
def _reduction(word: Any, level: Any, x: Any, axes: Any, keep: bool) -> Any:
    inside, hidden = members(x, level)
    if not hidden:
        return wrapped(word(inside, axes, keep), level, False)
    rank = x.ndim
    if rank == 0:  # one element each; the word may still change the dtype
        return Batched(word(insert_axes(inside, 1), (-1,), False), level)
    if axes is None:
        axes = range(-rank, 0)
    elif isinstance(axes, int):
        axes = (axes,)
    return Batched(word(inside, tuple([_axis(d, rank) for d in axes]), keep), level)


for _name in ("total", "product", "largest", "smallest", "anything", "everything"):
    _rules[_name] = _reduction


def _place(word: Any, level: Any, x: Any, axis: int | None, keep: bool) -> Any:
    inside, hidden = members(x, level)
    if not hidden:
        return wrapped(word(inside, axis, keep), level, False)
    rank = x.ndim
    if axis is not None and rank:
        return Batched(word(inside, _axis(axis, rank), keep), level)
    flat = v.reshape(inside, (level.size, x.size))
    return Batched(
        v.reshape(word(flat, -1, False), (level.size, *([1] * rank if keep else ()))), level
    )


for _name in ("argmax", "argmin"):
    _rules[_name] = _place


def _along_axis(word: Any, level: Any, x: Any, axis: int, *args: Any) -> Any:
    """Words that work along one axis and keep the shape."""
    inside, hidden = members(x, level)
    if not hidden:
        return wrapped(word(inside, axis, *args), level, False)
    if x.ndim == 0:
        return Batched(v.window(word(insert_axes(inside, 1), -1, *args), (_ALL, 0)), level)
    return Batched(word(inside, _axis(axis, x.ndim), *args), level)


for _name in ("cumsum", "cumprod", "running", "sort", "fourier"):
    _rules[_name] = _along_axis


# --- products -------------------------------------------------------------------------------------
def matmul(a: Any, b: Any, word: Any = v.matmul) -> Any:
    """`matmul` of vectors, matrices and stacks of matrices, of which one or both are batched."""
    level = deepest((a, b))
    left, many = members(a, level)
    right, several = members(b, level)
    if hasattr(left, "memory") != hasattr(right, "memory"):
        word = v.narrow_matmul  # the same, and the tensor answers: CuPy's `matmul` leaves it no say
    m, n = rank_of(left) - many, rank_of(right) - several
    if not several and n <= 2 and (many or m <= 2):
        if many and m == 2 and n == 2:  # one product of tall matrices instead of many of small ones
            rows = v.reshape(left, (level.size * left.shape[1], left.shape[2]))
            out = v.reshape(word(rows, right), (level.size, left.shape[1], right.shape[-1]))
            return wrapped(out, level, True)
        return wrapped(word(left, right), level, many)
    if not many and m <= 2 and several:
        if n == 1:
            return wrapped(word(right, v.swap(left, -1, -2) if m == 2 else left), level, True)
        return wrapped(word(left, right), level, True)
    # in general: all are stacks of matrices, with the batch in front
    left, right = with_batch(a, level), with_batch(b, level)
    if m == 1:
        left = insert_axes(left, 1)
    if n == 1:
        right = v.window(right, (..., None))
    rank = max(left.ndim, right.ndim)
    left, right = insert_axes(left, rank - left.ndim), insert_axes(right, rank - right.ndim)
    out = word(left, right)
    if n == 1:
        out = v.window(out, (..., 0))
    if m == 1:
        out = v.window(out, (..., 0) if n == 1 else (..., 0, _ALL))
    return wrapped(out, level, True)


@rule
def narrow_matmul(word: Any, level: Any, a: Any, b: Any) -> Any:
    return matmul(a, b, word)


# --- gathering and scattering along an axis -------------------------------------------------------
def _at_least(x: Any, rank: int) -> Any:
    """With a batch in front, and at least one axis behind it if `rank` is 0."""
    return insert_axes(x, 1) if rank == 0 else x


@rule
def gather(word: Any, level: Any, x: Any, axis: int, index: Any) -> Any:
    shape, rank = index.shape, rank_of(x)
    where, source = with_batch(index, level), with_batch(x, level)
    if rank == 0:
        source = insert_axes(source, 1)
        where = v.reshape(where, (level.size, index.size))
        axis = -1
    out = word(source, _axis(axis, max(rank, 1)), where)
    return Batched(v.reshape(out, (level.size, *shape)) if rank == 0 else out, level)


@rule
def ungather(word: Any, level: Any, g: Any, shape: Any, axis: int, index: Any) -> Any:
    where, source = with_batch(index, level), with_batch(g, level)
    rank = len(shape)
    if rank == 0:
        where = v.reshape(where, (level.size, index.size))
        source = v.reshape(source, (level.size, index.size))
        out = word(source, (level.size, 1), -1, where)
        return Batched(v.window(out, (_ALL, 0)), level)
    return Batched(word(source, (level.size, *shape), _axis(axis, rank), where), level)


def _spread(level: Any, x: Any, index: Any, source: Any) -> tuple[Any, Any, Any]:
    """Target, index and source of a scatter, each with the batch and at least one axis."""
    rank = rank_of(index)
    target = _at_least(with_batch(x, level), rank_of(x))
    where = _at_least(with_batch(index, level), rank)
    k = rank_of(source)
    values = with_batch(source, level, target)
    return target, where, insert_axes(values, max(rank, 1) - k)


def _scattering(
    word: Any, level: Any, x: Any, axis: int, index: Any, source: Any, *args: Any
) -> Any:
    target, where, values = _spread(level, x, index, source)
    out = word(target, _axis(axis, max(rank_of(x), 1)), where, values, *args)
    return Batched(v.window(out, (_ALL, 0)) if rank_of(x) == 0 else out, level)


for _name in ("scatter", "scatter_add", "reduce_along"):
    _rules[_name] = _scattering


@rule
def store_along(word: Any, level: Any, target: Any, axis: int, index: Any, source: Any) -> None:
    if _shared(level, target, index, source):
        word(*[members(x, level)[0] for x in (target, axis, index, source)])
        return
    below, where, values = _spread(level, target, index, source)
    word(below, _axis(axis, max(rank_of(target), 1)), where, _storable(below, values))


# --- advanced indices -----------------------------------------------------------------------------
class Picked:
    """How an advanced index works beneath a level; see `pick`.

    `front` is where the axes of the index arrays stand in a member's result, `wide` how many there
    are, `rank` how many axes the result has. NumPy puts them where the first array stood, unless
    something else stands between arrays: then in front.
    """

    def __init__(self, rank: int, index: tuple[Any, ...], arrays: tuple[Any, ...]) -> None:
        rest = iter(arrays)
        items = [next(rest) if item is v.SLOT else item for item in index]
        fancy = [i for i, item in enumerate(items) if hasattr(item, "shape")]
        if fancy:  # an int beside arrays is one of them
            fancy = [i for i, item in enumerate(items) if hasattr(item, "shape") or _is_int(item)]
        left = rank - sum(_width(item) for item in items)  # axes that the end stands for
        sizes = [0 if i in fancy or _is_int(item) else 1 for i, item in enumerate(items)]
        together = not fancy or fancy[-1] - fancy[0] == len(fancy) - 1
        self.wide = max(
            [1 if _mask(a) else rank_of(a) for a in arrays], default=0
        )  # fmt: skip
        self.front = sum(sizes[: fancy[0]]) if fancy and together else 0
        self.together = together
        self.rank = sum(sizes) + left + self.wide


def _is_int(x: Any) -> bool:
    return isinstance(x, (int, np.integer))


def _is_all(x: Any) -> bool:
    return isinstance(x, slice) and x == _ALL


def _mask(x: Any) -> bool:
    kind: str = bottom(x).dtype.kind
    return kind == "b"


def _width(item: Any) -> int:
    """How many axes an item of an index takes."""
    if item is None or item is Ellipsis:
        return 0
    return rank_of(item) if hasattr(item, "shape") and _mask(item) else 1


def _spelled(rank: int, index: tuple[Any, ...], arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """An index with slices in place of an ellipsis: one that stands for no axes would still count
    for NumPy as something between the arrays."""
    if not any(item is Ellipsis for item in index):
        return index
    rest = iter(arrays)
    used = sum(_width(next(rest) if item is v.SLOT else item) for item in index)
    at = next(i for i, item in enumerate(index) if item is Ellipsis)
    return (*index[:at], *[_ALL] * (rank - used), *index[at + 1 :])


def _split_index(level: Any, arrays: tuple[Any, ...], wide: int) -> tuple[list[Any], bool]:
    """The index arrays beneath the level, in line with one another, and whether one is batched."""
    parts = [members(a, level) for a in arrays]
    some = any(hidden for _, hidden in parts)
    found: list[Any] = []
    for (inside, hidden), array in zip(parts, arrays, strict=True):
        if hidden and _mask(array):
            raise RuntimeError(
                "vmap: We do not support batching operators that can support dynamic shape. "
                "Attempting to batch over indexing with a boolean mask.\n"
                "How many elements a mask keeps differs from member to member: keep them all, and "
                "choose with `torch.where(mask, a, b)`."
            )
        found.append(insert_axes(inside, wide - rank_of(array)) if hidden else inside)
    return found, some


def _beneath(
    level: Any, like: Any, rank: int, index: tuple[Any, ...], arrays: tuple[Any, ...], own: bool
) -> tuple[Any, list[Any], tuple[int, ...] | None]:
    """Index and arrays beneath the level, for an array of `rank` that has a batch axis if `own`;
    and the order of axes that brings NumPy's result to "batch, then a member's axes"."""
    index = _spelled(rank, index, arrays)
    seen = Picked(rank, index, arrays)
    below, some = _split_index(level, arrays, seen.wide)
    wide, front = seen.wide, seen.front
    total = seen.rank + 1
    if not own:  # the arrays alone have a batch; it is the first of the axes they give
        order = (front, *[d for d in range(total) if d != front])
        return index, below, order if front else None
    if not some:
        order = (wide, *[d for d in range(total) if d != wide])
        return (_ALL, *index), below, None if seen.together else order
    batch = v.reshape(v.iota(like, level.size, np.dtype(np.int64)), (level.size,) + (1,) * wide)
    # in front now: batch, the arrays' axes, the rest
    kept = list(range(1 + wide, total))
    order = (0, *kept[:front], *range(1, 1 + wide), *kept[front:])
    return (v.SLOT, *index), [batch, *below], order if front else None


def _back(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=lambda d: order[d]))


def _values(level: Any, value: Any, rank: int, order: tuple[int, ...] | None, like: Any) -> Any:
    """A value to be written to what an index of `_beneath` names."""
    k = rank_of(value)
    below = insert_axes(with_batch(value, level, like), rank - k)
    return below if order is None else v.permute(below, _back(order))


@rule
def pick(word: Any, level: Any, x: Any, index: Any, *arrays: Any) -> Any:
    inside, own = members(x, level)
    if not own and not any(members(a, level)[1] for a in arrays):
        return wrapped(word(inside, index, *[members(a, level)[0] for a in arrays]), level, False)
    places, below, order = _beneath(level, inside, rank_of(x), index, arrays, own)
    out = word(inside, places, *below)
    return Batched(out if order is None else v.permute(out, order), level)


@rule
def unpick(word: Any, level: Any, g: Any, shape: Any, index: Any, *arrays: Any) -> Any:
    inside = with_batch(g, level)
    places, below, order = _beneath(level, inside, len(shape), index, arrays, True)
    if order is not None:
        inside = v.permute(inside, _back(order))
    return Batched(word(inside, (level.size, *shape), places, *below), level)


def _masked(level: Any, x: Any, value: Any, index: Any, arrays: tuple[Any, ...]) -> Any:
    """Assignment where a batched mask is true of values that do not depend on where, or None if
    it is not that."""
    if len(arrays) != 1 or not _mask(arrays[0]):
        return None
    (mask,) = arrays
    if not members(mask, level)[1]:
        return None
    items = _spelled(rank_of(x), index, arrays)
    if any(item is not v.SLOT and not _is_all(item) for item in items):
        return None
    front = items.index(v.SLOT)
    behind = rank_of(x) - front - rank_of(mask)
    if rank_of(value):
        sizes = (1,) * (front + 1 + behind - rank_of(value)) + tuple(value.shape)
        if sizes[front] != 1:
            return None
        value = v.reshape(value, (*sizes[:front], *[1] * rank_of(mask), *sizes[front + 1 :]))
    if behind:
        mask = v.reshape(mask, (*mask.shape, *[1] * behind))
    return v.where(mask, value, x)


def _placing(word: Any, level: Any, x: Any, value: Any, index: Any, *arrays: Any) -> Any:
    if word is words["place"]:
        chosen = _masked(level, x, value, index, arrays)
        if chosen is not None:
            return v.cast(chosen, x.dtype)
    inside = with_batch(x, level)
    places, below, order = _beneath(level, inside, rank_of(x), index, arrays, True)
    rank = Picked(rank_of(x), _spelled(rank_of(x), index, arrays), arrays).rank
    return Batched(word(inside, _values(level, value, rank, order, inside), places, *below), level)


for _name in ("place", "place_add"):
    _rules[_name] = _placing


def _storing(word: Any, level: Any, target: Any, value: Any, index: Any, *arrays: Any) -> None:
    if _shared(level, target, value, *arrays):
        beneath = [members(x, level)[0] for x in (target, value, index, *arrays)]
        word(*beneath)
        return
    if word is words["store"]:
        chosen = _masked(level, target, value, index, arrays)
        if chosen is not None:
            v.overwrite(target, chosen)
            return
    inside, _ = members(target, level)
    places, below, order = _beneath(level, inside, rank_of(target), index, arrays, True)
    rank = Picked(rank_of(target), _spelled(rank_of(target), index, arrays), arrays).rank
    word(inside, _storable(inside, _values(level, value, rank, order, inside)), places, *below)


for _name in ("store", "store_add"):
    _rules[_name] = _storing


@rule
def searchsorted(word: Any, level: Any, sorted_: Any, x: Any, right: bool) -> Any:
    rows, own = members(sorted_, level)
    inside, hidden = members(x, level)
    if not own:
        return wrapped(word(rows, inside, right), level, hidden)
    inside = with_batch(x, level)
    if level.size == 0:
        return Batched(v.full(inside, tuple(inside.shape), 0, np.dtype(np.int64)), level)
    found = [word(v.window(rows, (i,)), v.window(inside, (i,)), right) for i in range(level.size)]
    return Batched(v.concat([v.window(y, (None,)) for y in found], 0), level)


# --- writing --------------------------------------------------------------------------------------
def _shared(level: Any, target: Any, *others: Any) -> bool:
    """Whether a write is one for all members: target and sources are shared by the batch. A target
    that is, written with what differs from member to member, is an error."""
    if members(target, level)[1]:
        return False
    if any(members(x, level)[1] for x in others):
        raise RuntimeError(INPLACE)
    return True


def _storable(target: Any, source: Any) -> Any:
    """What is written beneath: a tensor's array, if the target is no tensor either."""
    if hasattr(target, "memory") or not hasattr(source, "memory"):
        return source
    if source.leaf or source.node is not None or source.tangent is not None:
        raise NotImplementedError(
            "vmap: a value with derivatives outside the batch is being written into memory that "
            "has none. Compute it out of place (`torch.stack`, `torch.where`)."
        )
    return source.array


@rule
def overwrite(word: Any, level: Any, target: Any, source: Any) -> None:
    below, _ = members(target, level)
    inside, hidden = members(source, level)
    inside = _storable(below, inside)
    if _shared(level, target, source):
        word(below, inside)
        return
    if hidden:
        inside = insert_axes(inside, rank_of(target) - rank_of(source))
    word(below, inside)
