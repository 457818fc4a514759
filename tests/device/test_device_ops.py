"""Every op of the table on the device: forward, vjp and jvp give what they give on the CPU.

The ops draw their own samples, as in `test_laws`; a new op is tested by existing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight  # noqa: F401
from rushlight.arrays.device import device
from rushlight.arrays.host import device_of, is_array, move, to_host
from rushlight.core.engine.engine import backward_of
from rushlight.core.graph import wrap
from rushlight.core.node import fit
from rushlight.core.record import apply
from rushlight.ops.registry import table
from rushlight.ops.sample_inputs import Draw, samples_of

GPU = device("cuda", 0)
CLOSE = {np.dtype(np.float64): 1e-9, np.dtype(np.complex128): 1e-9}
NARROW = {"f": np.float32, "c": np.complex64}


def cases() -> list[Any]:
    found = []
    for name in sorted(table):
        for i, (op, *xs) in enumerate(samples_of(table[name], Draw(7))):
            found.append(pytest.param(op, tuple(xs), id=f"{name}-{i}"))
    return found


CASES = cases()


def there(x: Any) -> Any:
    return move(x, GPU) if is_array(x) else x


def is_float(x: Any) -> bool:
    return hasattr(x, "dtype") and x.dtype.kind in "fc"


def listed(y: Any) -> list[Any]:
    return list(y) if isinstance(y, (tuple, list)) else [y]


def along(xs: list[Any], seed: int) -> list[Any]:
    """A direction for each floating-point array, on the CPU; None for the rest."""
    draw = Draw(seed)
    return [
        None if not is_float(x)
        else np.asarray((draw.complex if x.dtype.kind == "c" else draw.real)(*x.shape), x.dtype)
        for x in xs
    ]  # fmt: skip


def alike(ours: list[Any], theirs: list[Any], what: str) -> None:
    """`ours` from the device equal `theirs` from the CPU, in values, shapes and dtypes."""
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        if b is None:
            assert a is None, f"{what}: a gradient on the device alone"
            continue
        assert device_of(a) == GPU, f"{what}: the result is on {device_of(a)}"
        host, b = to_host(a), np.asarray(b)
        assert host.shape == b.shape, what
        assert host.dtype == b.dtype, what
        close = CLOSE.get(b.dtype, 1e-4)
        np.testing.assert_allclose(host, b, rtol=close, atol=close, err_msg=what)


def pulled(op: Any, xs: tuple[Any, ...], gs: list[Any], tensors: bool = False) -> list[Any]:
    """The gradients of an op's inputs, each in its input's shape and dtype.

    `tensors`: by a rule that runs on tensors and is recorded, as under `create_graph`.
    """
    inputs = []
    for x in xs:
        if hasattr(x, "dtype"):
            t = wrap(x)
            t._requires_grad = is_float(x)
            inputs.append(t)
        else:
            inputs.append(x)
    results = listed(apply(op, *inputs))
    node = next(t._node for t in results if t._node is not None)
    given = [wrap(g) for g in gs] if tensors else gs
    outs = backward_of(node, given if node._output_metas is not None else given[0], tensors)
    fitted = [
        fit(out, x.shape, x.dtype) if is_float(x) and out is not None else None
        for x, out in zip(xs, outs, strict=True)
    ]
    return [g._array if tensors and g is not None else g for g in fitted]


def check(op: Any, xs: tuple[Any, ...]) -> None:
    ys = [np.asarray(y) for y in listed(op.forward(*xs))]
    on = tuple(there(x) for x in xs)
    alike(listed(op.forward(*on)), ys, "forward")
    if not op.plan.differentiable or not any(is_float(x) for x in xs):
        return
    gs = [np.zeros(y.shape) if d is None else d for y, d in zip(ys, along(ys, 1), strict=True)]
    grads = pulled(op, xs, gs)
    alike(pulled(op, on, [there(g) for g in gs]), grads, "vjp")
    alike(pulled(op, on, [there(g) for g in gs], True), grads, "vjp, recorded")
    ts = along(list(xs), 2)
    mine = op.jvp(tuple(there(t) for t in ts), on, op.forward(*on))
    alike(listed(mine), listed(op.jvp(tuple(ts), xs, op.forward(*xs))), "jvp")


@pytest.mark.parametrize(("op", "xs"), CASES)
def test_in_float64(op: Any, xs: tuple[Any, ...]) -> None:
    check(op, xs)


@pytest.mark.parametrize(("op", "xs"), [c for c in CASES if any(is_float(x) for x in c.values[1])])
def test_in_float32(op: Any, xs: tuple[Any, ...]) -> None:
    check(op, tuple(x.astype(NARROW[x.dtype.kind]) if is_float(x) else x for x in xs))
