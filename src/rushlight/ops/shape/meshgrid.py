"""Functions made of views and copies: grids, products of sets, differences; and `cross`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from rushlight import dtypes
from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import asarray
from rushlight.core.elementwise import result_dtype
from rushlight.core.families import Bilinear
from rushlight.core.graph import wrap
from rushlight.core.record import apply
from rushlight.core.views.views import apply_view
from rushlight.ops.checks import check_tensor, check_tensors, not_implemented, one_dim, one_int
from rushlight.ops.out import fill_out
from rushlight.ops.registry import describe, function, functions, op, variant
from rushlight.ops.sample_inputs import Draw, drawn
from rushlight.ops.shape.cat import Join, cat, stack
from rushlight.ops.view.expand import expand
from rushlight.ops.view.reshape import UnsafeView, flatten, reshape
from rushlight.ops.view.select import Slice


def unpack_tensors(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """f(a, b) and f([a, b]) mean the same."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return tuple(tensors[0])
    return tensors


@op
class BlockDiag(Join):
    """Matrices along the diagonal of a larger one; vectors count as rows."""

    name, params = "block_diag", ("dtype",)
    dim: int = -1
    lies = "rows"

    @staticmethod
    def matrix(shape: tuple[int, ...]) -> tuple[int, ...]:
        return (1,) * (2 - len(shape)) + tuple(shape)

    def forward(self, *xs: Any) -> Any:
        parts = [v.reshape(x, self.matrix(x.shape)) for x in self.same(xs)]
        width = sum(p.shape[1] for p in parts)
        rows: list[Any] = []
        left = 0
        for p in parts:
            right = width - left - p.shape[1]
            rows.append(v.pad(p, ((0, 0), (left, right)), 0))
            left += p.shape[1]
        return v.concat(rows, -2)

    def vjp(self, node: Any, g: Any) -> Any:
        outs: list[Any] = []
        row = column = 0
        for i, shape in enumerate(node._input_shapes):
            height, width = self.matrix(shape)
            key = (slice(row, row + height), slice(column, column + width))
            outs.append(v.reshape(v.window(g, key), shape) if node._needs_grad(i) else None)
            row, column = row + height, column + width
        return outs

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield BlockDiag(), draw.real(2, 3), draw.real(2), draw.real()
        yield BlockDiag(), draw.complex(1, 2), draw.complex(2, 2)


@function(method=False)
def block_diag(*tensors: Any) -> Any:
    """Matrices along the diagonal of a larger one, zeros elsewhere.

    >>> torch.block_diag(torch.tensor([[1]]), torch.tensor([2, 3]))
    tensor([[1, 0, 0],
            [0, 2, 3]])
    """
    xs = unpack_tensors(tensors)
    if not xs:
        return wrap(v.full(asarray(0.0), (1, 0), 0, dtypes.default.numpy))
    for position, x in enumerate(xs):
        check_tensor(x, "block_diag", "tensors", position + 1)
        if x._array.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{position} has {x._array.ndim} dimensions"
            )
    return apply(BlockDiag(result_dtype(xs).numpy), *xs)


@function(method=False, returns="tuple[Tensor, ...]")
def meshgrid(*tensors: Any, indexing: Any = None) -> Any:
    """Views of vectors as coordinates of a grid: by rows ("ij") or by columns ("xy").

    >>> x, y = torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4, 5]), indexing="ij")
    >>> x
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    xs = unpack_tensors(tensors)
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing "
            "argument.",
            UserWarning,
            stacklevel=2,
        )
        indexing = "ij"
    return grids(xs, indexing)


def grids(xs: tuple[Any, ...], indexing: str) -> tuple[Any, ...]:
    """`meshgrid` with its arguments settled."""
    if not xs:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for x in xs:
        if x._array.ndim > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                f"{x._array.ndim}D"
            )
        if x._array.dtype != xs[0]._array.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    places = list(range(len(xs)))
    if indexing == "xy" and len(xs) > 1:
        places[0], places[1] = 1, 0
    shape = [1] * len(xs)
    for x, place in zip(xs, places, strict=True):
        shape[place] = x._array.size
    out = []
    for x, place in zip(xs, places, strict=True):
        own = [1] * len(xs)
        own[place] = x._array.size
        out.append(expand(reshape(x, tuple(own)), tuple(shape)))
    return tuple(out)


def _check_vector(x: Any) -> None:
    if x._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(x._array.shape)}")


@function(method=False)
def cartesian_prod(*tensors: Any) -> Any:
    """All ways to take one element from each vector, a row each.

    >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    xs = unpack_tensors(tensors)
    for x in xs:
        _check_vector(x)
    if len(xs) == 1:
        return xs[0]
    return stack([flatten(g) for g in grids(xs, "ij")], 1)


