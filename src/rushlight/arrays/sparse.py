"""Sparse arrays: the elements that are not zero, and where they stand.

    Coo          `indices`, a column for each element that is stored, and `values`
    Compressed   rows (CSR, BSR) or columns (CSC, BSC) one after the other: where each begins in the
                 list of its elements, where these stand in it, and `values`

They are a kind of array as those of other devices are: a plain Tensor holds one, and ops run on it
by the ufuncs and words that have a meaning here. Element-wise functions that keep zero go to the
values alone; what would have to make all zeros something else is refused, as in PyTorch. What a
sparse array is made of lies on the CPU or on a GPU: NumPy's functions find CuPy's by themselves.

Imported when the first sparse array is made; nothing here is on the way of dense ones. How they are
computed with stands in `sparse_math`, and which words of the vocabulary they answer to, and how, in
`sparse_rules`.

Note [Uncoalesced]
    The indices of a `Coo` may name a place more than once: its value is the sum. Linear functions
    leave that as it is, others need the sums and call `coalesce` first. `coalesced` says that every
    place is named once, and that places are in order.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import device_of, move, put_off

INT64: Final = np.dtype(np.int64)


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
            return sparse_math.compute_into_dense(ufunc, target[0], inputs)
        if any(hasattr(x, "_storage") for x in inputs):
            return NotImplemented  # the tensor records it
        made = sparse_math.elementwise_sparse(ufunc, inputs, self)
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
        return np.searchsorted(self.starts[1:], count_up_to(self.inner, self.nnz), side="right")

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


def count_up_to(like: Any, n: int) -> Any:
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
    """A dense array in a compressed layout; leading dimensions before the matrix are batches,
    which must store as many elements each."""
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


from rushlight.arrays import sparse_math  # noqa: E402  # last: it imports the classes above
