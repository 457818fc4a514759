"""Normalising as most layers do, without an interpreted frame: `batch_norm` in training, and
`rms_norm` where nothing is recorded.

Each function is asked with what a public function of the same name was given, behind what it was
told when that was made, and gives the result; or None for whatever is unusual. Then the public
function looks at it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight.arrays import fused, kernels, norms
from rushlight.core.grad_mode import state
from rushlight.core.graph import TensorBase, wrap
from rushlight.core.observer import observer
from rushlight.core.record import apply, finish, unrecorded
from rushlight.core.transforms.stack import stack
from rushlight.core.views.inplace import is_plain

_ndarray: Final = np.ndarray
_F32: Final = np.dtype(np.float32)
_F64: Final = np.dtype(np.float64)
_EPS: Final = (2.0**-23, 2.0**-52)  # the smallest step above 1 of the two
_MANY: Final = 64
_ops: Final[dict[tuple[int, float], Any]] = {}  # of batch_norm, by rank and what is added
_follow_mean: Final[Any] = kernels.table.get("follow_mean")
_follow_var: Final[Any] = kernels.table.get("follow_var")


def _floats_of(x: Any) -> Any:
    """The array of a tensor of floats; None for anything else."""
    if not isinstance(x, TensorBase):
        return None
    t: TensorBase = x
    array = t._array
    if type(array) is not _ndarray or not (array.dtype is _F32 or array.dtype is _F64):
        return None
    return array


def _has(x: Any, shape: tuple[int, ...], dtype: Any) -> bool:
    """Whether this is None, or a tensor with such an array."""
    if x is None:
        return True
    array = _floats_of(x)
    return array is not None and array.dtype is dtype and array.shape == shape


def rms_norm(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of an input, a shape, a weight (or None) and what is added."""
    n = len(args)
    if kwargs or n < 2 or n > 4 or not isinstance(args[1], tuple):
        return None
    x = _floats_of(args[0])
    weight = args[2] if n > 2 else None
    if x is None or not _has(weight, args[1], x.dtype) or not unrecorded(args[0], weight):
        return None
    width = len(args[1])
    rank: int = x.ndim
    if width == 0 or width > rank or x.shape[rank - width :] != args[1]:
        return None
    eps = args[3] if n > 3 else None
    if eps is None:
        eps = _EPS[0 if x.dtype is _F32 else 1]
    elif type(eps) is not float:
        return None
    w: Any = None
    if weight is not None:
        t: TensorBase = weight
        w = t._array
    made = norms.rms_norm(width, eps, x, w)
    return None if made is None else finish(wrap(made))


def batch_norm(told: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Of an input, running statistics, weight and bias (or None for each of them), True, momentum
    and what is added to the variance. `told` makes the op for a rank and the latter."""
    n = len(args)
    if kwargs or n < 6 or n > 8 or args[5] is not True or observer.applied is not None:
        return None
    if state.active != 0 or stack.batches != 0 or stack.tangents != 0:
        return None
    momentum = args[6] if n > 6 else 0.1
    eps = args[7] if n > 7 else 1e-5
    x = _floats_of(args[0])
    if x is None or type(momentum) is not float or type(eps) is not float or x.ndim < 2:
        return None
    shape = x.shape
    channels = (shape[1],)
    if shape[1] == 0 or x.size <= shape[1]:
        return None
    for k in range(1, 5):
        if not _has(args[k], channels, x.dtype) or (k < 3 and not _takes(args[k])):
            return None
    count: int = x.size // shape[1]
    op = _ops.get((x.ndim, eps))
    if op is None:
        op = told(x.ndim, eps)
        if len(_ops) < _MANY:
            _ops[(x.ndim, eps)] = op
    y, mean, rstd = apply(op, args[0], args[3], args[4])
    rest = 1.0 - momentum
    if args[1] is not None:
        _write(_follow_mean, fused.follow_mean, args[1], mean, (rest, momentum))
    if args[2] is not None:
        numbers = (rest, momentum, eps, count / (count - 1))
        _write(_follow_var, fused.follow_var, args[2], rstd, numbers)
    return y


def _takes(x: Any) -> bool:
    """Whether a running statistic (or None) can be written without more ado."""
    if x is None:
        return True
    t: TensorBase = x
    return is_plain(t, t._array) and not t._requires_grad and bool(t._array.flags.writeable)


def _write(
    kernel: Any, rule: Any, running: TensorBase, statistic: TensorBase, numbers: tuple[float, ...]
) -> None:
    array, value = running._array, statistic._array.reshape(-1)
    if kernel is None or not kernel.into((array,), array, value, *numbers):
        array[...] = rule(array, value, *numbers)
    running._storage.written()
