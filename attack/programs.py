"""Random programs of public ops against PyTorch, in six dtypes: values, result dtypes, and first
and second derivatives where there are any.

Every fourth is one of views, writes in place, hooks and modes instead, from
`tests/laws/cases_programs.py`. A program here is a list of lines, each of which names earlier
values; both libraries run it line by line, so that what breaks is the line that is shown.
"""

from __future__ import annotations

import json
import math
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import rushlight
from attack._views_in_pytorch import PyTorchChild, programs

TITLE = "programs of ops in six dtypes"
SHORT = 120
WEIGHT = 1.5

ROUNDED = ("bfloat16", "float16", "float32")
DTYPES = ("float64", "float32", "bfloat16", "float16", "complex128", "int64")
# Tolerances of a line's result, relative to its largest element.
CLOSE = {
    "float64": 1e-10, "float32": 3e-5, "bfloat16": 4e-2, "float16": 5e-3, "complex128": 1e-10,
    "int64": 0.0, "complex64": 3e-5, "bool": 0.0, "int32": 0.0, "uint8": 0.0, "complex32": 5e-3,
}  # fmt: skip

# `a` and `b` are earlier values of one shape, `c` any earlier value, `k` a small number.
ANY = """
a + b | a - b | a * b | a * k | a + k | k - a | -a | a.sum() | a.sum(0) | a.sum(-1, keepdim=True)
torch.cat([a, b]) | torch.stack([a, b]) | a.reshape(-1) | a.t() if a.dim() == 2 else a.flatten()
a.transpose(0, -1) | a[0] | a[..., -1] | a[..., ::2] | a.flip(0) | torch.roll(a, 1, 0) | a.clone()
a.unsqueeze(0) | a.expand(2, *a.shape) | torch.where(mask(a), a, b) | a.masked_fill(mask(a), k)
a.index_select(0, index(a)) | a.gather(0, places(a)) | a.cumsum(0) | a.prod(0) | a.square()
torch.addcmul(a, a, b, value=k) | a.diagonal() if a.dim() > 1 else a.diff() | torch.tril(a) if \
a.dim() > 1 else a * a | a.mul(b).add(a, alpha=k) | torch.outer(a.flatten(), b.flatten())
a @ b.transpose(-1, -2) if a.dim() > 1 else torch.dot(a, b) | a.unfold(0, 1, 1)
a.repeat(2, *[1] * \
(a.dim() - 1)) | torch.kron(a, b) | a.pow(2) | a.pow(3) | torch.einsum("...i,...i->...", a, b)
a.movedim(0, -1) | a.contiguous() | torch.diff(a, dim=0) | a.scatter_add(0, places(a), b)
a.index_add(0, index(a), b[:2]) | torch.hstack([a, b]) | a.narrow(0, 0, 1) | a.unbind(0)[0]
a.chunk(2)[0] | torch.zeros_like(a) + b | a.index_put((index(a),), b[:2])
a.rot90() if a.dim() > 1 \
else a.neg() | torch.matmul(a.flatten(), b.flatten()) | c * k | c.sum() * a
torch.block_diag(a[:1], b[:1]) \
if a.dim() == 2 else a.flip(-1) | a == b | a != k
"""
CONTINUOUS = """
a.exp() | a.sin() | a.cos() | a.tanh() | a.sigmoid() | a / (b * b + 1) | a.mean() | a.mean(0)
(a * a + 1).log() | (a * a + 1).sqrt() | (a * a + 0.5).rsqrt() | (a * a + 1).reciprocal()
a.std(0, correction=0) if a.shape[0] > 1 else a | a.var(correction=1) | torch.sinh(a)
torch.asinh(a)
torch.lerp(a, b, k) | a.norm() | (a * a + 1).pow(0.5) | a.cumprod(0) | a.logcumsumexp(0)
torch.addcdiv(a, b, b * b + 1, value=k) | torch.linalg.vector_norm(a + 2, 3) | a.div(k + 1)
"""
REAL = """
a.softmax(0) | a.log_softmax(-1) | a.logsumexp(0) | F.gelu(a) | F.silu(a) | F.softplus(a) | F.elu(a)
(a + 0.0137).relu() | a.abs() | torch.maximum(a, b) | torch.minimum(a, b) | a.clamp(-1, 1)
a.erf() | a.atan()
F.mse_loss(a, b) | F.smooth_l1_loss(a, b) | F.layer_norm(a, a.shape[-1:]) | F.leaky_relu(a, 0.1)
torch.atan2(a, b * b + 1) | torch.hypot(a, b + 3) | torch.logaddexp(a, b) | F.huber_loss(a, b)
torch.xlogy(a, b * b + 1) | a.expm1() | (a * a).log1p() | torch.special.erfc(a)
F.normalize(a, dim=0)
torch.special.i0(a) | torch.lgamma(a * a + 1) | torch.digamma(a * a + 1) | F.hardtanh(a) | F.mish(a)
F.cosine_similarity(a, b, 0) | a.amax(0) | a.max(0)[0] | a.contiguous().median(0)[0] | a.sort(0)[0]
F.logsigmoid(a)
torch.special.log_ndtr(a) | F.selu(a) | F.l1_loss(a, b) | torch.sinc(a + 0.3) | a.min()
a.renorm(2, 0, 1.5)
torch.cdist(a, b) if a.dim() == 2 else a.abs() | a < b | a >= k | torch.isclose(a, b)
a.topk(1, 0)[0]
"""
LEAVES = """
a.floor() | a.round() | a.trunc() | a.sign() | a.ceil() | a.frac() | a.argmax(0) | a.argsort(0)
a % 0.7
a // 0.7 | torch.fmod(a, 0.7) | torch.heaviside(a, b) | torch.copysign(a, b) | a.int()
a.to(torch.uint8 if \
False else torch.int32) | torch.bucketize(a, torch.tensor([-1.0, 0.0, 1.0], dtype=a.dtype))
torch.nextafter(a, b) | a.remainder(b + 4) | torch.signbit(a) | a > 0.1 | a == 0.1 | a <= -0.3
"""
WHOLE = """
a // (b * b + 1) | a % 3 | a & b | a | b | a ^ b | ~a | a << 1 | a >> 1 | a.float() | a.double() * k
a.bitwise_and(3) | torch.gcd(a, b) | a.argmax(0) | a.argsort(0) | a.sort(0)[0] | a.max(0)[0]
a.abs()
a.clamp(-1, 1) | torch.maximum(a, b) | a < b | a.sign() | a.remainder(4) | torch.div(a, 2)
a.bool()
torch.div(a, 3, rounding_mode="floor") | torch.div(a, 3, rounding_mode="trunc")
a.contiguous().median(0)[0]
a.unique() | torch.bincount(a.flatten().abs()) | a.to(torch.uint8) | a.int()
a.sum(dtype=torch.float64)
"""
COMPLEX = """
a.conj() | a.real * 2 | a.imag + 1 | a.abs() | a.angle() | torch.view_as_real(a) | a * 1j
a.conj() * b
torch.complex(a.real, b.imag) | (a * a.conj()).real | torch.polar(a.abs(), b.real)
a.mH if a.dim() > 1 \
else a.conj()
"""


