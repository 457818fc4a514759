"""Indexing: `x[...]`, `x[...] = value`, `value in x`.

An index is taken apart as PyTorch does it: ints, slices, None and ellipses are views, one node
each, applied first; what index tensors and masks are left then pick from that view (`Index`) or are
written to (`IndexPut`).

Note [Slots]
    `Index` and `IndexPut` hold a tuple with a `SLOT` for each index array and full slices between
    them; the arrays themselves are inputs. They stay masks where the user wrote masks.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from operator import index as as_index
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import asarray, from_host, is_array, is_scalar
from rushlight.arrays.layouts import lay_out
from rushlight.arrays.vocabulary import ALL
from rushlight.core.graph import Node, Op, TensorBase, normal, wrap
from rushlight.core.observer import observer
from rushlight.core.recall import Memo, ask, recall
from rushlight.core.record import evaluate, finish, make_node, save_values
from rushlight.core.transforms.lift import lift
from rushlight.core.transforms.stack import stack
from rushlight.core.transforms.tangents import push
from rushlight.core.views import plain_views
from rushlight.core.views.views import apply_view
from rushlight.errors import check_expandable, hide_insides
from rushlight.ops.checks import raw_dtype, tensor_type, varies
from rushlight.ops.creation.fill import (
    FILL_WITH_IN_PLACE,
    copy_into,
    same_device,
    scalar_for,
    write_directly,
)
from rushlight.ops.registry import function, implements, op, overridden, takes_over
from rushlight.ops.sample_inputs import Draw
from rushlight.ops.view.expand import Expand, broadcast_shape
from rushlight.ops.view.reshape import ViewShape
from rushlight.ops.view.select import Alias, Select, Slice
from rushlight.ops.view.squeeze import Unsqueeze

_FIRST: Final = (v.SLOT,)
_OUT_OF_BOUNDS: Final = re.compile(r"index (-?\d+) is out of bounds for axis (\d+) with size (\d+)")
_KINDS: Final = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
    "indices (got {})"
)
_NOT_A_TUPLE: Final = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in "
    "pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as "
    "tensor index, x[torch.tensor(seq)], which will result either in an error or a different result"
)


# --- the ops --------------------------------------------------------------------------------------
class Indexed(Op):
    """An op whose last inputs are the arrays of an index; see Note [Slots].

    The first `skips` inputs are not read by the rules, and so are not kept.
    """

    variadic = True
    saves = ("self",)
    skips: ClassVar[int] = 1

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        index: tuple[Any, ...] = getattr(self, "index", ())
        return index_error(error, xs[0].shape, index, xs[self.skips :], xs[1 : self.skips])


@op
class Index(Indexed):
    """The elements of `self` at an index of arrays.

    `dynamic`: with a mask among them, the shape of the result depends on values.
    """

    name, params = "index", ("index", "dynamic")
    aten = "index.Tensor"
    saved_names = "self_sym_sizes=self.sizes"
    shown_edges = (0,)
    index: tuple[Any, ...]
    dynamic: bool = False

    def mover(self, rule: str) -> Any:
        plain = rule == "forward" and not self.dynamic and all(i is v.SLOT for i in self.index)
        return kernels.bound(kernels.picked, 0) if plain else None

    def forward(self, x: Any, *arrays: Any) -> Any:
        return v.pick(x, self.index, *arrays)

    def vjp(self, node: Any, g: Any, _: Any, *arrays: Any) -> Any:
        found = v.unpick(g, node._input_shapes[0], self.index, *arrays)
        return (found, *[None] * len(arrays))

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return v.pick(ts[0], self.index, *xs[1:])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Index((v.SLOT,)), draw.real(3, 2), draw.ints(-3, 3, 4)
        yield Index((v.SLOT,)), draw.complex(3), draw.ints(0, 3, 2, 2)
        yield Index((ALL, v.SLOT)), draw.real(2, 3, 2), draw.ints(0, 3, 0)
        yield Index((v.SLOT, v.SLOT)), draw.real(3, 3), draw.ints(0, 3, 2, 1), draw.ints(0, 3, 4)
        yield (
            Index((v.SLOT, ALL, v.SLOT)),
            draw.real(3, 2, 3),
            draw.ints(0, 3, 4),
            draw.ints(0, 3, 4),
        )
        yield Index((v.SLOT,), True), draw.real(3, 2), draw.mask(3, 2)
        yield Index((ALL, v.SLOT), True), draw.real(2, 4), draw.mask(4)


_NAMED: Final = Index(_FIRST)
_MASKED: Final = Index(_FIRST, True)
plain_views.view_ops.rows = _NAMED


@op
class Unpick(Indexed):
    """The adjoint of `Index`: zeros of `shape` with the input added at an index of arrays."""

    name, params = "index_backward", ("shape", "index")
    aten = None
    shown_edges = (0,)
    shape: tuple[int, ...]
    index: tuple[Any, ...]
    complex_too = True

    def forward(self, g: Any, *arrays: Any) -> Any:
        return v.unpick(g, self.shape, self.index, *arrays)

    def vjp(self, node: Node, g: Any, _: Any, *arrays: Any) -> Any:
        return (v.pick(g, self.index, *arrays), *[None] * len(arrays))

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return v.unpick(ts[0], self.shape, self.index, *xs[1:])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Unpick((3, 2), (v.SLOT,)), draw.real(4, 2), draw.ints(0, 3, 4)
        yield Unpick((3, 2), (v.SLOT, v.SLOT)), draw.real(4), draw.ints(0, 3, 4), draw.ints(0, 2, 4)


@op
class IndexPut(Indexed):
    """`self` with `values` written (or added, if `accumulate`) at an index of arrays."""

    name, params = "index_put", ("index", "accumulate")
    shown_edges = (0, 1)
    index: tuple[Any, ...]
    accumulate: bool = False
    skips = 2
    lies = "input"

    def forward(self, x: Any, values: Any, *arrays: Any) -> Any:
        if self.accumulate:
            return v.place_add(x, values, self.index, *arrays)
        return v.place(x, values, self.index, *arrays)

    def store(self, x: Any, values: Any, *arrays: Any) -> None:
        """`forward` in place."""
        if self.accumulate:
            v.store_add(x, values, self.index, *arrays)
        else:
            v.store(x, values, self.index, *arrays)

    def vjp(self, node: Node, g: Any, _x: Any, _values: Any, *arrays: Any) -> Any:
        hole: Any = None
        if node._needs_grad(0):
            hole = g if self.accumulate else v.place(g, 0, self.index, *arrays)
        part = v.pick(g, self.index, *arrays) if node._needs_grad(1) else None
        return (hole, part, *[None] * len(arrays))

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = v.full(y, y.shape, 0, raw_dtype(y)) if ts[0] is None else ts[0]
        return self.forward(t, 0 if ts[1] is None else ts[1], *xs[2:])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield IndexPut((v.SLOT,)), draw.real(4, 2), draw.real(3, 2), draw.permutation(4)[:3]
        yield IndexPut((v.SLOT,), True), draw.real(3, 2), draw.real(4, 2), draw.ints(0, 3, 4)
        yield IndexPut((v.SLOT,)), draw.real(3), draw.real(1), draw.mask(3)
        yield (
            IndexPut((ALL, v.SLOT), True),
            draw.complex(2, 3),
            draw.complex(2),
            draw.ints(0, 3, 2),
        )


def index_error(
    error: Exception, shape: tuple[int, ...], index: tuple[Any, ...], arrays: tuple[Any, ...],
    values: tuple[Any, ...],
) -> Exception:  # fmt: skip
    """PyTorch's error for what NumPy said about an index."""
    text = str(error)
    if isinstance(error, IndexError):
        found = _OUT_OF_BOUNDS.search(text)
        if found:
            if found[3] == "0":
                return IndexError("index is out of bounds for dimension with size 0")
            # PyTorch counts the indexed dimensions only
            before = 0
            rest = iter(arrays)
            d = 0
            for item in index:
                array = next(rest) if item is v.SLOT else None
                wide = array.ndim if array is not None and array.dtype.kind == "b" else 1
                if array is not None and d < int(found[2]):
                    before += wide
                d += wide
            return IndexError(
                f"index {found[1]} is out of bounds for dimension {before} with size {found[3]}"
            )
        if "indexing arrays could not be broadcast" in text:
            shapes = ", ".join(str(list(s)) for s in _int_shapes(arrays))
            return IndexError(
                "shape mismatch: indexing tensors could not be broadcast together with shapes "
                + shapes
            )
    if isinstance(error, (ValueError, TypeError)) and values and "read-only" not in str(error):
        result = list(indexed_shape(shape, index, arrays))
        return RuntimeError(
            f"shape mismatch: value tensor of shape {list(values[0].shape)} cannot be broadcast to "
            f"indexing result of shape {result}"
        )
    return error


