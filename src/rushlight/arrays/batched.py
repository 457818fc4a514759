"""A batched array: one array that stands for many, of which the code that runs sees one.

`vmap` puts these at the bottom of tensors. `value` is an array of any kind (NumPy's, CuPy's, a
tensor, or another batched array), whose first axis, the batch, is hidden from whoever wants
`shape`; if not `has_batch_dim`, all members of the batch share `value` as it is. Every word of the
vocabulary has its rule (`batch_rules`, `batch_index`), so each op and each derivative rule runs on
batches without knowing. Ops that can do better than their words say so themselves (`Op.align`).

Note [Which level]
    A batch belongs to a level, one `vmap` in progress, and levels opened later have larger depths.
    A word works at the deepest level among its arrays; others are shared by that level's batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from rushlight.arrays import cuda
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import address
from rushlight.arrays.vocabulary import Kind, primitives, register

rules: Final[dict[str, Callable[..., Any]]] = {}

CONTROL_FLOW: Final = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. "
    "We don't support that yet, please file an issue at "
    "https://github.com/pytorch/pytorch/issues .\n"
    "Under vmap a tensor has many values at once: choose with `torch.where(condition, a, b)`."
)
ITEM: Final = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error "
    "is occurring somewhere inside PyTorch internals, please file a bug report.\n"
    "Under vmap a tensor has many values at once: keep it a tensor."
)
NO_STORAGE: Final = (
    "Cannot access data pointer of Tensor that doesn't have storage\n"
    "Under vmap a tensor has many values at once: keep it a tensor, and convert what vmap returns."
)
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
            x = x.value
        elif hasattr(x, "_storage"):  # a tensor
            x = x._array
        else:
            break
    return x


def outer(x: Any) -> Any:
    """The array of a tensor; an array as it is."""
    return x._array if hasattr(x, "_storage") else x


def without_histories(x: Any) -> Any:
    """An array without the histories of tensors that may stand inside it: for what is computed
    without derivatives, or by words that tensors have no answer to."""
    if type(x) is not Batched:
        return x
    return Batched(without_histories(outer(x.value)), x.level, x.has_batch_dim)


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

    __slots__ = ("_dtype", "has_batch_dim", "level", "value")

    def __init__(self, value: Any, level: Any, has_batch_dim: bool = True) -> None:
        self.value = value
        self.level = level
        self.has_batch_dim = has_batch_dim
        self._dtype: Any = None

    # --- what an array is asked ---------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        shape = tuple(self.value.shape)
        return shape[1:] if self.has_batch_dim else shape

    @property
    def ndim(self) -> int:
        rank: int = self.value.ndim
        return rank - 1 if self.has_batch_dim else rank

    @property
    def dtype(self) -> Any:
        found = self._dtype  # asked for again and again
        if found is None:
            found = self._dtype = bottom(self.value).dtype
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
        array = outer(self.value)
        strides: tuple[int, ...] = array.strides
        if not self.has_batch_dim:
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
        array = outer(self.value)
        if self.has_batch_dim and not isinstance(array, Batched):
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
        return f"Batched({self.value!r}, has_batch_dim={self.has_batch_dim})"

    def __len__(self) -> int:
        return self.shape[0]

    # --- what a batch cannot say, unless all members share it -----------------------------------
    def told(self, how: Callable[[Any], Any], error: str) -> Any:
        """What an array that all members share says; the error for one that has many values."""
        if self.has_batch_dim:
            raise RuntimeError(error)
        return how(outer(self.value))

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
        if method != "__call__" or kwargs or any(hasattr(x, "_storage") for x in inputs):
            return NotImplemented  # a tensor answers for the arrays next to it
        return matmul(*inputs) if ufunc is np.matmul else map_elementwise(ufunc, inputs)

    def __neg__(self) -> Any:
        return map_elementwise(v.negative, (self,))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return map_elementwise(v.absolute, (self,))

    def __invert__(self) -> Any:
        return map_elementwise(v.invert, (self,))

    def __matmul__(self, other: Any) -> Any:
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return matmul(other, self)

    __hash__ = object.__hash__


# --- taking batches apart -------------------------------------------------------------------------
def deepest_level(xs: Any) -> Any:
    """The deepest level among arrays (and lists of them), or None. See Note [Which level]."""
    level: Any = None
    for x in xs:
        found: Any = None
        if type(x) is Batched:
            found = x.level
        elif type(x) is list:
            found = deepest_level(x)
        if found is not None and (level is None or found.depth > level.depth):
            if not found.alive:
                raise RuntimeError(ESCAPED)
            level = found
    return level


def members(x: Any, level: Any) -> tuple[Any, bool]:
    """What stands for `x` below `level`, and whether its first axis is that level's batch."""
    if type(x) is Batched and x.level is level:
        return x.value, x.has_batch_dim
    return x, False


