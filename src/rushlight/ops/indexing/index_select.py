"""Slices named by a vector of places along one dimension: `index_select`, `index_add`,
`index_copy`, `index_fill`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import Batched
from rushlight.core.families import is_complex
from rushlight.core.graph import Node, TensorBase
from rushlight.core.record import evaluate
from rushlight.ops.checks import check_tensor, one_dim, raw_dtype
from rushlight.ops.creation.fill import number_for, same_device
from rushlight.ops.indexing import family
from rushlight.ops.indexing.family import Along, scalar_type_of
from rushlight.ops.numbers import Number, Operand
from rushlight.ops.operands import zeros
from rushlight.ops.registry import function, op
from rushlight.ops.sample_inputs import Draw

_OUT_OF_BOUNDS: Final = "index {i} is out of bounds for dimension {axis} with size {n}"


# --- what the functions share ---------------------------------------------------------------------
def slot_pattern(dim: int) -> tuple[Any, ...]:
    """The pattern of an index array at a (negative) dimension; see Note [Slots] in `index`."""
    return (..., v.SLOT, *[v.ALL] * (-dim - 1))


class Vector(Along):
    """An op with a vector of places along `dim`; a 0-d tensor counts as one place."""

    def pick(self, x: Any, index: Any) -> Any:
        """The slices of `x` at the places."""
        index = v.reshape(index, (-1,))
        if not x.ndim:
            return v.reshape(v.pick(v.reshape(x, (1,)), (v.SLOT,), index), ())
        return v.pick(x, slot_pattern(self.dim), index)

    def put(self, x: Any, value: Any, index: Any, add: bool = False) -> Any:
        """`x` with `value` at the places."""
        fn = v.place_add if add else v.place
        index = v.reshape(index, (-1,))
        if not x.ndim:
            return v.reshape(fn(v.reshape(x, (1,)), self.slices(value, x), (v.SLOT,), index), ())
        return fn(x, self.slices(value, x), slot_pattern(self.dim), index)

    def write(self, x: Any, value: Any, index: Any, add: bool = False) -> None:
        """`put` in place."""
        fn = v.store_add if add else v.store
        index = v.reshape(index, (-1,))
        x = x if x.ndim else v.reshape(x, (1,))
        fn(x, self.slices(value, x), slot_pattern(self.dim), index)

    def slices(self, value: Any, x: Any) -> Any:
        """`value` with its dimension of places, which 0-d sources lack."""
        if hasattr(value, "shape") and not value.ndim:
            return v.reshape(value, (1,))
        return value


def _check_vector(
    x: Any, dim: int, index: Any, error: type[Exception], text: str, negative: bool = False
) -> None:
    """The places of an index vector are in range."""
    size = x._array.shape[dim] if x._array.ndim else 1
    axis = dim % max(x._array.ndim, 1)
    family.check_bounds(index._array, size, text.replace("{axis}", str(axis)), error, negative)


def check_source(name: str, x: Any, dim: int, index: Any, source: Any) -> None:
    """The checks of `index_add` and `index_reduce`."""
    check_tensor(index, name, "index", 3)
    check_tensor(source, name, "source", 4)
    places, from_, to = index._array, source._array, x._array
    if places.ndim > 1:
        raise IndexError(
            f"{name}_(): Index is supposed to be a vector, but got dim: {places.ndim} with type: "
            f"{scalar_type_of(index)} and size: {list(places.shape)}"
        )
    if places.dtype not in family.INDEX_DTYPES:
        raise RuntimeError(
            f"{name}_(): Expected dtype int32/int64 for index but got: {scalar_type_of(index)}"
        )
    if from_.dtype != to.dtype:
        raise RuntimeError(
            f"{name}_(): self ({scalar_type_of(x)}) and source ({scalar_type_of(source)}) must "
            "have the same scalar type"
        )
    axis = dim % max(to.ndim, 1)
    mine, theirs = list(to.shape), list(from_.shape)
    if from_.ndim and axis < len(theirs) and theirs[axis] != places.size:
        raise RuntimeError(
            f"{name}_(): Number of indices ({places.size}) should be equal to source.size(dim): "
            f"({theirs[axis]}), for dim: {axis}"
        )
    if mine[:axis] + mine[axis + 1 :] != theirs[:axis] + theirs[axis + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {mine} source.shape = {theirs}"
        )
    _check_vector(x, dim, index, RuntimeError, _OUT_OF_BOUNDS)


# --- reading --------------------------------------------------------------------------------------
@op
class IndexSelect(Vector):
    """The slices of `self` at the places of `index`."""

    name = "index_select"
    saved_names = "dim self_sym_sizes=self.sizes"
    shown_edges = (0,)
    inputs, saves = ("self", "index"), ("index",)
    lies = "rows"

    def mover(self, rule: str) -> Any:
        return kernels.bound(kernels.selected, self.dim) if rule == "forward" else None

    def forward(self, x: Any, index: Any) -> Any:
        size = x.shape[self.dim] if x.ndim else 1
        family.check_bounds(index, size, "index out of range in self", IndexError)
        return self.pick(x, index)

    def vjp(self, node: Any, g: Any, index: Any) -> Any:
        shape = node._input_shapes[0]
        if index.ndim != 1:
            index = v.reshape(index, (-1,))
        if not shape:
            return v.reshape(v.unpick(v.reshape(g, (1,)), (1,), (v.SLOT,), index), ()), None
        return v.unpick(g, shape, slot_pattern(self.dim), index), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.pick(ts[0], xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield IndexSelect(-1), draw.real(2, 3), draw.ints(0, 3, 4)
        yield IndexSelect(-2), draw.complex(3, 2), draw.ints(0, 3, 2)
        yield IndexSelect(-1), draw.real(), draw.ints(0, 1, 1)
        yield IndexSelect(-1), draw.real(3), draw.ints(0, 3, 0)


@function(out=True, settles=True)
def index_select(input: Any, dim: int, index: Any) -> Any:
    """The slices of `input` along `dim` at the places of the vector `index`.

    >>> torch.index_select(torch.tensor([[1, 2, 3], [4, 5, 6]]), 1, torch.tensor([2, 0]))
    tensor([[3, 1],
            [6, 4]])
    """
    check_tensor(input, "index_select")
    check_tensor(index, "index_select", "index", 3)
    dim = one_dim(dim, input._array.ndim)
    array = index._array
    if array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if array.dtype not in family.INDEX_DTYPES:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not input._array.ndim and array.size != 1:
        raise RuntimeError(
            f"index_select(): Index to scalar can have only 1 value, got {array.size} value(s)"
        )
    return IndexSelect(dim), (input, index)


# --- adding ---------------------------------------------------------------------------------------
@op
class IndexAdd(Vector):
    """`self` with alpha · `source` added to its slices at the places of `index`."""

    name, params = "index_add", ("dim", "alpha")
    saved_names = "dim alpha"
    shown_edges = (0, 2)
    alpha: Any = 1
    inputs, saves = ("self", "index", "source"), ("index",)

    def scaled(self, source: Any) -> Any:
        if self.alpha == 1:
            return source
        return source * number_for(self.alpha, raw_dtype(source))  # -1 in uint8 is 255

    def forward(self, x: Any, index: Any, source: Any) -> Any:
        return self.put(x, self.scaled(source), index, add=True)

    def store(self, x: Any, index: Any, source: Any) -> None:
        self.write(x, self.scaled(source), index, add=True)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        if not node._needs_grad(2):
            return g, None, None
        alpha = self.alpha.conjugate() if isinstance(self.alpha, complex) else self.alpha
        part = self.pick(g, index)
        return g, None, (part if alpha == 1 else part * alpha)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = family.or_zeros(ts[0], y)
        return t if ts[2] is None else self.forward(t, xs[1], ts[2])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield IndexAdd(-2), draw.real(3, 2), draw.ints(0, 3, 4), draw.real(4, 2)
        yield IndexAdd(-1, 2.0), draw.real(2, 3), draw.ints(0, 3, 2), draw.real(2, 2)
        yield IndexAdd(-1, 1j), draw.complex(3), draw.ints(0, 3, 2), draw.complex(2)
        yield IndexAdd(-1), draw.real(), draw.ints(0, 1, 1), draw.real()


@family.scattering()
def index_add(input: Any, dim: int, index: Any, source: Any, *, alpha: Number = 1) -> Any:
    """Add the slices of `source`, scaled by `alpha`, to those of `input` that `index` names.

    >>> torch.zeros(3).index_add(0, torch.tensor([0, 2, 0]), torch.tensor([1., 2., 3.]))
    tensor([4., 0., 2.])
    """
    dim = one_dim(dim, input._array.ndim)
    check_source("index_add", input, dim, index, source)
    return IndexAdd(dim, alpha), (input, index, source)


# --- replacing ------------------------------------------------------------------------------------
@op
class IndexCopy(Vector):
    """`self` with its slices at the places of `index` replaced by those of `source`."""

    name = "index_copy"
    saved_names = "dim"
    shown_edges = (0, 2)
    inputs, saves = ("self", "index", "source"), ("index",)

    def forward(self, x: Any, index: Any, source: Any) -> Any:
        return self.put(x, source, index)

    def store(self, x: Any, index: Any, source: Any) -> None:
        self.write(x, source, index)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        hole = self.put(g, 0, index) if node._needs_grad(0) else None
        return hole, None, (self.pick(g, index) if node._needs_grad(2) else None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = family.or_zeros(ts[0], y)
        return self.put(t, 0 if ts[2] is None else ts[2], xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield IndexCopy(-2), draw.real(3, 2), draw.permutation(3)[:2], draw.real(2, 2)
        yield IndexCopy(-1), draw.complex(3), draw.permutation(3)[:2], draw.complex(2)
        yield IndexCopy(-1), draw.real(), draw.ints(0, 1, 1), draw.real()


@family.scattering()
def index_copy(input: Any, dim: int, index: Any, source: Any) -> Any:
    """Replace the slices of `input` that `index` names by those of `source`.

    >>> torch.zeros(3).index_copy(0, torch.tensor([2, 0]), torch.tensor([1., 2.]))
    tensor([2., 0., 1.])
    """
    check_tensor(input, "index_copy")
    check_tensor(index, "index_copy", "index", 3)
    check_tensor(source, "index_copy", "source", 4)
    dim = one_dim(dim, input._array.ndim)
    places, from_, to = index._array, source._array, input._array
    axis = dim % max(to.ndim, 1)
    if places.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {places.ndim})")
    if from_.ndim == 0 and places.size != 1:
        raise IndexError(
            "index_copy_(): When source is scalar, index should have one element (got "
            f"{places.size})"
        )
    if from_.ndim != to.ndim and from_.ndim and to.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must "
            f"match. Source dimensionality ({from_.ndim}), destination dimensionality ({to.ndim})"
        )
    if places.dtype != dtypes.int64.numpy:
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {scalar_type_of(index)}"
        )
    if from_.dtype != to.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{scalar_type_of(input)} and (source) {scalar_type_of(source)}"
        )
    mine = to.shape[:axis] + to.shape[axis + 1 :]
    theirs = from_.shape[:axis] + from_.shape[axis + 1 :]
    if mine != theirs:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
            f"slice shape: {' '.join(map(str, mine))} at dimension {axis} and source slice shape: "
            f"{' '.join(map(str, theirs))} at dimension 0."
        )
    if from_.ndim and from_.shape[axis] != places.size:
        raise IndexError(
            f"index_copy_(): Number of indices ({places.size}) should be equal to source.size(dim) "
            f"({from_.shape[axis]})"
        )
    _check_vector(input, dim, index, IndexError, "index_copy_(): " + _OUT_OF_BOUNDS)
    return IndexCopy(dim), (input, index, source)


# --- filling --------------------------------------------------------------------------------------
@op
class IndexFill(Vector):
    """`self` with one number in its slices at the places of `index`."""

    name, params = "index_fill", ("dim", "value")
    aten = "index_fill.int_Scalar"
    saved_names = "dim"
    shown_edges = (0,)
    value: Any
    inputs, saves = ("self", "index"), ("index",)
    overlap = False
    complex_too = True
    lies = "input"

    def forward(self, x: Any, index: Any) -> Any:
        return self.put(x, self.value, index)

    def store(self, x: Any, index: Any) -> None:
        self.write(x, self.value, index)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        return self.put(g, 0, index), None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return self.put(ts[0], 0, xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield IndexFill(-2, 2.0), draw.real(3, 2), draw.ints(-3, 3, 2)
        yield IndexFill(-1, 2.0), draw.real(), draw.ints(0, 1, 1)


@op
class IndexFillWith(Vector):
    """`IndexFill` with the value of a 0-d tensor."""

    name, node = "index_fill_tensor", "IndexFillBackward1"
    aten = "index_fill.int_Tensor"
    shown_edges = (0, 2)
    inputs, saves = ("self", "index", "value"), ("index",)
    overlap = False
    lies = "input"

    def forward(self, x: Any, index: Any, value: Any) -> Any:
        return self.put(x, v.cast(value, raw_dtype(x)), index)

    def store(self, x: Any, index: Any, value: Any) -> None:
        if type(x) is Batched:  # recorded a level down by the rule below, not word by word
            v.overwrite(x, evaluate(self, x, index, value))
        else:
            self.write(x, v.cast(value, x.dtype), index)

    def vjp(self, node: Node, g: Any, index: Any) -> Any:
        hole = self.put(g, 0, index) if node._needs_grad(0) else None
        if not node._needs_grad(2):
            return hole, None, None
        filled = v.equal(self.put(zeros(g), 1, index), 1)  # a place named twice counts once
        return hole, None, v.reduce_sum(v.where(filled, g, 0), None, False)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = family.or_zeros(ts[0], y)
        return self.put(t, 0 if ts[2] is None else ts[2], xs[1])

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield IndexFillWith(-2), draw.real(3, 2), draw.permutation(3)[:2], draw.real()
        yield IndexFillWith(-2), draw.complex(3, 2), draw.permutation(3)[:2], draw.complex()


@family.scattering(out=False)
def index_fill(input: Any, dim: int, index: Any, value: Operand) -> Any:
    """Fill the slices of `input` that `index` names with `value`, a number or a 0-d tensor.

    >>> torch.zeros(2, 3).index_fill(1, torch.tensor([0, 2]), -1)
    tensor([[-1.,  0., -1.],
            [-1.,  0., -1.]])
    """
    check_tensor(input, "index_fill")
    check_tensor(index, "index_fill", "index", 3)
    dim = one_dim(dim, input._array.ndim)
    places = index._array
    if places.dtype != dtypes.int64.numpy:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if places.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    _check_vector(input, dim, index, IndexError, _OUT_OF_BOUNDS, negative=True)
    if isinstance(value, TensorBase) and value._array.ndim:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value._array.ndim} dimension(s)."
        )
    if input._array.dtype.kind != "c" and is_complex(value):
        raise RuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported"
        )
    if isinstance(value, TensorBase):
        return IndexFillWith(dim), (input, index, same_device(value, input))
    return IndexFill(dim, number_for(value, input._array.dtype)), (input, index)
