"""Functions that PyTorch calls itself and that programs call too, under names with an underscore.

Each is another function in other words. Those that only PyTorch's own kernels need are missing.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

from rushlight import dtypes
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, one_dim, tuple_of_ints
from rushlight.ops.fft.transforms import FftC2C, FftC2R, FftR2C
from rushlight.ops.numbers import Number
from rushlight.ops.registry import describe, function, functions, methods, namespaces, variant


# --- softmax --------------------------------------------------------------------------------------
@function(method=False)
def _softmax(input: Any, dim: int, half_to_float: bool) -> Any:
    """`softmax`.

    >>> torch._softmax(torch.zeros(2), 0, False)
    tensor([0.5000, 0.5000])
    """
    return functions["softmax"](input, dim, dtype=dtypes.float32 if half_to_float else None)


@function(method=False)
def _log_softmax(input: Any, dim: int, half_to_float: bool) -> Any:
    """`log_softmax`.

    >>> torch._log_softmax(torch.zeros(2), 0, False)
    tensor([-0.6931, -0.6931])
    """
    return functions["log_softmax"](input, dim, dtype=dtypes.float32 if half_to_float else None)


@function(method=False)
def _softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """The gradient of `softmax`, from that of its result and the result.

    >>> torch._softmax_backward_data(torch.ones(2), torch.ones(2) / 2, 0, torch.float32)
    tensor([0., 0.])
    """
    scaled = grad_output * output
    return (scaled - output * scaled.sum(dim, keepdim=True)).to(input_dtype)


@function(method=False)
def _log_softmax_backward_data(grad_output: Any, output: Any, dim: int, input_dtype: Any) -> Any:
    """The gradient of `log_softmax`, from that of its result and the result.

    >>> torch._log_softmax_backward_data(torch.zeros(2), torch.zeros(2), 0, torch.float32)
    tensor([0., 0.])
    """
    total = grad_output.sum(dim, keepdim=True)
    return (grad_output - functions["exp"](output) * total).to(input_dtype)


@function(method=False)
def _masked_softmax(
    input: Any, mask: Any, dim: int | None = None, mask_type: int | None = None
) -> Any:
    """`softmax` of the elements where `mask` is False.

    >>> torch._masked_softmax(torch.zeros(2), torch.tensor([False, True]), 0)
    tensor([1., 0.])
    """
    d = input._array.ndim - 1 if dim is None else dim
    return functions["softmax"](input.masked_fill(mask, -math.inf), d)


# --- transforms -----------------------------------------------------------------------------------
def _dims_and_scale(input: Any, dim: Any, normalization: int, sizes: Any) -> tuple[Any, float]:
    dims = tuple([one_dim(d, input._array.ndim) for d in dim])
    count = math.prod(sizes[d] for d in dims)
    return dims, {0: 1.0, 1: 1 / math.sqrt(count), 2: 1 / count}[normalization]


@function(method=False)
def _fft_c2c(input: Any, dim: Any, normalization: int, forward: bool) -> Any:
    """`torch.fft.fftn`; `normalization` is 0 (none), 1 (root) or 2 (divided by the count).

    >>> torch._fft_c2c(torch.ones(2) + 0j, [0], 0, True)
    tensor([2.+0.j, 0.+0.j])
    """
    dims, scale = _dims_and_scale(input, dim, normalization, input._array.shape)
    return apply(FftC2C(dims, bool(forward), scale), input)


@function(method=False)
def _fft_r2c(input: Any, dim: Any, normalization: int, onesided: bool) -> Any:
    """`torch.fft.rfftn`; `normalization` is 0 (none), 1 (root) or 2 (divided by the count).

    >>> torch._fft_r2c(torch.ones(2), [0], 0, True)
    tensor([2.+0.j, 0.+0.j])
    """
    dims, scale = _dims_and_scale(input, dim, normalization, input._array.shape)
    return apply(FftR2C(dims, bool(onesided), scale), input)


@function(method=False)
def _fft_c2r(input: Any, dim: Any, normalization: int, last_dim_size: int) -> Any:
    """`torch.fft.irfftn`; `normalization` is 0 (none), 1 (root) or 2 (divided by the count).

    >>> torch._fft_c2r(torch.ones(2) + 0j, [0], 0, 2)
    tensor([2., 0.])
    """
    sizes = list(input._array.shape)
    last = one_dim(dim[-1], len(sizes))
    sizes[last] = last_dim_size
    dims, scale = _dims_and_scale(input, dim, normalization, sizes)
    half = input.narrow(last, 0, last_dim_size // 2 + 1)
    return apply(FftC2R(dims, last_dim_size, scale), half)


# --- norms ----------------------------------------------------------------------------------------
@function(method=False)
def frobenius_norm(input: Any, dim: Any, keepdim: bool = False, *, out: Any = None) -> Any:
    """The root of the sum of squares. Deprecated: use `torch.linalg.vector_norm`."""
    check_tensor(input, "frobenius_norm")
    one = not isinstance(dim, bool) and hasattr(dim, "__index__")
    dims = tuple_of_ints("frobenius_norm", "dim", (dim,) if one else dim, 2)
    warnings.warn(
        "at::frobenius_norm is deprecated and it is just left for JIT compatibility. It will be "
        "removed in a future PyTorch release. Please use `linalg.vector_norm(A, 2., dim, keepdim)` "
        "instead",
        stacklevel=2,
    )
    named = {} if out is None else {"out": out}
    return namespaces["linalg"]["vector_norm"](input, 2.0, dims or None, keepdim, **named)


@function(method=False)
def _euclidean_dist(x1: Any, x2: Any) -> Any:
    """The distances of rows.

    >>> torch._euclidean_dist(torch.tensor([[0., 0.]]), torch.tensor([[3., 4.]]))
    tensor([[5.]])
    """
    return functions["cdist"](x1, x2)


# --- indices and lists ----------------------------------------------------------------------------
@function(method=False)
def _shape_as_tensor(input: Any) -> Any:
    """The sizes of a tensor, in a tensor.

    >>> torch._shape_as_tensor(torch.zeros(2, 3))
    tensor([2, 3])
    """
    return functions["tensor"](list(input.shape), dtype=dtypes.int64)


@function(method=False)
def _dim_arange(like: Any, dim: int) -> Any:
    """The indices along a dimension.

    >>> torch._dim_arange(torch.zeros(2, 3), 1)
    tensor([0, 1, 2])
    """
    return functions["arange"](like.shape[dim], device=like.device)


@function(method=False)
def _stack(tensors: Any, dim: int = 0) -> Any:
    """`stack`.

    >>> torch._stack([torch.zeros(()), torch.ones(())])
    tensor([0., 1.])
    """
    return functions["stack"](tensors, dim)


@function(method=False)
def _chunk_cat(tensors: Any, dim: int, num_chunks: int, *, out: Any = None) -> Any:
    """Tensors cut into chunks along a dimension (zeros added, where it does not divide), the chunks
    flattened from there on and joined: one row a chunk.

    >>> torch._chunk_cat([torch.arange(4), torch.arange(2)], 0, 2)
    tensor([[0, 1, 0],
            [2, 3, 1]])
    """
    parts = []
    for x in tensors:
        shape = list(x.shape)
        d = dim % max(len(shape), 1)
        size = -(-shape[d] // num_chunks)
        missing = size * num_chunks - shape[d]
        if missing:
            x = functions["cat"]([x, x.new_zeros([*shape[:d], missing, *shape[d + 1 :]])], d)
        parts.append(x.reshape([*shape[:d], num_chunks, -1]))
    joined = functions["cat"](parts, -1)
    return joined if out is None else out.resize_(joined.shape).copy_(joined)


@function(method=False, returns="tuple[Tensor, ...]")
def _unique2(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """`unique`, of which what is not asked for is empty.

    >>> torch._unique2(torch.tensor([2, 1, 2]))[0]
    tensor([1, 2])
    """
    values, inverse, counts = functions["unique"](input, True, True, True)
    empty = inverse.new_empty((0,))
    return values, inverse if return_inverse else empty, counts if return_counts else empty


@function(method=False, returns="tuple[Tensor, ...]")
def _unique(input: Any, sorted: bool = True, return_inverse: bool = False) -> Any:
    """`unique`, of which the inverse is empty if it is not asked for.

    >>> torch._unique(torch.tensor([2, 1, 2]))[0]
    tensor([1, 2])
    """
    return _unique2(input, sorted, return_inverse)[:2]


@function(method=False, returns="tuple[Tensor, ...]")
def _aminmax(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest and the largest element. Deprecated: use `torch.aminmax`."""
    warnings.warn(
        "_aminmax is deprecated as of PyTorch 1.11 and will be removed in a future release. Use "
        "aminmax instead. This warning will only appear once per process.",
        stacklevel=2,
    )
    return tuple(functions["aminmax"](input, dim=dim, keepdim=keepdim))


