"""Making sparse tensors, of their parts or of other tensors, and making them dense again."""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import sparse as raw
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.device import device as device_class
from rushlight.arrays.host import asarray, is_sparse
from rushlight.core.graph import TensorBase, wrap
from rushlight.core.record import apply, finish
from rushlight.ops.registry import function, functions, shared_op
from rushlight.ops.sparse import rules

_INT64: Final = dtypes.int64.numpy
LAYOUTS: Final = {
    dtypes.sparse_coo: "Sparse", dtypes.sparse_csr: "SparseCsr", dtypes.sparse_csc: "SparseCsc",
    dtypes.sparse_bsr: "SparseBsr", dtypes.sparse_bsc: "SparseBsc", dtypes.strided: "Strided",
}  # fmt: skip
# the words by which PyTorch names the parts of each compressed layout
PARTS: Final = {
    dtypes.sparse_csr: ("crow_indices", "col_indices"),
    dtypes.sparse_csc: ("ccol_indices", "row_indices"),
    dtypes.sparse_bsr: ("crow_indices", "col_indices"),
    dtypes.sparse_bsc: ("ccol_indices", "row_indices"),
}


class Checking:
    """Whether new sparse tensors are checked where the call does not say."""

    def __init__(self) -> None:
        self.on = False


checking: Final = Checking()


def layout_of(x: Any) -> str:
    """PyTorch's name of a tensor's layout, in errors."""
    return LAYOUTS[getattr(x._array, "layout", dtypes.strided)]


def _tensor(x: Any, dtype: Any, place: Any) -> Any:
    """What the user gave, as a tensor of its own history."""
    if not isinstance(x, TensorBase):
        return functions["tensor"](x, dtype=dtype, device=place)
    return x if dtype is None and place is None else x.to(dtype=dtype, device=place)  # type: ignore[attr-defined]  # Tensor's methods


def _places(x: Any, place: Any) -> Any:
    if isinstance(x, (list, tuple)) and not x:
        x = wrap(asarray([], _INT64))
    made = _tensor(x, None, place)
    if made._array.dtype != _INT64:
        made = made.detach().to(dtypes.int64)
    return made


def _asks(t: Any, wanted: bool) -> Any:
    if wanted:
        t.requires_grad_()
    return finish(t)


