"""What a sparse tensor is made of: its indices and values, and whether they are in order."""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import sparse as raw
from rushlight.arrays import vocabulary as v
from rushlight.arrays.host import is_sparse
from rushlight.core.graph import wrap, wrap_alias
from rushlight.core.record import apply, recording
from rushlight.ops.registry import describe, function, shared_op, variant
from rushlight.ops.sparse import rules
from rushlight.ops.sparse.making import layout_of

_COO: Final = "sparse coordinate"


def _expects(name: str, what: str, x: Any) -> RuntimeError:
    return RuntimeError(f"{name} expected {what} tensor layout but got {layout_of(x)}")


def _no_backend(name: str, x: Any) -> NotImplementedError:
    where = raw.backend(x._array) if is_sparse(x._array) else "CPU"
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{where}' backend. It is for sparse "
        "tensors: `x.to_sparse()` makes one."
    )


def coo(name: str, x: Any) -> Any:
    """The raw array of a COO tensor."""
    if not isinstance(x._array, raw.Coo):
        raise _expects(name, _COO, x)
    return x._array


def _settled(name: str, x: Any) -> Any:
    array = coo(name, x)
    if not array.coalesced:
        raise RuntimeError(
            f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first"
        )
    return array


@function(free=False)
def coalesce(self: Any) -> Any:
    """Every place once, in order: values at one place are added.

    >>> s = torch.sparse_coo_tensor([[1, 1]], [2., 3.], (4,))
    >>> s.coalesce().values()
    tensor([5.])
    """
    return self if coo("coalesce", self).coalesced else apply(shared_op(rules.Coalesce), self)


@function(free=False, returns="bool")
def is_coalesced(self: Any) -> Any:
    """Whether every place stands once, and in order, as far as is known.

    >>> torch.sparse_coo_tensor([[1]], [2.], (4,)).is_coalesced()
    False
    """
    return bool(coo("is_coalesced", self).coalesced)


@function(free=False)
def _coalesced_(self: Any, coalesced: bool) -> Any:
    """Say whether the tensor is coalesced."""
    if self._requires_grad and recording():
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )
    if not isinstance(self._array, raw.Coo):
        raise _no_backend("_coalesced_", self)
    self._array.coalesced = bool(coalesced)
    return self


@function(free=False)
def indices(self: Any) -> Any:
    """The places of the values, a column each. The tensor must be coalesced.

    >>> torch.tensor([0., 5.]).to_sparse().indices()
    tensor([[1]])
    """
    return wrap(_settled("indices", self).indices)


@function(free=False)
def values(self: Any) -> Any:
    """The elements that are stored. A COO tensor must be coalesced.

    >>> torch.tensor([0., 5.]).to_sparse().values()
    tensor([5.])
    """
    if not is_sparse(self._array):
        raise _expects("values", "sparse", self)
    if isinstance(self._array, raw.Coo):
        _settled("values", self)
    return apply(shared_op(rules.Values), self)


@function(free=False)
def _indices(self: Any) -> Any:
    """The places of the values, whether the tensor is coalesced or not."""
    if not isinstance(self._array, raw.Coo):
        raise _no_backend("_indices", self)
    return wrap(self._array.indices)


@function(free=False)
def _values(self: Any) -> Any:
    """The values, whether the tensor is coalesced or not; without history, on the same memory."""
    if not isinstance(self._array, raw.Coo):
        raise _no_backend("_values", self)
    return wrap_alias(self._array.values, self)


def _compressed_part(name: str, layouts: tuple[Any, ...], what: str, starts: bool) -> None:
    def part(self: Any) -> Any:
        x = self._array
        if getattr(x, "layout", None) not in layouts:
            raise _expects(name, what, self)
        return wrap(x.starts if starts else x.inner)

    word = "row" if "row compressed" in what else "column"
    text = f"Where each {word} begins." if starts else f"Where elements stand in their {word}."
    function(free=False)(variant(part, name, describe(text)))


_ROWS: Final = (dtypes.sparse_csr, dtypes.sparse_bsr)
_COLUMNS: Final = (dtypes.sparse_csc, dtypes.sparse_bsc)
_compressed_part("crow_indices", _ROWS, "sparse row compressed", True)
_compressed_part("col_indices", _ROWS, "sparse row compressed", False)
_compressed_part("ccol_indices", _COLUMNS, "sparse column compressed", True)
_compressed_part("row_indices", _COLUMNS, "sparse column compressed", False)


@function(free=False, returns="int")
def _nnz(self: Any) -> Any:
    """How many elements are stored.

    >>> torch.tensor([0., 5.]).to_sparse()._nnz()
    1
    """
    if not is_sparse(self._array):
        raise _no_backend("_nnz", self)
    return self._array.nnz


