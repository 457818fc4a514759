"""How sparse arrays are computed with: element by element, in products, by shapes, in softmax.

See `sparse` for the arrays themselves, and `sparse_rules` for the words that lead here.
"""

from __future__ import annotations

import importlib
from typing import Any, Final

import numpy as np

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import Batched
from rushlight.arrays.sparse import (
    INT64,
    Compressed,
    Coo,
    Sparse,
    compress,
    count_up_to,
    dense_to_coo,
    refused,
)

_SCIPY: Final = "fdFD"  # dtypes that SciPy's products take without widening
# element-wise functions with f(0) = 0: those that are linear need no coalescing
_LINEAR: Final = frozenset("negative positive conjugate".split())
_ZERO_KEPT: Final = frozenset(
    "absolute arcsin arcsinh arctan arctanh ceil deg2rad expm1 floor isinf isnan log1p rad2deg "
    "rint sign signbit sin sinh sqrt square tan tanh trunc".split()
)


# --- element by element ---------------------------------------------------------------------------
def is_single_number(x: Any) -> bool:
    return not hasattr(x, "ndim") or (x.ndim == 0 and not isinstance(x, Sparse))


def elementwise_sparse(ufunc: Any, xs: tuple[Any, ...], one: Sparse) -> Any:
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
        return sparse_matmul(a, b)
    if name in ("add", "subtract"):
        return _add(a, b, name == "subtract")
    if name == "multiply":
        if isinstance(b, Sparse) and not isinstance(a, Sparse):
            a, b = b, a
        return _times(a, b)
    if name == "divide" and isinstance(a, Sparse):
        if not is_single_number(b):
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
    if keeps_zero and isinstance(a, Sparse) and is_single_number(b):
        x = a.coalesce() if isinstance(a, Coo) else a
        return x.with_values(ufunc(x.values, b))
    raise refused(name, one)


def _add(a: Any, b: Any, minus: bool) -> Any:
    if is_single_number(a) or is_single_number(b):
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
        return compute_into_dense(np.subtract if minus else np.add, out, (out, b))
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


def compute_into_dense(ufunc: Any, out: Any, xs: tuple[Any, ...]) -> Any:
    """`out = ufunc(xs)` of a dense and a sparse array, where only stored elements need be read."""
    a, b = xs
    if ufunc not in (np.add, np.subtract) or not isinstance(b, Sparse):
        made = elementwise_sparse(ufunc, xs, next(x for x in xs if isinstance(x, Sparse)))
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
    if is_single_number(b):
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
def sparse_matmul(a: Any, b: Any) -> Any:
    """The matrix product: dense unless both are sparse, and then in the layout of the first."""
    if type(b) is Batched and b.has_batch_dim:
        return Batched(_each_product(a, b.value), b.level)
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


def _each_product(a: Any, b: Any) -> Any:
    """A matrix times each of several vectors or matrices, side by side in one product."""
    if b.ndim == 2:
        return v.swap(v.matmul(a, v.swap(b, 0, 1)), 0, 1)
    count, n, p = b.shape
    made = v.matmul(a, v.reshape(v.permute(b, (1, 0, 2)), (n, count * p)))
    return v.permute(v.reshape(made, (a.shape[0], count, p)), (1, 0, 2))


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
    return sparse_matmul(flat, b.reshape(n * columns, b.shape[2])).reshape(n, rows, b.shape[2])


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
    made = count_up_to(known, int(counts.sum()))
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
