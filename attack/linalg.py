"""Linear algebra on numbers that LAPACK was not made for: NaN, infinities, the ends of the range.

Every call is made in a child process with a time limit, since a loop inside LAPACK hears no signal;
the same call is made with PyTorch, in a child too, for it dies of some of them. What is compared:

    errors     of the same kind, or none
    results    shapes, dtypes and strides; of matrices that are as they should be, the numbers
    finiteness a result that PyTorch has something not finite in is not all finite here

`_LOOSE` says where PyTorch's answer depends on where in the matrix the number stands, or on the
dtype: there an error is as good as NaN. Gradients and vmap are asked for, but not compared.
"""

from __future__ import annotations

import os
import queue
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from attack._linalg_worker import receive, send

__all__ = ["ALIASES", "CALLS", "SHORT", "TITLE", "attempts"]

TITLE = "linear algebra on hostile numbers"
SHORT = 400
_LIMIT = 60.0  # seconds after which a call counts as hung
_START = 300.0  # seconds that a child may take to import its library

# what is called, on `a` and `b`; and which `a` it takes: Square, Any, Tall, or square Without batch
CALLS = {
    "S": (
        "linalg.cholesky(a)",
        "linalg.cholesky(a, upper=True)",
        "linalg.cholesky_ex(a)",
        "cholesky(a)",
        "cholesky_inverse(a)",
        "cholesky_inverse(a, upper=True)",
        "cholesky_solve(b, a)",
        "cholesky_solve(b, a, upper=True)",
        "linalg.inv(a)",
        "linalg.inv_ex(a)",
        "inverse(a)",
        "linalg.solve(a, b)",
        "linalg.solve(a, b.mT, left=False)",
        "linalg.solve(a, b[..., 0])",
        "linalg.solve_ex(a, b)",
        "linalg.solve_triangular(a, b, upper=True)",
        "linalg.solve_triangular(a, b, upper=False, unitriangular=True)",
        "linalg.solve_triangular(a, b.mT, upper=False, left=False)",
        "triangular_solve(b, a)",
        "triangular_solve(b, a, transpose=True)",
        "linalg.det(a)",
        "det(a)",
        "linalg.slogdet(a)",
        "slogdet(a)",
        "logdet(a)",
        "linalg.eig(a)",
        "linalg.eigvals(a)",
        "linalg.eigh(a)",
        "linalg.eigh(a, UPLO='U')",
        "linalg.eigvalsh(a)",
        "linalg.lu_solve(*torch.linalg.lu_factor(a), b)",
        "linalg.lu_solve(*torch.linalg.lu_factor(a), b.mT, left=False)",
        "linalg.lu_solve(*torch.linalg.lu_factor(a), b, adjoint=True)",
        "lu_solve(b, *torch.linalg.lu_factor(a))",
        "linalg.pinv(a, hermitian=True)",
        "linalg.cond(a, 'fro')",
        "linalg.cond(a, 'nuc')",
        "linalg.cond(a, 1)",
        "linalg.cond(a, -float('inf'))",
        "linalg.matrix_rank(a, hermitian=True)",
        "linalg.matrix_exp(a)",
        "linalg.ldl_factor(a)",
        "linalg.ldl_factor_ex(a)",
        "linalg.ldl_solve(*torch.linalg.ldl_factor_ex(a)[:2], b)",
        "linalg.vander(a)",
        "linalg.vecdot(a, a)",
        "linalg.diagonal(a)",
        "linalg.matmul(a, b)",
        "linalg.matrix_power(a, 0)",
        "linalg.matrix_power(a, 1)",
        "linalg.matrix_power(a, 3)",
        "linalg.matrix_power(a, -2)",
        "matrix_power(a, -1)",
    ),
    "A": (
        "linalg.svd(a)",
        "linalg.svd(a, full_matrices=False)",
        "linalg.svdvals(a)",
        "svd(a)",
        "svd(a, some=False)",
        "svd(a, compute_uv=False)",
        "linalg.qr(a)",
        "linalg.qr(a, mode='complete')",
        "linalg.qr(a, mode='r')",
        "qr(a)",
        "geqrf(a)",
        "linalg.lu(a)",
        "linalg.lu_factor(a)",
        "linalg.lu_factor_ex(a)",
        "lu(a)",
        "lu_unpack(*torch.linalg.lu_factor(a))",
        "linalg.pinv(a)",
        "pinverse(a)",
        "linalg.lstsq(a, b)",
        "linalg.lstsq(a, b, driver='gels')",
        "linalg.lstsq(a, b, driver='gelsd')",
        "linalg.lstsq(a, b, driver='gelss')",
        "linalg.matrix_norm(a)",
        "linalg.matrix_norm(a, 2)",
        "linalg.matrix_norm(a, -2, keepdim=True)",
        "linalg.matrix_norm(a, 'nuc', dim=(-1, -2))",
        "linalg.matrix_norm(a, 1)",
        "linalg.matrix_norm(a, -float('inf'))",
        "linalg.norm(a, 2, dim=(-2, -1))",
        "linalg.vector_norm(a, 2)",
        "norm(a, 'nuc', dim=(-2, -1))",
        "nuclear_norm(a, dim=(-2, -1))",
        "linalg.cond(a)",
        "linalg.cond(a, -2)",
        "linalg.matrix_rank(a)",
    ),
    "T": (
        "linalg.householder_product(a, a[..., 0, :])",
        "orgqr(a, a[..., 0, :])",
        "ormqr(a, a[..., 0, :], b)",
        "ormqr(a, a[..., 0, :], b.mT, left=False)",
    ),
    "W": (
        "linalg.multi_dot([a, a, a])",
        "chain_matmul(a, a)",
        "linalg.tensorinv(a, ind=1)",
        "linalg.tensorsolve(a, b[:, 0])",
        "linalg.cross(a[:3, :3], a[:3, :3].mT)",
    ),
}
ALIASES = (
    "cholesky", "cholesky_inverse", "cholesky_solve", "det", "geqrf", "inverse", "logdet", "lu",
    "lu_solve", "lu_unpack", "matrix_power", "norm", "nuclear_norm", "orgqr", "ormqr", "pinverse",
    "qr", "slogdet", "svd", "triangular_solve", "chain_matmul",
)  # fmt: skip
_LOOSE = ("cholesky", "eigh", "eigvalsh", "svd", "lstsq", "pinv", "matrix_rank", "norm", "cond")
_SPECTRA = ("svd", "svdvals", "eigh", "eigvals", "eigvalsh", "matrix_norm", "nuclear_norm")
_ERRORS = ("torch._C._LinAlgError", "builtins.RuntimeError", "builtins.NotImplementedError")
_DTYPES = ("float32", "float64", "complex64", "complex128", "float16", "bfloat16")
_VIEWS = ("x", "x", "x.mT.contiguous().mT", "x.clone()[..., :, :]", "x[None].expand(2, *x.shape)")
_POISON = (
    float("nan"), float("inf"), -float("inf"), 1e300, -1e300, 1e-310, 0.0, 1e154, 3e38, 1e-45,
)  # fmt: skip