def lines_of(text: str) -> list[str]:
    joined = text.replace("\\\n", "")
    return [part.strip() for line in joined.strip().splitlines() for part in line.split(" | ")]


def choices(dtype: str) -> list[str]:
    if dtype == "int64":
        return lines_of(ANY) * 2 + lines_of(WHOLE.replace("a | b |", "")) + ["a | b"]
    if dtype == "complex128":
        return lines_of(ANY) * 2 + lines_of(CONTINUOUS) * 2 + lines_of(COMPLEX) * 2
    return lines_of(ANY) + lines_of(CONTINUOUS) * 2 + lines_of(REAL) * 2


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    rng = random.Random(seed)
    beside = PyTorchChild()
    try:
        while True:
            for _ in range(3):
                yield one(rng.randrange(1 << 40), torch)
            yield of_views(rng.randrange(1 << 40), None if torch is None else beside)
    finally:
        beside.close()


def of_views(seed: int, beside: PyTorchChild | None) -> str | None:
    """A program of `tests/laws/cases_programs.py`."""
    of = programs()
    ours = json.loads(json.dumps(of.run(rushlight, seed)))
    theirs = of.run(rushlight, seed) if beside is None else beside.run(seed)
    if theirs is None:
        return None  # it crashed PyTorch
    stuck = "error Tensor must have a last dimension of size 2" in repr(theirs)  # of its own views
    if stuck or not of.sound(theirs) or of.alike(ours, json.loads(json.dumps(theirs))):
        return None
    return f"programs.run(lib, {seed}) of tests/laws/cases_programs.py differs"