@function(method=False)
def _unsafe_index(input: Any, indices: Any) -> Any:
    """`input[indices]`; None stands for a whole dimension.

    >>> torch._unsafe_index(torch.arange(3), [torch.tensor([2, 0])])
    tensor([2, 0])
    """
    return input[tuple([slice(None) if i is None else i for i in indices])]


def _clamped(input: Any, mask: Any, indices: Any) -> tuple[Any, ...]:
    """Indices, those that are masked out replaced by 0."""
    return tuple(slice(None) if i is None else functions["where"](mask, i, 0) for i in indices)


@function(method=False)
def _unsafe_masked_index(input: Any, mask: Any, indices: Any, fill: Number) -> Any:
    """`input[indices]` where `mask` is True, `fill` elsewhere; there indices may be out of range.

    >>> torch._unsafe_masked_index(torch.arange(2), torch.tensor([True, False]),
    ...                            [torch.tensor([1, 9])], 5)
    tensor([1, 5])
    """
    found = input[_clamped(input, mask, indices)]
    aligned_mask = mask.reshape((*mask.shape, *[1] * (found._array.ndim - mask._array.ndim)))
    return found.masked_fill(~aligned_mask, fill)


@function(method=False)
def _unsafe_masked_index_put_accumulate(input: Any, mask: Any, indices: Any, values: Any) -> Any:
    """`input` with `values` added at `indices`, where `mask` is True.

    >>> torch._unsafe_masked_index_put_accumulate(
    ...     torch.zeros(2), torch.tensor([True, False]), [torch.tensor([1, 9])], torch.ones(2))
    tensor([0., 1.])
    """
    aligned_mask = mask.reshape((*mask.shape, *[1] * (values._array.ndim - mask._array.ndim)))
    return input.index_put(
        _clamped(input, mask, indices), values.masked_fill(~aligned_mask, 0), accumulate=True
    )