@function(free=False)
def sparse_dim(self: Any) -> int:
    """How many dimensions are sparse.

    >>> torch.ones(2, 3).sparse_dim(), torch.ones(2, 3).to_sparse(1).sparse_dim()
    (0, 1)
    """
    x = self._array
    if isinstance(x, raw.Coo):
        return x.sparse_dim
    return 2 if is_sparse(x) else 0


@function(free=False)
def dense_dim(self: Any) -> int:
    """How many dimensions are dense.

    >>> torch.ones(2, 3).dense_dim(), torch.ones(2, 3).to_sparse(1).dense_dim()
    (2, 1)
    """
    x = self._array
    if isinstance(x, raw.Coo):
        return x.ndim - x.sparse_dim
    if is_sparse(x):
        return int(x.ndim - 2 - x.batch)
    ndim: int = x.ndim
    return ndim


def _old_name(name: str, fn: Any) -> None:
    def count(self: Any) -> Any:
        if not isinstance(self._array, raw.Coo):
            raise _no_backend(name, self)
        return fn(self)

    function(free=False, returns="int")(
        variant(count, name, "Another name of `" + fn.__name__ + "`.")
    )


_old_name("_dimI", sparse_dim)
_old_name("_dimV", dense_dim)


@function(free=False)
def sparse_mask(self: Any, mask: Any) -> Any:
    """The elements of this tensor in the places of a sparse one, as a sparse tensor.

    Args:
        mask: a sparse tensor of the same shape; its values are not read.

    >>> mask = torch.tensor([0., 1.]).to_sparse()
    >>> torch.tensor([5., 6.]).sparse_mask(mask).values()
    tensor([6.])
    """
    if not is_sparse(mask._array):
        raise _no_backend("sparse_mask", mask)
    if mask._array.shape != self._array.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size "
            f"{list(self._array.shape)} but mask has size {list(mask._array.shape)}"
        )
    return apply(shared_op(rules.SparseMask), self, mask.detach())


def _fixed(what: str) -> RuntimeError:
    return RuntimeError(f"{what} on a non-empty sparse tensor is not supported.")


def _resizing(name: str, clear: bool, text: str) -> None:
    def resize(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
        if self._requires_grad and recording():
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
        x = self._array
        if not isinstance(x, raw.Coo):
            raise _no_backend(name, self)
        shape = tuple(size)
        if sparse_dim + dense_dim != len(shape):
            raise RuntimeError(
                "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = "
                f"{len(shape)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
            )
        if clear or x.nnz == 0:
            x.indices = v.full(x.indices, (sparse_dim, 0), 0, x.indices.dtype)
            x.values = v.full(x.values, (0, *shape[sparse_dim:]), 0, x.dtype)
            x.coalesced = True
        elif sparse_dim != x.sparse_dim:
            raise _fixed(
                f"changing the number of sparse dimensions (from {x.sparse_dim} to {sparse_dim})"
            )
        elif dense_dim != x.ndim - sparse_dim:
            have = x.ndim - sparse_dim
            raise _fixed(f"changing the number of dense dimensions (from {have} to {dense_dim})")
        elif any(new < old for new, old in zip(shape, x.shape)):
            lead = shape[:sparse_dim], x.shape[:sparse_dim]
            kind = "sparse" if any(new < old for new, old in zip(*lead)) else "dense"
            new, old = lead if kind == "sparse" else (shape[sparse_dim:], x.shape[sparse_dim:])
            raise _fixed(
                f"shrinking the size of {kind} dimensions (from {list(old)} to {list(new)})"
            )
        elif shape[sparse_dim:] != x.shape[sparse_dim:]:
            widths = tuple((0, n - old) for n, old in zip(shape[sparse_dim:], x.shape[sparse_dim:]))
            x.values = v.pad(x.values, ((0, 0), *widths), 0)
        x.shape = shape
        self._shape_of = None
        self._storage.written()
        return self

    function(free=False)(variant(resize, name, text))


_resizing("sparse_resize_", False, "Give a sparse tensor a larger shape, in place.")
_resizing("sparse_resize_and_clear_", True, "Give a sparse tensor another shape, and no elements.")


@function(method=True)
def resize_as_sparse_(input: Any, the_template: Any) -> Any:
    """Give a sparse tensor the shape of another, in place.

    Args:
        the_template: a sparse tensor of the wanted shape.

    >>> torch.eye(2).to_sparse().resize_as_sparse_(torch.eye(3).to_sparse()).shape
    torch.Size([3, 3])
    """
    shape = the_template._array.shape
    return input.sparse_resize_(shape, sparse_dim(the_template), dense_dim(the_template))
