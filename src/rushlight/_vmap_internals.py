"""`torch._vmap_internals`: `vmap` by the name under which older libraries import it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rushlight.func import vmap as _new
from rushlight.ops.warned import warn_caller

__all__: list[str] = []
__dir__ = __all__.copy


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """The older `vmap`: use `torch.vmap`.

    >>> from rushlight._vmap_internals import _vmap
    >>> _vmap(lambda x: x * 2)(torch.ones(3))
    tensor([2., 2., 2.])
    """
    warn_caller("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning)
    return _vmap(func, in_dims, out_dims)


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0,
    allow_none_pass_through: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    return _new(func, in_dims, out_dims, randomness="same")