def indexed_shape(
    shape: tuple[int, ...], index: tuple[Any, ...], arrays: tuple[Any, ...]
) -> tuple[int, ...]:
    """The shape of `x[index]` for an `x` of `shape`, whatever the values of the index arrays."""
    picked = broadcast_shape(*_int_shapes(arrays))
    rest: list[int] = []
    fronts: list[int] = []  # how many kept dimensions stand before each indexed one
    d = 0
    given = iter(arrays)
    for item in index:
        if item is v.SLOT:
            array = next(given)
            wide = array.ndim if array.dtype.kind == "b" else 1
            fronts += [len(rest)] * wide
            d += wide
        else:
            rest.append(shape[d])
            d += 1
    rest += shape[d:]
    front = fronts[0] if fronts[0] == fronts[-1] else 0  # kept dimensions between: to the front
    return (*rest[:front], *picked, *rest[front:])


def _int_shapes(arrays: tuple[Any, ...]) -> Iterator[tuple[int, ...]]:
    """The shapes of index arrays, masks as the arrays of places that they stand for."""
    for array in arrays:
        if array.dtype.kind == "b":
            for place in v.nonzero(array):
                yield place.shape
        else:
            yield array.shape


# --- running them ---------------------------------------------------------------------------------
def run_indexed(what: Any, xs: tuple[Any, ...]) -> Any:
    """Apply an `Indexed` op, keeping its index arrays only."""
    if stack.batches != 0:
        xs = lift(xs)
    raws = tuple([x._array if isinstance(x, TensorBase) else x for x in xs])
    t = finish(wrap(lay_out(what, normal(evaluate(what, *raws)), raws)))
    node = make_node(what, xs)
    if node is not None:
        skip = what.skips
        none = (None,) * skip
        save_values(node, what.plan, (*none, *xs[skip:]), (*none, *raws[skip:]), [t])
        t._node = node
    if stack.tangents != 0:
        push(what, xs, raws, [t], False)
    return t


