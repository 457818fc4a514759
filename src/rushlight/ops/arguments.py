"""What users wrote, as ops want it: dimensions as negative ints, PyTorch's errors for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.arrays.batched import Batched, outer
from rushlight.core.graph import TensorBase
from rushlight.errors import dim_out_of_range


def raw_dtype(x: Any) -> Any:
    """The raw dtype of an array or a tensor."""
    return x._array.dtype if isinstance(x, TensorBase) else x.dtype


def levels_of(array: Any) -> set[Any]:
    """The levels of `vmap` from member to member of whose batch an array differs."""
    found: set[Any] = set()
    while type(array) is Batched:
        if array.has_batch_dim:
            found.add(array.level)
        array = outer(array.value)
    return found


def varies(array: Any) -> bool:
    """Whether an array differs from member to member of a batch: it cannot be read as one value."""
    return type(array) is Batched and bool(levels_of(array))


def is_batched(x: Any) -> bool:
    """Whether an argument is a tensor whose values differ from member to member of a batch."""
    return isinstance(x, TensorBase) and varies(x._array)


def one_dim(dim: Any, rank: int) -> int:
    """A dimension as a negative int (-1 for a 0-d tensor), checked.

    >>> one_dim(0, 3), one_dim(-1, 3)
    (-3, -1)
    """
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}")
    d = int(dim.__index__())
    top = max(rank, 1)
    if not -top <= d < top:
        raise IndexError(dim_out_of_range(d, rank))
    return d - top if d >= 0 else d


def from_end(axis: int, rank: int) -> int:
    """An axis that a word was given, as an op wants it.

    >>> from_end(0, 3), from_end(-1, 3)
    (-3, -1)
    """
    return axis - rank if axis >= 0 else axis


def some_dims(dim: int | Sequence[int] | None, rank: int) -> tuple[int, ...] | None:
    """Dimensions as negative ints, in order; None (or none given, or a 0-d tensor): all.

    >>> some_dims((0, 2), 3), some_dims(None, 3), some_dims([], 2)
    ((-3, -1), None, None)
    """
    if dim is None:
        return None
    if isinstance(dim, (tuple, list)):
        found = tuple(one_dim(d, rank) for d in dim)
        for d in found:
            if found.count(d) > 1:
                raise RuntimeError(
                    f"dim {d % max(rank, 1)} appears multiple times in the list of dims"
                )
    else:
        found = (one_dim(dim, rank),)
    return found if found and rank else None


def axes_of(dims: tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """All the axes that `dims` means for an array of `rank` dimensions, as negative ints."""
    return tuple(range(-rank, 0)) if dims is None else dims


def ints(function_name: str, name: str, given: Any) -> tuple[int, ...]:
    """What the user wrote as sizes or dims, `f(2, 3)` or `f((2, 3))`, as a tuple of ints."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = given[0]
    elif not given:
        raise TypeError(f'{function_name}() missing 1 required positional arguments: "{name}"')
    found = []
    for position, item in enumerate(given):
        if not hasattr(item, "__index__"):
            raise TypeError(
                f"{function_name}(): argument '{name}' failed to unpack the object at pos "
                f'{position + 1} with error "type must be tuple of ints,but got '
                f'{type(item).__name__}"'
            )
        found.append(int(item.__index__()))
    return tuple(found)


def tuple_of_ints(function_name: str, name: str, given: Any, position: int) -> tuple[int, ...]:
    if not isinstance(given, (tuple, list)):
        raise TypeError(
            f"{function_name}(): argument '{name}' (position {position}) must be tuple of ints, "
            f"not {type(given).__name__}"
        )
    return ints(function_name, name, (given,))


def one_int(function_name: str, name: str, given: Any, position: int) -> int:
    """An int argument, or PyTorch's TypeError."""
    tensor = isinstance(given, TensorBase)
    fine = given._array.ndim == 0 and given._array.dtype.kind in "iu" if tensor else True
    if isinstance(given, bool) or not fine or not hasattr(given, "__index__"):
        raise TypeError(
            f"{function_name}(): argument '{name}' (position {position}) must be int, "
            f"not {'Tensor' if tensor else type(given).__name__}"
        )
    return int(given.__index__())
