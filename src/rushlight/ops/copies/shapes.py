"""Functions of shapes and memory that few programs call: sums to a shape, diagonals filled, tensors
laid out by a permutation; and methods that are functions too."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.arrays.host import device_of
from rushlight.ops.checks import check_tensor, ints, tuple_of_ints
from rushlight.ops.numbers import Number
from rushlight.ops.registry import function, functions
from rushlight.random.exact import outward_axes


@function(free=False)
def sum_to_size(input: Any, *size: Any) -> Any:
    """The sum over the dimensions that `expand` would add to `size` to get the shape of `input`.

    >>> torch.ones(3, 2).sum_to_size(1, 2)
    tensor([[3., 3.]])
    """
    check_tensor(input, "sum_to_size")
    want, have = ints("sum_to_size", "size", size), input._array.shape
    short = len(have) - len(want)
    fits = short >= 0 and all(n in (1, m) for n, m in zip(want, have[max(short, 0) :], strict=True))
    if not fits:
        raise RuntimeError(f"size {{{list(want)}}} is not expandable to size {{{list(have)}}}.")
    if not want:
        return input.sum()  # of a 0-d tensor too, so that bool becomes int64
    dims = [d for d in range(len(have)) if d < short or (want[d - short] == 1 and have[d] != 1)]
    if dims:
        input = input.sum(dims, keepdim=True)
    return input.reshape(want) if short else input


@function(free=False)
def fill_diagonal_(input: Any, fill_value: Number, wrap: bool = False) -> Any:
    """Write a number on the main diagonal, in place.

    Args:
        fill_value: the number.
        wrap: whether the diagonal of a tall matrix begins anew below.

    >>> torch.zeros(2, 2).fill_diagonal_(1)
    tensor([[1., 0.],
            [0., 1.]])
    """
    array = check_tensor(input, "fill_diagonal_")
    if array.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    shape = array.shape
    if array.ndim > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    least = min(shape)
    strides = input.stride()
    step = sum(strides)
    offset = input.storage_offset()
    if least:
        input.as_strided((least,), (step,), offset).fill_(fill_value)
    if wrap and array.ndim == 2:
        for row in range(shape[1] + 1, shape[0], shape[1] + 1):
            count = min(shape[1], shape[0] - row)
            input.as_strided((count,), (step,), offset + row * strides[0]).fill_(fill_value)
    return input


@function(free=False, returns="tuple[int, ...]")
def dim_order(input: Any, *, ambiguity_check: Any = False) -> Any:
    """The dimensions in the order in which they lie in memory, the widest stride first.

    Args:
        ambiguity_check: whether to raise where strides leave several orders; or the memory formats
            of which exactly one must fit.

    >>> torch.zeros(2, 3).t().dim_order()
    (1, 0)
    """
    check_tensor(input, "dim_order")
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    of_formats = all(isinstance(f, dtypes.memory_format) for f in formats)
    if not (isinstance(ambiguity_check, (bool, list)) and of_formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    strides, shape = input.stride(), tuple(input.shape)
    many = ambiguity_check is not False and 1 in shape
    if many and sum(_lies_as(input, f) for f in formats) != 1:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given "
            "memory formats."
        )
    rows = _lies_as(input, dtypes.contiguous_format)
    last = _lies_as(input, dtypes.channels_last)
    if rows and not last:
        return tuple(range(len(shape)))
    if last and not rows:
        return (0, 2, 3, 1)
    if ambiguity_check and (0 in strides or len(set(strides)) < len(strides)):
        raise RuntimeError("The tensor does not have unique dim order.")
    return tuple(outward_axes(shape, [strides]))


def _lies_as(x: Any, format: Any) -> bool:
    rank = {dtypes.channels_last: 4, dtypes.channels_last_3d: 5}.get(format, x._array.ndim)
    return rank == x._array.ndim and bool(x.is_contiguous(memory_format=format))


@function(free=False)
def new_empty_strided(
    input: Any, size: Any, stride: Any, dtype: Any = None, device: Any = None,
    requires_grad: bool = False, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """An uninitialised tensor of given strides, like `input` in dtype and device.

    >>> torch.zeros(1).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    array = check_tensor(input, "new_empty_strided")
    return functions["empty_strided"](
        size, stride, dtype=dtype or dtypes.of(array.dtype), layout=layout,
        device=device_of(array) if device is None else device, pin_memory=pin_memory,
        requires_grad=requires_grad,
    )  # fmt: skip