def one(seed: int, torch: Any) -> str | None:
    """One program: None, or how rushlight differs from PyTorch."""
    rng = random.Random(seed)
    dtype = rng.choice(DTYPES)
    ours, theirs = Run(rushlight, seed, dtype), Run(torch or rushlight, seed, dtype)
    options = choices(dtype)
    written = []
    steps: list[tuple[str, float]] = []
    for step in range(rng.randrange(2, 7)):
        only = lines_of(LEAVES) if dtype not in ("int64", "complex128") and step == 0 else []
        line = rng.choice(options + only)
        draw = rng.random()
        written.append(f"v{len(written)} = {line}   # a, b, c = {ours.named(draw)}")
        steps.append((line, draw))
        first, second = ours.run(line, draw), theirs.run(line, draw)
        wrong = compare(first, second, dtype)
        if wrong and values_alone(first, second, dtype):
            if dtype == "complex128" and other_branch(line, numbers(first), numbers(second)):
                return None
            if dtype in ROUNDED and no_farther(ours, theirs, steps, seed):
                return None
        if wrong:
            return f"seed {seed}, {dtype}: {'; '.join(written)}: {wrong}"
        if isinstance(second, Exception) or not ours.tame():
            return None  # what grew beyond all bounds, or left the reals, is not followed further
    wrong = compare_slopes(ours, theirs, dtype)
    if wrong and dtype in ROUNDED and no_farther(ours, theirs, steps, seed):
        return None
    return f"seed {seed}, {dtype}: {'; '.join(written)}: {wrong}" if wrong else None


def values_alone(ours: Any, theirs: Any, dtype: str) -> bool:
    """Whether two results that differ are numbers that lie alike, of one shape and dtype."""
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        return False
    alike = str(ours.dtype) == str(theirs.dtype) and tuple(ours.shape) == tuple(theirs.shape)
    lies = "complex" in dtype or layout(ours) == layout(theirs)
    return alike and lies and (ours.is_floating_point() or ours.is_complex())


def other_branch(line: str, p: Any, q: Any) -> bool:
    """Whether a root, logarithm or angle was taken on either side of the negative numbers, where
    rounding decides on which."""
    if "sqrt" in line or "pow(0.5)" in line:
        p, q = p * p, q * q
    elif "log" in line:
        p, q = np.exp(p), np.exp(q)
    elif "angle" in line:
        p, q = np.exp(1j * p), np.exp(1j * q)
    return far(p, q, CLOSE["complex128"]) == ""


def no_farther(ours: Run, theirs: Run, steps: list[tuple[str, float]], seed: int) -> bool:
    """Rounding adds up where a program is ill-conditioned, in PyTorch too: whether our results and
    derivatives are about as near to those that the same program has in float64 as PyTorch's own
    are, from these leaves or from some that differ in the last digits."""
    leaves = [t.detach().to(rushlight.float64) for t in ours.leaves]
    exact = again(rushlight, leaves, "float64", steps, seed)
    mine, others = errors(ours, exact), [errors(theirs, exact)]
    for turn in range(8):
        rng = random.Random(turn)
        near = [moved(t, _UNIT[ours.dtype], rng) for t in leaves]
        there = again(theirs.lib, near, ours.dtype, steps, seed)
        rounded = [t.detach().to(theirs.lib.float64) for t in there.leaves]
        others.append(errors(there, again(rushlight, rounded, "float64", steps, seed)))
    sizes = [np.abs(numbers(t)).max(initial=0) for t in told(exact)]
    for at, (a, size) in enumerate(zip(mine, sizes, strict=False)):
        room = CLOSE[ours.dtype] * max(size, 1) if at < len(ours.values) else 0.05 * size
        if a > 2 * max((e[at] for e in others if at < len(e)), default=0.0) + room:
            return False
    return True


_UNIT = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24}


def moved(t: Any, unit: float, rng: random.Random) -> Any:
    """Numbers a few units away."""
    factors = [1 + rng.randint(-3, 3) * unit for _ in range(t.numel())]
    return t * rushlight.tensor(factors, dtype=rushlight.float64).reshape(t.shape)


