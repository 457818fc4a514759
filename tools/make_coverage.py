"""Compares rushlight with PyTorch on every sample input of PyTorch's own operator tests.

    python tools/make_coverage.py [NAME ...]     compare these entries of op_db (all without names)

An entry agrees when, on all its samples, outputs, gradients, tangents (forward mode) and second
derivatives agree in float64 and complex128, and outputs in float32, bfloat16, int64 and bool, each
where PyTorch supports it. Without names the page `docs/coverage.md` is written; a difference for
which `REASONS` has no sentence, or a sentence for which there is no difference, makes the status 1.
Needs PyTorch 2.13 and expecttest.
"""

from __future__ import annotations

import itertools
import random
import signal
import sys
import textwrap
import warnings
import zlib
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np
import torch

import rushlight

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "coverage.md"
EXACT = ("float64", "complex128")
DTYPES = ("float64", "complex128", "float32", "bfloat16", "int64", "bool")
# relative to the largest element of the result
TOLERANCE = {
    "float64": 1e-8, "complex128": 1e-8, "float32": 1e-4, "complex64": 1e-4, "bfloat16": 2.0**-6,
    "float16": 2.0**-9, "complex32": 2.0**-9,
}  # fmt: skip
FLOOR = 1e-3
SAMPLES = 60  # of an entry and dtype
SECOND = 8  # samples with second derivatives
SECONDS = 60  # of an entry and dtype, before it counts as one that hangs

# op_db's own lambdas take these in another order than the public function does
ORDER = {
    "einsum": (1, 0), "polygamma": (1, 0), "special.polygamma": (1, 0), "where": (1, 0, 2),
    "normal.number_mean": (1, 0), "nn.functional.embedding": (1, 0),
    "nn.functional.embedding_bag": (1, 0),
}  # fmt: skip
# Entries that are about no public function of PyTorch's eager mode, or about another device.
INTERNAL = ("_refs.", "ops.nvprims", "torch.ops.", "jiterator_")
# Which of equal elements is found is left open: indices are compared where all elements differ.
TIES = {"sort", "argsort", "topk", "mode", "kthvalue", "median", "nanmedian"}
# Where op_db's own function is more than the public one.
SPECIAL: dict[str, Any] = {
    "linalg.lstsq.grad_oriented": lambda a, b, driver: rushlight.linalg.lstsq(a, b, driver=driver)[
        :2
    ],
    "linalg.pinv.singular": lambda a, b: rushlight.linalg.pinv(a @ b.mT),
    "normal.in_place": lambda x, *args, **kw: x.normal_(*args, **kw),
    "rand_like": lambda x, **kw: rushlight.randn_like(x, **kw),  # sic: op_db calls randn_like
    "svd_lowrank": lambda a, b, **kw: rushlight.svd_lowrank(a @ b.mT, **kw),
    "pca_lowrank": lambda a, b, **kw: rushlight.pca_lowrank(a @ b.mT, **kw),
}
_SERIES = "PyTorch computes it by rational functions with errors of 1e-8; here it is SciPy's."
_DIGITS = (
    "PyTorch's has lost half of its digits: inputs moved by 1e-15 move it by 1e-7, and ours by "
    "1e-14."
)
# Why entries differ: `entry:aspect` and a sentence for the page.
REASONS = {
    "cholesky_inverse:tangent": (
        "PyTorch's is not the derivative, for triangular tangents either: differences of its own "
        "outputs agree with ours."
    ),
    "triangular_solve:tangent": (
        "PyTorch's is not the derivative where the matrix is transposed, unit-triangular or has "
        "numbers beside its triangle: differences of its own outputs agree with ours."
    ),
    "logcumsumexp:tangent": (
        "PyTorch takes the logarithm of the tangent: NaN in complex numbers, and 1e-8 off in real "
        "ones."
    ),
    "cov:gradient": (
        "That of float32 weights is zero, the sum of float32 numbers that cancel to their last "
        "digit."
    ),
    "cov:second derivative": (
        "That of float32 weights is made of float32 numbers that cancel to their last digits."
    ),
    "as_strided_scatter:gradient": (
        "PyTorch lets a gradient through to elements that were overwritten."
    ),
    "linalg.norm.subgradients_at_zero:second derivative": "PyTorch's is NaN, ours 0.",
    "linalg.householder_product:second derivative": _DIGITS,
    "svd_lowrank:second derivative": _DIGITS,
    "nn.functional.hardsigmoid:gradient": "PyTorch's 1/6 is a float32 number, in float64 too.",
    "special.airy_ai:output": _SERIES,
    "special.bessel_j0:output": _SERIES,
    "special.bessel_j1:output": _SERIES,
    "special.bessel_y0:output": _SERIES,
    "special.bessel_y1:output": _SERIES,
}
# Results without set values, or random ones: shapes and dtypes are compared.
UNSET = {
    "empty", "empty_like", "empty_strided", "new_empty", "empty_permuted", "new_empty_strided",
}  # fmt: skip