@function(method=False)
def sparse_coo_tensor(
    indices: Any = None, values: Any = None, size: Any = None, *, dtype: Any = None,
    device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None, is_coalesced: bool | None = None,
) -> Any:  # fmt: skip
    """A sparse tensor of places and the values there; a place that is named more than once has the
    sum. Of a size alone, an empty one.

    Args:
        indices: a column for each value, a row for each sparse dimension.
        values: the values; dimensions after the first are dense.
        size: the shape; by default just large enough.
        check_invariants: whether to look at the indices, which takes time.
        is_coalesced: says that every place is named once, in order.

    >>> s = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3))
    >>> s.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    place = None if device is None else device_class(device)
    if values is None:
        shape = _sizes(indices if size is None else size)
        i = v.full(asarray(0), (len(shape), 0), 0, _INT64)
        kind = (dtypes.default if dtype is None else dtype).numpy
        made = wrap(raw.Coo(i, v.full(i, (0,), 0, kind), shape, True))
        return _asks(made if place is None else made.to(place), requires_grad)  # type: ignore[attr-defined]
    x = _tensor(values, dtype, place)
    i = _places(indices, x.device if place is None else place)
    given = None if size is None else _sizes(size)
    _check_coo(i._array, x._array, given)
    shape = _least(i._array, x._array) if given is None else given
    if checking.on if check_invariants is None else check_invariants:
        _check_places(i._array, shape, bool(is_coalesced))
    if requires_grad:
        x = x.detach()
    made = apply(shared_op(rules.SparseCoo, shape, bool(is_coalesced)), i, x)
    return _asks(made, requires_grad)


def _sizes(size: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in size)


def _least(i: Any, x: Any) -> tuple[int, ...]:
    """The smallest shape that has all places."""
    if i.shape[1] == 0:
        lead: tuple[int, ...] = (0,) * i.shape[0]
    else:
        if bool(v.reduce_min(i, None, False) < 0):
            raise RuntimeError(
                f"found negative index {int(v.reduce_min(i, None, False))} for dim "
                f"{int(v.argmin(v.reduce_min(i, (1,), False), 0, False))}"
            )
        lead = tuple(int(n) + 1 for n in v.reduce_max(i, (1,), False))
    return (*lead, *x.shape[1:])


def _check_coo(i: Any, x: Any, shape: tuple[int, ...] | None) -> None:
    if i.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(i.shape)}")
    if x.ndim == 0:
        raise RuntimeError("values must have at least 1 dimension, but got 0")
    if i.shape[1] != x.shape[0]:
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{i.shape[1]}, nnz from values: {x.shape[0]}"
        )
    if shape is None:
        return
    sparse, dense = i.shape[0], x.ndim - 1
    if len(shape) != sparse + dense:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(shape)}, "
            f"sparse_dim = {sparse}, dense_dim = {dense}"
        )
    if shape[sparse:] != x.shape[1:]:
        raise RuntimeError(
            f"values has incorrect size, expected {[x.shape[0], *shape[sparse:]]}, got "
            f"{list(x.shape)}"
        )


def _check_places(i: Any, shape: tuple[int, ...], coalesced: bool) -> None:
    for d in range(i.shape[0]):
        if i.shape[1] == 0:
            break
        low, high = int(v.reduce_min(i[d], None, False)), int(v.reduce_max(i[d], None, False))
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {d}")
        if high >= shape[d]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {shape[d]} but found "
                f"index {high}"
            )
    if coalesced and i.shape[1] > 1:
        flat = raw.Coo(i, i[0], (*shape[: i.shape[0]],)).places()
        if bool(v.reduce_any(flat[1:] <= flat[:-1], None, False)):
            raise RuntimeError(
                "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
            )


@function(method=False)
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *,
    dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, check_invariants: bool | None = None,
) -> Any:  # fmt: skip
    """A sparse tensor of rows or columns, one after the other, as `layout` says.

    Args:
        compressed_indices: where each row (or column) begins in the list of elements, and its end.
        plain_indices: where each element stands in its row (or column).
        values: the elements, or blocks.
        size: the shape; by default just large enough.
        layout: `torch.sparse_csr`, `sparse_csc`, `sparse_bsr` or `sparse_bsc`.
        check_invariants: whether to look at the indices, which takes time.

    >>> s = torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [3., 4.], layout=torch.sparse_csr)
    >>> s.to_dense()
    tensor([[0., 3.],
            [4., 0.]])
    """
    if layout not in PARTS:
        raise RuntimeError(
            "sparse_compressed_tensor expected sparse compressed tensor layout but got "
            + ("none" if layout is None else LAYOUTS.get(layout, str(layout)))
        )
    place = None if device is None else device_class(device)
    x = _tensor(values, dtype, place)
    at = x.device if place is None else place
    starts, inner = (_ints(p, at) for p in (compressed_indices, plain_indices))
    _check_ranks(starts._array, inner._array, layout)
    shape = (
        _compressed_size(starts._array, inner._array, x._array, layout)
        if size is None
        else _sizes(size)
    )
    _check_compressed(starts._array, inner._array, x._array, shape, layout)
    if checking.on if check_invariants is None else check_invariants:
        _check_order(starts._array, inner._array, shape, x._array, layout)
    if requires_grad:
        x = x.detach()
    made = apply(rules.SparseCompressed(shape, layout), starts, inner, x)
    return _asks(made, requires_grad)


def _ints(x: Any, place: Any) -> Any:
    made = _tensor(x, None, place)
    if made._array.dtype not in (_INT64, dtypes.int32.numpy):
        made = made.detach().to(dtypes.int64)
    return made


def _block_of(x: Any, batch: int, layout: Any) -> tuple[int, int]:
    plain = layout in (dtypes.sparse_csr, dtypes.sparse_csc)
    block = 0 if plain else 2
    if x.ndim <= batch + block:
        raise RuntimeError(
            "values must have dimensionality > sum of batch and block dimensionalities "
            f"(={batch} + {block}) but got {x.ndim}"
        )
    if plain:
        return 1, 1
    rows, columns = x.shape[batch + 1 : batch + 3]
    return rows, columns


def _compressed_size(starts: Any, inner: Any, x: Any, layout: Any) -> tuple[int, ...]:
    batch = inner.ndim - 1
    height, width = _block_of(x, batch, layout)
    outer = starts.shape[-1] - 1
    within = int(v.reduce_max(inner, None, False)) + 1 if inner.size else 0
    rows, columns = (outer, within) if layout in _ROWS else (within, outer)
    dense = x.shape[batch + (1 if (height, width) == (1, 1) and layout in _PLAIN else 3) :]
    return (*inner.shape[:-1], rows * height, columns * width, *dense)


_ROWS: Final = (dtypes.sparse_csr, dtypes.sparse_bsr)
_PLAIN: Final = (dtypes.sparse_csr, dtypes.sparse_csc)


def _check_ranks(starts: Any, inner: Any, layout: Any) -> None:
    outer_name, inner_name = PARTS[layout]
    if starts.ndim < 1:
        raise RuntimeError(f"{outer_name} must have dimensionality >= 1 but got 0")
    if starts.ndim != inner.ndim:
        raise RuntimeError(
            f"{outer_name} and {inner_name} dimensionalities must be equal but got {starts.ndim} "
            f"and {inner.ndim}, respectively"
        )


def _check_compressed(starts: Any, inner: Any, x: Any, shape: tuple[int, ...], layout: Any) -> None:
    outer_name, inner_name = PARTS[layout]
    batch = inner.ndim - 1
    if x.ndim <= batch:
        raise RuntimeError(f"values must have dimensionality > {batch} but got {x.ndim}")
    if inner.shape[-1] != x.shape[batch]:
        raise RuntimeError(
            f"{inner_name}.shape[-1] must be equal to nnz (={x.shape[batch]}) as defined by "
            f"values.shape[{batch}], but got {inner.shape[-1]}"
        )
    height, width = _block_of(x, batch, layout)
    rows, columns = shape[batch : batch + 2]
    n = rows // height if layout in _ROWS else columns // width
    if starts.shape[-1] != n + 1:
        raise RuntimeError(
            f"{outer_name}.shape[-1] must be equal to the number of "
            f"{'rows' if layout in _ROWS else 'columns'} + 1 (={n + 1}), but got "
            f"{starts.shape[-1]}"
        )


def _check_order(starts: Any, inner: Any, shape: tuple[int, ...], x: Any, layout: Any) -> None:
    outer_name, inner_name = PARTS[layout]
    batch = inner.ndim - 1
    height, width = _block_of(x, batch, layout)
    rows, columns = shape[batch] // height, shape[batch + 1] // width
    most = columns if layout in _ROWS else rows
    if bool(v.reduce_any(starts[..., 0] != 0, None, False)):
        raise RuntimeError(f"`{outer_name}[..., 0] == 0` is not satisfied.")
    if bool(v.reduce_any(starts[..., -1] != inner.shape[-1], None, False)):
        raise RuntimeError(f"`{outer_name}[..., -1] == nnz` is not satisfied.")
    if bool(v.reduce_any(starts[..., 1:] < starts[..., :-1], None, False)):
        raise RuntimeError(
            f"`0 <= {outer_name}[..., 1:] - {outer_name}[..., :-1] <= "
            f"{'ncols' if layout in _ROWS else 'nrows'}` is not satisfied."
        )
    if inner.size and (
        bool(v.reduce_any(inner < 0, None, False)) or bool(v.reduce_any(inner >= most, None, False))
    ):
        raise RuntimeError(
            f"`0 <= {inner_name} < {'ncols' if layout in _ROWS else 'nrows'}` is not satisfied."
        )


def _maker(name: str, layout: Any, outer: str, inner: str, example: str, gives: str) -> None:
    from rushlight.ops.registry import variant

    def make(
        compressed: Any, plain: Any, values: Any, size: Any = None, *, dtype: Any = None,
        device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
        check_invariants: bool | None = None,
    ) -> Any:  # fmt: skip
        return sparse_compressed_tensor(
            compressed, plain, values, size, dtype=dtype, layout=layout, device=device,
            pin_memory=pin_memory, requires_grad=requires_grad, check_invariants=check_invariants,
        )  # fmt: skip

    text = (
        f"`sparse_compressed_tensor` with the layout `{layout}`.\n\n"
        f">>> torch.{name}({example}).to_dense()\n{gives}\n"
    )
    function(method=False)(variant(make, name, text, compressed=outer, plain=inner))


_EXAMPLE: Final = "[0, 1, 2], [1, 0], [3., 4.]"
_BLOCKS: Final = "[0, 1], [0], [[[3., 4.]]]"
_maker(
    "sparse_csr_tensor", dtypes.sparse_csr, "crow_indices", "col_indices", _EXAMPLE,
    "tensor([[0., 3.],\n        [4., 0.]])",
)  # fmt: skip
_maker(
    "sparse_csc_tensor", dtypes.sparse_csc, "ccol_indices", "row_indices", _EXAMPLE,
    "tensor([[0., 4.],\n        [3., 0.]])",
)  # fmt: skip
_maker(
    "sparse_bsr_tensor", dtypes.sparse_bsr, "crow_indices", "col_indices", _BLOCKS,
    "tensor([[3., 4.]])",
)  # fmt: skip
_maker(
    "sparse_bsc_tensor", dtypes.sparse_bsc, "ccol_indices", "row_indices", _BLOCKS,
    "tensor([[3., 4.]])",
)  # fmt: skip


# --- to and fro -----------------------------------------------------------------------------------
@function(free=False)
def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """As a dense tensor; a dense one is given as it is.

    Args:
        masked_grad: whether the gradient is that of the stored elements alone (the default), or of
            all.

    >>> torch.sparse_coo_tensor([[1]], [5.], (3,)).to_dense()
    tensor([0., 5., 0.])
    >>> x = torch.ones(2)
    >>> x.to_dense() is x
    True
    """
    if dtype is not None and not isinstance(dtype, dtypes.dtype):
        raise TypeError(
            "to_dense(): argument 'dtype' (position 1) must be torch.dtype, not "
            f"{dtypes.type_name(dtype)}"
        )
    made = self
    if is_sparse(bottom(self._array)):
        made = apply(rules.ToDense(masked_grad is not False), self)
    return made if dtype is None else made.to(dtype)


_OPS: Final = {
    dtypes.sparse_csr: rules.ToSparseCsr, dtypes.sparse_csc: rules.ToSparseCsc,
    dtypes.sparse_bsr: rules.ToSparseBsr, dtypes.sparse_bsc: rules.ToSparseBsc,
}  # fmt: skip


def _converted(name: str, x: Any, layout: Any, blocksize: Any, dense_dim: int | None) -> Any:
    have = getattr(x._array, "layout", dtypes.strided)
    if isinstance(blocksize, int):
        blocksize = (blocksize, blocksize)
    if layout is have and (blocksize is None or tuple(blocksize) == x._array.block):
        return x
    if layout is dtypes.sparse_coo:
        return apply(rules.ToSparse(layout), x)
    ndim = x._array.ndim
    if dense_dim is None:
        dense_dim = 0
    if not is_sparse(x._array) and ndim - dense_dim < 2:
        raise RuntimeError(
            f"{name}: expected at least 2 dimensions in a matrix to be compressed, but got {ndim}"
        )
    if layout in (dtypes.sparse_bsr, dtypes.sparse_bsc):
        if blocksize is None:
            raise RuntimeError(f"{name}: blocksize is required for a layout of blocks")
        block = tuple(int(n) for n in blocksize)
        if len(block) != 2:
            raise RuntimeError(
                f"dense_{name}: blocksize needs to be a tuple of size 2, but got {len(block)}"
            )
        batch = ndim - 2 - dense_dim
        shape = x._array.shape[batch : batch + 2]
        if any(b <= 0 or n % b for n, b in zip(shape, block)):
            raise RuntimeError(
                f"dense_{name}: tensor sparse size ({shape[0]},{shape[1]}) must be divisible by "
                f"given blocksize ({','.join(map(str, block))})"
            )
        return apply(_OPS[layout](layout, None, block, dense_dim), x)
    if is_sparse(x._array) and ndim != 2 and x._array.layout is dtypes.sparse_coo:
        raise RuntimeError(
            f"{name}: conversion from Sparse to {LAYOUTS[layout]} for input tensors with "
            f"sparse_dim()!=2 is not supported"
        )
    return apply(_OPS[layout](layout, None, None, dense_dim), x)


@function(free=False)
def to_sparse(
    self: Any, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None,
    dense_dim: int | None = None,
) -> Any:  # fmt: skip
    """As a sparse tensor, by default a COO tensor: what is zero is left out.

    Args:
        sparse_dim: how many dimensions are sparse; the others, behind them, stay dense.
        layout: which sparse layout.
        blocksize: the size of a block, for layouts that store blocks.
        dense_dim: how many dimensions stay dense, for other layouts than COO.

    >>> torch.tensor([[0., 2.], [0., 0.]]).to_sparse()
    tensor(indices=tensor([[0],
                           [1]]),
           values=tensor([2.]),
           size=(2, 2), nnz=1, layout=torch.sparse_coo)
    """
    if isinstance(sparse_dim, dtypes.layout):
        layout, sparse_dim = sparse_dim, None
    if layout not in (None, dtypes.sparse_coo):
        return _converted("to_sparse", self, layout, blocksize, dense_dim)
    if is_sparse(self._array):
        return _converted("to_sparse", self, dtypes.sparse_coo, None, None)
    if sparse_dim is None:
        return apply(shared_op(rules.ToSparse), self)
    n = self._array.ndim
    if not (0 < sparse_dim <= n or (sparse_dim == 0 and n == 0)):
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{n}] range, but {sparse_dim} is "
            "given"
        )
    return apply(rules.ToSparseDims(dtypes.sparse_coo, sparse_dim), self)


@function(free=False)
def to_sparse_coo(self: Any) -> Any:
    """As a COO tensor: places and values.

    >>> torch.tensor([0., 2.]).to_sparse_coo().indices()
    tensor([[1]])
    """
    return to_sparse(self)


@function(free=False)
def to_sparse_csr(self: Any, dense_dim: int | None = None) -> Any:
    """As a CSR tensor: row after row.

    >>> torch.tensor([[0., 2.], [3., 0.]]).to_sparse_csr().col_indices()
    tensor([1, 0])
    """
    return _converted("to_sparse_csr", self, dtypes.sparse_csr, None, dense_dim)


@function(free=False)
def to_sparse_csc(self: Any, dense_dim: int | None = None) -> Any:
    """As a CSC tensor: column after column.

    >>> torch.tensor([[0., 2.], [3., 0.]]).to_sparse_csc().row_indices()
    tensor([1, 0])
    """
    return _converted("to_sparse_csc", self, dtypes.sparse_csc, None, dense_dim)


@function(free=False)
def to_sparse_bsr(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    """As a BSR tensor: row after row of blocks.

    Args:
        blocksize: how many rows and columns a block has.

    >>> torch.tensor([[0., 2.], [0., 0.]]).to_sparse_bsr((1, 2)).values()
    tensor([[[0., 2.]]])
    """
    return _converted("to_sparse_bsr", self, dtypes.sparse_bsr, blocksize, dense_dim)


@function(free=False)
def to_sparse_bsc(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
    """As a BSC tensor: column after column of blocks.

    Args:
        blocksize: how many rows and columns a block has.

    >>> torch.tensor([[0., 2.], [0., 0.]]).to_sparse_bsc((1, 2)).values()
    tensor([[[0., 2.]]])
    """
    return _converted("to_sparse_bsc", self, dtypes.sparse_bsc, blocksize, dense_dim)


def zeros_in(layout: Any, shape: tuple[int, ...], dtype: Any, place: Any) -> Any:
    """An empty sparse tensor: `torch.zeros(..., layout=torch.sparse_coo)`."""
    if layout is dtypes.sparse_coo:
        return sparse_coo_tensor(shape, dtype=dtype, device=place)
    like = asarray(0, _INT64)
    rows, columns = shape[-2:]
    n = rows if layout in _ROWS else columns
    kind = (dtypes.default if dtype is None else dtype).numpy
    empty = v.full(like, (0,), 0, _INT64)
    return wrap(
        raw.Compressed(layout, v.full(like, (n + 1,), 0, _INT64), empty, v.cast(empty, kind), shape)
    )


# --- as files and pickles hold them ---------------------------------------------------------------
def sparse_parts(t: Any) -> tuple[Any, tuple[Any, ...]]:
    """The layout of a sparse tensor and what it is made of, as PyTorch writes it."""
    plain = t.detach()
    if t.is_sparse:
        data = (plain._indices(), plain._values(), t.size(), plain.is_coalesced())
        return t.layout, data
    starts, inner = (getattr(plain, name)() for name in PARTS[t.layout])
    return t.layout, (starts, inner, plain.values(), t.size())


def remade(layout: Any, data: tuple[Any, ...]) -> Any:
    """A sparse tensor of what `sparse_parts` gives. A file may hold anything, so it is checked."""
    if layout is dtypes.sparse_coo:
        places, held, size, *coalesced = data
        done = coalesced[0] if coalesced else None
        return sparse_coo_tensor(places, held, size, check_invariants=True, is_coalesced=done)
    starts, inner, held, size = data
    return sparse_compressed_tensor(starts, inner, held, size, layout=layout, check_invariants=True)
