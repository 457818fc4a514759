"""Laws that hold for every op of the table; a new op is tested by existing.

Each op draws its own samples (`ops/sample_inputs.py`). In float64, with <a, b> = Re sum(conj(a) b):
- derivative: <g, (f(x + h t) - f(x - h t)) / 2h> = <vjp(g), t> = <g, jvp(t)>;
- second derivative: the same law for the map x -> vjp(g), recorded with create_graph;
- a recording of forward, vjp and jvp, replayed on NumPy, gives what was computed directly;
- gradients have the dtype and shape of their inputs, in float32 too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight
from rushlight.arrays import kernels
from rushlight.arrays.deferred import Deferred
from rushlight.core.engine.engine import backward_of
from rushlight.core.graph import TensorBase, wrap
from rushlight.core.node import fit
from rushlight.core.record import apply
from rushlight.ops.registry import table
from rushlight.ops.sample_inputs import Draw, samples_of
from tests.laws.recording import Tape

H = 1e-6


def cases() -> list[Any]:
    found = []
    for name in sorted(table):
        for i, (op, *xs) in enumerate(samples_of(table[name], Draw(7))):
            found.append(pytest.param(op, tuple(xs), id=f"{name}-{i}"))
    return found


CASES = cases()
SMOOTH = [c for c in CASES if c.values[0].plan.differentiable]


def test_every_op_has_samples() -> None:
    without = [n for n in sorted(table) if not any(True for _ in samples_of(table[n], Draw(1)))]
    assert without == []


def is_float(x: Any) -> bool:
    return isinstance(x, (np.ndarray, Deferred)) and x.dtype.kind in "fc"


def inner(a: Any, b: Any) -> float:
    return float(np.sum(np.conj(a) * b).real)


def listed(y: Any) -> list[Any]:
    return list(y) if isinstance(y, tuple) else [y]


def leaves(xs: tuple[Any, ...]) -> list[Any]:
    made = []
    for x in xs:
        if isinstance(x, np.ndarray):
            t = wrap(x)
            t._requires_grad = is_float(x)
            made.append(t)
        else:
            made.append(x)
    return made


def directions(xs: tuple[Any, ...], seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    made: list[Any] = []
    for x in xs:
        if is_float(x):
            t = rng.standard_normal(x.shape)
            if x.dtype.kind == "c":
                t = t + 1j * rng.standard_normal(x.shape)
            made.append(np.asarray(t))
        else:
            made.append(None)
    return made


def shifted(xs: tuple[Any, ...], ts: list[Any], h: float) -> tuple[Any, ...]:
    return tuple(x if t is None else np.asarray(x + h * t) for x, t in zip(xs, ts, strict=True))


def forward(op: Any, xs: tuple[Any, ...]) -> list[Any]:
    return [np.asarray(y) for y in listed(op.forward(*xs))]


def cotangents(ys: list[Any], seed: int) -> list[Any]:
    return [
        d if d is not None else np.zeros(y.shape)
        for y, d in zip(ys, directions(tuple(ys), seed), strict=True)
    ]


def node_of(results: Any) -> Any:
    for t in listed(results):
        if t._node is not None:
            return t._node
    return None


def pulled(
    op: Any, xs: tuple[Any, ...], gs: list[Any], tensors: bool
) -> tuple[list[Any], list[Any]]:
    """(inputs as tensors, gradients fitted to them) by one run of the op's own vjp."""
    ts = leaves(xs)
    node = node_of(apply(op, *ts))
    assert node is not None
    given = [wrap(g) for g in gs] if tensors else gs
    outs = backward_of(node, given if node._output_metas is not None else given[0], tensors)
    fitted = []
    for x, out in zip(xs, outs, strict=True):
        wanted = is_float(x)
        fitted.append(fit(out, x.shape, x.dtype) if wanted and out is not None else None)
    return ts, fitted


def slope(op: Any, xs: tuple[Any, ...], ts: list[Any], gs: list[Any]) -> float:
    up = forward(op, shifted(xs, ts, H))
    down = forward(op, shifted(xs, ts, -H))
    return sum(
        inner(g, (u - d) / (2 * H)) for g, u, d in zip(gs, up, down, strict=True) if is_float(u)
    )


@pytest.mark.parametrize(("op", "xs"), CASES)
def test_recorded_equals_raw(op: Any, xs: tuple[Any, ...]) -> None:
    ys = forward(op, xs)
    results = listed(apply(op, *leaves(xs)))
    for y, t in zip(ys, results, strict=True):
        assert isinstance(t, TensorBase)
        assert t._array.shape == y.shape and t._array.dtype == y.dtype
        if op.forward_kernel is None or y.dtype.kind != "f":
            np.testing.assert_array_equal(t._array, y)
        else:  # functions that are not NumPy's or SciPy's, but as exact
            np.testing.assert_array_almost_equal_nulp(t._array, y, 4)


@pytest.mark.parametrize(("op", "xs"), SMOOTH)
def test_vjp_and_jvp_are_the_derivative(op: Any, xs: tuple[Any, ...]) -> None:
    ys = forward(op, xs)
    gs = cotangents(ys, 1)
    ts = directions(xs, 2)
    expected = slope(op, xs, ts, gs)
    _, grads = pulled(op, xs, gs, False)
    by_vjp = sum(inner(g, t) for g, t in zip(grads, ts, strict=True) if g is not None)
    scale = 1 + abs(expected)
    assert abs(by_vjp - expected) < 2e-6 * scale, f"vjp {by_vjp}, differences {expected}"
    y = op.forward(*xs)
    tangents = [np.asarray(d) for d in listed(op.jvp(tuple(ts), xs, y))]
    by_jvp = sum(
        inner(g, np.broadcast_to(t, y_.shape))
        for g, t, y_ in zip(gs, tangents, ys, strict=True) if is_float(y_)
    )  # fmt: skip
    assert abs(by_jvp - by_vjp) < 1e-9 * scale, f"jvp {by_jvp}, vjp {by_vjp}"


