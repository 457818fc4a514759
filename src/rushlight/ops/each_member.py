"""How ops and functions take the members of a batch: all at once, or one after the other.

`batch_leading` and `align_members` are rules of op classes for `vmap`. `one_by_one` is for
functions that no primitive can run on many members, and whose results have no derivatives: PyTorch
runs these in a loop too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import Batched, deepest_level, insert_axes, members, without_histories
from rushlight.core.graph import TensorBase, wrap
from rushlight.ops.checks import is_batched


def batch_leading(self: Any, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
    """`vmap_rule` of ops that leave leading axes alone, for their dims count from the end: the op
    itself. Not if only some inputs have a batch, or if members have no axes of their own."""
    for x, has_batch_dim in zip(xs, flags, strict=True):
        if hasattr(x, "shape") and (not has_batch_dim or x.ndim < 2):
            return None
    return self, xs


def align_members(self: Any, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
    """`vmap_rule` of ops whose inputs broadcast: the op itself; batches lead the longest
    member."""
    ranks = [
        getattr(x, "ndim", 0) - has_batch_dim for x, has_batch_dim in zip(xs, flags, strict=True)
    ]
    rank = max(ranks)
    ready = [
        insert_axes(x, rank - k) if has_batch_dim else x
        for x, has_batch_dim, k in zip(xs, flags, ranks, strict=True)
    ]
    return self, tuple(ready)


def each_member(xs: tuple[Any, ...]) -> tuple[Any, list[tuple[Any, ...]]]:
    """The innermost level of `vmap` among tensors, and what each of its members sees of them, in
    the same memory. Those without a batch, and what is no tensor, are the same for all."""
    arrays = [without_histories(x._array) if isinstance(x, TensorBase) else x for x in xs]
    level = deepest_level(arrays)
    parts = [members(a, level) for a in arrays]
    rows: list[tuple[Any, ...]] = []
    for i in range(level.size):
        row = [
            v.window(inside, (i,)) if has_batch_dim else inside for inside, has_batch_dim in parts
        ]
        rows.append(tuple([wrap(a) if hasattr(a, "shape") else a for a in row]))
    return level, rows


def one_by_one(name: str, fn: Callable[..., Any], *xs: Any, blank: Any = None) -> Any:
    """`fn(*xs)` of each member of a batch, together again. Their shapes must agree. `blank` makes
    what a member's result looks like, where a batch has no members."""
    if not any(is_batched(x) for x in xs):
        return fn(*xs)
    level, rows = each_member(xs)
    if not rows and blank is not None:
        y = blank()._array
        return wrap(Batched(v.empty(y, (0, *y.shape), y.dtype), level))
    if not rows:
        raise RuntimeError(
            f"Batching rule not implemented for aten::{name}. The fallback path does not support "
            "vmap over dims of size 0."
        )
    found = [one_by_one(name, fn, *row, blank=blank)._array for row in rows]
    for i, y in enumerate(found):
        if y.shape != found[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(found[0].shape)} at "
                f"entry 0 and {list(y.shape)} at entry {i}\n"
                f"How large the result of {name} is depends on the values: under vmap it must be "
                "the same for all members."
            )
    return wrap(Batched(v.concat([v.window(y, (None,)) for y in found], 0), level))