def again(
    lib: Any, leaves: list[Any], dtype: str, steps: list[tuple[str, float]], seed: int
) -> Run:
    """The same program from other leaves, in another library or dtype."""
    run = Run(lib, seed, dtype)
    kind = getattr(lib, dtype)
    run.leaves = [
        lib.tensor(t.tolist(), dtype=lib.float64).to(kind).requires_grad_() for t in leaves
    ]
    run.values = list(run.leaves)
    for line, draw in steps:
        run.run(line, draw)
    return run


def told(run: Run) -> list[Any]:
    """Its results and derivatives; a number where there is none that could be off."""
    nothing = run.leaves[0].detach() * 0
    found = [*run.values, *run.slopes()]
    return [nothing if t is None or not t.is_floating_point() else t for t in found]


def errors(run: Run, exact: Run) -> list[float]:
    """How far each result and derivative of a program is from the exact one's."""
    pairs = zip(told(run), told(exact), strict=False)
    apart = [(numbers(a), numbers(b)) for a, b in pairs]
    return [float(np.abs(a - b).max(initial=0)) if a.shape == b.shape else 0.0 for a, b in apart]


class Run:
    """A program in one library while it runs."""

    def __init__(self, lib: Any, seed: int, dtype: str) -> None:
        rng = random.Random(seed)
        self.lib, self.dtype = lib, dtype
        shape = rng.choice([(2, 3), (3, 2), (4,), (3, 3)])
        kind = getattr(lib, dtype)
        self.leaves = []
        for _ in range(2):
            n = math.prod(shape)
            if dtype == "int64":
                t = lib.tensor([rng.randrange(-4, 5) for _ in range(n)])
            else:
                real = [round(rng.uniform(-1.5, 1.5), 2) for _ in range(n)]
                imag = [round(rng.uniform(-1.5, 1.5), 2) for _ in range(n)]
                data = [complex(p, q) for p, q in zip(real, imag, strict=True)]
                made = lib.tensor(data if dtype == "complex128" else real, dtype=lib.complex128)
                t = made if dtype == "complex128" else lib.tensor(real, dtype=lib.float64).to(kind)
            t = t.reshape(shape)
            self.leaves.append(t if dtype == "int64" else t.requires_grad_())
        self.values = list(self.leaves)

    def operands(self, draw: float) -> tuple[int, int, int]:
        """Which values `a`, `b` and `c` are: `b` has the shape and dtype of `a`."""
        rng = random.Random(draw)
        able = [i for i, t in enumerate(self.values) if t.dim() and t.numel() < 200]
        a = rng.choice(able)
        like = [
            i for i in able
            if self.values[i].shape == self.values[a].shape
            and self.values[i].dtype == self.values[a].dtype
        ]  # fmt: skip
        return a, rng.choice(like), rng.randrange(len(self.values))

    def named(self, draw: float) -> str:
        names = ["x", "y", *(f"v{i}" for i in range(100))]
        return ", ".join(names[i] for i in self.operands(draw))

    def run(self, line: str, draw: float) -> Any:
        """The value of a line; None if it cannot be computed."""
        a, b, c = (self.values[i] for i in self.operands(draw))
        lib = self.lib
        k = (2, 0.5, -1, 3)[int(draw * 4)] if a.dtype != lib.int64 else (2, -1, 3)[int(draw * 3)]
        there = {
            "torch": lib, "F": lib.nn.functional, "a": a, "b": b, "c": c, "k": k,
            "mask": lambda t: (lib.arange(t.numel()) % 2 == 0).reshape(t.shape),
            "index": lambda t: lib.tensor([0, t.shape[0] - 1])[: t.shape[0]],
            "places": lambda t: (lib.arange(t.numel()) % t.shape[0]).reshape(t.shape),
        }  # fmt: skip
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                made = eval(line, there)
            except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError) as error:
                self.error = error
                self.values.append(a)
                return error
        self.values.append(made)
        return made

    def tame(self) -> bool:
        t = self.values[-1].detach()
        if not t.numel():
            return False
        wide = self.lib.complex128 if t.is_complex() else self.lib.float64
        return float(t.to(wide).abs().max()) < 1e3

    def slopes(self) -> list[Any]:
        """First and second derivatives of the sum of all that can be differentiated."""
        lib = self.lib
        total: Any = None
        for t in self.values[2:]:
            if t.requires_grad and t.is_leaf is False:
                part = t.sum()
                part = part.real if part.is_complex() else part
                part = part.to(lib.float64)
                total = part if total is None else total + part
        if total is None:
            return []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            grad = lib.autograd.grad
            first = grad(total, self.leaves, create_graph=True, allow_unused=True)
            again = [
                (g * g.conj()).real.sum().to(lib.float64) for g in first
                if g is not None and g.requires_grad
            ]  # fmt: skip
            options = {"allow_unused": True, "retain_graph": True}  # it may be asked again
            second = grad(sum(again), self.leaves, **options) if again else []
        return [*first, *second]


