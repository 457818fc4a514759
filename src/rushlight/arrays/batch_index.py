"""What the words mean on batched arrays: gathering, scattering, advanced indices, writes.

They fill `batched.rules`; those of the other primitives stand in `batch_rules`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import (
    INPLACE,
    Batched,
    bottom,
    from_end,
    insert_axes,
    members,
    rank_of,
    rule,
    rules,
    with_batch,
    wrap_result,
)
from rushlight.arrays.vocabulary import primitives


# --- gathering and scattering along an axis -------------------------------------------------------
def _at_least(x: Any, rank: int) -> Any:
    """With a batch in front, and at least one axis behind it if `rank` is 0."""
    return insert_axes(x, 1) if rank == 0 else x


@rule
def gather(primitive: Any, level: Any, x: Any, axis: int, index: Any) -> Any:
    shape, rank = index.shape, rank_of(x)
    where, source = with_batch(index, level), with_batch(x, level)
    if rank == 0:
        source = insert_axes(source, 1)
        where = v.reshape(where, (level.size, index.size))
        axis = -1
    out = primitive(source, from_end(axis, max(rank, 1)), where)
    return Batched(v.reshape(out, (level.size, *shape)) if rank == 0 else out, level)


@rule
def ungather(primitive: Any, level: Any, g: Any, shape: Any, axis: int, index: Any) -> Any:
    where, source = with_batch(index, level), with_batch(g, level)
    rank = len(shape)
    if rank == 0:
        where = v.reshape(where, (level.size, index.size))
        source = v.reshape(source, (level.size, index.size))
        out = primitive(source, (level.size, 1), -1, where)
        return Batched(v.window(out, (v.ALL, 0)), level)
    return Batched(primitive(source, (level.size, *shape), from_end(axis, rank), where), level)


def _spread(level: Any, x: Any, index: Any, source: Any) -> tuple[Any, Any, Any]:
    """Target, index and source of a scatter, each with the batch and at least one axis."""
    rank = rank_of(index)
    target = _at_least(with_batch(x, level), rank_of(x))
    where = _at_least(with_batch(index, level), rank)
    k = rank_of(source)
    values = with_batch(source, level, target)
    return target, where, insert_axes(values, max(rank, 1) - k)


def _scattering(
    primitive: Any, level: Any, x: Any, axis: int, index: Any, source: Any, *args: Any
) -> Any:
    target, where, values = _spread(level, x, index, source)
    out = primitive(target, from_end(axis, max(rank_of(x), 1)), where, values, *args)
    return Batched(v.window(out, (v.ALL, 0)) if rank_of(x) == 0 else out, level)


for _name in ("scatter", "scatter_add", "reduce_along"):
    rules[_name] = _scattering


@rule
def store_along(
    primitive: Any, level: Any, target: Any, axis: int, index: Any, source: Any
) -> None:
    if _is_shared(level, target, index, source):
        primitive(*[members(x, level)[0] for x in (target, axis, index, source)])
        return
    below, where, values = _spread(level, target, index, source)
    primitive(below, from_end(axis, max(rank_of(target), 1)), where, _storable(below, values))


# --- advanced indices -----------------------------------------------------------------------------
class Picked:
    """How an advanced index works below a level; see `pick`.

    `front` is where the axes of the index arrays stand in a member's result, `wide` how many there
    are, `rank` how many axes the result has. NumPy puts them where the first array stood, unless
    something else is between arrays: then in front.
    """

    def __init__(self, rank: int, index: tuple[Any, ...], arrays: tuple[Any, ...]) -> None:
        rest = iter(arrays)
        items = [next(rest) if item is v.SLOT else item for item in index]
        fancy = [i for i, item in enumerate(items) if hasattr(item, "shape")]
        if fancy:  # an int next to arrays is one of them
            fancy = [i for i, item in enumerate(items) if hasattr(item, "shape") or _is_int(item)]
        left = rank - sum(_width(item) for item in items)  # axes that the end stands for
        sizes = [0 if i in fancy or _is_int(item) else 1 for i, item in enumerate(items)]
        together = not fancy or fancy[-1] - fancy[0] == len(fancy) - 1
        self.wide = max(
            [1 if _mask(a) else rank_of(a) for a in arrays], default=0
        )  # fmt: skip
        self.front = sum(sizes[: fancy[0]]) if fancy and together else 0
        self.together = together
        self.rank = sum(sizes) + left + self.wide


def _is_int(x: Any) -> bool:
    return isinstance(x, (int, np.integer))


def _is_all(x: Any) -> bool:
    return isinstance(x, slice) and x == v.ALL


def _mask(x: Any) -> bool:
    kind: str = bottom(x).dtype.kind
    return kind == "b"


def _width(item: Any) -> int:
    """How many axes an item of an index takes."""
    if item is None or item is Ellipsis:
        return 0
    return rank_of(item) if hasattr(item, "shape") and _mask(item) else 1


def _expand_ellipsis(rank: int, index: tuple[Any, ...], arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """An index with slices in place of an ellipsis: one that stands for no axes would still count
    for NumPy as something between the arrays."""
    if not any(item is Ellipsis for item in index):
        return index
    rest = iter(arrays)
    used = sum(_width(next(rest) if item is v.SLOT else item) for item in index)
    at = next(i for i, item in enumerate(index) if item is Ellipsis)
    return (*index[:at], *[v.ALL] * (rank - used), *index[at + 1 :])


def _split_index(level: Any, arrays: tuple[Any, ...], wide: int) -> tuple[list[Any], bool]:
    """The index arrays below the level, in line with one another, and whether one is batched."""
    parts = [members(a, level) for a in arrays]
    some = any(has_batch_dim for _, has_batch_dim in parts)
    found: list[Any] = []
    for (inside, has_batch_dim), array in zip(parts, arrays, strict=True):
        if has_batch_dim and _mask(array):
            raise RuntimeError(
                "vmap: We do not support batching operators that can support dynamic shape. "
                "Attempting to batch over indexing with a boolean mask.\n"
                "How many elements a mask keeps differs from member to member: keep them all, and "
                "choose with `torch.where(mask, a, b)`."
            )
        found.append(insert_axes(inside, wide - rank_of(array)) if has_batch_dim else inside)
    return found, some


def _beneath(
    level: Any, like: Any, rank: int, index: tuple[Any, ...], arrays: tuple[Any, ...], own: bool
) -> tuple[Any, list[Any], tuple[int, ...] | None]:
    """Index and arrays below the level, for an array of `rank` that has a batch axis if `own`;
    and the order of axes that brings NumPy's result to "batch, then a member's axes"."""
    index = _expand_ellipsis(rank, index, arrays)
    seen = Picked(rank, index, arrays)
    below, some = _split_index(level, arrays, seen.wide)
    wide, front = seen.wide, seen.front
    total = seen.rank + 1
    if not own:  # the arrays alone have a batch; it is the first of the axes they give
        order = (front, *[d for d in range(total) if d != front])
        return index, below, order if front else None
    if not some:
        order = (wide, *[d for d in range(total) if d != wide])
        return (v.ALL, *index), below, None if seen.together else order
    batch = v.reshape(v.iota(like, level.size, np.dtype(np.int64)), (level.size,) + (1,) * wide)
    # in front now: batch, the arrays' axes, the rest
    kept = list(range(1 + wide, total))
    order = (0, *kept[:front], *range(1, 1 + wide), *kept[front:])
    return (v.SLOT, *index), [batch, *below], order if front else None


