"""Functions of one number, over all of float32 and much of float64: within 2 units in the last
place of PyTorch's results, or nearer to the true value than they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import rushlight
from rushlight.arrays.kernels import table

torch = pytest.importorskip("torch")

# what the true value is computed with, in a wider type
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "erf": scipy.special.erf, "erfc": scipy.special.erfc, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "logit": lambda x: np.log(x / (1 - x)),
    "nn.functional.silu": lambda x: x / (1 + np.exp(-x)),
    "nn.functional.softplus": lambda x: np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 20)))),
    "nn.functional.elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "nn.functional.logsigmoid": lambda x: -np.logaddexp(type(x.flat[0])(0), -x),
    "nn.functional.softsign": lambda x: x / (1 + np.abs(x)),
}  # fmt: skip
# a product of two roundings, of which one is below the normal
MOST = {"nn.functional.silu": 4}
# without kernels, as NumPy has them on this processor
LIMIT = 2 if table else 4
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, 1e-45, -1e-45, 1e-40, 3.4e38]


def find(library: Any, name: str) -> Any:
    for part in name.split("."):
        library = getattr(library, part)
    return library


def steps_apart(a: Any, b: Any) -> Any:
    """How many numbers of their type lie between; unlike NaNs are far apart, zeros are one."""
    whole = np.int32 if a.dtype == np.float32 else np.int64
    least = np.iinfo(whole).min
    x, y = (np.where(v.view(whole) < 0, least - v.view(whole), v.view(whole)) for v in (a, b))
    apart = np.abs(x.astype(np.float64) - y.astype(np.float64))
    near = np.abs(x - y)  # exact, where it does not overflow
    apart = np.where(apart < 2**20, near, apart)
    return np.where(
        np.isnan(a) | np.isnan(b), np.where(np.isnan(a) == np.isnan(b), 0, 2**40), apart
    )


def inputs(dtype: Any) -> Any:
    sweep = np.arange(0, 2**32, 8191, dtype=np.uint64).astype(np.uint32).view(np.float32)
    if dtype == np.float64:
        rng = np.random.default_rng(0)
        wide = rng.standard_normal(100_000) * 10.0 ** rng.uniform(-20, 20, 100_000)
        sweep = np.concatenate([sweep.astype(np.float64) * (1 + 1e-9), wide])
    return np.concatenate([np.array(SPECIAL, dtype), sweep]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_as_exact_as_pytorch(name: str, dtype: Any) -> None:
    x = inputs(dtype)
    ours = find(rushlight, name)(rushlight.from_numpy(x)).numpy()
    theirs = find(torch, name)(torch.from_numpy(x)).numpy()
    far = steps_apart(ours, theirs) > MOST.get(name, LIMIT)
    if not far.any():
        return
    wide = np.float64 if dtype == np.float32 else np.longdouble
    if name in ("erf", "erfc"):  # which SciPy has up to float64
        assert dtype == np.float32 or not np.isnan(ours[far]).any()
        wide = np.float64
    with np.errstate(all="ignore"):
        true = FUNCTIONS[name](x[far].astype(wide)).astype(dtype)
    nearer = steps_apart(ours[far], true) <= steps_apart(theirs[far], true)
    worst = [(a, b, c, d) for a, b, c, d in zip(x[far], ours[far], theirs[far], true, strict=True)]
    assert nearer.all(), [w for w, good in zip(worst, nearer, strict=True) if not good][:5]
