"""Sparse arrays: the elements that are not zero, and where they stand.

    Coo          `indices`, a column for each element that is stored, and `values`
    Compressed   rows (CSR, BSR) or columns (CSC, BSC) one after the other: where each begins in the
                 list of its elements, where these stand in it, and `values`

They are a kind of array as those of other devices are: a plain Tensor holds one, and ops run on it
by the ufuncs and words that have a meaning here. Element-wise functions that keep zero go to the
values alone; what would have to make all zeros something else is refused, as in PyTorch. What a
sparse array is made of lies on the CPU or on a GPU: NumPy's functions find CuPy's by themselves.

Imported when the first sparse array is made; nothing here is on the way of dense ones.

Note [Uncoalesced]
    The indices of a `Coo` may name a place more than once: its value is the sum. Linear functions
    leave that as it is, others need the sums and call `coalesce` first. `coalesced` says that every
    place is named once, and that places are in order.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import device_of, move, put_off
from rushlight.arrays.vocabulary import Array, Kind, primitive, register

INT64: Final = np.dtype(np.int64)
_SCIPY: Final = "fdFD"  # dtypes that SciPy's products take without widening
# element-wise functions with f(0) = 0: those that are linear need no coalescing
_LINEAR: Final = frozenset("negative positive conjugate".split())
_ZERO_KEPT: Final = frozenset(
    "absolute arcsin arcsinh arctan arctanh ceil deg2rad expm1 floor isinf isnan log1p rad2deg "
    "rint sign signbit sin sinh sqrt square tan tanh trunc".split()
)


def refused(name: str, x: Any) -> NotImplementedError:
    """PyTorch's error, for a function or word; `record.rescue` puts the op's name into it."""
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{backend(x)}' backend. It has no "
        "meaning for sparse tensors, or would make them dense: `x.to_dense()` does that."
    )


def backend(x: Any) -> str:
    """PyTorch's name of what computes with an array."""
    where = "CUDA" if device_of(x).type == "cuda" else "CPU"
    return ("Sparse" if isinstance(x, Coo) else "SparseCsr") + where


class _Flags:
    """What NumPy's flags say: nothing of this lies in memory in rows."""

    c_contiguous = f_contiguous = forc = owndata = False
    writeable = True


class Sparse(np.lib.mixins.NDArrayOperatorsMixin):
    """What both kinds have."""

    __slots__ = ("__weakref__", "shape", "values")
    layout: dtypes.layout
    shape: tuple[int, ...]
    values: Any
    base = None
    flags = _Flags()
    __hash__ = object.__hash__

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        n: int = self.values.dtype.itemsize
        return n

    @property
    def device(self) -> Any:
        return device_of(self.values)

    @property
    def strides(self) -> tuple[int, ...]:
        """Those of a dense array of this shape: a write need not ask whether elements overlap."""
        steps, step = [], self.itemsize
        for n in reversed(self.shape):
            steps.append(step)
            step *= max(n, 1)
        return tuple(reversed(steps))

    @property
    def nnz(self) -> int:
        """How many elements (blocks, rows of dense dimensions) are stored."""
        raise NotImplementedError

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        return self.with_values(self.values.astype(dtype))

    def copy(self, order: str = "C") -> Any:
        return self.with_values(self.values.copy())

    def get(self, order: str = "C") -> Any:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def tolist(self) -> Any:
        return self.get()

    def deep_copy(self) -> Any:
        """With nothing in common."""
        made = self.copy()
        for part in ("indices", "starts", "inner"):
            if hasattr(made, part):
                setattr(made, part, getattr(made, part).copy())
        return made

    def fill(self, value: Any) -> None:
        if value != 0:
            raise refused("fill_.Scalar", self)
        self.become(self.emptied(self.dtype))

    def emptied(self, dtype: Any) -> Any:
        """An array of this shape and layout without elements."""
        raise NotImplementedError

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def __len__(self) -> int:
        return self.shape[0]

    def coo(self) -> Coo:
        """The same elements as a `Coo`."""
        raise NotImplementedError

    def as_this(self, x: Coo) -> Any:
        """A `Coo` in the layout of this array."""
        raise NotImplementedError

    def with_values(self, values: Any) -> Any:
        """Other values in the same places."""
        raise NotImplementedError

    def become(self, other: Any) -> None:
        """Hold what another holds: a write in place."""
        raise NotImplementedError

    def dense(self) -> Any:
        """As an ordinary array."""
        return self.coo().dense()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if any(put_off(x) for x in inputs):
            return NotImplemented  # it answers itself
        target = options.pop("out", None)
        if method != "__call__" or options:
            raise refused(ufunc.__name__, self)
        if target is not None and not isinstance(target[0], Sparse):
            return _into_dense(ufunc, target[0], inputs)
        made = _elementwise(ufunc, inputs, self)
        if target is None:
            return made
        if not isinstance(made, Sparse):
            raise RuntimeError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead."
            )
        target[0].become(made)
        return target[0]

    def __array_function__(self, fn: Any, types: Any, args: Any, options: Any) -> Any:
        if fn.__name__ == "shape":
            return self.shape
        raise refused(fn.__name__, self)


