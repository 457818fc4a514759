"""Masks that need no memory: `causal_upper_left`, `causal_lower_right`."""

from __future__ import annotations

import enum
import typing as _typing
from typing import Any

from rushlight.missing import face as _face
from rushlight.ops.attention.scaled_dot_product import scaled_dot_product_attention as _attention
from rushlight.ops.registry import functions as _functions
from rushlight.size import Size

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """At which corner of a matrix that is not square the diagonal is, above which all is hidden.

    >>> from rushlight.nn.attention.bias import CausalVariant
    >>> CausalVariant.UPPER_LEFT.value
    1
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias:
    """A mask for `scaled_dot_product_attention` that hides what is later. Made by
    `causal_upper_left` and `causal_lower_right`.

    >>> from rushlight.nn.attention.bias import CausalBias, CausalVariant
    >>> CausalBias(CausalVariant.LOWER_RIGHT, 2, 3).shape
    torch.Size([2, 3])
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be CausalVariant, got {type(variant)}")
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        self.shape = Size((seq_len_q, seq_len_kv))

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one of its two sizes."""
        return self.shape if dim is None else self.shape[dim]

    def _materialize(self, device: Any = None) -> Any:
        """The mask as a tensor: True where a query sees a key."""
        shift = 0
        if self.variant is CausalVariant.LOWER_RIGHT:
            shift = self.seq_len_kv - self.seq_len_q
        seen = _functions["ones"](self.shape, device=device).tril(shift)
        return seen != 0

    def _attend(
        self, query: Any, key: Any, value: Any, dropout_p: float, is_causal: bool,
        scale: float | None, enable_gqa: bool,
    ) -> Any:  # fmt: skip
        """Attention under this mask; `scaled_dot_product_attention` asks for it."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        more: dict[str, Any] = {"scale": scale, "enable_gqa": enable_gqa}
        if self.variant is CausalVariant.UPPER_LEFT or self.seq_len_q == self.seq_len_kv:
            return _attention(query, key, value, None, dropout_p, True, **more)
        mask = self._materialize(query.device)
        return _attention(query, key, value, mask, dropout_p, False, **more)

    def __repr__(self) -> str:
        return repr(self._materialize())


def _make(variant: CausalVariant, sizes: tuple[int, ...]) -> CausalBias:
    if len(sizes) != 2:
        raise AssertionError("causal bias only supports 2D tensors")
    return CausalBias(variant, *sizes)


def causal_upper_left(*size: int) -> CausalBias:
    """A mask under which query i sees keys 0 to i.

    >>> from rushlight.nn.attention.bias import causal_upper_left
    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return _make(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """A mask under which the last query sees all keys, the one before it all but the last…

    >>> from rushlight.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    return _make(CausalVariant.LOWER_RIGHT, size)


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.nn.attention.bias", globals())
