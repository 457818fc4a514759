"""`rms_norm`, by the mean square, and `local_response_norm`, by neighbouring channels. Both are
made of other functions, and their nodes are those of the parts; where there are to be no nodes,
`rms_norm` is one kernel.
"""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.arrays import norms
from rushlight.arrays import vocabulary as v
from rushlight.core import plain_norms
from rushlight.core.graph import wrap
from rushlight.core.record import unrecorded
from rushlight.ops.checks import check_tensor, not_implemented, tuple_of_ints
from rushlight.ops.registry import function, functional, functions


@function(method=False, namespace="nn.functional", settles=True, quick=plain_norms.rms_norm)
def rms_norm(
    input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None
) -> Any:
    """Each sample, divided by the root of its mean square over the last dimensions, then times
    `weight`.

    Args:
        eps: added to the mean square; by default the smallest step above 1 of the dtype.

    >>> torch.rms_norm(torch.tensor([3., 4., 0., 0.]), (4,))
    tensor([1.2000, 1.6000, 0.0000, 0.0000])
    """
    x = check_tensor(input, "rms_norm")
    want = tuple_of_ints("rms_norm", "normalized_shape", normalized_shape, 2)
    if not want:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            "element, but got normalized_shape = []"
        )
    if weight is not None and weight._array.shape != want:
        raise RuntimeError(
            "Expected weight to be of same shape as normalized_shape, but got weight of shape "
            f"{list(weight._array.shape)} and normalized_shape = {list(want)}"
        )
    if x.ndim < len(want) or x.shape[x.ndim - len(want) :] != want:
        inner = ", ".join(str(n) for n in want)
        raise RuntimeError(
            f"Given normalized_shape={list(want)}, expected input with shape [*{inner}], but got "
            f"input of size{list(x.shape)}"
        )
    kind = dtypes.of(x.dtype)
    if not (kind.is_floating_point or kind.is_complex):
        raise not_implemented("rms_norm", kind)
    low = v.low_precision(x.dtype)
    if eps is None:
        eps = dtypes.finfo(dtypes.float32 if low else kind).eps
    if unrecorded(input, weight):
        given = None if weight is None else weight._array
        made = norms.rms_norm(len(want), float(eps), x, given)
        if made is not None:
            return wrap(made)
    z = input.to(dtypes.float32) if low else input
    dims = tuple(range(-len(want), 0))
    y = z * ((z * z).mean(dims, keepdim=True) + eps).rsqrt()
    if weight is not None:
        y = y * weight
    return y.to(kind).contiguous()


def _channel_sums(x: Any, before: int, after: int) -> Any:
    """For each channel (dimension 1) the sum over those from `before` in front to `after` behind
    it; there are zeros beyond the ends."""
    padded = functions["constant_pad_nd"](x, (0, 0) * (x._array.ndim - 2) + (before, after))
    return padded.unfold(1, before + after + 1, 1).sum(-1)


@functional()
def local_response_norm(
    input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Any:
    """input / (k + alpha * mean of squares over `size` neighbouring channels) ** beta.

    Args:
        size: over how many channels, half of them in front.
        alpha: the factor of the mean.
        beta: the exponent.
        k: what is added.

    >>> torch.nn.functional.local_response_norm(torch.ones(1, 2, 1), 2, alpha=1., beta=1.)
    tensor([[[0.6667],
             [0.5000]]])
    """
    x = check_tensor(input, "local_response_norm")
    if x.ndim < 3:
        raise ValueError(
            "Expected 3D or higher dimensionality                          "
            f"input (got {x.ndim} dimensions)"
        )
    if x.size == 0:
        return input
    if size <= 0:
        sides = f"kH: {size} kW: 1" if x.ndim == 3 else f"kT: {size} kH: 1 kW: 1"
        raise RuntimeError(f"kernel size should be greater than zero, but got {sides}")
    near = _channel_sums(input * input, size // 2, (size - 1) // 2)
    if x.dtype.kind in "iu":  # the mean of integers is one
        near = functions["div"](near, size, rounding_mode="trunc")
    else:
        near = near / size
    return input / (near * alpha + k) ** beta


def cross_map_norm(input: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    """The older form: the window is centred. Where the first channel has left it, that one counts
    all the same, as in PyTorch."""
    half = (size - 1) // 2
    squares = input * input
    near = _channel_sums(squares, half, half)
    place = functions["arange"](input._array.shape[1], device=input.device)
    gone = (place > half).to(input.dtype).reshape(-1, 1, 1)
    near = (near + squares[:, :1] * gone) * (alpha / size)
    return input * (near + k) ** -beta