@implements("pick")
def pick_at(x: Any, index: tuple[Any, ...], *arrays: Any) -> Any:
    """`x[index]` with arrays in the slots."""
    return run_indexed(Index(index), (x, *arrays))


@implements("unpick")
def _unpick(g: Any, shape: tuple[int, ...], index: tuple[Any, ...], *arrays: Any) -> Any:
    return run_indexed(Unpick(shape, index), (g, *arrays))


@implements("place")
def put_at(x: Any, value: Any, index: tuple[Any, ...], *arrays: Any) -> Any:
    """A copy of `x` with x[index] = value."""
    return run_indexed(IndexPut(index), (x, value, *arrays))


@implements("place_add")
def _place_add(x: Any, value: Any, index: tuple[Any, ...], *arrays: Any) -> Any:
    return run_indexed(IndexPut(index, True), (x, value, *arrays))


# --- taking an index apart ------------------------------------------------------------------------
def _array_of(item: Any) -> Any:
    """A list, tuple, range or NumPy array in an index, as a tensor."""
    if is_array(item):
        dtypes.of(item.dtype)
        # PyTorch reads floats in a NumPy index as ints
        return wrap(v.cast(item, dtypes.int64.numpy) if item.dtype.kind == "f" else item)
    for inner in _leaves(item):
        if isinstance(inner, str):
            raise TypeError("new(): invalid data type 'str'")
    array = asarray([_plain(i) for i in item])
    if array.dtype.kind not in "iufb":
        raise TypeError(f"new(): invalid data type '{dtypes.type_name(item[0])}'")
    return wrap(array if array.dtype.kind == "b" else v.cast(array, dtypes.int64.numpy))


def _leaves(item: Any) -> Iterator[Any]:
    if isinstance(item, (list, tuple, range)):
        for inner in item:
            yield from _leaves(inner)
    else:
        yield item


def _plain(item: Any) -> Any:
    if isinstance(item, TensorBase):
        return item._array
    if isinstance(item, (list, tuple)):
        return [_plain(i) for i in item]
    return item


