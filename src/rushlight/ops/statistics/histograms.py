"""Histograms of numbers and of points, and indices from places and back."""

from __future__ import annotations

import math
from typing import Any

from rushlight import dtypes, return_types
from rushlight.core.graph import TensorBase
from rushlight.ops.checks import check_tensor, is_batched, not_implemented
from rushlight.ops.each_member import one_by_one
from rushlight.ops.out import write_outs
from rushlight.ops.registry import function, functions


# --- histograms -----------------------------------------------------------------------------------
def _edges(x: Any, bins: Any, low: Any, high: Any, d: int, name: str) -> Any:
    """The edges of the bins of one coordinate."""
    if isinstance(bins, TensorBase):
        if bins._array.ndim != 1:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have one dimension, but got "
                f"{bins._array.ndim} dimensions in the bins tensor for dimension {d}"
            )
        if bins._array.size == 0:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements "
                f"in the bins tensor for dimension {d}"
            )
        given: Any = bins
        return given.detach()
    if bins <= 0:
        raise RuntimeError(f"torch.{name}(): bins must be > 0, but got {bins} for dimension {d}")
    if low is None:
        low, high = (float(x.min()), float(x.max())) if x._array.size else (0.0, 1.0)
        for end in (low, high):
            if not math.isfinite(end):
                raise RuntimeError(
                    f"torch.histogramdd: dimension {d}'s range [{low:g}, {high:g}] is not finite"
                )
    elif low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for "
            f"dimension {d}"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    return functions["linspace"](low, high, bins + 1, dtype=x.dtype, device=x.device)


def _count(points: Any, edges: list[Any], weight: Any, density: bool) -> Any:
    """How many points, or how much weight, is in each box between edges."""
    sizes = [e._array.size - 1 for e in edges]
    place: Any = 0
    inside: Any = None
    for d, edge in enumerate(edges):
        x = points[:, d].contiguous()
        at = functions["searchsorted"](edge, x, right=True) - 1
        at = functions["where"](x == edge[-1], sizes[d] - 1, at)  # the last bin has both its ends
        fits = (at >= 0) & (at < sizes[d])
        inside = fits if inside is None else inside & fits
        place = place * sizes[d] + at
    flat = functions["zeros"]((math.prod(sizes),), dtype=points.dtype, device=points.device)
    amount = functions["ones_like"](points[:, 0]) if weight is None else weight
    hist = flat.index_add(0, place[inside], amount[inside]).reshape(sizes)
    if density:
        hist = hist / hist.sum()
        for d, edge in enumerate(edges):
            widths = edge[1:] - edge[:-1]
            hist = hist / widths.reshape([-1 if k == d else 1 for k in range(len(sizes))])
    return hist


def _check_weight(points: Any, weight: Any, shape: list[int]) -> Any:
    if weight is None:
        return None
    if weight.dtype is not points.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
            f"should have the same dtype, but got input({points.dtype}), and weight({weight.dtype})"
        )
    if list(weight._array.shape) != shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
            f"input tensor excluding its innermost dimension, but got input with shape {shape} and "
            f"weight with shape {list(weight._array.shape)}"
        )
    return weight.detach().reshape((-1,))


def _check_kind(x: Any) -> None:
    if dtypes.of(x._array.dtype) not in (dtypes.float32, dtypes.float64):
        raise not_implemented("histogramdd", x._array.dtype)


@function(returns="tuple[Tensor, Tensor]")
def histogram(
    input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False,
    out: Any = None,
) -> Any:  # fmt: skip
    """How many elements fall between edges, and the edges.

    Args:
        bins: how many bins, or a tensor with their edges.
        range: the lowest and the highest edge; those of the elements if None.
        weight: what each element counts; 1 if None.
        density: whether the areas of all bins shall sum to 1.

    >>> torch.histogram(torch.tensor([1., 2., 1.]), bins=2, range=(0., 4.)).hist
    tensor([2., 1.])
    """
    array = check_tensor(input, "histogram")
    _check_kind(input)
    if any(map(is_batched, (input, bins, weight))):

        def part(i: int) -> Any:
            def each(x: Any, b: Any, w: Any) -> Any:
                return histogram(x, b, range=range, weight=w, density=density)[i]

            return one_by_one("histogram", each, input, bins, weight)

        return return_types.histogram((part(0), part(1)))
    points = input.detach().reshape((-1, 1))
    if weight is not None and weight._array.shape == array.shape:
        weight = weight.reshape((-1,))
    flat = _check_weight(points, weight, [array.size, 1])
    low, high = (None, None) if range is None else (float(range[0]), float(range[1]))
    edges = _edges(points, bins, low, high, 0, "histogram")
    found = _count(points, [edges], flat, density), edges
    if isinstance(bins, TensorBase):  # a copy of those given
        found = found[0], edges.clone(memory_format=dtypes.contiguous_format)
    return write_outs("histogram", return_types.histogram, found, out)


