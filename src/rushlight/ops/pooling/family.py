"""What the kinds of pooling share: arguments, the number of windows, and their checks."""

from __future__ import annotations

import math
from typing import Any, Final

from rushlight.core.families import is_complex
from rushlight.ops.checks import not_implemented

Ints = tuple[int, ...]
_COUNTS: Final = {1: "one int", 2: "two ints", 3: "three ints"}


def one_or_each(name: str, what: str, given: Any, n: int) -> Ints:
    """One number for all axes, or one each."""
    if isinstance(given, (tuple, list)):
        found = tuple(int(i.__index__()) for i in given)
        if len(found) == 1:
            return found * n
        if len(found) == n:
            return found
        optional = "be omitted, " if what == "stride" else "be "
        form = "must be either " if what == "dilation" else f"must either {optional}"
        raise RuntimeError(f"{name}: {what} {form}a single int, or a tuple of {_COUNTS[n]}")
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise TypeError(
            f"{name}(): argument '{what}' must be tuple of ints, not {type(given).__name__}"
        )
    return (int(given.__index__()),) * n


def window_count(n: int, kernel: int, stride: int, padding: int, dilation: int, ceil: bool) -> int:
    """How many windows an axis has; with `ceil` the last may stand out, if it begins inside."""
    if stride == 0:
        raise RuntimeError("stride should not be zero")
    if padding < 0:
        raise RuntimeError(f"pad must be non-negative, but got pad: {padding}")
    if padding > ((kernel - 1) * dilation + 1) // 2:
        raise RuntimeError(
            "pad should be at most half of effective kernel size, but got "
            f"pad={padding}, kernel_size={kernel} and dilation={dilation}"
        )
    more = stride - 1 if ceil else 0
    out = (n + 2 * padding - dilation * (kernel - 1) - 1 + more) // stride + 1
    if ceil and (out - 1) * stride >= n + padding:
        out -= 1
    return out


_LETTERS: Final = {2: ("H", "W"), 3: ("T", "H", "W")}


def _named(word: str, values: Ints) -> str:
    return " ".join(
        f"{word[0] if word in ('kernel', 'd') else word}{letter}: {value}"
        for letter, value in zip(_LETTERS[len(values)], values, strict=True)
    )


def check_windows(
    shape: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil: bool
) -> Ints:
    """The number of windows of each axis, or PyTorch's error."""
    n = len(kernel)
    if len(shape) not in (n + 1, n + 2):
        raise RuntimeError(f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input")
    outs = tuple(
        window_count(*sizes, ceil)
        for sizes in zip(shape[-n:], kernel, stride, padding, dilation, strict=True)
    )
    if min(kernel) <= 0:
        raise RuntimeError(
            f"kernel size should be greater than zero, but got {_named('kernel', kernel)}"
        )
    if min(stride) <= 0:
        raise RuntimeError(f"stride should be greater than zero, but got {_named('d', stride)}")
    if min(dilation) <= 0:
        raise RuntimeError(
            f"dilation should be greater than zero, but got {_named('dilation', dilation)}"
        )
    if n == 3 and 0 in shape[-4:]:  # the axis it names is the first of them
        raise RuntimeError(
            "max_pool3d_with_indices_out_cpu_template(): Expected input's non-batch dimensions to "
            f"have positive length, but input has a shape of {list(shape)} and non-batch dimension "
            "0 has length zero!"
        )
    if 0 in shape[-n - 1 :]:
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size "
            f"for input, but got:{list(shape)}"
        )
    if min(outs) < 1:
        given = "x".join(str(s) for s in shape[-n - 1 :])
        made = "x".join(str(s) for s in (shape[-n - 1], *outs))
        raise RuntimeError(
            f"Given input size: ({given}). Calculated output size: ({made}). Output size is too "
            "small\n"
            "The window does not fit into the input: pool less before, or by smaller windows."
        )
    return outs


def flat(x: Any, n: int) -> Ints:
    """The shape with the last `n` axes as one."""
    shape: Ints = tuple(x) if isinstance(x, tuple) else tuple(x.shape)
    return (*shape[: len(shape) - n], math.prod(shape[len(shape) - n :]))


def refuse_pool_dtype(kernel: str, array: Any, integers: str = "") -> None:
    """Refuse complex numbers and bool; and integers, but for those of the names given."""
    kind = array.dtype.kind
    if kind == "b" or is_complex(array) or (kind in "iu" and array.dtype.name not in integers):
        raise not_implemented(kernel, array.dtype)