def beside_tensors(xs: Any) -> Any:
    """CuPy's arrays as tensors where a tensor is among them: CuPy would take it for an array too
    and compute without its history. NumPy asks the tensor."""
    if not cuda._state:  # nobody has used CuPy
        return xs
    tensor = next((x for x in xs if hasattr(x, "_storage")), None)
    if tensor is None:
        return xs
    return [tensor.__array_wrap__(x) if cuda.is_cuda(x) else x for x in xs]


def insert_axes(x: Any, count: int) -> Any:
    """New axes of size 1 behind the batch."""
    return v.window(x, (v.ALL, *[None] * count)) if count > 0 else x


def with_batch(x: Any, level: Any, like: Any = None) -> Any:
    """`x` below the level, with a batch axis in front. `like` is an array to take a number to."""
    value, has_batch_dim = members(x, level)
    if has_batch_dim:
        return value
    if not hasattr(value, "shape"):
        value = v.constant(like, value, bottom(like).dtype)
    return v.broadcast(value, (level.size, *value.shape))


def lacks(x: Any, other: Any) -> bool:
    """Whether `other` could not be written into `x`, for want of a batch, at any depth: one that
    `x` does not belong to, or that shares `x` where `other` differs from member to member."""
    mine: Any = x
    while type(other) is Batched:
        while type(mine) is Batched and mine.level is not other.level:
            mine = outer(mine.value)
        if type(mine) is not Batched or (other.has_batch_dim and not mine.has_batch_dim):
            return True
        other = outer(other.value)
    return False


def join_batches(x: Any, other: Any) -> Any:
    """`x` with a member for each batch that `other` belongs to, so that `other` can be written into
    it: in memory of its own, if it had none."""
    return x + v.full(other, (), 0, bottom(x).dtype) if lacks(x, other) else x


def rank_of(x: Any) -> int:
    """How many axes an array has, or a number."""
    rank: int = getattr(x, "ndim", 0)
    return rank


def from_end(d: int, rank: int) -> int:
    """An axis counted from the end, as ops want it, and where a batch in front changes nothing.

    >>> from_end(0, 3), from_end(-1, 3)
    (-3, -1)
    """
    return d if d < 0 else d - rank


def wrap_result(y: Any, level: Any, has_batch_dim: bool) -> Any:
    """What a word gave below the level, as that level sees it."""
    if y is None:
        return None
    if isinstance(y, tuple):
        return tuple([wrap_result(part, level, has_batch_dim) for part in y])
    if isinstance(y, np.generic):
        y = np.asarray(y)
    return Batched(y, level, has_batch_dim)


def map_elementwise(fn: Any, xs: Any) -> Any:
    """A function of elements: hidden batches line up, whatever the members' ranks."""
    level = deepest_level(xs)
    rank = 0
    some = False
    parts: list[Any] = []
    for x in xs:
        value, has_batch_dim = members(x, level)
        k = rank_of(value)
        if has_batch_dim:
            some = True
            k -= 1
        rank = max(rank, k)
        parts.append((value, has_batch_dim, k))
    ready = [insert_axes(x, rank - k) if has_batch_dim else x for x, has_batch_dim, k in parts]
    return wrap_result(fn(*beside_tensors(ready)), level, some)