@function(method=False)
def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """All ways to take `r` elements of a vector, in order, a row each.

    >>> torch.combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    _check_vector(input)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    n = input._array.size
    if r == 0:
        return wrap(v.empty(input._array, (0,), input._array.dtype))
    like = bottom(input._array)  # all members of a batch choose alike
    mask = v.full(like, (n,) * r, True, dtypes.bool_.numpy)
    count = v.iota(like, n, dtypes.int64.numpy)
    for k in range(r - 1):
        left = v.reshape(count, (n,) + (1,) * (r - 1 - k))
        right = v.reshape(count, (n,) + (1,) * (r - 2 - k))
        mask = mask & ((left <= right) if with_replacement else (left < right))
    chosen = [functions["masked_select"](g, wrap(mask)) for g in grids((input,) * r, "ij")]
    return stack(chosen, 1)


def _export_indices(name: str, lower: bool, shown: str) -> None:
    def indices(
        row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None,
        layout: Any = None,
    ) -> Any:  # fmt: skip
        row, col = one_int(name, "row", row, 1), one_int(name, "col", col, 2)
        offset = one_int(name, "offset", offset, 3)
        if row < 0:
            raise RuntimeError(f"row must be non-negative, got{row}")
        if col < 0:
            raise RuntimeError(f"col must be non-negative, got{col}")
        wanted = dtypes.int64 if dtype is None else dtype
        if wanted.is_floating_point or wanted.is_complex or wanted is dtypes.bool_:
            raise not_implemented(name, wanted)
        ones = v.full(asarray(0), (row, col), 1, dtypes.int8.numpy)
        rows, columns = v.nonzero(v.triangle(ones, offset, lower))
        pair = v.concat([v.reshape(rows, (1, rows.size)), v.reshape(columns, (1, rows.size))], 0)
        made: Any = wrap(v.cast(pair, wanted.numpy))
        return made if device is None else made.to(device)

    side = "lower" if lower else "upper"
    text = f"Row and column numbers of the {side} triangle of a matrix."
    doc = describe(text, f"torch.{name}(2, 2)", shown)
    function(method=False)(variant(indices, name, doc))


_export_indices("tril_indices", True, "tensor([[0, 1, 1],\n        [0, 0, 1]])")
_export_indices("triu_indices", False, "tensor([[0, 0, 1],\n        [0, 1, 1]])")


@function()
def kron(input: Any, other: Any, *, out: Any = None) -> Any:
    """The Kronecker product: every element of `input` times all of `other`.

    >>> torch.kron(torch.tensor([1, 2]), torch.tensor([1, 10]))
    tensor([ 1, 10,  2, 20])
    """
    check_tensors("kron", input=input, other=other)
    rank = max(input._array.ndim, other._array.ndim)
    a = (1,) * (rank - input._array.ndim) + input._array.shape
    b = (1,) * (rank - other._array.ndim) + other._array.shape
    left: list[int] = []
    right: list[int] = []
    for m, n in zip(a, b, strict=True):
        left += (m, 1)
        right += (1, n)
    shape = tuple([m * n for m, n in zip(a, b, strict=True)])
    wide = apply(UnsafeView(tuple(left)), input) * apply(UnsafeView(tuple(right)), other)
    result = apply(UnsafeView(shape), wide)
    return result if out is None else fill_out("kron", out, result)


@op
class Cross(Bilinear):
    """The vector product along an axis of size 3."""

    name, params, node = "linalg_cross", ("dim",), "LinalgCrossBackward0"
    saved_names = "dim"
    dim: int
    lies = "rows"

    def mover(self, rule: str) -> Any:
        made = kernels.crossed if rule == "forward" else kernels.crossed_back
        return kernels.bound(made, self.dim)

    def forward(self, a: Any, b: Any) -> Any:
        d = (self.dim,)  # a[i] b[i + 1] - a[i + 1] b[i] stands one place too far on
        return v.contiguous(v.roll(a * v.roll(b, (-1,), d) - v.roll(a, (-1,), d) * b, (-1,), d))

    def left(self, g: Any, b: Any, shape: tuple[int, ...]) -> Any:
        return Cross(self.dim).forward(b, g)

    def right(self, g: Any, a: Any, shape: tuple[int, ...]) -> Any:
        return Cross(self.dim).forward(g, a)

    samples = drawn(real=[(-1, (2, 3), (2, 3)), (-2, (3, 2), (3, 1))], complex=[(-1, (3,), (3,))])


def _cross(input: Any, other: Any, dim: int) -> tuple[Any, tuple[Any, ...]]:
    a, b = input._array.shape, other._array.shape
    if input._array.dtype.kind == other._array.dtype.kind == "b":
        raise not_implemented("cross", input._array.dtype)
    if len(a) != len(b):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    d = one_dim(dim, len(a))
    if a[d] != 3 or b[d] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {a[d]} and {b[d]}"
        )
    kinds = [dtypes.of(x._array.dtype).scalar_type for x in (input, other)]
    if kinds[0] != kinds[1]:
        raise RuntimeError(f"expected scalar type {kinds[0]} but found {kinds[1]}")
    return Cross(d), (input, other)


@function(out=True)
def cross(input: Any, other: Any, dim: Any = None) -> Any:
    """The vector product along a dimension of size 3: the first there is, unless `dim` says.

    >>> torch.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]), dim=0)
    tensor([0, 0, 1])
    """
    check_tensors("cross", input=input, other=other)
    if dim is None:
        warnings.warn(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass "
            "the dim explicitly or simply use torch.linalg.cross.\nThe default value of dim will "
            "change to agree with that of linalg.cross in a future release.",
            UserWarning,
            stacklevel=3,
        )
        dim = next((d for d, n in enumerate(input._array.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return _cross(input, other, dim)


@function(out=True, name="cross", method=False, free=False, namespace="linalg", settles=True)
def _linalg_cross(input: Any, other: Any, *, dim: int = -1) -> Any:
    """The vector product along a dimension of size 3.

    >>> torch.linalg.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    check_tensors("linalg_cross", input=input, other=other)
    return _cross(input, other, dim)