def _as_tuple(index: Any) -> tuple[Any, ...]:
    """An index as a tuple of items. PyTorch still reads some lists as tuples."""
    if isinstance(index, tuple):
        return index
    if isinstance(index, (list, range)) and len(index) < 32:
        for item in index:
            if item is None or item is ... or isinstance(
                item, (TensorBase, list, tuple, range, slice, str)
            ) or is_array(item):  # fmt: skip
                warnings.warn(_NOT_A_TUPLE, UserWarning, stacklevel=4)
                return tuple(index)
    return (index,)


# Ops that loops ask for again and again; they hold no state.
_selects: Final = {(d, i): Select(d, i) for d in range(-4, 0) for i in range(64)}


def select_at(x: Any, dim: int, index: int, place: int = 0) -> Any:
    """`x[..., index, ...]` at dimension `dim` (not negative); the index was written at `place`."""
    shape = x._array.shape
    n = shape[dim] if dim < len(shape) else 0
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of bounds for dimension {place} with size {n}")
    key = (dim - len(shape), index + n if index < 0 else index)
    found = _selects.get(key)
    return apply_view(Select(*key) if found is None else found, x)


def slice_at(x: Any, dim: int, part: slice, always: bool) -> Any:
    """`x[..., part, ...]` at dimension `dim`; `x` itself if that is all of it, unless `always`.

    PyTorch sees no more than `0:` and a stop from the size up as all: `-3:` of three is a view.
    """
    shape = x._array.shape
    first, last, by = part.start, part.stop, part.step
    # numbers at once: comparing tensors would be an op each
    if not (first is None or type(first) is int):
        first = as_index(first)
    if not (last is None or type(last) is int):
        last = as_index(last)
    if by is not None and as_index(by) < 0:
        raise ValueError("step must be greater than zero")
    n = shape[dim]
    start, stop, step = slice(first, last, by).indices(n)
    if not always and step == 1 and not first and (last is None or last >= n):
        return x
    return apply_view(Slice(dim - len(shape), start, max(start, stop), step), x)


def take_apart(x: Any, items: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...], list[Any]]:
    """The view of `x` that the basic items of an index give, and slots and arrays for the rest."""
    found: list[Any] = []  # items with sequences made tensors
    wide = 0
    for item in items:
        if isinstance(item, (list, tuple, range)) or is_array(item):
            item = _array_of(item)
        elif isinstance(item, str):
            raise TypeError("new(): invalid data type 'str'")
        if isinstance(item, TensorBase):
            kind = item._array.dtype
            if kind == dtypes.bool_.numpy or kind == dtypes.uint8.numpy:
                wide += item._array.ndim
            else:
                wide += 1
        elif not (item is None or item is ... or isinstance(item, bool)):
            wide += 1
        found.append(item)
    rank = x._array.ndim
    if wide > rank:
        raise IndexError(f"too many indices for tensor of dimension {rank}")
    slots: dict[int, Any] = {}
    d = 0
    for place, item in enumerate(found):
        if item is ...:
            d += rank - wide
        elif item is None:
            x = apply_view(Unsqueeze(d - x._array.ndim - 1), x)
            d += 1
        elif isinstance(item, bool):
            x, d = _truth(x, d, item, slots)
        elif isinstance(item, slice):
            x = slice_at(x, d, item, False)
            d += 1
        elif isinstance(item, TensorBase):
            array = item._array
            kind = array.dtype
            if array.ndim == 0 and kind.kind in "iub" and not varies(array):
                observer.keep_nothing()  # its value decides: see Note [What may be kept]
                if kind == dtypes.bool_.numpy or kind == dtypes.uint8.numpy:
                    x, d = _truth(x, d, bool(array), slots)
                else:
                    x = select_at(x, d, int(array), place)
            else:
                slots[d] = item
                d += item._array.ndim if kind.kind == "b" or kind.itemsize == 1 else 1
        elif hasattr(item, "__index__") and not (is_scalar(item) and item.dtype.kind == "b"):
            x = select_at(x, d, item.__index__(), place)
        else:
            raise IndexError(_KINDS.format(dtypes.type_name(item)))
    if not slots:
        return x, (), []
    return x, *_find_pattern(x, slots)


def _truth(x: Any, d: int, value: bool, slots: dict[int, Any]) -> tuple[Any, int]:
    """True adds a dimension of size 1, False one of size 0; both count as index tensors."""
    x = apply_view(Unsqueeze(d - x._array.ndim - 1), x)
    slots[d] = wrap(asarray([0] if value else [], dtypes.int64.numpy))
    return x, d + 1


