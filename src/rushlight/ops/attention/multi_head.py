"""`multi_head_attention_forward`: what `nn.MultiheadAttention` computes, from its parameters."""

from __future__ import annotations

import math
import warnings
from typing import Any

from rushlight import dtypes
from rushlight.ops.attention.scaled_dot_product import scaled_dot_product_attention
from rushlight.ops.matmul.mm import bmm_of
from rushlight.ops.nn.dropout import drop
from rushlight.ops.nn.linear import linear
from rushlight.ops.nn.softmax import Softmax, apply_along
from rushlight.ops.registry import function, functions
from rushlight.size import Size

_INF = float("inf")


# --- arguments ------------------------------------------------------------------------------------
def canonical_mask(
    mask: Any, name: str, kind: Any, other: Any = None, other_name: str = "", warn: bool = True
) -> Any:
    """A mask as numbers to be added: booleans say who is hidden. `other` is a mask that should be
    of the same type."""
    if mask is None:
        return None
    own = mask.dtype
    if own is not dtypes.bool_ and not own.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if warn and other is not None and other.dtype is not own:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both "
            "instead.",
            stacklevel=3,
        )
    if own.is_floating_point:
        return mask
    return functions["zeros_like"](mask, dtype=kind).masked_fill_(mask, -_INF)


def _is_batched(query: Any, key: Any, value: Any, padding: Any, mask: Any, heads: int) -> bool:
    """Whether there is a batch, by the query's rank; the others must fit it."""
    rank = query.ndim
    if rank not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor"
        )
    which = "batched (3-D)" if rank == 3 else "unbatched (2-D)"
    if not key.ndim == value.ndim == rank:
        raise AssertionError(
            f"For {which} `query`, expected `key` and `value` to be {rank}-D but found "
            f"{key.ndim}-D and {value.ndim}-D tensors respectively"
        )
    if padding is not None and padding.ndim != rank - 1:
        raise AssertionError(
            f"For {which} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but "
            f"found {padding.ndim}-D tensor instead"
        )
    if mask is not None:
        if mask.ndim not in (2, 3):
            raise AssertionError(
                f"For {which} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{mask.ndim}-D tensor instead"
            )
        want = (heads, query.shape[0], key.shape[0])
        if rank == 2 and mask.ndim == 3 and mask.shape != want:
            raise AssertionError(f"Expected `attn_mask` shape to be {want} but got {mask.shape}")
    return bool(rank == 3)


def _check_sizes(query: Any, key: Any, value: Any, width: int, heads: int, apart: bool) -> None:
    have = query.shape[-1]
    if have != width:
        raise AssertionError(f"was expecting embedding dimension of {width}, but got {have}")
    if have // heads * heads != have:
        raise AssertionError(f"embed_dim {have} not divisible by num_heads {heads}")
    if apart:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's "
                f"{value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