HOMES = (("", ""), ("Tensor.", ""), ("Tensor.", "_"))  # where an entry's function may be public


def title(op: Any) -> str:
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def comparable(op: Any) -> bool:
    """Whether an entry is about a public function of PyTorch's eager mode."""
    last = op.name.rpartition(".")[2]
    private = last.startswith("_") and not last.startswith("__")
    public = any(lookup(torch, home + op.name + tail) for home, tail in HOMES)
    return public and not private and not op.name.startswith(INTERNAL)


def lookup(home: Any, name: str) -> Any:
    for part in name.split("."):
        home = getattr(home, part, None)
    return home


def functions(op: Any) -> tuple[Any, Any]:
    """The function of an entry in both libraries; None where it is missing."""
    if title(op) in SPECIAL:
        return op.op, SPECIAL[title(op)]
    for name in (home + op.name + tail for home, tail in HOMES):
        there = lookup(torch, name)
        if there is None or isinstance(there, torch.dtype):
            continue
        here = lookup(rushlight, name)
        if isinstance(here, property):
            return op.op, here.fget
        return op.op, here
    return op.op, None


# -- the same argument in both libraries -----------------------------------------------------------


def to_ours(x: Any, made: dict[int, Any]) -> Any:
    """An argument of PyTorch's as one of rushlight's; the same tensor gives the same tensor."""
    if isinstance(x, torch.Tensor):
        if id(x) not in made:
            made[id(x)] = (tensor_to_ours(x), x)
        return made[id(x)][0]
    if isinstance(x, torch.Size):
        return rushlight.Size(x)
    if isinstance(x, (list, tuple)):
        parts = [to_ours(y, made) for y in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if isinstance(x, dict):
        return {k: to_ours(y, made) for k, y in x.items()}
    if isinstance(x, (torch.dtype, torch.layout, torch.memory_format)):
        return getattr(rushlight, str(x).removeprefix("torch."))
    if isinstance(x, torch.device):
        return rushlight.device(str(x))
    if isinstance(x, torch.Generator):
        return rushlight.Generator().manual_seed(x.initial_seed())
    if isinstance(x, torch.nn.Module):
        return getattr(rushlight.nn, type(x).__name__)()
    if callable(x) and getattr(torch.nn.functional, getattr(x, "__name__", ""), None) is x:
        return getattr(rushlight.nn.functional, x.__name__)
    return x


def tensor_to_ours(x: Any) -> Any:
    if x.layout is not torch.strided:
        return sparse_to_ours(x)
    if x._is_view() and x.untyped_storage().nbytes() > x.numel() * x.element_size():
        whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
        y = rushlight.from_numpy(to_numpy(whole)).clone()
        place = tuple(x.shape), x.stride(), x.storage_offset()
        if x.is_leaf and x._base.requires_grad:  # a view without a history of what has one
            with rushlight.no_grad():
                return y.requires_grad_().as_strided(*place)
        y = y.as_strided(*place)
        return y.requires_grad_() if x.requires_grad else y
    y = rushlight.from_numpy(to_numpy(x.detach())).clone()
    if y.stride() != x.stride() and 0 not in x.stride():
        room = (
            1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
            if x.numel()
            else 0
        )
        base = rushlight.zeros(room, dtype=y.dtype)
        z = base.as_strided(tuple(x.shape), x.stride())
        z.copy_(y)
        y = z
    if type(x) is torch.nn.Parameter:
        return rushlight.nn.Parameter(y, x.requires_grad)
    if x.is_conj():
        y = y.conj().resolve_conj().conj() if hasattr(y, "resolve_conj") else y
    return y.requires_grad_() if x.requires_grad else y


def sparse_to_ours(x: Any) -> Any:
    import rushlight as r

    if x.layout is torch.sparse_coo:
        y = r.sparse_coo_tensor(
            tensor_to_ours(x._indices()), tensor_to_ours(x._values().detach()), tuple(x.shape)
        )
        y = y._coalesced_(x.is_coalesced()) if hasattr(y, "_coalesced_") else y
    elif x.layout is torch.sparse_csr:
        y = r.sparse_csr_tensor(
            tensor_to_ours(x.crow_indices()), tensor_to_ours(x.col_indices()),
            tensor_to_ours(x.values().detach()), tuple(x.shape),
        )  # fmt: skip
    else:
        raise NotImplementedError(f"layout {x.layout}")
    return y.requires_grad_() if x.requires_grad else y


def to_numpy(x: Any) -> Any:
    """Values of a tensor of either library, contiguous."""
    if x.layout not in (torch.strided, rushlight.strided):
        x = x.to_dense()
    if isinstance(x, torch.Tensor):
        x = x.detach().resolve_conj().resolve_neg()
        if torch._is_zerotensor(x):
            x = torch.zeros(x.shape, dtype=x.dtype)
        if x.dtype is torch.complex32:
            x = x.to(torch.complex64)
        if x.dtype is torch.bfloat16:
            return x.contiguous().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
        return x.contiguous().numpy()
    x = x.detach()
    if str(x.dtype) == "torch.complex32":
        x = x.to(rushlight.complex64)
    if hasattr(x, "resolve_conj"):
        x = x.resolve_conj().resolve_neg()
    if str(x.dtype) == "torch.bfloat16":
        return x.contiguous().view(rushlight.uint16).numpy().view(ml_dtypes.bfloat16)
    return x.contiguous().numpy()


def tensors(x: Any) -> list[Any]:
    """The tensors in a result, in order."""
    if isinstance(x, (torch.Tensor, rushlight.Tensor)):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [t for y in x for t in tensors(y)] if isinstance(x, (list, tuple)) else []


def plain(x: Any) -> Any:
    """What else is in a result: numbers, sizes, dtypes."""
    if isinstance(x, (torch.Tensor, rushlight.Tensor)):
        return None
    if isinstance(x, (list, tuple)):
        return [plain(y) for y in x]
    return str(x) if not isinstance(x, (int, float, complex, bool)) else x


# -- comparing -------------------------------------------------------------------------------------


class Differs(Exception):
    pass


def told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


SEEN: set[str] = set()  # what was compared of the entry at hand


def compare(what: str, ours: Any, theirs: Any, values: bool = True) -> None:
    SEEN.add(what)
    a, b = tensors(ours), tensors(theirs)
    if len(a) != len(b):
        raise Differs(f"{what}: {len(a)} tensors, not {len(b)}")
    for x, y in zip(a, b, strict=True):
        if tuple(x.shape) != tuple(y.shape):
            raise Differs(f"{what}: shape {tuple(x.shape)}, not {tuple(y.shape)}")
        if str(x.dtype) != str(y.dtype):
            raise Differs(f"{what}: {x.dtype}, not {y.dtype}")
        if values:
            dtype = str(y.dtype).removeprefix("torch.")
            close(what, to_numpy(x), to_numpy(y), dtype, 10 if what == "second derivative" else 1)
    if values and plain(ours) != plain(theirs) and not a:
        p, q = plain(ours), plain(theirs)
        if not (isinstance(p, float) and isinstance(q, float) and abs(p - q) < 1e-5 * abs(q)):
            raise Differs(f"{what}: {p!r}, not {q!r}")


def close(what: str, x: Any, y: Any, dtype: str, times: float) -> None:
    if dtype not in TOLERANCE:
        if not np.array_equal(x, y):
            raise Differs(f"{what}: values of {dtype} differ")
        return
    wide = np.complex128 if np.iscomplexobj(y) else np.float64
    x, y = np.asarray(x).astype(wide), np.asarray(y).astype(wide)
    with np.errstate(all="ignore"):
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        size = np.max(np.abs(y), initial=0.0, where=np.isfinite(y))
        floor = max(min(size, 1.0), FLOOR)  # rounding of sums of larger numbers is no difference
        near = np.abs(x - y) <= times * TOLERANCE[dtype] * np.maximum(np.abs(y), floor)
        bad = ~(same | near)
    if bad.any():
        where = tuple(int(i[0]) for i in np.nonzero(bad)) if y.ndim else ()
        raise Differs(f"{what}: {x[where]} not {y[where]}, {int(bad.sum())} of {y.size}")


class Entry:
    """One entry of op_db in one dtype."""

    def __init__(self, op: Any, dtype: str, there: Any, here: Any) -> None:
        self.op, self.dtype, self.there, self.here = op, dtype, there, here
        kind = getattr(torch, dtype)
        self.grads = (
            dtype in EXACT and op.supports_autograd and kind in op.supported_backward_dtypes("cpu")
        )
        self.order = ORDER.get(title(op)) or ORDER.get(op.name)

    def samples(self) -> Any:
        kind = getattr(torch, self.dtype)
        found = self.op.sample_inputs("cpu", kind, requires_grad=self.grads)
        return itertools.islice(found, SAMPLES)

    def run(self, tally: Counter[str]) -> None:
        for number, sample in enumerate(self.samples()):
            tally["samples"] += 1
            self.one(number, sample)

    def one(self, number: int, sample: Any) -> None:
        made: dict[int, Any] = {}
        args = [sample.input, *sample.args]
        ordered = [args[i] for i in self.order] + args[len(self.order) :] if self.order else args
        ours_in = [to_ours(x, made) for x in ordered]
        ours_kw = {k: to_ours(x, made) for k, x in sample.kwargs.items()}

        finish = sample.output_process_fn_grad

        def theirs(*xs: Any) -> Any:
            return finish(self.op.op(*xs, **sample.kwargs))

        def ours(*xs: Any) -> Any:
            return finish(self.here(*xs, **ours_kw))

        SAME_SEED.append(True)  # op_db seeds some functions itself
        torch.manual_seed(42)
        want = theirs(*(x.clone() if self.inplace(x) else x for x in args))
        SAME_SEED.clear()
        rushlight.manual_seed(42)
        try:
            got = ours(*(x.clone() if self.inplace(x) else x for x in ours_in))
        except Exception as error:
            raise Differs(f"output: {told(error)}") from error
        values = self.op.name not in UNSET
        if self.op.name in TIES and sample.input.unique().numel() < sample.input.numel():
            compare("output", got, want, False)
            got, want = tensors(got)[:-1], tensors(want)[:-1]
        try:
            compare("output", got, want, values)
        except Differs:
            if self.dtype != "bfloat16" or not self.is_as_near(got, want, args, sample):
                raise
        if self.grads:
            leaves = [y for y, x in made.values() if x.requires_grad]
            theirs_leaves = [x for y, x in made.values() if x.requires_grad]
            self.derivatives(got, want, leaves, theirs_leaves, number)
            self.forward_mode(sample, args, ordered, ours_in, ours_kw, finish, number)

    def is_as_near(self, got: Any, want: Any, args: Any, sample: Any) -> bool:
        """In low precision: are our results as near to those of float64 as PyTorch's are?"""
        compare("output", got, want, False)
        with torch.no_grad():
            wide = [widened(x) for x in args]
            torch.manual_seed(42)
            exact = sample.output_process_fn_grad(
                self.op.op(*wide, **{k: widened(x) for k, x in sample.kwargs.items()})
            )
        for x, y, z in zip(tensors(got), tensors(want), tensors(exact), strict=True):
            if not z.is_floating_point():
                return False
            a, b, c = (to_numpy(t).astype(np.float64) for t in (x, y, z))
            with np.errstate(all="ignore"):
                size = np.max(np.abs(c), initial=0.0, where=np.isfinite(c))
                room = 2.0**-8 * np.maximum(np.abs(c), size)
                near = (np.abs(a - c) <= np.abs(b - c) + room) | ~np.isfinite(b)
            if not near.all():
                return False
        return True

    def inplace(self, x: Any) -> bool:
        return self.op.name.endswith("_") and isinstance(x, (torch.Tensor, rushlight.Tensor))

    def derivatives(self, got: Any, want: Any, leaves: Any, theirs: Any, number: int) -> None:
        a = [t for t in tensors(got) if t.requires_grad]
        b = [t for t in tensors(want) if t.requires_grad]
        if len(a) != len(b):
            raise Differs(f"gradient: {len(a)} results require grad, not {len(b)}")
        if not b or not theirs:
            return
        gs = [weights(t, 3 + i) for i, t in enumerate(b)]
        again = self.op.supports_gradgrad and number < SECOND
        them = torch.autograd.grad(
            b,
            theirs,
            [torch.from_numpy(g).to(t.dtype) for g, t in zip(gs, b, strict=True)],
            create_graph=again,
            allow_unused=True,
        )
        try:
            us = rushlight.autograd.grad(
                a,
                leaves,
                [rushlight.from_numpy(g).to(t.dtype) for g, t in zip(gs, a, strict=True)],
                create_graph=again,
                allow_unused=True,
            )
        except Exception as error:
            raise Differs(f"gradient: {told(error)}") from error
        for x, y in zip(us, them, strict=True):
            if (x is None) != (y is None):
                filled = y if x is None else x
                if np.any(to_numpy(filled)):
                    raise Differs(f"gradient: {x is None=} {y is None=}")
            elif y is not None:
                compare("gradient", x, y)
        if not again:
            return
        first = [(x, y) for x, y in zip(us, them, strict=True) if x is not None and y is not None]
        live = [(x, y) for x, y in first if y.requires_grad]
        if not live:
            return
        ours_live = [(x, y) for x, y in live if x.requires_grad]
        hs = [weights(y, 11 + i) for i, (_, y) in enumerate(live)]
        try:
            them2 = torch.autograd.grad(
                [y for _, y in live],
                theirs,
                [torch.from_numpy(h).to(y.dtype) for h, (_, y) in zip(hs, live, strict=True)],
                allow_unused=True,
            )
        except RuntimeError:
            return  # PyTorch has none
        pairs = [(x, h) for (x, _), h in zip(live, hs, strict=True) if x.requires_grad]
        try:
            if ours_live:
                us2 = rushlight.autograd.grad(
                    [x for x, _ in pairs],
                    leaves,
                    [rushlight.from_numpy(h).to(x.dtype) for x, h in pairs],
                    allow_unused=True,
                )
            else:
                us2 = (None,) * len(leaves)
        except Exception as error:
            raise Differs(f"second derivative: {told(error)}") from error
        for x, y in zip(us2, them2, strict=True):
            if x is None or y is None:
                filled = y if x is None else x
                if filled is not None and np.any(to_numpy(filled)):
                    raise Differs("second derivative: one is None, the other not zero")
            else:
                compare("second derivative", x, y)

    def forward_mode(
        self,
        sample: Any,
        args: Any,
        ordered: Any,
        ours_in: Any,
        ours_kw: Any,
        finish: Any,
        number: int,
    ) -> None:
        if not self.op.supports_forward_ad:
            return
        import torch.autograd.forward_ad as theirs_fw

        ours_fw = rushlight.autograd.forward_ad
        count = itertools.count(23)
        tangents: dict[int, Any] = {}

        def tangent(x: Any) -> Any:
            if id(x) not in tangents:
                tangents[id(x)] = weights(x, next(count))
            return tangents[id(x)]

        def dual(x: Any, lib: Any, fw: Any, clone: bool) -> Any:
            if isinstance(x, (list, tuple)):
                return type(x)(dual(y, lib, fw, clone) for y in x)
            if isinstance(x, lib.Tensor) and x.requires_grad:
                return fw.make_dual(
                    x.detach(), lib.from_numpy(tangent_by_place(x, lib)).to(x.dtype)
                )
            return x

        order_theirs = [t for x in args for t in tensors(x) if t.requires_grad]
        order_theirs += [t for t in tensors(sample.kwargs) if t.requires_grad]
        shapes = {}
        for t in order_theirs:
            shapes[id(t)] = tangent(t)
        mapping = {}
        for x, y in zip(ordered, ours_in, strict=True):
            for t, u in zip(tensors(x), tensors(y), strict=True):
                mapping[id(u)] = id(t)
        for t, u in zip(tensors(sample.kwargs), tensors(ours_kw), strict=True):
            mapping[id(u)] = id(t)

        def tangent_by_place(x: Any, lib: Any) -> Any:
            return tangents[mapping[id(x)] if lib is rushlight else id(x)]

        with theirs_fw.dual_level():
            SAME_SEED.append(True)
            torch.manual_seed(42)
            xs = [dual(x, torch, theirs_fw, self.inplace(x)) for x in args]
            kw = {k: dual(x, torch, theirs_fw, False) for k, x in sample.kwargs.items()}
            try:
                want = [
                    theirs_fw.unpack_dual(t).tangent for t in tensors(finish(self.op.op(*xs, **kw)))
                ]
            except (RuntimeError, NotImplementedError):
                SAME_SEED.clear()
                return  # PyTorch has none
        SAME_SEED.clear()
        with ours_fw.dual_level():
            rushlight.manual_seed(42)
            try:
                ys = [dual(x, rushlight, ours_fw, self.inplace(x)) for x in ours_in]
                okw = {k: dual(x, rushlight, ours_fw, False) for k, x in ours_kw.items()}
                got = [
                    ours_fw.unpack_dual(t).tangent for t in tensors(finish(self.here(*ys, **okw)))
                ]
            except Exception as error:
                raise Differs(f"tangent: {told(error)}") from error
        for x, y in zip(got, want, strict=True):
            if (x is None) != (y is None):
                if np.any(to_numpy(y if x is None else x)):
                    raise Differs(f"tangent: {x is None=} {y is None=}")
            elif y is not None:
                compare("tangent", x, y)


def weights(like: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    shape = tuple(like.shape)
    g = rng.uniform(-1, 1, shape)
    if like.is_complex():
        g = g + 1j * rng.uniform(-1, 1, shape)
    return np.asarray(g)


SAME_SEED: list[bool] = []


def widened(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return x.detach().double() if x.is_floating_point() else x
    if isinstance(x, (list, tuple)) and not isinstance(x, torch.Size):
        return type(x)(widened(y) for y in x)
    return torch.float64 if x is torch.bfloat16 else x


class Late(Exception):
    pass


def seeded(text: str) -> Any:
    numbers = itertools.count()

    def reseed(seed: Any = None) -> None:
        if SAME_SEED:
            torch.manual_seed(42)
            return
        number = zlib.crc32(f"{text} {next(numbers)}".encode()) % 2**31
        torch.default_generator.manual_seed(number)
        random.seed(number)
        np.random.seed(number)

    inside = "torch.testing._internal."
    reseed()
    return (
        mock.patch(inside + "common_utils.set_rng_seed", reseed),
        mock.patch(inside + "common_utils.extract_test_fn", lambda: None),
        mock.patch(inside + "opinfo.core.extract_test_fn", lambda: None),
    )


def on_alarm(*_: Any) -> None:
    raise Late


def judge(op: Any) -> tuple[dict[str, set[str]], dict[str, str]]:
    """What was compared, by dtype, and what differs: nothing where all agrees."""
    there, here = functions(op)
    if here is None:
        return {}, {"float64": "output: rushlight has no such function"}
    seen: dict[str, set[str]] = {}
    found = {}
    tally: Counter[str] = Counter()
    for dtype in DTYPES:
        if getattr(torch, dtype) not in op.supported_dtypes("cpu"):
            continue
        SEEN.clear()
        a, b, c = seeded(f"{title(op)} {dtype}")
        signal.signal(signal.SIGALRM, on_alarm)
        signal.alarm(SECONDS)
        try:
            with a, b, c, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                Entry(op, dtype, there, here).run(tally)
        except Differs as error:
            found[dtype] = str(error)
        except Late:
            found[dtype] = f"takes more than {SECONDS} s"
        except Exception as error:
            SAME_SEED.clear()
            found[dtype] = f"the comparison failed: {type(error).__name__}: {error}"
        finally:
            signal.alarm(0)
        seen[dtype] = set(SEEN)
    return seen, found


# -- the page --------------------------------------------------------------------------------------
ASPECTS = ("output", "gradient", "tangent", "second derivative")


class Account:
    """What was compared, what agreed, and what did not."""

    def __init__(self) -> None:
        self.entries = 0
        self.compared: Counter[tuple[str, str]] = Counter()
        self.differs: dict[str, dict[str, list[str]]] = {}  # entry, aspect, dtypes
        self.unexplained: list[str] = []

    def add(self, name: str, seen: dict[str, set[str]], found: dict[str, str]) -> None:
        self.entries += 1
        for dtype, aspects in seen.items():
            self.compared.update((dtype, aspect) for aspect in aspects)
        for dtype, text in found.items():
            aspect = text.partition(":")[0]
            aspect = aspect if aspect in ASPECTS else "output"
            if aspect not in seen.get(dtype, ()):
                self.compared[dtype, aspect] += 1
            self.differs.setdefault(name, {}).setdefault(aspect, []).append(dtype)
            if f"{name}:{aspect}" not in REASONS:
                self.unexplained.append(f"{name} {dtype} {' '.join(text.split())[:200]}")

    def stale(self) -> list[str]:
        found = {f"{name}:{aspect}" for name, parts in self.differs.items() for aspect in parts}
        return sorted(REASONS.keys() - found)

    def agreeing(self, dtype: str, aspect: str) -> int:
        wrong = sum(dtype in parts.get(aspect, ()) for parts in self.differs.values())
        return self.compared[dtype, aspect] - wrong

    def page(self) -> str:
        agree = self.entries - len(self.differs)
        share = 100 * agree / self.entries
        lines = [
            "# Agreement with PyTorch's own operator tests",
            "",
            *wrapped(
                "PyTorch tests its operators on samples: for each function a list of calls, with "
                "their edges. This page is written by `tools/make_coverage.py`, which makes "
                f"every call in PyTorch 2.13 and in rushlight (the first {SAMPLES} of a function "
                "and dtype) and compares. Left out are what is no public function of PyTorch, "
                "and what is for its compilers alone."
            ),
            "",
            f"**{agree} of {self.entries} entries agree ({share:.1f} %)** in all that follows:",
            "",
            "| | " + " | ".join(a + "s" for a in ASPECTS) + " |",
            "| --- |" + " ---: |" * len(ASPECTS),
        ]
        for dtype in DTYPES:
            cells = [
                f"{self.agreeing(dtype, a)} of {n}" if (n := self.compared[dtype, a]) else ""
                for a in ASPECTS
            ]
            lines.append(f"| {dtype} | " + " | ".join(cells) + " |")
        lines += [
            "",
            *wrapped(
                "Gradients are those of reverse mode, tangents those of forward mode; both, and "
                f"second derivatives (of the first {SECOND} samples), are compared where PyTorch "
                "has them. Numbers agree to 1e-8 in double precision (second derivatives to 1e-7) "
                "and to 1e-4 in float32, relative to the number, or to the largest beside it "
                "where that is less than 1. In bfloat16 a result also agrees that is as near to "
                "the one of float64 as PyTorch's is. An entry that differs on one sample counts "
                "as one that differs, and what it was not compared in after that is not counted."
            ),
            "",
            "## What differs, and why",
            "",
            "| entry | what | why |",
            "| --- | --- | --- |",
        ]
        for name in sorted(self.differs):
            for aspect, dtypes in self.differs[name].items():
                why = REASONS.get(f"{name}:{aspect}", "")
                lines.append(f"| {name} | {aspect}, {', '.join(dtypes)} | {why} |")
        return "\n".join(lines) + "\n"


def wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 100, break_on_hyphens=False)


def chosen(op: Any, names: list[str]) -> bool:
    return comparable(op) and (
        not names
        or any(
            n in (title(op), op.name) or (n.endswith("*") and title(op).startswith(n[:-1]))
            for n in names
        )
    )


def main(names: list[str]) -> int:
    from torch.testing._internal.common_methods_invocations import op_db

    torch.set_num_threads(1)
    account = Account()
    for op in op_db:
        if not chosen(op, names):
            continue
        seen, found = judge(op)
        account.add(title(op), seen, found)
        for dtype, text in found.items():
            print(f"{title(op):50} {dtype:10} {' '.join(text.split())[:200]}", flush=True)
        if names and not found:
            print(f"{title(op):50} agrees", flush=True)
    agree = account.entries - len(account.differs)
    share = 100 * agree / max(account.entries, 1)
    print(f"{agree} of {account.entries} entries agree ({share:.1f} %)")
    if not names:
        PAGE.write_text(account.page(), "utf-8")
    wrong = [f"no reason is given: {line}" for line in account.unexplained]
    wrong += [] if names else [f"agrees now, drop its reason: {key}" for key in account.stale()]
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