def _find_pattern(x: Any, slots: dict[int, Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """The pattern and the checked index tensors of the slots at given dimensions of `x`."""
    pattern: list[Any] = []
    tensors: list[Any] = []
    d = 0
    for dim, item in sorted(slots.items()):
        pattern += [ALL] * (dim - d)
        item = check_index(item, x, dim)
        pattern.append(v.SLOT)
        tensors.append(item)
        d = dim + (item._array.ndim if item._array.dtype.kind == "b" else 1)
    return tuple(pattern), tensors


def check_index(item: Any, x: Any, dim: int) -> Any:
    """An index tensor as the ops take it: ints, or a mask that fits `x` from `dim` on."""
    array = item._array
    kind = array.dtype
    if kind == dtypes.uint8.numpy:
        warnings.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
            "instead.",
            UserWarning,
            stacklevel=5,
        )
        array = v.cast(array, dtypes.bool_.numpy)
        item = wrap(array)
        kind = array.dtype
    elif kind != dtypes.int64.numpy and kind != dtypes.int32.numpy and kind.kind != "b":
        raise IndexError(
            "tensors used as indices must be long, int, byte or bool tensors\n"
            f"This one is {dtypes.of(kind)}: `index.long()`, or a mask such as `index > 0`."
        )
    if kind.kind == "b":
        shape = x._array.shape
        for j, n in enumerate(array.shape):
            if shape[dim + j] != n:
                raise IndexError(
                    f"The shape of the mask {list(array.shape)} at index {j} does not match the "
                    f"shape of the indexed tensor {list(shape)} at index {dim + j}"
                )
    if type(array) is not type(x._array) and is_array(array):
        item = wrap(from_host(array, x._array))
    return item


# --- reading --------------------------------------------------------------------------------------
@function(name="__getitem__", free=False, bare=True, quick=plain_views.getitem)
def getitem(self: Any, index: Any) -> Any:
    """x[index] -> Tensor

    Ints, slices, None and `...` give a view; lists, index tensors and masks pick a copy.

    >>> x = torch.arange(6).reshape(2, 3)
    >>> x[1, ::2], x[:, [0, 0]], x[x > 3]
    (tensor([3, 5]), tensor([[0, 0],
            [3, 3]]), tensor([4, 5]))
    """
    try:
        cls = type(index)
        if cls is int:
            if not self._array.ndim:
                raise IndexError(
                    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                    "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
                )
            return select_at(self, 0, index)
        if cls is slice:
            if not self._array.ndim:
                raise IndexError("slice() cannot be applied to a 0-dim tensor.")
            return slice_at(self, 0, index, True)
        if (
            isinstance(index, TensorBase)
            and index._array.ndim
            and index._array.ndim <= self._array.ndim
        ):
            item = check_index(index, self, 0)
            return run_indexed(_MASKED if item._array.dtype.kind == "b" else _NAMED, (self, item))
        found = recall(_looks, (self, index), {})
        return ask(_looks, _index, None, (self, index), {}) if found is None else found
    except Exception as error:
        if takes_over((index,), {}):
            return overridden(getitem, self, index)
        hide_insides(error)
        raise


def _index(self: Any, index: Any) -> Any:
    """What an index shows of a tensor, and picks from that."""
    view, pattern, arrays = take_apart(self, _as_tuple(index))
    if pattern:
        masks = any(a._array.dtype.kind == "b" for a in arrays)
        return run_indexed(Index(pattern, masks), (view, *arrays))
    return apply_view(Alias(), view) if view is self else view


_looks: Final = Memo()  # of indices that show a view


# --- writing --------------------------------------------------------------------------------------
@function(name="__setitem__", free=False)
def setitem(self: Any, index: Any, value: Any) -> None:
    """x[index] = value

    Write a number or a tensor, broadcast and cast to fit, to a part of a tensor.

    >>> x = torch.zeros(2, 3)
    >>> x[0, 1:] = torch.tensor([1., 2.])
    >>> x[x == 0] = 9
    >>> x
    tensor([[9., 1., 2.],
            [9., 9., 9.]])
    """
    if is_scalar(value):  # before the numbers: np.float64 is a float
        value = value.item()
    if isinstance(value, (bool, int, float, complex)):
        if isinstance(value, int) and not -(1 << 63) <= value < (1 << 63):
            raise ValueError("Overflow when unpacking long long")
        value = wrap(scalar_for(value, self._array))
    elif not isinstance(value, TensorBase):
        name = tensor_type(self)
        raise TypeError(f"can't assign a {dtypes.type_name(value)} to a {name}")
    cls = type(index)
    if index is False:
        return
    if index is True:
        index = None
    if cls is int:
        if not self._array.ndim:
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
            )
        copy_to(select_at(self, 0, index), value)
        return
    if cls is slice:
        if not self._array.ndim:
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        copy_to(slice_at(self, 0, index, False), value)
        return
    view, pattern, arrays = take_apart(self, _as_tuple(index))
    if not pattern:
        copy_to(view, value)
        return
    shape = value._array.shape
    if shape and shape[0] == 1:
        value = apply_view(ViewShape(without_ones(shape)), value)
    index_put_into(view, pattern, arrays, value, False)