@function(method=False, returns="tuple[Tensor, tuple[Tensor, ...]]")
def histogramdd(
    input: Any, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> Any:
    """How many points fall into boxes between edges, and the edges of each coordinate.

    Args:
        input: the points: their coordinates stand in the last dimension.
        bins: how many bins a coordinate has, one number for each, or tensors with their edges.
        range: the lowest and the highest edge of each coordinate, one after another.
        weight: what each point counts; 1 if None.
        density: whether the volumes of all boxes shall sum to 1.

    >>> torch.histogramdd(torch.tensor([[0., 1.], [1., 0.], [1., 1.]]), bins=2).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    array = check_tensor(input, "histogramdd")
    if any(map(is_batched, (input, weight, *(bins if isinstance(bins, (list, tuple)) else ())))):
        raise RuntimeError(
            "Batching rule not implemented for aten::histogramdd. We could not generate a fallback."
        )
    if array.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    _check_kind(input)
    n = array.shape[-1]
    each = [bins] * n if isinstance(bins, int) else list(bins)
    if len(each) != n:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    if range is not None and len(range) != 2 * n:
        raise RuntimeError(
            f"torch.histogramdd: for a {n}-dimensional histogram range should have {2 * n} "
            f"elements, but got {len(range)}"
        )
    points = input.detach().reshape((-1, n))
    flat = _check_weight(points, weight, list(array.shape))
    edges = []
    for d, count in enumerate(each):
        low, high = (
            (None, None) if range is None else (float(range[2 * d]), float(range[2 * d + 1]))
        )
        edges.append(_edges(points[:, d], count, low, high, d, "histogramdd"))
    return return_types.histogramdd((_count(points, edges, flat, density), tuple(edges)))


# --- indices --------------------------------------------------------------------------------------
@function(method=False, returns="tuple[Tensor, ...]")
def unravel_index(indices: Any, shape: Any) -> Any:
    """Places in a flattened tensor of `shape` as indices, one tensor a dimension.

    Args:
        indices: the places.
        shape: the sizes of the tensor.

    >>> torch.unravel_index(torch.tensor([4, 1]), (2, 3))
    (tensor([1, 0]), tensor([1, 1]))
    """
    kind = indices.dtype
    if kind.is_complex or kind.is_floating_point or kind is dtypes.bool_:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {kind}")
    given = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in given:
        if not hasattr(n, "__index__"):
            raise TypeError(
                f"expected 'shape' to be int or sequence of ints, but got {type(shape)}"
            )
    if any(n < 0 for n in given):
        raise ValueError(f"'shape' cannot have negative values, but got {given}")
    if not given:
        return ()
    steps: Any = [math.prod(given[d + 1 :]) for d in range(len(given))]
    sizes: Any = given
    sizes, steps = (functions["tensor"](x, device=indices.device) for x in (sizes, steps))
    passed = functions["div"](indices.unsqueeze(-1), steps, rounding_mode="floor")
    return functions["remainder"](passed, sizes).unbind(-1)


@function()
def nonzero_static(input: Any, *, size: int, fill_value: int = -1) -> Any:
    """`nonzero`, cut or filled up to `size` rows: the shape does not depend on the values.

    Args:
        size: how many rows.
        fill_value: what the rows that are left hold.

    >>> torch.nonzero_static(torch.tensor([0, 1, 1]), size=3)
    tensor([[ 1],
            [ 2],
            [-1]])
    """
    check_tensor(input, "nonzero_static")
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if is_batched(input):

        def each(x: Any) -> Any:
            return nonzero_static(x, size=size, fill_value=fill_value)

        return one_by_one("nonzero_static", each, input)
    found = functions["nonzero"](input)[:size]
    missing = size - found._array.shape[0]
    if not missing:
        return found.contiguous()
    rest = found.new_full((missing, found._array.shape[1]), fill_value)
    return functions["cat"]([found, rest], 0)