def _back(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(order)), key=lambda d: order[d]))


def _values(level: Any, value: Any, rank: int, order: tuple[int, ...] | None, like: Any) -> Any:
    """A value to be written to what an index of `_beneath` names."""
    k = rank_of(value)
    below = insert_axes(with_batch(value, level, like), rank - k)
    return below if order is None else v.permute(below, _back(order))


@rule
def pick(primitive: Any, level: Any, x: Any, index: Any, *arrays: Any) -> Any:
    inside, own = members(x, level)
    if not own and not any(members(a, level)[1] for a in arrays):
        return wrap_result(
            primitive(inside, index, *[members(a, level)[0] for a in arrays]), level, False
        )
    places, below, order = _beneath(level, inside, rank_of(x), index, arrays, own)
    out = primitive(inside, places, *below)
    return Batched(out if order is None else v.permute(out, order), level)


@rule
def unpick(primitive: Any, level: Any, g: Any, shape: Any, index: Any, *arrays: Any) -> Any:
    inside = with_batch(g, level)
    places, below, order = _beneath(level, inside, len(shape), index, arrays, True)
    if order is not None:
        inside = v.permute(inside, _back(order))
    return Batched(primitive(inside, (level.size, *shape), places, *below), level)


def _assign_masked(level: Any, x: Any, value: Any, index: Any, arrays: tuple[Any, ...]) -> Any:
    """Assignment where a batched mask is true of values that do not depend on where, or None if
    it is not that."""
    if len(arrays) != 1 or not _mask(arrays[0]):
        return None
    (mask,) = arrays
    if not members(mask, level)[1]:
        return None
    items = _expand_ellipsis(rank_of(x), index, arrays)
    if any(item is not v.SLOT and not _is_all(item) for item in items):
        return None
    front = items.index(v.SLOT)
    behind = rank_of(x) - front - rank_of(mask)
    if rank_of(value):
        sizes = (1,) * (front + 1 + behind - rank_of(value)) + tuple(value.shape)
        if sizes[front] != 1:
            return None
        value = v.reshape(value, (*sizes[:front], *[1] * rank_of(mask), *sizes[front + 1 :]))
    if behind:
        mask = v.reshape(mask, (*mask.shape, *[1] * behind))
    return v.where(mask, value, x)


