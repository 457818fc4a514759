"""`index_put`: values written or added at a tuple of index tensors."""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.arrays.vocabulary import SLOT
from rushlight.core.graph import TensorBase
from rushlight.ops.checks import check_tensor
from rushlight.ops.indexing.getitem import (
    IndexPut,
    check_index,
    check_values,
    index_put_into,
    run_indexed,
)
from rushlight.ops.registry import function


def _pattern_of(name: str, x: Any, indices: Any, values: Any) -> tuple[tuple[Any, ...], list[Any]]:
    if not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'indices' (position 1) must be tuple of Tensors, not "
            f"{dtypes.type_name(indices)}"
        )
    check_tensor(values, name, "values", 2)
    pattern: list[Any] = []
    tensors: list[Any] = []
    d = 0
    for position, item in enumerate(indices):
        if not isinstance(item, TensorBase):
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, but got "
                f"{dtypes.type_name(item)}"
            )
        wide = item._array.ndim if item._array.dtype.kind == "b" else 1
        d += wide
        if d > x._array.ndim:
            total = sum(i._array.ndim if i._array.dtype.kind == "b" else 1 for i in indices)
            raise IndexError(
                f"too many indices for tensor of dimension {x._array.ndim} (got {total})"
            )
        tensors.append(check_index(item, x, d - wide))
        pattern.append(SLOT)
    return tuple(pattern), tensors


@function()
def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """A copy of `input` with `values` written, or added, at a tuple of index tensors.

    >>> at = (torch.tensor([0, 0]), torch.tensor([1, 1]))
    >>> torch.zeros(2, 2).index_put(at, torch.tensor(1.), accumulate=True)
    tensor([[0., 2.],
            [0., 0.]])
    """
    check_tensor(input, "index_put")
    pattern, tensors = _pattern_of("index_put", input, indices, values)
    values = check_values(input, pattern, tensors, values, accumulate)
    return run_indexed(IndexPut(pattern, accumulate), (input, values, *tensors))


@function()
def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """In-place version of `index_put`.

    >>> torch.zeros(3).index_put_((torch.tensor([1]),), torch.tensor(5.))
    tensor([0., 5., 0.])
    """
    check_tensor(input, "index_put_")
    pattern, tensors = _pattern_of("index_put_", input, indices, values)
    return index_put_into(input, pattern, tensors, values, accumulate)