def compare(ours: Any, theirs: Any, dtype: str) -> str:
    """How two results differ; "" if they agree."""
    if isinstance(theirs, Exception):
        # the last is what its `kron` says of matrices that it should have made contiguous
        own = ("not implemented", "INTERNAL ASSERT", "unresolved conj", "Use .reshape(...) instead")
        lacks = any(text in str(theirs) for text in own)
        if isinstance(ours, Exception) or lacks:
            return ""
        return f"gives {show(ours)}, PyTorch {type(theirs).__name__}: {str(theirs)[:200]}"
    if isinstance(ours, Exception):
        return f"{type(ours).__name__}: {str(ours)[:200]}, PyTorch gives {show(theirs)}"
    if not hasattr(theirs, "dtype"):
        return "" if ours == theirs else f"{ours}, PyTorch {theirs}"
    if str(ours.dtype) != str(theirs.dtype) or tuple(ours.shape) != tuple(theirs.shape):
        return f"{show(ours)}, PyTorch {show(theirs)}"
    if layout(ours) != layout(theirs) and "complex" not in dtype:  # PyTorch's conj is lazy
        return f"strides {ours.stride()}, PyTorch {theirs.stride()}"
    kind = str(theirs.dtype).removeprefix("torch.")
    return far(numbers(ours), numbers(theirs), max(CLOSE[kind], CLOSE[dtype]))


def layout(t: Any) -> list[int]:
    """The strides that lead anywhere: not those of axes of size 1."""
    return [s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1 and t.numel()]


def show(t: Any) -> str:
    return f"{t.dtype}{list(t.shape)}" if hasattr(t, "dtype") else repr(t)


def numbers(t: Any) -> Any:
    t = t.detach().resolve_conj()
    lib = rushlight if isinstance(t, rushlight.Tensor) else sys.modules["torch"]
    wide = lib.complex128 if t.is_complex() else lib.int64 if t.dtype == lib.int64 else lib.float64
    if getattr(t, "_is_zerotensor", bool)():  # PyTorch's zeros that have no memory
        return np.zeros(tuple(t.shape))
    return np.array(t.to(wide).tolist()).reshape(tuple(t.shape))


def far(p: Any, q: Any, close: float) -> str:
    """Where two arrays differ by more than rounding; relative to the largest element."""
    odd = ~np.isfinite(q)
    if not np.array_equal(odd, ~np.isfinite(p)):
        return f"{p.tolist()}, PyTorch {q.tolist()}"
    if np.any(odd):
        p, q = np.where(odd, 0, p), np.where(odd, 0, q)
    scale = max(1.0, float(np.abs(q).max(initial=0)))
    if np.any(np.abs(p - q) > close * scale):
        return f"{p.tolist()}, PyTorch {q.tolist()}"
    return ""


def compare_slopes(ours: Run, theirs: Run, dtype: str) -> str:
    try:
        wanted = theirs.slopes()
    except (RuntimeError, NotImplementedError):
        return ""  # PyTorch has no derivative there, or no second one
    try:
        found = ours.slopes()
    except (RuntimeError, NotImplementedError) as error:
        return f"derivatives: {type(error).__name__}: {str(error)[:200]}"
    for at, (g, h) in enumerate(zip(found, wanted, strict=False)):
        if g is None or h is None:  # zeros: which of them is None depends on how a rule is written
            there = g if h is None else h
            if there is not None and np.any(numbers(there) != 0):
                return f"derivative {at}: {g}, PyTorch {h}"
            continue
        want = numbers(h)
        if not np.all(np.isfinite(want)) or float(np.abs(want).max(initial=0)) > 1e4:
            return ""  # ill-conditioned: rounding would decide
        if str(g.dtype) != str(h.dtype):
            return f"derivative {at} has dtype {g.dtype}, PyTorch's {h.dtype}"
        wrong = far(numbers(g), want, CLOSE[dtype] * (10 if at < 2 else 40))
        if wrong:
            return f"derivative {at}: {wrong}"
    return ""