def _placing(primitive: Any, level: Any, x: Any, value: Any, index: Any, *arrays: Any) -> Any:
    if primitive is primitives["place"]:
        chosen = _assign_masked(level, x, value, index, arrays)
        if chosen is not None:
            return v.cast(chosen, x.dtype)
    inside = with_batch(x, level)
    places, below, order = _beneath(level, inside, rank_of(x), index, arrays, True)
    rank = Picked(rank_of(x), _expand_ellipsis(rank_of(x), index, arrays), arrays).rank
    return Batched(
        primitive(inside, _values(level, value, rank, order, inside), places, *below), level
    )


for _name in ("place", "place_add"):
    rules[_name] = _placing


def _storing(primitive: Any, level: Any, target: Any, value: Any, index: Any, *arrays: Any) -> None:
    if _is_shared(level, target, value, *arrays):
        beneath = [members(x, level)[0] for x in (target, value, index, *arrays)]
        primitive(*beneath)
        return
    if primitive is primitives["store"]:
        chosen = _assign_masked(level, target, value, index, arrays)
        if chosen is not None:
            v.overwrite(target, chosen)
            return
    inside, _ = members(target, level)
    places, below, order = _beneath(level, inside, rank_of(target), index, arrays, True)
    rank = Picked(rank_of(target), _expand_ellipsis(rank_of(target), index, arrays), arrays).rank
    primitive(inside, _storable(inside, _values(level, value, rank, order, inside)), places, *below)


for _name in ("store", "store_add"):
    rules[_name] = _storing


@rule
def searchsorted(primitive: Any, level: Any, sorted_: Any, x: Any, right: bool) -> Any:
    rows, own = members(sorted_, level)
    inside, has_batch_dim = members(x, level)
    if not own:
        return wrap_result(primitive(rows, inside, right), level, has_batch_dim)
    inside = with_batch(x, level)
    if level.size == 0:
        return Batched(v.full(inside, tuple(inside.shape), 0, np.dtype(np.int64)), level)
    found = [
        primitive(v.window(rows, (i,)), v.window(inside, (i,)), right) for i in range(level.size)
    ]
    return Batched(v.concat([v.window(y, (None,)) for y in found], 0), level)


# --- writing --------------------------------------------------------------------------------------
def _is_shared(level: Any, target: Any, *others: Any) -> bool:
    """Whether a write is one for all members: target and sources are shared by the batch. A target
    that is, written with what differs from member to member, is an error."""
    if members(target, level)[1]:
        return False
    if any(members(x, level)[1] for x in others):
        raise RuntimeError(INPLACE)
    return True


def _storable(target: Any, source: Any) -> Any:
    """What is written below: a tensor's array, if the target is no tensor either."""
    if hasattr(target, "_storage") or not hasattr(source, "_storage"):
        return source
    if source._requires_grad or source._node is not None or source._tangent is not None:
        raise NotImplementedError(
            "vmap: a value with derivatives outside the batch is being written into memory that "
            "has none. Compute it out of place (`torch.stack`, `torch.where`)."
        )
    return source._array


@rule
def overwrite(primitive: Any, level: Any, target: Any, source: Any) -> None:
    below, _ = members(target, level)
    inside, has_batch_dim = members(source, level)
    inside = _storable(below, inside)
    if _is_shared(level, target, source):
        primitive(below, inside)
        return
    if has_batch_dim:
        inside = insert_axes(inside, rank_of(target) - rank_of(source))
    primitive(below, inside)
