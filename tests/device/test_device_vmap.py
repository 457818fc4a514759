"""Batches on the device: `vmap` of every op, and of its gradient, gives what it gives on the CPU.

Nested transforms run on the device too, and leave their results there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays.device import device
from rushlight.arrays.host import device_of, is_array, move, to_host
from rushlight.core.families import ViewOp
from rushlight.core.graph import wrap
from rushlight.core.record import apply
from rushlight.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from rushlight.ops.apply import run
from rushlight.ops.registry import table
from rushlight.ops.sample_inputs import Draw, samples_of

GPU = device("cuda", 0)
# Their results' shapes depend on values, of a mask or of all: they cannot be batched.
DYNAMIC = {
    "bincount", "nonzero", "nonzero_numpy", "unique", "unique_consecutive", "unique_dim",
    "index", "index_put", "masked_select",
}  # fmt: skip


def cases() -> list[Any]:
    found = []
    for name in sorted(table):
        if name in DYNAMIC:
            continue
        draws = [list(samples_of(table[name], Draw(seed))) for seed in (7, 8)]
        for i, members in enumerate(zip(*draws, strict=True)):
            op, *xs = members[0]
            others = members[1][1:] if members[1][0] == op else xs
            found.append(pytest.param(op, [tuple(xs), tuple(others)], id=f"{name}-{i}"))
    return found


CASES = cases()


def listed(y: Any) -> list[Any]:
    return list(y) if isinstance(y, (tuple, list)) else [y]


def on_tensors(op: Any, *xs: Any) -> Any:
    return run(op, xs) if isinstance(op, ViewOp) else apply(op, *xs)


def stacked(members: list[Any], where: Any) -> list[Any]:
    made: list[Any] = []
    for column in zip(*members, strict=True):
        if is_array(column[0]):
            made.append(wrap(move(np.stack(column), where)))
        else:
            made.append(column[0])
    return made


def alike(ours: Any, theirs: Any) -> None:
    for a, b in zip(listed(ours), listed(theirs), strict=True):
        assert device_of(a._array) == GPU
        close = 1e-8 if b._array.dtype.itemsize >= 8 else 1e-4
        np.testing.assert_allclose(to_host(a._array), b._array, rtol=close, atol=close)


@pytest.mark.parametrize(("op", "members"), CASES)
def test_batches(op: Any, members: list[Any]) -> None:
    dims = tuple(0 if is_array(x) else None for x in members[0])
    if 0 not in dims or "empty" in op.name:
        return

    def both(where: Any) -> Any:
        xs = stacked(members, where)
        values = vmap(lambda *xs: on_tensors(op, *xs), in_dims=dims)(*xs)
        floats = [i for i, x in enumerate(members[0]) if is_array(x) and x.dtype.kind in "fc"]
        if not op.plan.differentiable or not floats:
            return listed(values), []

        def one(*xs: Any) -> Any:
            def of_floats(*fs: Any) -> Any:
                full = list(xs)
                for i, f in zip(floats, fs, strict=True):
                    full[i] = f
                ys = listed(on_tensors(op, *full))
                return tuple(y for y in ys if y._array.dtype.kind in "fc")

            ys, pull = vjp(of_floats, *[xs[i] for i in floats])
            return pull(tuple(torch.ones_like(y) for y in ys)) if ys else ()

        return listed(values), list(vmap(one, in_dims=dims)(*xs))

    ours, theirs = both(GPU), both(device("cpu"))
    alike(ours[0], theirs[0])
    alike(ours[1], theirs[1])


@pytest.mark.parametrize(
    "transform",
    [
        lambda f, x: grad(f)(x[0]),
        lambda f, x: vmap(grad(f))(x),
        lambda f, x: grad(lambda z: vmap(f)(z).sum())(x),
        lambda f, x: jvp(vmap(f), (x,), (torch.ones_like(x),))[1],
        lambda f, x: vmap(lambda z: jvp(f, (z,), (z,))[1])(x),
        lambda f, x: jacrev(grad(f))(x[0]),
        lambda f, x: jacfwd(grad(f))(x[0]),
        lambda f, x: vmap(hessian(f))(x),
        lambda f, x: torch.autograd.functional.jacobian(grad(f), x[0], vectorize=True),
    ],
)
def test_transforms(transform: Any) -> None:
    def f(x: Any) -> Any:
        y = x.clone()
        y[1:].mul_(x[:-1])
        return (torch.tanh(y) * x.softmax(-1)).sum()

    x = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3)
    alike(transform(f, x.to("cuda")), transform(f, x))


def test_random_numbers_differ_between_members() -> None:
    x = torch.zeros(3, 4, device="cuda")
    drawn = vmap(lambda row: row + torch.rand(4, device="cuda"), randomness="different")(x)
    assert drawn.device == torch.device("cuda", 0)
    assert len({tuple(row) for row in drawn.tolist()}) == 3
