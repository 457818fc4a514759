"""`torch.nn.attention.flex_attention`: attention whose scores and mask are functions of the places.

PyTorch compiles these functions into one kernel that leaves masked blocks out. Here they are called
once for all places together (by `vmap`), and all scores are computed.

>>> from rushlight.nn.attention.flex_attention import create_block_mask, flex_attention
>>> def causal(b, h, q, k):
...     return q >= k
>>> q = k = v = torch.arange(6.).reshape(1, 1, 3, 2)
>>> mask = create_block_mask(causal, 1, 1, 3, 3, device="cpu")
>>> flex_attention(q, k, v, block_mask=mask)[0, 0, 0]
tensor([0., 1.])
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from rushlight import dtypes
from rushlight.func import vmap
from rushlight.nn import functional
from rushlight.ops.registry import functions

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip
__dir__ = __all__.copy

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_score_mod_signature: TypeAlias = Callable[..., Any]
_mask_mod_signature: TypeAlias = Callable[..., Any]


class AuxRequest(NamedTuple):
    """What `flex_attention` is to give besides: the logarithm of the sums, the largest scores."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What `flex_attention` gave besides."""

    lse: Any = None
    max_scores: Any = None


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """A mask that lets everything through."""
    return functions["ones"]((), dtype=dtypes.bool_, device=batch.device)


def and_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The mask of the places that all of these let through."""

    def both(b: Any, h: Any, q: Any, k: Any) -> Any:
        found = mask_mods[0](b, h, q, k)
        for mod in mask_mods[1:]:
            found = found & mod(b, h, q, k)
        return found

    return both


def or_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The mask of the places that one of these lets through."""

    def either(b: Any, h: Any, q: Any, k: Any) -> Any:
        found = mask_mods[0](b, h, q, k)
        for mod in mask_mods[1:]:
            found = found | mod(b, h, q, k)
        return found

    return either


def _everywhere(fn: Callable[..., Any], scores: bool) -> Callable[..., Any]:
    """A function of one place as a function of all: over batch, head, query and key."""
    first = (0,) if scores else ()
    of = fn
    for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None),
                 (0, None, None, None)):  # fmt: skip
        of = vmap(of, in_dims=(*first, *dims), out_dims=0)
    return of


def _places(sizes: tuple[int, ...], device: Any) -> list[Any]:
    return [functions["arange"](n, device=device) for n in sizes]


def create_mask(
    mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
    device: Any = None,
) -> Any:  # fmt: skip
    """create_mask(mod_fn, B, H, Q_LEN, KV_LEN) -> Tensor: where a mask lets through, as booleans.

    >>> from rushlight.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, k: q >= k, 1, 1, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    found = _everywhere(mod_fn, False)(*_places(sizes, device))
    return found.bool().expand(sizes)


class BlockMask:
    """A mask by its function, and which blocks of places it lets through at all; made by
    `create_block_mask`."""

    def __init__(
        self, mask_mod: _mask_mod_signature, sizes: tuple[int, int, int, int],
        block_size: tuple[int, int], device: Any,
    ) -> None:  # fmt: skip
        self.mask_mod = mask_mod
        self.shape = sizes
        self.seq_lengths = sizes[2:]
        self.BLOCK_SIZE = block_size
        self.device = device
        self._blocks: Any = None

    def to_dense(self) -> Any:
        """Which blocks have a place that is let through, as 1 and 0."""
        if self._blocks is None:
            mask = create_mask(self.mask_mod, *self.shape, device=self.device)
            (q, k), (m, n) = self.seq_lengths, self.BLOCK_SIZE
            mask = functional.pad(mask, (0, -k % n, 0, -q % m))
            rows, columns = mask.shape[-2] // m, mask.shape[-1] // n
            blocks = mask.reshape(*self.shape[:2], rows, m, columns, n)
            self._blocks = blocks.any(-1).any(-2).int()
        return self._blocks

    def sparsity(self) -> float:
        """How much of it is left out, in percent."""
        blocks = self.to_dense()
        empty: float = 100 * (1 - float(blocks.sum()) / blocks.numel())
        return empty

    def numel(self) -> int:
        """How many places there are."""
        return math.prod(self.shape)

    def to(self, device: Any) -> BlockMask:
        """The mask on another device."""
        return BlockMask(self.mask_mod, self.shape, self.BLOCK_SIZE, device)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        sizes = (*self.shape[:2], new_q_len, new_kv_len)
        return BlockMask(self.mask_mod, sizes, self.BLOCK_SIZE, self.device)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod: _mask_mod_signature, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int,
    device: Any = None, BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False, **options: Any,
) -> BlockMask:  # fmt: skip
    """create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device=None) -> BlockMask

    A mask for `flex_attention`: `mask_mod(b, h, q, k)` says whether query `q` sees key `k`.
    """
    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    return BlockMask(mask_mod, (B or 1, H or 1, Q_LEN, KV_LEN), block, device)


def create_nested_block_mask(*args: Any, **kwargs: Any) -> BlockMask:
    """create_nested_block_mask(...): raises: rushlight has no nested tensors."""
    raise RuntimeError("create_nested_block_mask cannot work: rushlight has no nested tensors")


def _repeat_heads(query: Any, key: Any, value: Any, enable_gqa: bool) -> tuple[Any, Any]:
    """Keys and values for every head of the queries."""
    heads, theirs = query.shape[1], key.shape[1]
    if heads == theirs:
        return key, value
    if not enable_gqa:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and "
            f"Hkv={theirs}. Try setting enable_gqa=True for GQA."
        )
    return tuple(t.repeat_interleave(heads // theirs, 1) for t in (key, value))


def flex_attention(
    query: Any, key: Any, value: Any, score_mod: _score_mod_signature | None = None,
    block_mask: BlockMask | None = None, scale: float | None = None, enable_gqa: bool = False,
    return_lse: bool = False, kernel_options: Any = None, *, return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """flex_attention(query, key, value, score_mod=None, block_mask=None, scale=None, ...) -> Tensor

    Attention over (batch, head, place, feature). `score_mod(score, b, h, q, k)` changes scores,
    `block_mask` says which are left out, `enable_gqa` lets several heads share keys and values. A
    query that sees nothing gives zeros.
    """
    key, value = _repeat_heads(query, key, value, enable_gqa)
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query @ key.transpose(-2, -1)) * factor
    places = _places(tuple(scores.shape), query.device)
    if score_mod is not None:
        scores = _everywhere(score_mod, True)(scores, *places)
    if block_mask is not None:
        b, h = (scores.shape[i] if block_mask.shape[i] > 1 else 1 for i in (0, 1))
        mask = _everywhere(block_mask.mask_mod, False)(places[0][:b], places[1][:h], *places[2:])
        scores = scores.masked_fill(~mask.bool(), -math.inf)
    lse = scores.logsumexp(-1)
    blind = lse == -math.inf
    weights = (scores - lse.masked_fill(blind, 0.0).unsqueeze(-1)).exp()
    out = weights.to(value.dtype) @ value
    if return_aux is not None:
        largest = scores.amax(-1) if return_aux.max_scores else None
        return out, AuxOutput(lse if return_aux.lse else None, largest)
    return (out, lse) if return_lse else out