@function(method=False)
def _segment_reduce(
    data: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None,
    axis: int = 0, unsafe: bool = False, initial: Number | None = None,
) -> Any:  # fmt: skip
    """`segment_reduce`.

    >>> torch._segment_reduce(torch.tensor([1., 2., 3.]), "sum", lengths=torch.tensor([1, 2]))
    tensor([1., 5.])
    """
    return functions["segment_reduce"](
        data, reduce, lengths=lengths, indices=indices, offsets=offsets, axis=axis, unsafe=unsafe,
        initial=initial,
    )  # fmt: skip


# --- dropout --------------------------------------------------------------------------------------
@function(method=False, returns="tuple[Tensor, ...]")
def native_dropout(input: Any, p: float, train: bool | None) -> Any:
    """`dropout`, and which elements it kept.

    Args:
        p: the probability of an element to become zero.
        train: whether to drop any.

    >>> torch.native_dropout(torch.ones(2), 0.0, True)
    (tensor([1., 1.]), tensor([True, True]))
    """
    check_tensor(input, "native_dropout")
    ones = functions["ones_like"](input, dtype=dtypes.bool_)
    if train is False:
        return input.clone(), ones
    if p == 0:
        return input * 1.0, ones
    kept = functions["empty_like"](input.detach()).bernoulli_(1.0 - p)
    scale = 0.0 if p == 1 else 1 / (1.0 - p)
    return input * kept * scale, kept.to(dtypes.bool_)


# --- products and casts ---------------------------------------------------------------------------
@function(method=False)
def _int_mm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """The product of matrices of int8, in int32.

    >>> torch._int_mm(torch.ones(1, 2, dtype=torch.int8), torch.ones(2, 1, dtype=torch.int8))
    tensor([[2]], dtype=torch.int32)
    """
    made = functions["mm"](input.to(dtypes.int32), mat2.to(dtypes.int32))
    return made if out is None else out.copy_(made)


def _cast_to(name: str) -> Any:
    def cast(input: Any, non_blocking: bool = False) -> Any:
        return methods[name](input)

    return cast


def _export_casts() -> None:
    for name in ("byte", "char", "double", "float", "half", "int", "long", "short"):
        title = f"_cast_{name.capitalize()}"
        function(method=False)(variant(_cast_to(name), title, describe(f"`x.{name}()`.")))


_export_casts()


@function(method=False)
def _conj(input: Any) -> Any:
    """`conj`.

    >>> torch._conj(torch.tensor([1j]))
    tensor([0.-1.j])
    """
    return functions["conj"](input)


@function(method=False)
def _conj_physical(input: Any) -> Any:
    """`conj_physical`.

    >>> torch._conj_physical(torch.tensor([1j]))
    tensor([0.-1.j])
    """
    return functions["conj_physical"](input)