class Worker:
    """A child that makes calls with one library; a hung one is killed and replaced."""

    def __init__(self, library: str) -> None:
        self.library = library
        self.child: Any = None
        self.answers: queue.Queue[Any] = queue.Queue()

    def start(self) -> None:
        """Begin a child; `ask` waits until it has imported its library."""
        one = {name + "_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        path = os.pathsep.join(p or os.curdir for p in sys.path)
        self.child = subprocess.Popen(
            [sys.executable, "-m", "attack._linalg_worker", self.library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **one, "PYTHONPATH": path},
        )
        self.answers = queue.Queue()
        threading.Thread(
            target=_listen, args=(self.child.stdout, self.answers), daemon=True
        ).start()
        self.fresh = True

    def ask(self, call: dict[str, Any]) -> Any:
        """What came of a call; None if it did not return, or took the child with it."""
        if self.child is None:
            self.start()
        try:
            if self.fresh and self.answers.get(timeout=_START) is None:
                raise RuntimeError(f"no process with {self.library} could be started")
            self.fresh = False
            send(self.child.stdin, call)
            found = self.answers.get(timeout=_LIMIT)
        except (BrokenPipeError, queue.Empty):
            found = None
        if found is None:
            self.stop()
        return found

    def stop(self) -> None:
        """End the child."""
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child.stdin.close()
            self.child = None


def _listen(stream: Any, answers: queue.Queue[Any]) -> None:
    """Pass on what a child says, and None when it says no more."""
    with stream:
        while True:
            try:
                answers.put(receive(stream))
            except (EOFError, ValueError):
                answers.put(None)
                return


# --- calls ----------------------------------------------------------------------------------------
def _drawn(rng: np.random.Generator, shape: tuple[int, ...], complex_: bool) -> Any:
    """Matrices as they should be: square ones are positive, with eigenvalues well apart."""
    x = rng.standard_normal(shape)
    if complex_:
        x = x + 1j * rng.standard_normal(shape)
    m, n = shape[-2:]
    if m == n:
        x = (x + np.conj(x.swapaxes(-1, -2))) * 0.2
        x[..., np.arange(n), np.arange(n)] += 3 + np.arange(n)
    return x


def _call(code: str, kind: str, rng: np.random.Generator) -> tuple[dict[str, Any], bool]:
    """A call, and whether only the first matrix of its batch is hostile."""
    dtype = str(rng.choice(_DTYPES, p=[0.24] * 4 + [0.02] * 2))
    n = int(rng.choice([0, 1, 2, 3, 3, 3, 4, 5, 8, 30], p=[0.02, *[0.12] * 8, 0.02]))
    n = max(n, 3) if "cross" in code else n
    m = n + int(rng.integers(3)) if kind == "T" else n
    if kind == "A" and rng.random() < 0.6:
        m, n = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    if kind == "T":
        m, n = max(m, 1), max(n, 1)
    batch = (
        ()
        if kind == "W"
        else ((), (), (2,), (2, 1), (0,))[rng.choice(5, p=[0.45, 0.2, 0.2, 0.13, 0.02])]
    )
    is_complex = dtype.startswith("c")
    a = _drawn(rng, (*batch, m, n), is_complex)
    b = rng.standard_normal((*batch, m, 2)) + (
        1j * rng.standard_normal((*batch, m, 2)) if is_complex else 0
    )
    narrow = dtype not in ("float64", "complex128")
    target = b if rng.random() < 0.15 and "b" in code.split("(", 1)[1] else a
    if a.size and rng.random() < 0.95:
        first = target[(0,) * len(batch)]
        value = _POISON[rng.integers(len(_POISON))]
        if narrow and np.isfinite(value):
            value = float(np.clip(value, -3e38, 3e38)) if value else value
        how = rng.random()
        if how < 0.15:
            first[...] = value
        elif how < 0.25:
            with np.errstate(all="ignore"):
                first *= value
        else:
            for _ in range(int(rng.integers(1, 4))):
                first[rng.integers(first.shape[0]), rng.integers(first.shape[1])] = value
    view = _VIEWS[rng.integers(4 if batch or kind == "W" else 5)]
    views = {"a": view}
    if "expand" in view:
        views["b"] = view
    call = {"code": "torch." + code, "arrays": {"a": a, "b": b}, "views": views, "dtype": dtype}
    chance = rng.random()
    call["backward"] = chance < 0.25
    if chance > 0.9 and batch == (2,):
        call["code"] = f"torch.func.vmap(lambda a, b: torch.{code})(a, b)"
    return call, batch == (2,)


# --- what came of them ----------------------------------------------------------------------------
def _unlike(call: dict[str, Any]) -> bool:
    """Whether a call may end in an error with one library and not with the other.

    With numbers that are far from all others that is a matter of rounding, and of whether the
    processor takes the smallest for zero; for functions of `_LOOSE`, with any.
    """
    sizes = np.concatenate([np.abs(x).reshape(-1) for x in call["arrays"].values()])
    ends = np.isfinite(sizes) & (sizes != 0) & ((sizes > 1e12) | (sizes < 1e-12))
    return bool(ends.any()) or any(name in call["code"] for name in _LOOSE)


def _poisoned(call: dict[str, Any], function: str) -> bool:
    """Whether something not finite must come of it: of NaN, and of the infinite spectra. Division
    by an infinity may make 0 of it or NaN, by the order of operations."""
    arrays = list(call["arrays"].values())
    if function in _SPECTRA and any(np.isinf(x).any() for x in arrays):
        return True
    return any(np.isnan(x).any() for x in arrays)


def _steps(y: Any, strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides that mean something."""
    return None if 0 in y.shape else tuple(s for n, s in zip(y.shape, strides) if n != 1)


def _differ(call: dict[str, Any], mine: Any, theirs: Any, split: bool) -> str | None:
    """How a result differs from PyTorch's, where it may not."""
    function = call["code"].split("(")[0].rsplit(".", 1)[-1]
    if mine["error"] or theirs["error"]:
        kinds = [told["error"][0] if told["error"] else "no error" for told in (mine, theirs)]
        if kinds[0] == kinds[1] or _unlike(call):
            return None
        if call["dtype"] in ("float16", "bfloat16") and "NotImplemented" in kinds[0]:
            return None  # refused here; there only if a kernel runs, or after other checks
        if function == "ldl_factor" and any(np.isnan(y).any() for y in theirs["values"]):
            return None  # a pivot that is NaN is refused here, there some of them
        return f"{kinds[0]}, and PyTorch {kinds[1]}"
    if len(mine["values"]) != len(theirs["values"]):
        return "another number of results"
    for at, (x, y) in enumerate(zip(mine["values"], theirs["values"])):
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            if function == "lstsq" and at == 1:
                continue  # residuals are told where the rank is full, which is a matter of rounding
            return f"result {at} is {x.dtype}{x.shape}, and PyTorch's {y.dtype}{y.shape}"
        if _steps(x, mine["strides"][at]) != _steps(y, theirs["strides"][at]):
            return f"strides {mine['strides'][at]}, and PyTorch's {theirs['strides'][at]}"
        if (
            x.size
            and np.isfinite(x).all()
            and not np.isfinite(y).all()
            and _poisoned(call, function)
        ):
            return f"result {at} is all finite, and PyTorch's is not"
        if split and x.ndim and len(x) == 2 and not _alike(x[1], y[1], function, call):
            return f"result {at} has the numbers {x[1]}, and PyTorch's {y[1]}"
    return None


def _alike(x: Any, y: Any, function: str, call: dict[str, Any]) -> bool:
    """Whether numbers agree: their sizes, for vectors may be turned."""
    m, n = call["arrays"]["a"].shape[-2:]
    if function in ("eig", "eigvals") or (function == "svd" and m != n):
        return True  # in any order; and the vectors of nothing are free
    if function == "geqrf" and call["dtype"].startswith("c"):
        return True  # a factor is 0 or 2 by the rounding of what should be 0j
    low = call["dtype"] in ("float16", "bfloat16")
    if function == "matrix_exp" and low and not np.isfinite(y).all():
        return True  # there the powers on the way leave the range, of numbers that do not
    x, y = np.abs(x).astype(float), np.abs(y).astype(float)
    if not np.array_equal(np.isfinite(x), np.isfinite(y)):
        return False
    fit = np.isfinite(x)
    scale = 1 + (y[fit].max() if y[fit].size else 0)
    gap = 1e-5 if call["dtype"] in ("float64", "complex128") else 3e-2
    return bool(np.all(np.abs(x[fit] - y[fit]) <= gap * scale))


def _judged(call: dict[str, Any], mine: Any, theirs: Any, split: bool) -> str | None:
    if mine is None:
        return "did not return"
    error = mine["error"]
    if error and error[0] not in _ERRORS and (theirs is None or theirs["error"] is None):
        return f"raised {error[0]}: {error[1]}"
    if theirs is None or call["backward"] or "vmap" in call["code"]:
        return None
    return _differ(call, mine, theirs, split)


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    """Every call of the table again and again, each time on other numbers."""
    calls = [(code, kind) for kind, codes in CALLS.items() for code in codes]
    random.Random(seed).shuffle(calls)
    workers = [Worker(name) for name in ("rushlight", "torch") if name == "rushlight" or torch]
    for worker in workers:
        worker.start()
    rng = np.random.default_rng(seed)
    try:
        while True:
            for code, kind in calls:
                call, split = _call(code, kind, rng)
                told = [worker.ask(call) for worker in workers]
                broke = _judged(call, told[0], told[1] if torch else None, split)
                yield None if broke is None else f"seed {seed}: {broke}\n    {call}"
    finally:
        for worker in workers:
            worker.stop()