@function(method=False)
def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """An uninitialised tensor whose dimensions lie in memory in a given order.

    Args:
        physical_layout: the dimensions, the widest stride first.

    >>> torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
    (12, 1, 3)
    """
    shape = tuple_of_ints("empty_permuted", "size", size, 1)
    order = tuple_of_ints("empty_permuted", "physical_layout", physical_layout, 2)
    if len(shape) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    for d in order:
        if not 0 <= d < len(shape):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got "
                f"{d} at index {order.index(d)}).  NB: negative dims not currently supported; file "
                "an issue if you want it."
            )
        if order.count(d) > 1:
            raise RuntimeError("Duplicate dim not allowed")
    made = functions["empty"](
        [shape[d] for d in order], dtype=dtype, layout=layout, device=device, pin_memory=pin_memory
    )
    made = made.permute(sorted(range(len(order)), key=lambda d: order[d])).detach()
    return made.requires_grad_() if requires_grad else made


@function(method=False)
def slice_inverse(
    input: Any, src: Any, dim: int = 0, start: int | None = None, end: int | None = None,
    step: int = 1,
) -> Any:  # fmt: skip
    """What `input` is a slice of, with the sizes and strides of `src`.

    Args:
        src: the tensor that shows the sizes.

    >>> x = torch.arange(4)
    >>> torch.slice_inverse(x[1:3], x, 0, 1, 3)
    tensor([0, 1, 2, 3])
    """
    check_tensor(input, "slice_inverse")
    start = 0 if start is None else start % max(src.shape[dim], 1) if start < 0 else start
    offset = input.storage_offset() - src.stride()[dim] * start
    return input.as_strided(src.shape, src.stride(), offset)


# --- methods that are functions too ---------------------------------------------------------------
@function(method=False)
def detach_(input: Any) -> Any:
    """Forget the history of a tensor, in place.

    >>> torch.detach_(torch.ones(1))
    tensor([1.])
    """
    check_tensor(input, "detach_")
    return input.detach_()


@function(method=False)
def resize_as_(input: Any, the_template: Any, *, memory_format: Any = None) -> Any:
    """Give a tensor the size of another, in place.

    Args:
        the_template: the other.

    >>> torch.resize_as_(torch.zeros(2), torch.zeros(1, 2))
    tensor([[0., 0.]])
    """
    check_tensor(input, "resize_as_")
    named = {} if memory_format is None else {"memory_format": memory_format}
    return input.resize_as_(the_template, **named)


@function(method=False, returns="int")
def get_device(input: Any) -> Any:
    """The number of the GPU that a tensor is on; -1 on the CPU.

    >>> torch.get_device(torch.zeros(1))
    -1
    """
    check_tensor(input, "get_device")
    return input.get_device()


@function(method=False, returns="bool")
def is_distributed(input: Any) -> Any:
    """Whether a tensor is one of several processes': never.

    >>> torch.is_distributed(torch.zeros(1))
    False
    """
    check_tensor(input, "is_distributed")
    return False


# --- hashes ---------------------------------------------------------------------------------------
@function()
def hash_tensor(input: Any, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Any:
    """The exclusive or of the elements' bits, in 64 bits each.

    Args:
        mode: 0, the only way there is.

    >>> torch.hash_tensor(torch.tensor([1, 2, 4]))
    tensor(7, dtype=torch.uint64)
    """
    array = check_tensor(input, "hash_tensor")
    if mode != 0:
        raise RuntimeError(f"hash_tensor: unknown mode {mode}")
    kind = dtypes.of(array.dtype)
    wide = dtypes.float64 if kind.is_floating_point else dtypes.int64
    words = input.detach().to(wide).resolve_neg().contiguous().view(dtypes.int64)
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    rank = array.ndim
    dims = sorted({d % max(rank, 1) for d in given}) if len(given) else list(range(rank))
    for d in reversed(dims if rank else []):
        words = _joined(words, d)
        words = words if keepdim else words.squeeze(d)
    return (words if rank else words.clone()).view(dtypes.uint64)


def _joined(x: Any, d: int) -> Any:
    """The exclusive or along a dimension, by halves: of each two neighbours, again and again."""
    n = x._array.shape[d]
    if n == 0:
        shape = [1 if k == d else m for k, m in enumerate(x._array.shape)]
        return functions["zeros"](shape, dtype=x.dtype, device=x.device)
    while n > 1:
        half = n // 2
        y = x.narrow(d, 0, half) ^ x.narrow(d, half, half)
        x = functions["cat"]([y, x.narrow(d, 2 * half, 1)], d) if n % 2 else y
        n = half + n % 2
    return x