# --- projections ----------------------------------------------------------------------------------
def _split(x: Any, parts: int, heads: int) -> list[Any]:
    """(length, batch, parts · width) as `parts` of (length, batch, heads, width of a head)."""
    length, batch, wide = x.shape
    cut = x.view(length, batch, parts, heads, wide // parts // heads)
    return list(cut.unbind(2))


def _project(query: Any, key: Any, value: Any, weight: Any, bias: Any, heads: int) -> list[Any]:
    """Queries, keys and values from one matrix: in one product if the three are one tensor."""
    if key is value and query is key:
        return _split(linear(query, weight, bias), 3, heads)
    width = query.shape[-1]
    if key is value:
        wq, wk = weight.split([width, 2 * width])
        bq, bk = (None, None) if bias is None else bias.split([width, 2 * width])
        q = _split(linear(query, wq, bq), 1, heads)
        return q + _split(linear(key, wk, bk), 2, heads)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return _project_apart(query, key, value, weight.chunk(3), biases, heads)


def _project_apart(
    query: Any, key: Any, value: Any, weights: Any, biases: Any, heads: int
) -> list[Any]:
    found = []
    for x, w, b in zip((query, key, value), weights, biases, strict=True):
        found += _split(linear(x, w, b), 1, heads)
    return found


def _given(x: Any, name: str, batch: int, heads: int, width: int) -> Any:
    """Keys or values that the caller computed: (batch · heads, length, width of a head)."""
    if x.shape[0] != batch * heads:
        raise AssertionError(f"expecting {name}.size(0) of {batch * heads}, but got {x.shape[0]}")
    if x.shape[2] != width:
        raise AssertionError(f"expecting {name}.size(2) of {width}, but got {x.shape[2]}")
    return x.view(batch, heads, x.shape[1], width)


# --- the function ---------------------------------------------------------------------------------
@function(
    method=False, free=False, namespace="nn.functional", returns="tuple[Tensor, Tensor | None]"
)
def multi_head_attention_forward(
    query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: bool,
    dropout_p: float, out_proj_weight: Any, out_proj_bias: Any, training: bool = True,
    key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None,
    v_proj_weight: Any = None, static_k: Any = None, static_v: Any = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> Any:  # fmt: skip
    """Attention by several heads, each on its part of the width, with projections before and
    after: the result, and the weights (None without `need_weights`).

    Args:
        query: (length, batch, width), or without the batch.
        key: (keys, batch, width).
        value: (keys, batch, width).
        embed_dim_to_check: the width.
        num_heads: how many heads.
        in_proj_weight: the matrices of the three projections, one above the other.
        in_proj_bias: their biases.
        bias_k: one more key, the same for all.
        bias_v: its value.
        add_zero_attn: one more key and value of zeros.
        dropout_p: the share of weights that are set to 0 in training.
        out_proj_weight: the matrix of the last projection.
        out_proj_bias: its bias.
        key_padding_mask: True for keys that nobody sees, (batch, keys); or numbers to be added.
        need_weights: whether to give the weights too.
        attn_mask: True where a query does not see a key; or numbers to be added.
        use_separate_proj_weight: the next three are used, not `in_proj_weight`.
        q_proj_weight: the matrix for queries.
        k_proj_weight: the matrix for keys.
        v_proj_weight: the matrix for values.
        static_k: keys to be used as they are.
        static_v: values to be used as they are.
        average_attn_weights: give the mean of the weights over the heads.
        is_causal: a hint that `attn_mask` hides what is later.

    >>> x, one = torch.ones(3, 1, 2), torch.eye(2)
    >>> y, weights = torch.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, torch.cat([one] * 3), None, None, None, False, 0., one, None)
    >>> weights
    tensor([[[0.3333, 0.3333, 0.3333],
             [0.3333, 0.3333, 0.3333],
             [0.3333, 0.3333, 0.3333]]])
    """
    heads = num_heads
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, heads)
    if not batched:
        one = query.unsqueeze(1)
        key, value = (
            one if key is query else key.unsqueeze(1),
            one if value is query else value.unsqueeze(1),
        )
        query = one
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    padding = canonical_mask(
        key_padding_mask, "key_padding_mask", query.dtype, attn_mask, "attn_mask"
    )
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
            "method `generate_square_subsequent_mask` to create this mask."
        )
    if is_causal and padding is None and not need_weights:
        mask = None  # the hint says it all
    else:
        mask = canonical_mask(attn_mask, "attn_mask", query.dtype, warn=False)
        is_causal = is_causal and padding is None and not need_weights
    _check_sizes(query, key, value, embed_dim_to_check, heads, use_separate_proj_weight)
    if use_separate_proj_weight:
        for name, w in (("q", q_proj_weight), ("k", k_proj_weight), ("v", v_proj_weight)):
            if w is None:
                raise AssertionError(
                    f"use_separate_proj_weight is True but {name}_proj_weight is None"
                )
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _project_apart(query, key, value, weights, biases, heads)
    else:
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias, heads)
    mask = _check_mask(mask, length, key.shape[0], batch * heads)
    each = width // heads
    if bias_k is not None and bias_v is not None:
        k, v = (
            functions["cat"]([x, b.view(1, 1, heads, each).expand(1, batch, heads, each)])
            for x, b in ((k, bias_k), (v, bias_v))
        )
        mask, padding = _one_more(mask), _one_more(padding)
    q, k, v = (x.permute(1, 2, 0, 3) for x in (q, k, v))
    if static_k is not None:
        k = _given(static_k, "static_k", batch, heads, each)
    if static_v is not None:
        v = _given(static_v, "static_v", batch, heads, each)
    if add_zero_attn:
        k, v = (
            functions["cat"](
                [x, functions["zeros"](batch, heads, 1, each, dtype=x.dtype, device=x.device)], 2
            )
            for x in (k, v)
        )
        mask, padding = _one_more(mask), _one_more(padding)
    keys = k.shape[2]
    if mask is not None:
        mask = mask.view(-1, heads, length, keys) if mask.shape[0] > 1 else mask.unsqueeze(0)
    if padding is not None:
        if padding.shape != (batch, keys):
            for d, (have, want) in enumerate(zip(padding.shape, (batch, keys), strict=True)):
                if have != want:
                    raise AssertionError(
                        f"Expected key_padded_mask.shape[{d}] to be {want}, but got {have}"
                    )
        padding = padding.view(batch, 1, 1, keys)
        mask = padding if mask is None else mask + padding
    p = dropout_p if training else 0.0
    if need_weights:
        y, shares = _with_weights(q, k, v, mask, p)
    else:
        y = scaled_dot_product_attention(q, k, v, mask, p, is_causal)
        shares = None
    y = y.permute(2, 0, 1, 3).reshape(length * batch, width)
    y = linear(y, out_proj_weight, out_proj_bias).view(length, batch, -1)
    if shares is not None and average_attn_weights:
        shares = shares.mean(1)
    if not batched:
        y = y.squeeze(1)
        shares = None if shares is None else shares.squeeze(0)
    return y, shares