@pytest.mark.parametrize(("op", "xs"), SMOOTH)
def test_second_derivative(op: Any, xs: tuple[Any, ...]) -> None:
    ys = forward(op, xs)
    gs = cotangents(ys, 3)
    weights = directions(xs, 4)
    ts = directions(xs, 5)

    def first(at: tuple[Any, ...]) -> float:
        _, grads = pulled(op, at, gs, False)
        return sum(inner(w, g) for w, g in zip(weights, grads, strict=True) if g is not None)

    expected = (first(shifted(xs, ts, H)) - first(shifted(xs, ts, -H))) / (2 * H)
    inputs, grads = pulled(op, xs, gs, True)
    outputs = [g for g in grads if g is not None and (g._node is not None or g._requires_grad)]
    seeds = [
        w
        for w, g in zip(weights, grads, strict=True)
        if g is not None and (g._node or g._requires_grad)
    ]
    asked = [t for t in inputs if isinstance(t, TensorBase) and t._requires_grad]
    total = 0.0
    if outputs and asked:
        starts = [wrap(np.asarray(s, o._array.dtype)) for s, o in zip(seeds, outputs, strict=True)]
        found = rushlight.autograd.grad(outputs, asked, starts, allow_unused=True)
        along = [d for d in ts if d is not None]
        total = sum(inner(f._array, d) for f, d in zip(found, along, strict=True) if f is not None)
    assert abs(total - expected) < 5e-6 * (1 + abs(expected)), f"{total}, differences {expected}"


@pytest.mark.parametrize(
    ("op", "xs"), [c for c in CASES if not getattr(c.values[0], "dynamic", False)]
)
def test_replaying_a_recording_gives_the_eager_result(op: Any, xs: tuple[Any, ...]) -> None:
    arrays = [x for x in xs if isinstance(x, np.ndarray)]
    tape = Tape()
    inputs = [tape.input(x) if isinstance(x, np.ndarray) else x for x in xs]
    traced = listed(op.forward(*inputs))
    replayed = tape.replay(arrays, traced)
    for y, r in zip(forward(op, xs), replayed, strict=True):
        if op.name == "native_group_norm" and kernels.table:  # its kernel adds in another order
            np.testing.assert_allclose(np.asarray(r), y, rtol=1e-13, atol=1e-13)
        else:
            np.testing.assert_array_equal(np.asarray(r), y)
    if not op.plan.differentiable:
        return
    ys = forward(op, xs)
    gs = cotangents(ys, 6)
    ts = directions(xs, 8)
    tape = Tape()
    inputs = [tape.input(x) if isinstance(x, np.ndarray) else x for x in xs]
    recorded_gs = [tape.input(g) for g in gs]
    recorded_ts = [None if t is None else tape.input(t) for t in ts]
    tensors = []
    for x, r in zip(xs, inputs, strict=True):
        if isinstance(x, np.ndarray):
            t = wrap(r)
            t._requires_grad = is_float(x)
            tensors.append(t)
        else:
            tensors.append(x)
    node = node_of(apply(op, *tensors))
    outs = backward_of(
        node, recorded_gs if node._output_metas is not None else recorded_gs[0], False
    )
    y = op.forward(*inputs)
    tangents = listed(op.jvp(tuple(recorded_ts), tuple(inputs), y))
    values = [*arrays, *gs, *[t for t in ts if t is not None]]
    wanted = [o for o, x in zip(outs, xs, strict=True) if o is not None and is_float(x)]
    _, eager = pulled(op, xs, gs, False)
    replayed = tape.replay(values, wanted)
    asked = [x for x, o in zip(xs, outs, strict=True) if o is not None and is_float(x)]
    fitted = [fit(np.asarray(r), x.shape, x.dtype) for r, x in zip(replayed, asked, strict=True)]
    for a, b in zip(fitted, [e for e in eager if e is not None], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    replayed = tape.replay(values, tangents)
    for a, b in zip(replayed, listed(op.jvp(tuple(ts), xs, op.forward(*xs))), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("op", "xs"), SMOOTH)
def test_gradients_in_float32_stay_float32(op: Any, xs: tuple[Any, ...]) -> None:
    narrow = {"f": np.float32, "c": np.complex64}
    xs = tuple(x.astype(narrow[x.dtype.kind]) if is_float(x) else x for x in xs)
    tensors = leaves(xs)
    results = [t for t in listed(apply(op, *tensors)) if t._node is not None]
    if getattr(op, "dtype", None) is None:  # else the op was told which dtype to give
        for t in results:
            assert t._array.dtype in (np.float32, np.complex64), t._array.dtype
    grads = rushlight.autograd.grad(
        results, [t for t in tensors if isinstance(t, TensorBase) and t._requires_grad],
        [wrap(np.ones_like(t._array)) for t in results], allow_unused=True,
    )  # fmt: skip
    for g, x in zip(grads, [x for x in xs if is_float(x)], strict=True):
        assert g is None or (g._array.dtype == x.dtype and g._array.shape == x.shape)
