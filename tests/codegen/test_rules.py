"""Every kernel of the op table gives what the rule gives that it was made from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rushlight.arrays import kernels
from rushlight.codegen import catalogue
from rushlight.ops.registry import table as ops

pytestmark = pytest.mark.skipif(not kernels.table, reason="not compiled")

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 3.0, -3.0, 1e-30, -1e-30, 1e30, -1e30, 88.0, -88.0,
           709.0, -745.0, np.inf, -np.inf, np.nan]  # fmt: skip
AXES: list[Any] = [(-1,), (-2,), (-3,), (-3, -1), (-2, -1), (-3, -2), None]
ALL_ONLY = ("MaxAll", "MinAll", "SumAll", "MeanAll", "ProdAll")


def names() -> list[str]:
    """The ops of which there are kernels."""
    titles = {name.split(".")[0] for name in kernels.table}
    everyday = {c.__qualname__ for c in ops.values() if catalogue.is_everyday(c)}
    return sorted((everyday | set(catalogue.ELEMENTWISE)) & titles)


def with_axes(op: Any) -> Iterator[Any]:
    """An op with others in the place of its axes."""
    if "dims" in op.params:
        single = type(op).__qualname__ in ALL_ONLY
        for dims in [None] if single else AXES:
            for keep in [False] if single else (False, True):
                given = {"dims": dims, "keepdim": keep}
                yield type(op)(*[given.get(p, getattr(op, p)) for p in op.params])
    elif "dim" in op.params and kernels.axes_of(op) is not None:
        yield from (type(op)(dim) for dim in (-1, -2, -3))
    elif "rank" in op.params:
        yield type(op)(*[3 if p == "rank" else getattr(op, p) for p in op.params])
    else:
        yield op


def values(dtype: str, which: str) -> Any:
    if which == "special":
        return np.resize(np.array(SPECIAL, dtype), (2, 19, 3))
    return np.random.default_rng(0).standard_normal((4, 5, 6)).astype(dtype)


def inputs_of(kinds: tuple[str, ...], base: Any) -> list[Any]:
    found: list[Any] = []
    for i, kind in enumerate(kinds):
        x = (
            np.roll(base, 7 * i, -1).copy()
            if base.shape[-1] > 3
            else np.roll(base, 7 * i, 1).copy()
        )
        found.append(None if kind == "nothing" else x > 0 if kind == "truth" else x)
    return found


def agree(found: Any, wanted: Any, dtype: str, which: str, what: str) -> None:
    eps = np.finfo(dtype).eps
    wanted = np.broadcast_to(wanted, found.shape)
    if which == "special" and what.startswith(CANCEL):
        # 1e30 and -1e30 cancel, or not, by the order of the terms: which are finite counts
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted), err_msg=what)
        return
    np.testing.assert_allclose(found, wanted, rtol=32 * eps, atol=64 * eps, err_msg=what)


CANCEL = ("Sum(", "Mean(", "NanSum(", "Var(", "VarMean(", "Std(", "SumAll", "MeanAll")


@pytest.mark.parametrize("which", ["normal", "special"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("title", names())
def test_a_kernel_equals_its_rule(title: str, dtype: str, which: str) -> None:
    cls = next(c for c in ops.values() if c.__qualname__ == title)
    tried = 0
    for sample, kinds in catalogue.described(cls):
        for op in with_axes(sample):
            base = values(dtype, which)
            if title == "BinaryCrossEntropy":  # its rule wants probabilities
                base = np.abs(np.sin(np.nan_to_num(base))).astype(dtype)
            xs = inputs_of(kinds or ("number",) * len(op.inputs), base)
            tried += compare_forward(op, xs, dtype, which)
            tried += compare_vjp(op, xs, dtype, which)
    assert tried


def compare_forward(op: Any, xs: list[Any], dtype: str, which: str) -> int:
    kernel = kernels.kernel_of(op, "forward")
    found = None if kernel is None else kernel(*xs)
    if found is None:
        return 0
    with np.errstate(all="ignore"):
        wanted = op.forward(*xs)
    several = (found, wanted) if isinstance(found, tuple) else ((found,), (wanted,))
    for y, z in zip(*several, strict=True):
        assert y.shape == np.shape(z)
        agree(y, z, dtype, which, f"{op!r} forward")
    return 1


def compare_vjp(op: Any, xs: list[Any], dtype: str, which: str) -> int:
    kernel = kernels.kernel_of(op, "vjp") if op.differentiable else None
    if kernel is None or len(op.outputs) > 1:
        return 0
    one = len(op.inputs) == 1
    with np.errstate(all="ignore"):
        y = np.asarray(op.forward(*xs), dtype)
    g = np.roll(y, 3, -1).copy() if y.ndim else y
    saved = [xs[op.inputs.index(n)] if n in op.inputs else y for n in op.saves]
    tried = 0
    for wanted in (1,) if one else range(1, 1 << len(op.inputs)):
        made = (kernel(g, *saved),) if one else kernel(wanted, g, *saved)
        if made is None or (made[0] is None and one):
            continue
        node = catalogue._node(op, (xs[0].shape,) * len(op.inputs), wanted)
        node._input_dtypes = (xs[0].dtype,) * len(op.inputs)
        with np.errstate(all="ignore"):
            expected = op.vjp(node, g, *saved)
        for i, found in enumerate(made):
            assert (found is not None) == bool(wanted >> i & 1)
            if found is not None:
                agree(found, expected[i], dtype, which, f"{op!r} vjp {wanted}")
        tried += 1
    return tried


@pytest.mark.parametrize("sort", [0, 1])
def test_all_sorts_of_processors_compute_the_same(sort: int) -> None:
    x = values("float32", "normal")
    chosen = ["Silu.forward", "Softmax.forward", "LogSoftmax.vjp", "Maximum.forward", "Mul.vjp.3"]

    def run() -> list[Any]:
        found: list[Any] = []
        for name in chosen:
            kernel = kernels.table[name]
            for axes in ((-1,), (-2,)):
                count = {"Silu.forward": 1, "Softmax.forward": 1, "Mul.vjp.3": 3}.get(name, 2)
                made = kernel.over(axes, False)(*[x] * count)
                found += made if isinstance(made, tuple) else [made]
        return found

    best = run()
    before = kernels._module.use_processor(0)
    try:
        if sort <= before:
            kernels._module.use_processor(sort)
            for a, b in zip(best, run(), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
    finally:
        kernels._module.use_processor(before)
    with pytest.raises(ValueError, match="use_processor"):
        kernels._module.use_processor(9)


def test_a_variance_is_that_of_double() -> None:
    """The mean is far from 0, and squares leave the range of float32."""
    for scale, far in ((1.0, 1e6), (1e25, 0.0)):
        x = (np.random.default_rng(1).standard_normal((7, 501)) * scale + far).astype(np.float32)
        cls = next(c for c in ops.values() if c.__qualname__ == "Std")
        for dims in ((-1,), (-2,), None):
            y = kernels.kernel_of(cls(dims, False, 1), "forward")(x)
            np.testing.assert_allclose(y, x.astype(float).std(axis=dims, ddof=1), rtol=3e-7)
    x = np.ones((7, 7), np.float32)
    assert kernels.kernel_of(cls((-1,), False, 7), "forward")(x) is None  # no freedom left


def test_sums_are_more_exact_than_in_pairs() -> None:
    x = np.random.default_rng(2).uniform(0, 1, (3, 1000, 300)).astype(np.float32)
    cls = next(c for c in ops.values() if c.__qualname__ == "Sum")
    for dims in ((-1,), (-2,), (-2, -1), (-3, -1), None):
        y = kernels.kernel_of(cls(dims, False), "forward")(x)
        wanted = x.astype(float).sum(axis=dims)
        assert abs(y - wanted).max() <= 3e-7 * wanted.max()
        for odd in (np.inf, -np.inf, np.nan):
            wide = x.astype(float)
            wide[1, 2, 3] = odd
            y = kernels.kernel_of(cls(dims, False), "forward")(wide)
            np.testing.assert_allclose(y, wide.sum(axis=dims), rtol=1e-15)
