"""Laws of batches, for every op of the table: `vmap` equals a loop, and so do its derivatives.

Members are drawn three times, so that they differ in values (indices too), not in shapes. Inputs
that are no arrays, or whose op was drawn differently, are shared by the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rushlight.core.families import ViewOp
from rushlight.core.graph import TensorBase, wrap
from rushlight.core.record import apply
from rushlight.func import jvp, vjp, vmap
from rushlight.ops.apply import run
from rushlight.ops.registry import table
from rushlight.ops.sample_inputs import Draw, samples_of

SIZE = 3
# How large their results are depends on the values, so members of a batch may differ in shape.
DYNAMIC = {"bincount", "nonzero", "nonzero_numpy", "unique", "unique_consecutive", "unique_dim"}
BY_MASK = {"index", "index_put", "masked_select"}  # fixed if the batch shares the mask


def cases() -> list[Any]:
    found = []
    for name in sorted(table):
        draws = [list(samples_of(table[name], Draw(seed))) for seed in (7, 8, 9)]
        for i, members in enumerate(zip(*draws, strict=True)):
            op = members[0][0]
            if any(m[0] != op for m in members):
                members = (members[0],) * SIZE
            if name in DYNAMIC:
                continue
            found.append(pytest.param(op, [m[1:] for m in members], id=f"{name}-{i}"))
    return found


CASES = cases()
SMOOTH = [c for c in CASES if c.values[0].plan.differentiable]


def listed(y: Any) -> list[Any]:
    return list(y) if isinstance(y, tuple) else [y]


def on_tensors(op: Any, *xs: Any) -> Any:
    return run(op, xs) if isinstance(op, ViewOp) else apply(op, *xs)


def is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray)


def masks(op: Any, members: list[Any]) -> list[tuple[bool, ...]]:
    """All arrays batched; each of them alone; all but each."""
    shared = op.name in BY_MASK
    flags = tuple(is_array(x) and not (shared and x.dtype == bool) for x in members[0])
    found = [flags]
    places = [i for i, f in enumerate(flags) if f]
    if len(places) > 1:
        for p in places:
            found.append(tuple(i == p for i in range(len(flags))))
            if len(places) > 2:
                found.append(tuple(f and i != p for i, f in enumerate(flags)))
    return found


def stacked(members: list[Any], mask: tuple[bool, ...]) -> list[Any]:
    made: list[Any] = []
    for i, batched in enumerate(mask):
        column = [m[i] for m in members]
        if batched:
            made.append(wrap(np.stack(column)))
        else:
            made.append(wrap(column[0].copy()) if is_array(column[0]) else column[0])
    return made


def member(members: list[Any], mask: tuple[bool, ...], k: int) -> tuple[Any, ...]:
    return tuple(members[k][i] if batched else members[0][i] for i, batched in enumerate(mask))


def dims(mask: tuple[bool, ...]) -> tuple[Any, ...]:
    return tuple(0 if b else None for b in mask)


def close(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11, equal_nan=True)


@pytest.mark.parametrize("name", sorted(DYNAMIC))
def test_shapes_that_depend_on_values_are_refused(name: str) -> None:
    op, x, *rest = next(samples_of(table[name], Draw(7)))
    batch = wrap(np.stack([x, x]))
    with pytest.raises(RuntimeError, match="vmap: We do not support batching operators that can"):
        vmap(lambda t: on_tensors(op, t, *rest))(batch)


@pytest.mark.parametrize(("op", "members"), CASES)
def test_vmap_equals_a_loop(op: Any, members: list[Any]) -> None:
    for mask in masks(op, members):
        if not any(mask):
            continue
        loop = [listed(op.forward(*member(members, mask, k))) for k in range(SIZE)]
        found = vmap(lambda *xs: on_tensors(op, *xs), in_dims=dims(mask))(*stacked(members, mask))
        for j, y in enumerate(listed(found)):
            assert isinstance(y, TensorBase)
            want = np.stack([np.asarray(row[j]) for row in loop])
            assert y._array.dtype == want.dtype and y._array.shape == want.shape
            if "empty" not in op.name:
                close(y._array, want)


def smooth_places(members: list[Any]) -> list[int]:
    return [i for i, x in enumerate(members[0]) if is_array(x) and x.dtype.kind in "fc"]


def directions(xs: list[Any], seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    made = []
    for x in xs:
        shape, dtype = x._array.shape, x._array.dtype
        t = rng.standard_normal(shape)
        if dtype.kind == "c":
            t = t + 1j * rng.standard_normal(shape)
        made.append(wrap(np.asarray(t)))
    return made


def only(op: Any, places: list[int], rest: list[Any]) -> Any:
    """The op as a function of its float inputs, giving its float outputs."""

    def call(*floats: Any) -> Any:
        xs = list(rest)
        for p, x in zip(places, floats, strict=True):
            xs[p] = x
        ys = [y for y in listed(on_tensors(op, *xs)) if y._array.dtype.kind in "fc"]
        return tuple(ys)

    return call


@pytest.mark.parametrize(("op", "members"), SMOOTH)
def test_gradients_of_batches_equal_a_loop(op: Any, members: list[Any]) -> None:
    places = smooth_places(members)
    mask = masks(op, members)[0]
    if not places:
        return
    xs = stacked(members, mask)
    floats = [xs[p] for p in places]
    shared = [x if not mask[p] else None for p, x in enumerate(xs)]
    others = [p for p in range(len(xs)) if mask[p] and p not in places]

    def one(*args: Any) -> Any:
        full = list(shared)
        for p, x in zip([*places, *others], args, strict=True):
            full[p] = x
        return only(op, places, full)(*args[: len(places)])

    tensors = [*floats, *[xs[p] for p in others]]
    # through the batch
    outputs, pull = vjp(lambda *fs: vmap(one)(*fs, *[xs[p] for p in others]), *floats)
    if not outputs:
        return
    gs = directions(list(outputs), 3)
    through = pull(tuple(gs))

    # inside the batch
    def inner(*args: Any) -> Any:
        n = len(tensors)
        _, pull_one = vjp(lambda *fs: one(*fs, *args[len(places) : n]), *args[: len(places)])
        return pull_one(tuple(args[n:]))

    inside = vmap(inner)(*tensors, *gs)
    # one by one
    for k in range(SIZE):
        row = [t[k] for t in tensors]
        _, pull_one = vjp(lambda *fs, row=row: one(*fs, *row[len(places) :]), *row[: len(places)])
        want = pull_one(tuple(g[k] for g in gs))
        for a, b, w in zip(through, inside, want, strict=True):
            close(a._array[k], w._array)
            close(b._array[k], w._array)


@pytest.mark.parametrize(("op", "members"), SMOOTH)
def test_tangents_of_batches_equal_a_loop(op: Any, members: list[Any]) -> None:
    places = smooth_places(members)
    mask = masks(op, members)[0]
    if not places:
        return
    xs = stacked(members, mask)
    floats = [xs[p] for p in places]
    shared = [x if not mask[p] else None for p, x in enumerate(xs)]
    others = [p for p in range(len(xs)) if mask[p] and p not in places]
    rest = [xs[p] for p in others]
    ts = directions(floats, 5)
    n = len(places)

    def one(*args: Any) -> Any:
        full = list(shared)
        for p, x in zip([*places, *others], args, strict=True):
            full[p] = x
        return only(op, places, full)(*args[:n])

    _, through = jvp(lambda *fs: vmap(one)(*fs, *rest), tuple(floats), tuple(ts))

    def inner(*args: Any) -> Any:
        fs, tangents, others_ = args[:n], args[n : 2 * n], args[2 * n :]
        return jvp(lambda *f: one(*f, *others_), tuple(fs), tuple(tangents))[1]

    inside = vmap(inner)(*floats, *ts, *rest)
    for k in range(SIZE):
        _, want = jvp(
            lambda *f, k=k: one(*f, *[r[k] for r in rest]),
            tuple(f[k] for f in floats), tuple(t[k] for t in ts),
        )  # fmt: skip
        for a, b, w in zip(through, inside, want, strict=True):
            close(a._array[k], w._array)
            close(b._array[k], w._array)