def without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without its leading dimensions of size 1."""
    d = 0
    while d < len(shape) and shape[d] == 1:
        d += 1
    return shape[d:]


def copy_to(target: Any, value: Any) -> None:
    """`target[...] = value`, broadcast; a 0-d value fills."""
    shape, have = target._array.shape, value._array.shape
    if shape == have:
        copy_into(target, value)
        return
    if not have:
        write_directly(FILL_WITH_IN_PLACE, target, (same_device(value, target),), v.overwrite)
        return
    small = without_ones(have)
    value = apply_view(ViewShape(small), value)
    if small != shape:
        check_expandable(tensor_type(value), small, shape)
        value = apply_view(Expand(shape), value)
    copy_into(target, value)


def index_put_into(
    target: Any, pattern: tuple[Any, ...], arrays: list[Any], values: Any, accumulate: bool
) -> Any:
    """Write `values` into `target` at an index of arrays."""
    values = check_values(target, pattern, arrays, values, accumulate)
    if 0 in target._array.strides and target._array.size > 1:
        warnings.warn(
            "Use of index_put_ on expanded tensors is deprecated. Please clone() the tensor before "
            "performing this operation. This also applies to advanced indexing e.g. "
            "tensor[indices] = tensor",
            UserWarning,
            stacklevel=4,
        )
    what = IndexPut(pattern, accumulate)
    return write_directly(what, target, (values, *arrays), what.store, False)


def _check_fits(target: Any, pattern: tuple[Any, ...], arrays: list[Any], values: Any) -> None:
    """Raise PyTorch's error if the values do not broadcast to what the index picks."""
    raws = tuple([a._array for a in arrays])
    shape = target._array.shape
    try:
        v.broadcast(values._array, indexed_shape(shape, pattern, raws))
    except ValueError as error:
        raise index_error(error, shape, pattern, raws, (values._array,)) from None


def check_values(
    target: Any, pattern: tuple[Any, ...], arrays: list[Any], values: Any, accumulate: bool
) -> Any:
    """The values for `index_put`: of the target's dtype, except one number for one mask."""
    have, want = values._array.dtype, target._array.dtype
    if have != want:
        filling = values._array.size == 1 and not accumulate
        if not (filling and len(arrays) == 1 and arrays[0]._array.dtype.kind == "b"):
            _check_fits(target, pattern, arrays, values)
            raise RuntimeError(
                "Index put requires the source and destination dtypes match, got "
                f"{dtypes.of(want).scalar_type} for the destination and "
                f"{dtypes.of(have).scalar_type} for the source."
            )
    return same_device(values, target)


# --- other --------------------------------------------------------------------------------------
@function(name="__contains__", free=False)
def contains(self: Any, element: Any) -> bool:
    """element in x -> bool

    Whether any element of the tensor equals `element`.

    >>> 2 in torch.tensor([1, 2]), 3 in torch.tensor([1, 2])
    (True, False)
    """
    if not isinstance(element, TensorBase) and not isinstance(element, (bool, int, float, complex)):
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )
    return bool(v.reduce_any((element == self)._array, None, False).item())


@function(name="__delitem__", free=False)
def delitem(self: Any, index: Any) -> None:
    """del x[index]: tensors do not change their size, so this raises TypeError."""
    raise TypeError("Tensor does not support deleting items")
