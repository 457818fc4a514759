"""Covariances and correlations of variables that stand in rows."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight import dtypes
from rushlight.ops.checks import check_tensor
from rushlight.ops.registry import function, functions


def _check_weights(name: str, weights: Any, count: int, integral: bool) -> None:
    array = weights._array
    kind = dtypes.of(array.dtype)
    if array.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{array.ndim} dimensions"
        )
    if integral is (kind.is_floating_point or kind.is_complex):
        wanted = "integral" if integral else "floating point"
        raise RuntimeError(
            f"cov(): expected {name} to have {wanted} dtype but got {name} with "
            f"{kind.scalar_type} dtype"
        )
    if array.size != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input "
            f"but got {array.size} != {count}"
        )
    if count and not bool((weights >= 0).all()):
        raise RuntimeError(f"cov(): {name} cannot be negative")


@function()
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """The covariances of variables: each row of `input` is one, each column an observation.

    Args:
        correction: the sum of products is divided by the number of observations less this.
        fweights: how often each observation was made.
        aweights: how much each observation counts.

    >>> torch.cov(torch.tensor([[0., 2.], [2., 0.]]))
    tensor([[ 2., -2.],
            [-2.,  2.]])
    """
    array = check_tensor(input, "cov")
    if array.ndim > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with "
            f"{array.ndim} dimensions"
        )
    if array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape((1, -1)) if array.ndim < 2 else input
    count = x._array.shape[1]
    weights = None
    if fweights is not None:
        _check_weights("fweights", fweights, count, True)
        weights = fweights if fweights._array.ndim else fweights.reshape((-1,))
    if aweights is not None:
        _check_weights("aweights", aweights, count, False)
        flat = aweights if aweights._array.ndim else aweights.reshape((-1,))
        weights = flat if weights is None else weights * flat
    if weights is None:
        mean = x.sum(1) / count if count else x.sum(1) / 0.0
        below: Any = count - correction
        few = below <= 0
        below = max(below, 0)
    else:
        total = weights.sum()
        if count and not bool(total != 0):
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = (x * weights).sum(1) / total
        if aweights is None:
            below = total - correction
        else:
            below = total - correction * (weights * flat).sum() / total
        few = bool(below <= 0)
        if few:
            below = below * 0
    if few:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number "
            "of observations.",
            stacklevel=2,
        )
    x = x - mean.unsqueeze(1)
    right = x if weights is None else x * weights
    product = functions["mm"](x, functions["conj"](right.t()).to(x.dtype))
    return functions["true_divide"](product, below).squeeze()


@function()
def corrcoef(input: Any) -> Any:
    """The correlations of variables: each row of `input` is one, each column an observation.

    >>> torch.corrcoef(torch.tensor([[0., 2., 4.], [2., 0., -2.]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    array = check_tensor(input, "corrcoef")
    if array.ndim > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{array.ndim} dimensions"
        )
    c = cov(input)
    if c._array.ndim == 0:
        return c / c
    spread = functions["sqrt"](c.diag())
    c = c / spread.unsqueeze(1) / spread.unsqueeze(0)
    if c._array.dtype.kind == "c":
        return functions["complex"](c.real.clip(-1, 1), c.imag.clip(-1, 1))
    return c.clip(-1, 1)