class Coo(Sparse):
    """Places and values: `indices` is [sparse dimensions, elements], `values` [elements, …]."""

    __slots__ = ("coalesced", "indices")
    layout = dtypes.sparse_coo

    def __init__(
        self, indices: Any, values: Any, shape: tuple[int, ...], coalesced: bool = False
    ) -> None:
        self.indices = indices
        self.values = values
        self.shape = tuple(shape)
        self.coalesced = coalesced

    @property
    def nnz(self) -> int:
        n: int = self.values.shape[0]
        return n

    @property
    def sparse_dim(self) -> int:
        n: int = self.indices.shape[0]
        return n

    def __repr__(self) -> str:
        return f"Coo({self.shape}, {self.dtype}, {self.nnz} stored)"

    def coo(self) -> Coo:
        return self

    def as_this(self, x: Coo) -> Coo:
        return x

    def with_values(self, values: Any) -> Coo:
        return Coo(self.indices, values, self.shape, self.coalesced)

    def become(self, other: Any) -> None:
        x = other.coo()
        self.indices, self.values, self.coalesced = x.indices, x.values, x.coalesced

    def emptied(self, dtype: Any) -> Coo:
        values = np.zeros_like(self.values, shape=(0, *self.values.shape[1:]), dtype=dtype)
        return Coo(self.indices[:, :0], values, self.shape, True)

    def places(self) -> Any:
        """The number of each element's place, sparse dimensions counted row by row."""
        flat = np.zeros_like(self.indices, shape=(self.nnz,))
        for d, n in enumerate(self.shape[: self.sparse_dim]):
            flat = flat * n + self.indices[d]
        return flat

    def coalesce(self) -> Coo:
        """Every place once, in order. See Note [Uncoalesced]."""
        if self.coalesced:
            return self
        if self.nnz < 2 or self.sparse_dim == 0:
            if self.sparse_dim == 0 and self.nnz > 1:
                values = v.reduce_sum(self.values, (0,), True)
                return Coo(self.indices[:, :1], values, self.shape, True)
            return Coo(self.indices, self.values, self.shape, True)
        flat = self.places()
        order = np.argsort(flat, kind="stable")
        flat = flat[order]
        first = np.ones_like(flat, dtype=bool)
        first[1:] = flat[1:] != flat[:-1]
        values = self.values[order]
        starts = order[first]
        if starts.shape[0] != self.nnz:
            which = np.cumsum(first) - 1
            shape = (starts.shape[0], *values.shape[1:])
            kind = values.dtype
            if kind.kind == "b":
                values = v.unpick(values.astype(INT64), shape, (v.SLOT,), which) > 0
            else:
                values = v.cast(v.unpick(values, shape, (v.SLOT,), which), kind)
        return Coo(self.indices[:, starts], values, self.shape, True)

    def dense(self) -> Any:
        like = self.values
        if self.sparse_dim == 0:
            return v.reshape(v.cast(v.reduce_sum(like, (0,), False), like.dtype), self.shape)
        kind = like.dtype
        if kind.kind == "b":
            x = self.coalesce()
            out = np.zeros_like(like, shape=self.shape)
            out[tuple(x.indices)] = x.values
            return out
        rows = math.prod(self.shape[: self.sparse_dim])
        flat = v.unpick(like, (rows, *like.shape[1:]), (v.SLOT,), self.places())
        return v.reshape(v.cast(flat, kind), self.shape)


class Compressed(Sparse):
    """Rows or columns one after the other. `starts` says where each begins, `inner` where elements
    stand in it. Leading batch dimensions are common to all parts; BSR and BSC store blocks."""

    __slots__ = ("inner", "layout", "starts")

    def __init__(
        self, layout: Any, starts: Any, inner: Any, values: Any, shape: tuple[int, ...]
    ) -> None:
        self.layout = layout
        self.starts = starts
        self.inner = inner
        self.values = values
        self.shape = tuple(shape)

    @property
    def nnz(self) -> int:
        n: int = self.inner.shape[-1]
        return n

    @property
    def batch(self) -> int:
        """How many batch dimensions there are."""
        n: int = self.inner.ndim - 1
        return n

    @property
    def by_rows(self) -> bool:
        return self.layout in (dtypes.sparse_csr, dtypes.sparse_bsr)

    @property
    def block(self) -> tuple[int, int] | None:
        """The size of a block, if blocks are stored."""
        if self.layout in (dtypes.sparse_csr, dtypes.sparse_csc):
            return None
        rows, columns = self.values.shape[self.batch + 1 : self.batch + 3]
        return rows, columns

    def __repr__(self) -> str:
        return f"Compressed({self.layout}, {self.shape}, {self.dtype}, {self.nnz} stored)"

    def with_values(self, values: Any) -> Compressed:
        return Compressed(self.layout, self.starts, self.inner, values, self.shape)

    def become(self, other: Any) -> None:
        x = other if isinstance(other, Compressed) else self.as_this(other)
        self.starts, self.inner, self.values = x.starts, x.inner, x.values

    def emptied(self, dtype: Any) -> Compressed:
        k = self.batch
        shape = (*self.values.shape[:k], 0, *self.values.shape[k + 1 :])
        values = np.zeros_like(self.values, shape=shape, dtype=dtype)
        return Compressed(self.layout, self.starts * 0, self.inner[..., :0], values, self.shape)

    def outer(self) -> Any:
        """The row (or column) of each element of a matrix without batch dimensions."""
        return np.searchsorted(self.starts[1:], _counted(self.inner, self.nnz), side="right")

    def coo(self) -> Coo:
        if self.batch:
            return dense_to_coo(self.dense(), self.ndim)
        outer, inner = self.outer(), self.inner.astype(INT64)
        block = self.block
        if block is None:
            pair = (outer, inner) if self.by_rows else (inner, outer)
            x = Coo(np.stack(pair), self.values, self.shape, self.by_rows)
            return x if self.by_rows else x.coalesce()
        rows, columns = (outer, inner) if self.by_rows else (inner, outer)
        r, c = np.indices(block)
        r, c = _beside(r, rows), _beside(c, rows)
        i = (rows[:, None, None] * block[0] + r).reshape(-1)
        j = (columns[:, None, None] * block[1] + c).reshape(-1)
        values = self.values.reshape((-1, *self.values.shape[3:]))
        return Coo(np.stack((i, j)), values, self.shape).coalesce()

    def dense(self) -> Any:
        if not self.batch:
            return self.coo().dense()
        k = self.batch
        lead = self.shape[:k]
        n = math.prod(lead)
        starts = self.starts.reshape(n, -1)
        inner = self.inner.reshape(n, -1)
        values = self.values.reshape((n, *self.values.shape[k:]))
        parts = [
            Compressed(self.layout, starts[b], inner[b], values[b], self.shape[k:]).dense()
            for b in range(n)
        ]
        return np.stack(parts).reshape(self.shape)

    def as_this(self, x: Coo) -> Any:
        return compress(x, self.layout, self.block)


