"""Long sums: whether any reduction, or any gradient that sums, loses more than PyTorch's does.

Each attempt draws an op, a dtype, a shape, axes, a layout and a distribution of values (equal ones
are the hardest: every addition errs to the same side). The result is compared with one computed by
NumPy in a wider type from the same rounded inputs. The error may be twice PyTorch's and a few units
of the sum of the magnitudes that were added; without PyTorch, a few units times log2 of how many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import rushlight

TITLE = "accuracy of sums"
SHORT = 160

_EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
_PARTS = {"complex64": "float32", "complex128": "float64"}
_UNITS = 4.0  # how many units of the sum of magnitudes are a matter of luck
Reference = tuple[Any, Any]  # the exact result, and the sum of magnitudes behind each element


def _eps(dtype: str) -> float:
    return _EPS[_PARTS.get(dtype, dtype)]


# --- cases ----------------------------------------------------------------------------------------
# Each gives: what both libraries run on a tensor, what NumPy computes of its values in a wide type.
class Case:
    """One op on one tensor."""

    def __init__(
        self,
        run: Callable[[Any, Any], Any],
        reference: Callable[[Any], Reference],
        count: Callable[[tuple[int, ...]], int],
    ) -> None:
        self.run = run
        self.reference = reference
        self.count = count


def _seed_shape(lib: Any, like: Any, shape: tuple[int, ...]) -> Any:
    return lib.ones(shape, dtype=like.dtype, requires_grad=True)


def _sum(dims: tuple[int, ...], keep: bool) -> Case:
    return Case(
        lambda lib, t: t.sum(dims, keepdim=keep),
        lambda x: (x.sum(dims, keepdims=keep), abs(x).sum(dims, keepdims=keep)),
        lambda shape: math.prod(shape[d] for d in dims),
    )


def _mean(dims: tuple[int, ...], keep: bool) -> Case:
    return Case(
        lambda lib, t: t.mean(dims, keepdim=keep),
        lambda x: (x.mean(dims, keepdims=keep), abs(x).mean(dims, keepdims=keep)),
        lambda shape: math.prod(shape[d] for d in dims),
    )


def _nansum(dims: tuple[int, ...], keep: bool) -> Case:
    return Case(
        lambda lib, t: lib.nansum(t.real if t.is_complex() else t, dims, keepdim=keep),
        lambda x: (x.real.sum(dims, keepdims=keep), abs(x).sum(dims, keepdims=keep)),
        lambda shape: math.prod(shape[d] for d in dims),
    )


def _var(dims: tuple[int, ...], keep: bool) -> Case:
    def reference(x: Any) -> Reference:
        found = (abs(x - x.mean(dims, keepdims=True)) ** 2).mean(dims, keepdims=keep)
        # of equal numbers it is 0, but for the rounding of their mean
        return found, found + (abs(x) ** 2).mean(dims, keepdims=keep) * 2.0**-30

    return Case(
        lambda lib, t: lib.var(t, dims, correction=0, keepdim=keep),
        reference,
        lambda shape: math.prod(shape[d] for d in dims),
    )


def _norm(dims: tuple[int, ...], keep: bool) -> Case:
    def reference(x: Any) -> Reference:
        found = np.sqrt((abs(x) ** 2).sum(dims, keepdims=keep))
        return found, found

    return Case(
        lambda lib, t: lib.linalg.vector_norm(t, 2, dims, keepdim=keep),
        reference,
        lambda shape: math.prod(shape[d] for d in dims),
    )


def _logsumexp(dims: tuple[int, ...], keep: bool) -> Case:
    def reference(x: Any) -> Reference:
        found = np.log(np.exp(x.real).sum(dims, keepdims=keep))
        return found, abs(found) + 1

    return Case(
        lambda lib, t: lib.logsumexp(t.real if t.is_complex() else t, dims, keepdim=keep),
        reference,
        lambda shape: math.prod(shape[d] for d in dims),
    )


def _cumsum(dims: tuple[int, ...], keep: bool) -> Case:
    d = dims[0]
    return Case(
        lambda lib, t: t.cumsum(d),
        lambda x: (x.cumsum(d), abs(x).cumsum(d)),
        lambda shape: shape[d],
    )


def _backward_cumsum(dims: tuple[int, ...], keep: bool) -> Case:
    d = dims[0]

    def run(lib: Any, t: Any) -> Any:
        w = _seed_shape(lib, t, tuple(t.shape))
        return lib.autograd.grad(w.cumsum(d), w, t)[0]

    def reference(x: Any) -> Reference:
        found = np.flip(np.flip(x, d).cumsum(d), d)
        return found, np.flip(np.flip(abs(x), d).cumsum(d), d)

    return Case(run, reference, lambda shape: shape[d])


def _product(dims: tuple[int, ...], keep: bool) -> Case:
    d = dims[0]

    def reference(x: Any) -> Reference:
        n = x.shape[d]
        found = (1 + x / (64 * n)).prod(d, keepdims=keep)
        return found, abs(found) * max(n, 1)  # every factor was rounded before

    return Case(
        lambda lib, t: (1 + t / (64 * t.shape[d])).prod(d, keepdim=keep),
        reference,
        lambda shape: shape[d],
    )


def _softmax(dims: tuple[int, ...], keep: bool) -> Case:
    d = dims[0]

    def reference(x: Any) -> Reference:
        e = np.exp(x.real - x.real.max(d, keepdims=True))
        found = e / e.sum(d, keepdims=True)
        return found, found * (1 + np.ptp(x.real))

    return Case(
        lambda lib, t: lib.softmax(t.real if t.is_complex() else t, d),
        reference,
        lambda shape: shape[d],
    )


def _backward_softmax(dims: tuple[int, ...], keep: bool) -> Case:
    d = dims[0]

    def run(lib: Any, t: Any) -> Any:
        t = t.real if t.is_complex() else t
        w = lib.zeros(tuple(t.shape), dtype=t.dtype, requires_grad=True)
        return lib.autograd.grad(lib.log_softmax(w, d), w, t)[0]

    def reference(x: Any) -> Reference:
        n = x.shape[d]
        found = x.real - x.real.sum(d, keepdims=True) / n
        # the result of the forward pass, log n, was rounded before: that much may be off
        return found, abs(x.real) + (1 + math.log(n)) * abs(x.real).sum(d, keepdims=True) / n

    return Case(run, reference, lambda shape: shape[d])


def _backward_broadcast(dims: tuple[int, ...], keep: bool) -> Case:
    def run(lib: Any, t: Any) -> Any:
        shape = tuple(1 if d in dims else n for d, n in enumerate(t.shape))
        b = _seed_shape(lib, t, shape)
        return lib.autograd.grad(lib.zeros(tuple(t.shape), dtype=t.dtype) + b, b, t)[0]

    return Case(
        run,
        lambda x: (x.sum(dims, keepdims=True), abs(x).sum(dims, keepdims=True)),
        lambda shape: math.prod(shape[d] for d in dims),
    )


def _backward_expand(dims: tuple[int, ...], keep: bool) -> Case:
    def run(lib: Any, t: Any) -> Any:
        shape = tuple(1 if d in dims else n for d, n in enumerate(t.shape))
        b = _seed_shape(lib, t, shape)
        return lib.autograd.grad(b.expand(tuple(t.shape)), b, t)[0]

    return Case(
        run,
        lambda x: (x.sum(dims, keepdims=True), abs(x).sum(dims, keepdims=True)),
        lambda shape: math.prod(shape[d] for d in dims),
    )


def _places(n: int, size: int) -> Any:
    return (np.arange(n, dtype=np.int64) * 7919) % size


def _summed_at(x: Any, size: int) -> Any:
    """The rows of `x` added up by `_places`."""
    where = _places(x.shape[0], size)
    return np.stack([x[where == k].sum(0) for k in range(size)])


def _added(how: str, size: int) -> Case:
    """Rows that go to one of a few places: by an op, or in the backward pass of one."""

    def run(lib: Any, t: Any) -> Any:
        index = lib.from_numpy(_places(t.shape[0], size))
        shape = (size, *t.shape[1:])
        base = lib.zeros(shape, dtype=t.dtype)
        if how == "index_add":
            return base.index_add(0, index, t)
        if how == "index_put":
            return base.index_put((index,), t, accumulate=True)
        wide = index.reshape(-1, *[1] * (t.ndim - 1)).expand(tuple(t.shape))
        if how == "scatter_add":
            return base.scatter_add(0, wide, t)
        w = base.requires_grad_()
        if how == "index_select":
            y = w.index_select(0, index)
        elif how == "gather":
            y = w.gather(0, wide)
        else:
            y = w[index]
        return lib.autograd.grad(y, w, t)[0]

    return Case(
        run,
        lambda x: (_summed_at(x, size), _summed_at(abs(x), size)),
        lambda shape: -(-shape[0] // size),
    )


def _backward_as_strided(dims: tuple[int, ...], keep: bool) -> Case:
    def run(lib: Any, t: Any) -> Any:
        w = _seed_shape(lib, t, (3,))
        y = w.as_strided((t.numel() - t.numel() % 2,), (0,), 1)
        return lib.autograd.grad(y, w, t.reshape(-1)[: y.numel()])[0]

    def reference(x: Any) -> Reference:
        flat = x.reshape(-1)[: x.size - x.size % 2]
        return (
            np.stack([flat[:0].sum(), flat.sum(), flat[:0].sum()]),
            np.stack([abs(flat).sum()] * 3),
        )

    return Case(run, reference, lambda shape: math.prod(shape))


def _layer_norm(dims: tuple[int, ...], keep: bool) -> Case:
    """The gradient of the bias and the weight of a layer_norm over the last dimension."""

    def run(lib: Any, t: Any) -> Any:
        t = t.real if t.is_complex() else t
        b = lib.zeros(tuple(t.shape[-1:]), dtype=t.dtype, requires_grad=True)
        y = lib.nn.functional.layer_norm(lib.zeros_like(t), tuple(t.shape[-1:]), None, b)
        return lib.autograd.grad(y, b, t)[0]

    def reference(x: Any) -> Reference:
        rest = tuple(range(x.ndim - 1))
        return x.real.sum(rest), abs(x.real).sum(rest)

    return Case(run, reference, lambda shape: math.prod(shape[:-1]))


def _loss(dims: tuple[int, ...], keep: bool) -> Case:
    def run(lib: Any, t: Any) -> Any:
        t = t.real if t.is_complex() else t
        return lib.nn.functional.l1_loss(t, lib.zeros_like(t), reduction="sum")

    def reference(x: Any) -> Reference:
        return abs(x.real).sum(), abs(x.real).sum()

    return Case(run, reference, lambda shape: math.prod(shape))


def _dot(dims: tuple[int, ...], keep: bool) -> Case:
    def run(lib: Any, t: Any) -> Any:
        flat = t.reshape(-1)
        return lib.dot(flat, flat)

    def reference(x: Any) -> Reference:
        flat = x.reshape(-1)
        return (flat * flat).sum(), (abs(flat) ** 2).sum()

    return Case(run, reference, lambda shape: math.prod(shape))


_FOLDS = [_sum, _sum, _sum, _mean, _nansum, _var, _norm, _logsumexp, _backward_broadcast,
          _backward_expand]  # fmt: skip
_LINES = [_cumsum, _backward_cumsum, _product, _softmax, _backward_softmax, _backward_as_strided,
          _layer_norm, _loss, _dot]  # fmt: skip
_ADDED = ["index_add", "index_put", "scatter_add", "index_select", "gather", "index"]
_REAL = {_var, _norm}  # whose result is real
_DTYPES = ["float32", "float32", "float32", "float16", "bfloat16", "complex64", "float64"]


# --- drawing --------------------------------------------------------------------------------------
def _shape(rng: np.random.Generator, limit: float) -> tuple[int, ...]:
    size = math.exp(max(rng.uniform(math.log(20), math.log(limit)) for _ in range(2)))
    rank = int(rng.integers(1, 5))
    cuts = rng.dirichlet([0.5] * rank)  # as a rule one is long and the others are short
    return tuple(max(int(size**c), 1) for c in cuts)


def _values(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[str, Any]:
    how = str(rng.choice(["equal", "ones", "uniform", "normal", "far"]))
    if how == "equal":
        return how, np.full(shape, rng.uniform(0.05, 0.95))
    if how == "ones":
        return how, np.ones(shape)
    if how == "uniform":
        return how, rng.random(shape)
    return how, rng.normal(size=shape) + (0 if how == "normal" else 30)


def _laid(t: Any, how: str) -> Any:
    """The same shape and, but for `equal`, the same values in another layout."""
    if how == "turned" and t.ndim > 1:
        order = tuple(range(t.ndim))[::-1]
        return t.permute(order).contiguous().permute(order)
    if how == "sliced":
        return t.repeat_interleave(2, -1)[..., ::2]
    if how == "expanded":
        return t[:1].expand(tuple(t.shape))
    return t


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    rng = np.random.default_rng(seed)
    if torch is not None:
        torch.set_num_threads(1)
    number = 0
    while True:
        number += 1
        limit = 1e6 if number <= 4 * SHORT or number % 8 else 2e7
        yield _attempt(rng, torch, limit)


def _attempt(rng: np.random.Generator, torch: Any, limit: float) -> str | None:
    shape = _shape(rng, limit)
    rank = len(shape)
    dims = tuple(int(d) for d in sorted(rng.permutation(rank)[: rng.integers(1, rank + 1)]))
    keep = bool(rng.random() < 0.5)
    which = rng.random()
    if which < 0.6:
        make: Any = _FOLDS[rng.integers(len(_FOLDS))]
        case = make(dims, keep)
        title = make.__name__[1:]
    elif which < 0.85:
        make = _LINES[rng.integers(len(_LINES))]
        case = make(dims, keep)
        title = make.__name__[1:]
    else:
        title = str(rng.choice(_ADDED))
        case = _added(title, int(rng.integers(1, 4)))
    dtype = str(rng.choice(_DTYPES))
    layout = str(rng.choice(["rows", "rows", "turned", "sliced", "expanded"]))
    how, values = _values(rng, shape)
    label = f"{title} dims={dims} keep={keep} of {dtype} {shape}, {how}, {layout}"

    mine, x = _run(rushlight, case, values, dtype, layout)
    exact, scale = case.reference(x)
    if mine.shape != exact.shape:
        return f"{label}: shape {mine.shape} instead of {exact.shape}"
    if mine.size == 0:
        return None
    if dtype == "float16":  # what is too large for it is infinite
        held = abs(exact) < 60000
        scale = np.where(held, scale, np.inf)
        mine = np.where(held, mine, 0)
    # in units of what each element is made of, and of the smallest number there is
    floor = scale + 2.0**-24 if dtype == "float16" else scale + 1e-37
    error = float(np.max(abs(mine - exact) / floor)) / _eps(dtype)
    if torch is not None:
        theirs, _ = _run(torch, case, values, dtype, layout)
        theirs = np.where(np.isinf(scale), 0, theirs)
        other = float(np.max(abs(theirs - exact) / floor)) / _eps(dtype)
        allowed = 2 * other + _UNITS
        if dtype == "complex64":  # NumPy adds 32 of them one after the other, floats 16
            allowed += _UNITS
        if title == "dot":  # BLAS's own sums, in both: of equal numbers all are rounded one way
            allowed += case.count(shape) / 8
    else:
        other = math.nan
        allowed = _UNITS * (1 + math.log2(max(case.count(shape), 1)))
    if error <= allowed:
        return None
    return f"{label}: off by {error:.3g} units, PyTorch by {other:.3g}, allowed {allowed:.3g}"


def _run(lib: Any, case: Case, values: Any, dtype: str, layout: str) -> tuple[Any, Any]:
    """What a library makes of the values, and the values as they were rounded; both in wide."""
    t = lib.from_numpy(values).to(getattr(lib, dtype))
    t = _laid(t, layout)
    y = case.run(lib, t)
    return _wide(lib, y, dtype), _wide(lib, t, dtype)


def _wide(lib: Any, t: Any, dtype: str) -> Any:
    if t.is_complex():
        return t.detach().to(lib.complex128).numpy()
    found = t.detach().to(lib.float64).numpy()
    return found.astype(np.longdouble) if dtype == "float64" else found