def _with_weights(q: Any, k: Any, v: Any, mask: Any, p: float) -> tuple[Any, Any]:
    """Attention, and its weights: (batch, heads, queries, keys)."""
    batch, heads, length, each = q.shape
    keys = k.shape[2]
    flat = batch * heads
    a = (q * math.sqrt(1.0 / each)).reshape(flat, length, each)
    b = k.reshape(flat, keys, each).mT
    if mask is None:
        s = bmm_of(a, b)
    else:
        wide = mask.expand(batch, heads, length, keys).reshape(flat, length, keys)
        s = functions["baddbmm"](wide, a, b)
    weights = apply_along(Softmax, "softmax", s, -1, None)
    if p > 0:
        weights = drop(weights, p)
    y = bmm_of(weights, v.reshape(flat, keys, v.shape[-1]))
    return y.view(batch, heads, length, -1), weights.view(batch, heads, length, keys)


def _check_mask(mask: Any, length: int, keys: int, flat: int) -> Any:
    """A mask with three dimensions, the first of which may be 1."""
    if mask is None:
        return None
    want = (length, keys) if mask.ndim == 2 else (flat, length, keys)
    if mask.ndim not in (2, 3):
        raise RuntimeError(f"attn_mask's dimension {mask.ndim} is not supported")
    if mask.shape != want:
        raise RuntimeError(
            f"The shape of the {mask.ndim}D attn_mask is {Size(mask.shape)}, but should be {want}."
        )
    return mask.unsqueeze(0) if mask.ndim == 2 else mask


def _one_more(mask: Any) -> Any:
    """A mask with one more key, which everyone sees."""
    return None if mask is None else functions["constant_pad_nd"](mask, (0, 1))