@function()
def diff(
    input: Any, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None, *,
    out: Any = None,
) -> Any:  # fmt: skip
    """Differences of neighbours along a dimension, `n` times.

    Args:
        n: how often to take differences.

    >>> torch.diff(torch.tensor([1, 3, 2]))
    tensor([ 2, -1])
    """
    rank = input._array.ndim
    if rank == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    d = one_dim(dim, rank)
    if n == 0:
        x = functions["clone"](input)
        return x if out is None else fill_out("diff", out, x)
    ends = [x for x in (prepend, input, append) if x is not None]
    for x in ends:
        if x._array.ndim != rank:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    x = cat(ends, d) if len(ends) > 1 else input
    size = x._array.shape[d]
    for _ in range(min(n, size)):
        size = x._array.shape[d]
        later, earlier = (
            apply_view(Slice(d, 1, size), x),
            apply_view(Slice(d, 0, max(size - 1, 0)), x),
        )
        boolean = x._array.dtype.kind == "b"
        x = functions["logical_xor"](later, earlier) if boolean else later - earlier
    return x if out is None else fill_out("diff", out, x)


@function(method=False)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    """Powers of the elements of a vector, a row each.

    >>> torch.vander(torch.tensor([1, 2, 3]), increasing=True)
    tensor([[1, 1, 1],
            [1, 2, 4],
            [1, 3, 9]])
    """
    check_tensor(x, "vander", "x")
    if x._array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x._array.size if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    one = wrap(v.full(x._array, x._array.shape, 1, x._array.dtype))
    if not (x._array.dtype.kind in "fcVW" or x._array.dtype.itemsize == 8):
        x, one = x.long(), one.long()  # type: ignore[attr-defined]
    columns: list[Any] = []
    for k in range(count):
        columns.append(one if k == 0 else x if k == 1 else columns[-1] * x)
    if not columns:
        return wrap(v.empty(x._array, (x._array.size, 0), x._array.dtype))
    return stack(columns if increasing else columns[::-1], 1)
