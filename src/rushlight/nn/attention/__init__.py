"""Which way `scaled_dot_product_attention` goes: `sdpa_kernel`, `SDPBackend`.

There are two here: the fused op, which stands for `FLASH_ATTENTION`, and the one made of products
and a softmax, `MATH`. The others of PyTorch's are for GPUs.
"""

from __future__ import annotations

import contextlib
import enum
import typing as _typing
from collections.abc import Iterator

from rushlight.missing import face as _face
from rushlight.ops.attention.scaled_dot_product import allowed as _allowed

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.Enum):
    """The ways to compute attention, by PyTorch's numbers.

    >>> from rushlight.nn.attention import SDPBackend
    >>> SDPBackend.MATH.value
    0
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


def _cur_sdpa_kernel_backends() -> list[SDPBackend]:
    found = {SDPBackend.FLASH_ATTENTION: "fused", SDPBackend.MATH: "math"}
    return [backend for backend, name in found.items() if _allowed[name]]


@contextlib.contextmanager
def sdpa_kernel(
    backends: list[SDPBackend] | SDPBackend, set_priority: bool = False
) -> Iterator[None]:
    """Let `scaled_dot_product_attention` go these ways only; it raises where none of them can.

    >>> from rushlight.nn.attention import SDPBackend, sdpa_kernel
    >>> x = torch.ones(1, 1, 2, 2)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     y = torch.nn.functional.scaled_dot_product_attention(x, x, x)
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    wanted = [backends] if isinstance(backends, SDPBackend) else backends
    before = dict(_allowed)
    _allowed["fused"] = SDPBackend.FLASH_ATTENTION in wanted
    _allowed["math"] = SDPBackend.MATH in wanted
    try:
        yield
    finally:
        _allowed.update(before)


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.nn.attention", globals(), {"bias": ""})