def _counted(like: Any, n: int) -> Any:
    """0, 1, 2 and so on, on the device of `like`."""
    return v.iota(like, n, INT64)


def _beside(x: Any, like: Any) -> Any:
    """A NumPy array on the device of another array."""
    return move(x, device_of(like))


def compress(x: Coo, layout: Any, block: tuple[int, int] | None = None) -> Compressed:
    """A matrix of two sparse dimensions, row by row or column by column."""
    rows, columns = x.shape[:2]
    by_rows = layout in (dtypes.sparse_csr, dtypes.sparse_bsr)
    x = x.coalesce()
    i, j, values = x.indices[0], x.indices[1], x.values
    if block is not None:
        height, width = block
        rows, columns = rows // height, columns // width
        place = (i // height) * columns + j // width
        if not by_rows:
            place = (j // width) * rows + i // height
        places, which = np.unique(place, return_inverse=True)
        blocks = np.zeros_like(values, shape=(places.shape[0], height, width, *values.shape[1:]))
        blocks[which, i % height, j % width] = values
        values = blocks
        outer, inner = (
            places // (columns if by_rows else rows),
            places % (columns if by_rows else rows),
        )
    elif by_rows:
        outer, inner = i, j
    else:
        order = np.lexsort(np.stack((i, j)))
        outer, inner, values = j[order], i[order], values[order]
    n = rows if by_rows else columns
    starts = np.zeros_like(outer, shape=(n + 1,), dtype=INT64)
    starts[1:] = np.cumsum(np.bincount(outer, minlength=n))
    return Compressed(layout, starts, inner, values, x.shape)


def compress_dense(x: Any, layout: Any, block: tuple[int, int] | None, dense_dim: int) -> Any:
    """A dense array in a compressed layout; leading dimensions beside the matrix are batches, which
    must store as many elements each."""
    lead = x.ndim - 2 - dense_dim
    if lead == 0:
        return compress(dense_to_coo(x, 2), layout, block)
    n = math.prod(x.shape[:lead])
    flat = x.reshape((n, *x.shape[lead:]))
    parts = [compress(dense_to_coo(flat[b], 2), layout, block) for b in range(n)]
    if len({p.nnz for p in parts}) > 1:
        raise RuntimeError("Expect the same number of specified elements per batch.")

    def joined(arrays: list[Any]) -> Any:
        made = np.stack(arrays)
        return made.reshape((*x.shape[:lead], *made.shape[1:]))

    return Compressed(
        layout, joined([p.starts for p in parts]), joined([p.inner for p in parts]),
        joined([p.values for p in parts]), x.shape,
    )  # fmt: skip


def dense_to_coo(x: Any, sparse_dim: int) -> Coo:
    """The elements of a dense array that are not zero; with dense dimensions, those parts."""
    if sparse_dim == 0 or x.ndim == 0:
        indices = np.zeros_like(x, shape=(0, 1), dtype=INT64)
        if x.ndim == 0 and not bool(x != 0):
            return Coo(indices[:, :0], x.reshape(1)[:0], x.shape, True)
        return Coo(indices, x[None], x.shape, True)
    some = x != 0
    if sparse_dim < x.ndim:
        some = v.reduce_any(some, tuple(range(sparse_dim, x.ndim)), False)
    where = some.nonzero()
    return Coo(np.stack(where).astype(INT64), x[where], x.shape, True)


# --- element by element ---------------------------------------------------------------------------
def _is_number(x: Any) -> bool:
    return not hasattr(x, "ndim") or (x.ndim == 0 and not isinstance(x, Sparse))


def _elementwise(ufunc: Any, xs: tuple[Any, ...], one: Sparse) -> Any:
    name = ufunc.__name__
    if len(xs) == 1:
        x = xs[0]
        if name in _LINEAR:
            return x.with_values(ufunc(x.values))
        if name in _ZERO_KEPT:
            if isinstance(x, Coo):
                x = x.coalesce()
            return x.with_values(ufunc(x.values))
        raise refused(name, one)
    a, b = xs
    if name == "matmul":
        return product(a, b)
    if name in ("add", "subtract"):
        return _add(a, b, name == "subtract")
    if name == "multiply":
        if isinstance(b, Sparse) and not isinstance(a, Sparse):
            a, b = b, a
        return _times(a, b)
    if name == "divide" and isinstance(a, Sparse):
        if not _is_number(b):
            raise RuntimeError(
                "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape "
                f"{list(b.shape)} for divisor)"
            )
        return a.with_values(ufunc(a.values, b))
    if name in ("greater", "less", "not_equal") and isinstance(b, (int, float)) and b == 0:
        x = a.coalesce() if isinstance(a, Coo) else a
        return x.with_values(ufunc(x.values, b))
    keeps_zero = name in ("power", "float_power", "floor_divide", "fmod", "remainder") or (
        name in ("maximum", "minimum") and isinstance(b, (int, float)) and b == 0
    )
    if keeps_zero and isinstance(a, Sparse) and _is_number(b):
        x = a.coalesce() if isinstance(a, Coo) else a
        return x.with_values(ufunc(x.values, b))
    raise refused(name, one)


def _add(a: Any, b: Any, minus: bool) -> Any:
    if _is_number(a) or _is_number(b):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if isinstance(a, Sparse) and isinstance(b, Sparse):
        second = b.with_values(-b.values) if minus else b
        if a.shape != b.shape:
            raise RuntimeError(
                f"add: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != "
                f"{list(b.shape)}"
            )
        return _add_sparse(a, second)
    if isinstance(b, Sparse):
        shape = np.broadcast_shapes(a.shape, b.shape)
        out = np.broadcast_to(a, shape).astype(np.result_type(a.dtype, b.dtype))
        return _into_dense(np.subtract if minus else np.add, out, (out, b))
    dense = a.dense()
    return dense - b if minus else dense + b


def _add_sparse(a: Sparse, b: Sparse) -> Any:
    if isinstance(a, Compressed):
        if (
            isinstance(b, Compressed)
            and a.layout is b.layout
            and a.inner.shape == b.inner.shape
            and bool((a.inner == b.inner).all())
            and bool((a.starts == b.starts).all())
        ):
            return a.with_values(a.values + b.values)
        return a.as_this(_add_sparse(a.coo(), b.coo()))
    x, y = a.coo(), b.coo()
    if x.indices.shape[0] != y.indices.shape[0]:  # one has more dense dimensions
        return dense_to_coo(x.dense() + y.dense(), x.sparse_dim)
    if x.indices.shape == y.indices.shape and bool((x.indices == y.indices).all()):
        return Coo(x.indices, x.values + y.values, x.shape, x.coalesced)
    joined = Coo(
        np.concatenate((x.indices, y.indices), 1), np.concatenate((x.values, y.values)), x.shape
    )
    return joined.coalesce() if x.coalesced and y.coalesced else joined


def _into_dense(ufunc: Any, out: Any, xs: tuple[Any, ...]) -> Any:
    """`out = ufunc(xs)` of a dense and a sparse array, where only stored elements need be read."""
    a, b = xs
    if ufunc not in (np.add, np.subtract) or not isinstance(b, Sparse):
        made = _elementwise(ufunc, xs, next(x for x in xs if isinstance(x, Sparse)))
        out[...] = made.dense() if isinstance(made, Sparse) else made
        return out
    if a is not out:
        out[...] = a
    x = b.coo()
    if x.shape != out.shape:
        out[...] = ufunc(out, x.dense())
    elif x.sparse_dim == 0:
        ufunc(out, x.dense(), out=out)
    else:
        x = x.coalesce()
        where = tuple(x.indices)
        out[where] = ufunc(out[where], x.values)
    return out


def _times(a: Any, b: Any) -> Any:
    if _is_number(b):
        return a.with_values(a.values * b)
    if isinstance(b, Sparse):
        if a.shape != b.shape:
            raise RuntimeError(
                f"mul: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != "
                f"{list(b.shape)}"
            )
        if isinstance(a, Compressed):
            return a.as_this(_times(a.coo(), b.coo()))
        x, y = a.coo(), b.coo().coalesce()
        if x.indices.shape == y.indices.shape and bool((x.indices == y.indices).all()):
            return Coo(x.indices, x.values * y.values, x.shape, x.coalesced)
        # the values of `b` in the places of `a` (zero where it has none), then what both have
        where, found = _look_up(x.places(), y.places())
        keep = found.nonzero()[0]
        values = x.values[keep] * y.values[where[keep]]
        return Coo(x.indices[:, keep], values, x.shape, x.coalesced)
    if isinstance(a, Compressed):
        if a.shape == b.shape and not a.batch and a.block is None and a.ndim == 2:
            outer = a.outer()
            pair = (outer, a.inner) if a.by_rows else (a.inner, outer)
            return a.with_values(a.values * b[pair])
        return a.as_this(_times(a.coo(), b))
    shape = np.broadcast_shapes(a.shape, b.shape)
    if shape != a.shape:
        raise RuntimeError(f"mul(sparse, dense): {list(b.shape)} does not fit {list(a.shape)}")
    return a.with_values(a.values * np.broadcast_to(b, shape)[tuple(a.indices)])


def _look_up(places: Any, known: Any) -> tuple[Any, Any]:
    """Where each of `places` stands in `known`, which is in order, and whether it does."""
    n = known.shape[0]
    if n == 0:
        return np.zeros_like(places), np.zeros_like(places, dtype=bool)
    at = np.minimum(np.searchsorted(known, places), n - 1)
    return at, known[at] == places


# --- products -------------------------------------------------------------------------------------
def product(a: Any, b: Any) -> Any:
    """The matrix product: dense unless both are sparse, and then in the layout of the first."""
    if a.ndim != 2 or b.ndim not in (1, 2):
        if a.ndim == 3 and b.ndim == 3:
            return _batched_product(a, b)
        raise refused("matmul", a if isinstance(a, Sparse) else b)
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"matmul: shapes {a.shape} and {b.shape} do not fit")
    if a.dtype.char not in _SCIPY or b.dtype.char not in _SCIPY:
        return _plain_product(a, b)
    x = _for_scipy(a) if isinstance(a, Sparse) else a
    y = _for_scipy(b) if isinstance(b, Sparse) else b
    if x is None or y is None:
        return _plain_product(a, b)
    made = x @ y
    if isinstance(a, Sparse) and isinstance(b, Sparse):
        made = made.tocoo()
        joined = Coo(np.stack((made.row, made.col)).astype(INT64), made.data, made.shape)
        like = a if isinstance(a, Compressed) else b if isinstance(b, Compressed) else a
        if isinstance(like, Compressed):
            return compress(joined, dtypes.sparse_csr)
        return joined.coalesce()
    return made


def _for_scipy(x: Sparse) -> Any:
    """A matrix as SciPy's (or CuPy's) own class, which has the products."""
    if x.ndim != 2 or x.values.ndim != 1:
        return None
    if isinstance(x.values, np.ndarray):
        scipy = importlib.import_module("scipy.sparse")
        row, column, any_ = scipy.csr_array, scipy.csc_array, scipy.coo_array
    else:
        scipy = importlib.import_module("cupyx.scipy.sparse")
        row, column, any_ = scipy.csr_matrix, scipy.csc_matrix, scipy.coo_matrix
    if isinstance(x, Compressed):
        make = row if x.by_rows else column
        return make((x.values, x.inner, x.starts), shape=x.shape)
    if isinstance(x, Coo) and x.sparse_dim == 2:
        return any_((x.values, (x.indices[0], x.indices[1])), shape=x.shape).tocsr()
    return None


def _plain_product(a: Any, b: Any) -> Any:
    """Products of dtypes that SciPy has not, or of matrices with dense dimensions: each stored
    element times a row of the other factor, added up."""
    if isinstance(a, Sparse) and isinstance(b, Sparse):
        return a.as_this(dense_to_coo(_plain_product(a, b.dense()), 2))
    if isinstance(b, Sparse):
        turned = _plain_product(permuted(b, (1, 0)), a.swapaxes(0, 1) if a.ndim == 2 else a)
        return turned.swapaxes(0, 1) if a.ndim == 2 else turned
    x = a.coo()
    if x.sparse_dim != 2 or x.values.ndim != 1:
        return v.narrow_matmul(x.dense(), b)
    rows, columns = x.indices
    wide = np.dtype(np.float32) if v.low_precision(a.dtype) else a.dtype
    values = x.values.astype(wide)
    picked = b.astype(wide)[columns]
    parts = picked * (values if b.ndim == 1 else values[:, None])
    return v.cast(v.unpick(parts, (x.shape[0], *b.shape[1:]), (v.SLOT,), rows), a.dtype)


def _batched_product(a: Any, b: Any) -> Any:
    """One product a member, as one product of a block-diagonal matrix."""
    if not isinstance(a, Coo) or isinstance(b, Sparse) or a.sparse_dim != 3:
        raise refused("bmm", a if isinstance(a, Sparse) else b)
    n, rows, columns = a.shape
    batch, i, j = a.indices
    flat = Coo(np.stack((batch * rows + i, batch * columns + j)), a.values, (n * rows, n * columns))
    return product(flat, b.reshape(n * columns, b.shape[2])).reshape(n, rows, b.shape[2])


# --- shapes ---------------------------------------------------------------------------------------
def permuted(x: Any, axes: tuple[int, ...]) -> Any:
    """Dimensions in another order: sparse ones among themselves, dense ones among themselves."""
    axes = tuple(d % x.ndim for d in axes)
    if axes == tuple(range(x.ndim)):
        return x
    shape = tuple(x.shape[d] for d in axes)
    if isinstance(x, Compressed):
        if axes != (1, 0):
            return x.as_this(permuted(x.coo(), axes))
        turned = {
            dtypes.sparse_csr: dtypes.sparse_csc, dtypes.sparse_csc: dtypes.sparse_csr,
            dtypes.sparse_bsr: dtypes.sparse_bsc, dtypes.sparse_bsc: dtypes.sparse_bsr,
        }[x.layout]  # fmt: skip
        values = x.values if x.block is None else x.values.swapaxes(1, 2)
        return Compressed(turned, x.starts, x.inner, values, shape)
    k = x.sparse_dim
    if any((d < k) != (at < k) for at, d in enumerate(axes)):
        raise RuntimeError(
            "permute(sparse_coo): transpositions between sparse and dense dimensions are not "
            "allowed. Found such a transposition in dimensions"
        )
    order = list(axes[:k])
    values = x.values.transpose(0, *[1 + d - k for d in axes[k:]])
    return Coo(x.indices[order], values, shape, x.coalesced and order == list(range(k)))


def selected(x: Any, dim: int, at: int) -> Any:
    """One slice along a dimension; dense, if no sparse dimension is left."""
    dim %= x.ndim
    c = x.coo()
    at = at % x.shape[dim] if x.shape[dim] else at
    shape = (*x.shape[:dim], *x.shape[dim + 1 :])
    if dim >= c.sparse_dim:
        values = c.values.take(at, axis=1 + dim - c.sparse_dim)
        return Coo(c.indices, values, shape, c.coalesced)
    keep = (c.indices[dim] == at).nonzero()[0]
    values = c.values[keep]
    if c.sparse_dim == 1:
        return v.cast(v.reduce_sum(values, (0,), False), values.dtype)
    rest = [d for d in range(c.sparse_dim) if d != dim]
    return Coo(c.indices[rest][:, keep], values, shape, c.coalesced)


def taken(x: Any, dim: int, index: Any) -> Any:
    """Slices along a dimension, by their numbers, which may come in any order and repeat."""
    dim %= x.ndim
    c = x.coo()
    n = int(index.shape[0])
    shape = (*x.shape[:dim], n, *x.shape[dim + 1 :])
    if dim >= c.sparse_dim:
        return x.as_this(
            Coo(c.indices, c.values.take(index, axis=1 + dim - c.sparse_dim), shape, c.coalesced)
        )
    order = np.argsort(c.indices[dim], kind="stable")
    known = c.indices[dim][order]
    first, last = np.searchsorted(known, index), np.searchsorted(known, index, side="right")
    counts = last - first
    ends = np.cumsum(counts)
    made = _counted(known, int(counts.sum()))
    to = np.searchsorted(ends, made, side="right")  # which of `index` each is for
    which = order[first[to] + made - (ends - counts)[to]]
    indices = c.indices[:, which]
    indices[dim] = to
    return x.as_this(Coo(indices, c.values[which], shape))


def joined(xs: list[Any], axis: int) -> Any:
    """Arrays one after the other along an axis."""
    if not all(isinstance(x, Coo) for x in xs):
        if any(not isinstance(x, Sparse) for x in xs):
            raise refused("cat", next(x for x in xs if isinstance(x, Sparse)))
        first = xs[0]
        made: Coo = joined([x.coo() for x in xs], axis)
        return first.as_this(made)
    axis %= xs[0].ndim
    parts, at = [], 0
    first = xs[0]
    kind = np.result_type(*[x.dtype for x in xs])
    for x in xs:
        indices = x.indices
        if axis < x.sparse_dim:
            indices = indices.copy()
            indices[axis] += at
        parts.append((indices, x.values.astype(kind)))
        at += x.shape[axis]
    shape = (*first.shape[:axis], at, *first.shape[axis + 1 :])
    if axis < first.sparse_dim:
        values = np.concatenate([p[1] for p in parts])
        return Coo(np.concatenate([p[0] for p in parts], 1), values, shape)
    return dense_to_coo(np.concatenate([x.dense() for x in xs], axis), first.sparse_dim)


def summed(x: Any, axes: Any, keep: bool) -> Any:
    """The sum over some dimensions, or all."""
    gone = set(range(x.ndim)) if axes is None else {
        d % x.ndim for d in ((axes,) if isinstance(axes, int) else axes)
    }  # fmt: skip
    c = x.coo()
    k = c.sparse_dim
    if len(gone) == x.ndim and not keep:
        return v.reduce_sum(c.values, None, False)
    inside = tuple(1 + d - k for d in sorted(gone) if d >= k)
    values = v.reduce_sum(c.values, inside, keep) if inside else c.values
    left = [d for d in range(k) if d not in gone]
    if not left and not keep:
        return v.reduce_sum(values, (0,), False)
    if len(left) == k:
        shape = tuple(1 if d in gone else n for d, n in enumerate(x.shape) if keep or d not in gone)
        return x.as_this(Coo(c.indices, values, shape, c.coalesced))
    if keep:
        indices = c.indices.copy()
        for d in gone:
            if d < k:
                indices[d] = 0
        shape = tuple(1 if d in gone else n for d, n in enumerate(x.shape))
        return x.as_this(Coo(indices, values, shape).coalesce())
    shape = tuple(n for d, n in enumerate(x.shape) if d not in gone)
    return Coo(c.indices[left], values, shape).coalesce()


def masked(x: Any, mask: Any) -> Any:
    """The elements of `x`, dense or sparse, in the places of a sparse `mask`, in its layout."""
    if isinstance(x, Sparse):
        c, m = x.coo().coalesce(), mask.coo()
        if not mask.shape == x.shape:
            raise RuntimeError("sparse_mask(): operands have incompatible sizes")
        where, found = _look_up(m.places(), c.places())
        values = np.zeros_like(c.values, shape=(m.nnz, *c.values.shape[1:]))
        keep = found.nonzero()[0]
        values[keep] = c.values[where[keep]]
    else:
        m = mask.coo()
        values = np.broadcast_to(x, mask.shape)[tuple(m.indices)]
        if m.sparse_dim == 0:
            values = np.broadcast_to(x, mask.shape)[None]
    if isinstance(mask, Compressed):
        if mask.block is not None or mask.batch:
            return mask.as_this(m.with_values(values))
        return mask.with_values(values) if mask.by_rows else mask.as_this(m.with_values(values))
    return m.with_values(values)


def sampled_product(a: Any, b: Any, mask: Any) -> Any:
    """The elements of `a @ b` in the places of `mask`, without computing the others."""
    m = mask.coo()
    if m.sparse_dim != 2 or m.ndim != 2 or isinstance(a, Sparse) or isinstance(b, Sparse):
        return masked(v.matmul(a, b), mask)
    if v.low_precision(a.dtype):
        return masked(v.narrow_matmul(a, b), mask)
    rows, columns = m.indices
    values = np.einsum("ij,ij->i", a[rows], b.swapaxes(0, 1)[columns])
    return mask.as_this(m.with_values(values))


def stored_at(g: Any, indices: Any, values_shape: tuple[int, ...]) -> Any:
    """The elements of `g`, dense or sparse, at `indices`."""
    if isinstance(g, Sparse):
        like = np.zeros_like(g.values, shape=values_shape)
        return masked(g, Coo(indices, like, g.shape)).values
    return g[tuple(indices)] if indices.shape[0] else np.broadcast_to(g, values_shape)


def softmax_of(x: Coo, dim: int, logarithm: bool) -> Coo:
    """Softmax over the stored elements of each line along `dim`; the others count as -inf."""
    x = x.coalesce()
    dim %= x.ndim
    kind = x.dtype
    if kind.kind == "f":
        x = x.astype(np.float64)  # the logarithm of a sum near 1 needs the digits
    made: Coo = _softmax_wide(x, dim, logarithm).astype(kind)
    return made


def _softmax_wide(x: Coo, dim: int, logarithm: bool) -> Any:
    if dim >= x.sparse_dim:
        axis = 1 + dim - x.sparse_dim
        top = v.reduce_max(x.values, (axis,), True)
        total = v.reduce_sum(np.exp(x.values - top), (axis,), True)
        return _normed(x, top, total, logarithm)
    which, n = lines(x, dim)
    top = np.full_like(x.values, -np.inf, shape=(n, *x.values.shape[1:]))
    at = which.reshape((-1, *(1,) * (x.values.ndim - 1)))
    at = np.broadcast_to(at, x.values.shape)
    top = v.reduce_along(top, 0, at, x.values, "amax", True)
    top_of_each = top[which]
    total = v.unpick(np.exp(x.values - top_of_each), top.shape, (v.SLOT,), which)[which]
    return _normed(x, top_of_each, total, logarithm)


def _normed(x: Coo, top: Any, total: Any, logarithm: bool) -> Coo:
    if logarithm:
        return x.with_values(x.values - (top + np.log(total)))
    return x.with_values(np.exp(x.values - top) / total)


def lines(x: Coo, dim: int) -> tuple[Any, int]:
    """For each stored element the number of its line along a sparse dimension, and how many
    lines there are."""
    rest = [d for d in range(x.sparse_dim) if d != dim]
    flat = np.zeros_like(x.indices, shape=(x.nnz,))
    for d in rest:
        flat = flat * x.shape[d] + x.indices[d]
    known, which = np.unique(flat, return_inverse=True)
    return which.reshape(-1), int(known.shape[0])


def softmax_slope(x: Coo, y: Coo, g: Any, dim: int, logarithm: bool) -> Coo:
    """The gradient of `softmax_of`, given its result `y`."""
    x = x.coalesce()
    dim %= x.ndim
    at = masked(g, y).values
    weight = np.exp(y.values) if logarithm else y.values
    parts = at if logarithm else at * y.values
    if dim >= x.sparse_dim:
        total = v.reduce_sum(parts, (1 + dim - x.sparse_dim,), True)
    else:
        which, n = lines(x, dim)
        total = v.unpick(parts, (n, *parts.shape[1:]), (v.SLOT,), which)[which]
    return y.with_values(at - weight * total if logarithm else weight * (at - total))


# --- words for rules: on sparse and dense arrays alike, and on tensors ----------------------------
@primitive
def sparse_of(indices: Array, values: Array, shape: tuple[int, ...], coalesced: bool) -> Array:
    """A `Coo`."""
    return Coo(indices, values, shape, coalesced)


@primitive
def to_dense(x: Array) -> Array:
    """As an ordinary array."""
    return x


@primitive
def sparse_masked(x: Array, mask: Array) -> Array:
    """The elements of `x` in the places of `mask`."""
    return masked(x, mask)


@primitive
def sampled(a: Array, b: Array, mask: Array) -> Array:
    """The elements of the product `a @ b` in the places of `mask`."""
    return sampled_product(a, b, mask)


@primitive
def stored(x: Array) -> Array:
    """The values."""
    return x


def indices_of(x: Any) -> Any:
    """Where the values stand, of a raw array or a tensor."""
    raw = getattr(x, "_array", x)
    return raw.indices


# --- the words of the vocabulary ------------------------------------------------------------------
_rules: Final[dict[str, Callable[..., Any]]] = {
    "sparse_of": Coo,
    "to_dense": lambda x: x.dense() if isinstance(x, Sparse) else x,
    "sparse_masked": masked,
    "sampled": sampled_product,
    "stored": lambda x: x.values,
    "cast": lambda x, dtype: x if x.dtype == dtype else x.astype(dtype),
    "copy": lambda x: x.copy(),
    "narrow_matmul": product,
    "matrices": product,
    "permute": permuted,
    "turned": lambda x: permuted(x, (1, 0)),
    "concat": joined,
    "reduce_sum": summed,
}


def _rule(fn: Callable[..., Any]) -> Callable[..., Any]:
    _rules[fn.__name__.removesuffix("_word")] = fn
    return fn


@_rule
def swap(x: Any, a: int, b: int) -> Any:
    axes = list(range(x.ndim))
    if isinstance(x, Coo):
        low, high = sorted((a % x.ndim, b % x.ndim))
        if low < x.sparse_dim <= high:
            raise RuntimeError(
                f"sparse transpose: transposed dimensions must be sparse Got sparse_dim: "
                f"{x.sparse_dim}, d0: {a % x.ndim}, d1: {b % x.ndim}"
            )
    axes[a], axes[b] = axes[b], axes[a]
    return permuted(x, tuple(axes))


@_rule
def moved(x: Any, where: Any) -> Any:
    if isinstance(x, Coo):
        return Coo(move(x.indices, where), move(x.values, where), x.shape, x.coalesced)
    return Compressed(
        x.layout, move(x.starts, where), move(x.inner, where), move(x.values, where), x.shape
    )


@_rule
def constant(like: Any, value: Any, dtype: Any) -> Any:
    return v.constant(like.values, value, dtype)


@_rule
def full(like: Any, shape: Any, value: Any, dtype: Any) -> Any:
    if isinstance(value, (int, float)) and value == 0 and tuple(shape) == like.shape:
        return like.emptied(dtype)
    return v.full(like.values, shape, value, dtype)


@_rule
def empty(like: Any, shape: Any, dtype: Any) -> Any:
    return v.empty(like.values, shape, dtype)


@_rule
def empty_as(like: Any, dtype: Any) -> Any:
    return like.emptied(dtype)


@_rule
def laid_out(x: Any, order: Any) -> Any:
    return x


@_rule
def contiguous(x: Any) -> Any:
    return x


@_rule
def overwrite(target: Any, source: Any) -> None:
    if not isinstance(target, Sparse):
        target[...] = source.dense()
    elif _is_number(source):
        target.fill(source)
    elif isinstance(source, Sparse):
        if source.dtype != target.dtype:
            source = source.astype(target.dtype)
        target.become(
            target.as_this(source.coo()) if source.layout is not target.layout else source
        )
    else:
        raise refused("copy_", target)


@_rule
def unsqueezed(x: Any, dim: int) -> Any:
    c = x.coo()
    at = x.ndim + 1 + dim if dim < 0 else dim
    shape = (*x.shape[:at], 1, *x.shape[at:])
    if at <= c.sparse_dim:
        row = np.zeros_like(c.indices, shape=(1, c.nnz))
        indices = np.concatenate((c.indices[:at], row, c.indices[at:]))
        return Coo(indices, c.values, shape, c.coalesced)
    values = c.values.reshape((c.nnz, *shape[c.sparse_dim :]))
    return Coo(c.indices, values, shape, c.coalesced)


@_rule
def window(x: Any, index: Any) -> Any:
    """Basic indexing: integers and slices, from the left or around an ellipsis."""
    parts = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in parts:
        at = parts.index(Ellipsis)
        given = sum(p is not None for p in parts) - 1
        parts[at : at + 1] = [slice(None)] * (x.ndim - given)
    dim = 0
    for part in parts:
        if not isinstance(x, Sparse):
            x, dim = x[(slice(None),) * dim + (part,)], dim + (not isinstance(part, int))
        elif isinstance(part, int):
            x = selected(x, dim, part)
        elif part is None:
            x, dim = unsqueezed(x, dim), dim + 1
        else:
            start, stop, step = part.indices(x.shape[dim])
            if (start, stop, step) != (0, x.shape[dim], 1):
                chosen = _counted(x.values, len(range(start, stop, step))) * step + start
                x = taken(x, dim, chosen)
            dim += 1
    return x


@_rule
def pick(x: Any, index: Any, *arrays: Any) -> Any:
    parts = [p for p in index if p is not Ellipsis]
    if len(arrays) != 1 or not all(p is v.SLOT or p == slice(None) for p in parts):
        raise refused("index.Tensor", x)
    dim = parts.index(v.SLOT)
    if index[0] is Ellipsis:
        dim -= len(parts)
    if arrays[0].ndim != 1:
        raise refused("index.Tensor", x)
    return taken(x, dim, arrays[0])


@_rule
def broadcast(x: Any, shape: tuple[int, ...]) -> Any:
    if tuple(shape) == x.shape:
        return x
    raise refused("expand", x)


@_rule
def reshape(x: Any, shape: tuple[int, ...]) -> Any:
    shape = tuple(shape)
    if shape == x.shape:
        return x
    c = x.coo()
    if -1 in shape:
        known = math.prod(n for n in shape if n != -1)
        shape = tuple(x.size // known if n == -1 else n for n in shape)
    dense = x.shape[c.sparse_dim :]
    if dense and shape[len(shape) - len(dense) :] != dense:
        raise refused("view", x)
    flat, rows = c.places(), []
    for n in reversed(shape[: len(shape) - len(dense)]):
        rows.append(flat % n)
        flat = flat // n
    return Coo(np.stack(rows[::-1]), c.values, shape, c.coalesced)


@_rule
def real(x: Any) -> Any:
    return x.with_values(v.real(x.values))


@_rule
def imag(x: Any) -> Any:
    return x.with_values(v.imag(x.values))


@_rule
def conjugated(x: Any) -> Any:
    return v.conjugate(x)  # their elements stand elsewhere: no view


@_rule
def special(x: Any, name: str, *others: Any) -> Any:
    if name not in ("erf", "erfinv") or others:
        raise refused(name, x)
    c = x.coalesce() if isinstance(x, Coo) else x
    return c.with_values(v.special(c.values, name))


@_rule
def where(condition: Any, a: Any, b: Any) -> Any:
    """With a sparse condition, and `b` zero wherever that stores nothing."""
    if not isinstance(condition, Sparse) or not (isinstance(b, Sparse) or _is_zero(b)):
        raise refused("where.self", next(x for x in (condition, a, b) if isinstance(x, Sparse)))
    parts = [_aligned(x, condition) for x in (condition, a, b)]
    return condition.with_values(v.where(*parts))


def _is_zero(x: Any) -> bool:
    return isinstance(x, (int, float)) and x == 0


def _aligned(x: Any, like: Sparse) -> Any:
    """The values of `x` in the places of `like`."""
    if not isinstance(x, Sparse):
        return x if _is_number(x) else masked(x, like).values
    return x.values if x.values.shape == like.values.shape else masked(x, like).values


@_rule
def reduce_any(x: Any, axes: Any, keep: bool) -> Any:
    if axes is not None or keep:
        raise refused("any.dim", x)
    return v.reduce_any(x.values, None, False)


def _answer(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    rule = _rules.get(name)
    if rule is None:
        raise refused(name, next(x for x in args if isinstance(x, Sparse)))
    return rule(*args)


register(Sparse, Kind(7, _answer))