def binary_operator(fn: Any, a: Any, b: Any) -> Any:
    """An operator. A tensor answers for the array next to it."""
    if hasattr(a, "_storage") or hasattr(b, "_storage"):
        return NotImplemented
    return map_elementwise(fn, (a, b))


def _attach_operators(words: dict[str, Any], swapped: bool) -> None:
    """Give batched arrays operators of two operands; `swapped`: for those on the right, too."""

    def attach(name: str, fn: Any) -> None:
        setattr(Batched, f"__{name}__", lambda self, other: binary_operator(fn, self, other))
        if swapped:
            setattr(Batched, f"__r{name}__", lambda self, other: binary_operator(fn, other, self))

    for name, fn in words.items():
        attach(name, fn)


_attach_operators(
    {
        "add": v.add, "sub": v.subtract, "mul": v.multiply, "truediv": v.divide,
        "floordiv": v.floor_divide, "mod": v.remainder, "pow": v.power, "and": v.bitwise_and,
        "or": v.bitwise_or, "xor": v.bitwise_xor, "lshift": v.left_shift, "rshift": v.right_shift,
    },
    swapped=True,
)  # fmt: skip
_attach_operators(
    {
        "lt": v.less, "le": v.less_equal, "gt": v.greater, "ge": v.greater_equal, "eq": v.equal,
        "ne": v.not_equal,
    },
    swapped=False,
)  # fmt: skip


def matmul(a: Any, b: Any, primitive: Any = v.matrices) -> Any:
    """`matmul` of vectors, matrices and stacks of matrices, of which one or both are batched."""
    level = deepest_level((a, b))
    left, many = members(a, level)
    right, several = members(b, level)
    if hasattr(left, "_storage") != hasattr(right, "_storage"):
        primitive = (
            v.narrow_matmul
        )  # the same, and the tensor answers: CuPy's `matmul` leaves it no say
    m, n = rank_of(left) - many, rank_of(right) - several
    if not several and n <= 2 and (many or m <= 2):
        if many and m == 2 and n == 2:  # one product of tall matrices instead of many of small ones
            rows = v.reshape(left, (level.size * left.shape[1], left.shape[2]))
            out = v.reshape(primitive(rows, right), (level.size, left.shape[1], right.shape[-1]))
            return wrap_result(out, level, True)
        return wrap_result(primitive(left, right), level, many)
    if not many and m <= 2 and several:
        if n == 1:
            return wrap_result(
                primitive(right, v.swap(left, -1, -2) if m == 2 else left), level, True
            )
        return wrap_result(primitive(left, right), level, True)
    # in general: all are stacks of matrices, with the batch in front
    left, right = with_batch(a, level), with_batch(b, level)
    if m == 1:
        left = insert_axes(left, 1)
    if n == 1:
        right = v.window(right, (..., None))
    rank = max(left.ndim, right.ndim)
    left, right = insert_axes(left, rank - left.ndim), insert_axes(right, rank - right.ndim)
    out = primitive(left, right)
    if n == 1:
        out = v.window(out, (..., 0))
    if m == 1:
        out = v.window(out, (..., 0) if n == 1 else (..., 0, v.ALL))
    return wrap_result(out, level, True)


# --- the words' rules -----------------------------------------------------------------------------
def rule(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function the rule of the word of its name. It is called with the word, the level and
    the word's arguments."""
    name = fn.__name__.strip("_")
    if name not in primitives:
        raise ValueError(f"{name!r} is no word of the vocabulary")
    rules[name] = fn
    return fn


# Words that no op on tensors answers to: ops without derivatives use them.
_UNRECORDED: Final = frozenset(
    ("bincount", "frexp", "householder_qr", "least_squares", "lu", "row_order", "searchsorted")
)


def _answer(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    level = deepest_level(args)
    if name in _UNRECORDED:
        args = tuple([without_histories(x) for x in args])
    return rules[name](primitives[name], level, *args)


register(Batched, Kind(9, _answer))
