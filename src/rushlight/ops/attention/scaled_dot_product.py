"""`scaled_dot_product_attention`: softmax(q kᵀ / √d + mask) v.

Where PyTorch has a fused kernel this is one op, which keeps neither scores nor weights; else (with
dropout, say) it is made of products and a softmax, whose nodes the graph shows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import attention as words
from rushlight.arrays import vocabulary as v
from rushlight.core.graph import Node, Op, wrap
from rushlight.core.record import apply, recording
from rushlight.ops.checks import check_tensor, not_implemented
from rushlight.ops.nn.dropout import drop
from rushlight.ops.nn.softmax import SafeSoftmax
from rushlight.ops.registry import function, functions, implements, op, shared_op
from rushlight.ops.sample_inputs import Draw

_INF: Final = float("inf")
_BOOL: Final = dtypes.bool_.numpy
_INT64: Final = dtypes.int64.numpy
# which ways may be taken; `nn.attention.sdpa_kernel` sets them
allowed: Final[dict[str, bool]] = {"fused": True, "math": True}


@op
class Attention(Op):
    """softmax(scale · q kᵀ + mask) v, and the logarithms of the sums in the softmax: these are an
    output for the reason in Note [Statistics are outputs] of `ops.nn.normalization`. The mask gets
    no gradient."""

    name = "scaled_dot_product_flash_attention_for_cpu"
    aten = "_scaled_dot_product_flash_attention_for_cpu.default"
    shown_edges = (0, 1, 2)
    inputs = ("query", "key", "value", "attn_mask")
    outputs = ("output", "logsumexp")
    saves = ("query", "key", "value", "attn_mask", "output", "logsumexp")
    saved_names = "is_causal scale"
    params = ("scale", "is_causal")
    scale: float
    is_causal: bool

    def forward(self, q: Any, k: Any, value: Any, mask: Any) -> Any:
        return words.attend(q, k, value, mask, self.scale, self.is_causal)

    def vjp(
        self, node: Node, g: Any, q: Any, k: Any, value: Any, mask: Any, y: Any, sums: Any
    ) -> Any:
        back = words.attend_back(g[0], g[1], q, k, value, mask, y, sums, self.scale, self.is_causal)
        return (*back, None)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        q, k, value, mask = xs
        p = weigh(q, k, mask, y[1], self.scale, self.is_causal)
        t: Any = None if ts[3] is None else v.broadcast(ts[3], p.shape)
        for term in (
            None if ts[0] is None else v.narrow_matmul(ts[0] * self.scale, v.turned(k)),
            None if ts[1] is None else v.narrow_matmul(q * self.scale, v.turned(ts[1])),
        ):
            if term is not None:
                t = term if t is None else t + term
        out = y[0] * 0 if ts[2] is None else v.narrow_matmul(p, ts[2])
        if t is None:
            return out, y[1] * 0
        t = p * t
        mean = v.reduce_sum(t, (-1,), True)
        return out + v.narrow_matmul(t - p * mean, value), mean

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        q, k, value = draw.real(2, 3, 4), draw.real(2, 5, 4), draw.real(2, 5, 4)
        mask = draw.ints(0, 2, 3, 5) > 0
        mask[:, 0] = True
        yield Attention(0.5, False), q, k, value, None
        yield Attention(0.7, True), q, k, value, None
        yield Attention(0.5, False), q, k, value, mask
        yield Attention(0.5, False), draw.real(2, 1, 3, 2), *[draw.real(2, 1, 4, 2)] * 2, None


def weigh(q: Any, k: Any, mask: Any, sums: Any, scale: float, causal: bool) -> Any:
    """The weights, from the logarithms of their sums."""
    s = v.narrow_matmul(q * scale, v.turned(k))
    if mask is not None:
        seen = mask.dtype in (_BOOL, dtypes.bool_)
        s = v.where(mask, s, -_INF) if seen else s + mask
    if causal:
        s = v.where(_lower(q, s.shape[-2], s.shape[-1]), s, -_INF)
    return v.exp(s - sums)


def _lower(like: Any, rows: int, columns: int) -> Any:
    """Which keys each query may see: those up to its own place."""
    place = v.window(v.iota(like, rows, _INT64), (slice(None), None))
    return v.greater_equal(place, v.iota(like, columns, _INT64))


@implements("attend")
def _attend(q: Any, k: Any, value: Any, mask: Any, scale: float, causal: bool) -> Any:
    return apply(Attention(scale, causal), q, k, value, mask)


@implements("attend_back")
def _attend_back(
    g: Any, gsums: Any, q: Any, k: Any, value: Any, mask: Any, y: Any, sums: Any, scale: float,
    causal: bool,
) -> Any:  # fmt: skip
    p = weigh(q, k, mask, sums, scale, causal)
    shift = v.reduce_sum(g * y, (-1,), True) - gsums
    d = p * (v.narrow_matmul(g, v.turned(value)) - shift)
    gq = v.narrow_matmul(d, k) * scale
    gk = v.narrow_matmul(v.turned(d), q * scale)
    return gq, gk, v.narrow_matmul(v.turned(p), g)


# --- made of other functions ----------------------------------------------------------------------
def _by_parts(
    q: Any, k: Any, value: Any, mask: Any, dropout: float, causal: bool, scale: float
) -> Any:
    kind = dtypes.of(q._array.dtype)
    if v.low_precision(q._array.dtype):
        q, k, value = (x.to(dtypes.float32) for x in (q, k, value))
    root = math.sqrt(scale) if scale >= 0 else math.nan
    if causal:
        if mask is not None:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
                "is_causal=True"
            )
        x = q._array
        mask = wrap(_lower(x, x.shape[-2], k._array.shape[-2]))
    s = (q * root) @ (k.mT * root)
    if mask is not None:
        if mask._array.dtype == _BOOL:
            never = wrap(v.constant(s._array, -_INF, s._array.dtype))
            mask = functions["where"](mask, 0.0, never).to(s.dtype)
        s = s + mask
    if not dtypes.of(s._array.dtype).is_floating_point:
        raise not_implemented("softmax_lastdim_kernel_impl", dtypes.of(s._array.dtype))
    p = apply(shared_op(SafeSoftmax, -1), s)
    if dropout > 0:
        p = drop(p, dropout)
    y = p @ value
    return y if y.dtype is kind else y.to(kind)


def _fuses(q: Any, k: Any, value: Any, mask: Any, dropout: float) -> bool:
    """Whether PyTorch's fused kernel would take these."""
    a, b, c = q._array, k._array, value._array
    if not allowed["fused"] or dropout > 0 or not a.ndim == b.ndim == c.ndim == 4:
        return False
    if a.shape[:2] != b.shape[:2] or b.shape[:3] != c.shape[:3] or a.shape[-1] != b.shape[-1]:
        return False
    if a.shape[-1] != c.shape[-1] or not (a.shape[-2] and b.shape[-2] and a.size):
        return False
    if not dtypes.of(a.dtype).is_floating_point:
        return False
    for x in (a, b, c):
        if type(x).__module__ == "numpy" and x.strides[-1] != x.itemsize and x.shape[-1] > 1:
            return False
    if mask is None:
        return True
    m = mask._array
    if m.ndim not in (2, 4) or ((mask._requires_grad or mask._node is not None) and recording()):
        return False
    whole = (*a.shape[:3], b.shape[-2])
    return all(n in (1, w) for n, w in zip(m.shape[::-1], whole[::-1]))


def _share_heads(q: Any, x: Any) -> Any:
    """Keys or values with each head as often as there are queries that share it."""
    shape = x._array.shape
    times = q._array.shape[-3] // shape[-3]
    if times == 1:
        return x
    wide = x.unsqueeze(-3).expand((*shape[:-2], times, *shape[-2:]))
    return wide.reshape((*shape[:-3], shape[-3] * times, *shape[-2:]))


@function(method=False, free=False, namespace="nn.functional")
def scaled_dot_product_attention(
    query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    """softmax(query keyᵀ · scale + mask) value: for each query the mean of the values, weighed by
    how much its key is like the query.

    Args:
        query: (…, queries, width).
        key: (…, keys, width).
        value: (…, keys, width of the result).
        attn_mask: True where a query may see a key; or numbers that are added to the scores.
        dropout_p: the share of weights that are set to 0.
        is_causal: query i sees keys 0 to i only.
        scale: 1/√width if it is not given.
        enable_gqa: queries may have more heads than keys and values, which share theirs.

    >>> q = k = torch.tensor([[[1., 0.], [0., 1.]]])
    >>> v = torch.tensor([[[1., 2.], [3., 4.]]])
    >>> torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    tensor([[[1.0000, 2.0000],
             [2.3395, 3.3395]]])
    """
    if (other := getattr(type(attn_mask), "_attend", None)) is not None:
        return other(attn_mask, query, key, value, dropout_p, is_causal, scale, enable_gqa)
    given = {"query": query, "key": key, "value": value}
    for position, (name, x) in enumerate(given.items(), 1):
        check_tensor(x, "scaled_dot_product_attention", name, position)
    if attn_mask is not None:
        check_tensor(attn_mask, "scaled_dot_product_attention", "attn_mask", 4)
    a, b, c = query._array, key._array, value._array
    _check_kinds(a, b, c, attn_mask)
    if enable_gqa and a.ndim > 2:
        if a.shape[-3] % b.shape[-3] or a.shape[-3] % c.shape[-3]:
            raise RuntimeError(
                "Number of heads in key and value must divide the number of heads in query"
            )
        key, value = _share_heads(query, key), _share_heads(query, value)
    if scale is None:
        scale = 1 / math.sqrt(a.shape[-1]) if a.shape[-1] else _INF
    if _fuses(query, key, value, attn_mask, dropout_p):
        what = shared_op(Attention, scale, is_causal)
        return apply(what, query, key, value, attn_mask)[0]
    if not allowed["math"]:
        raise RuntimeError("No available kernel. Aborting execution.")
    return _by_parts(query, key, value, attn_mask, dropout_p, is_causal, scale)


def _check_kinds(a: Any, b: Any, c: Any, mask: Any) -> None:
    if min(a.ndim, b.ndim, c.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{a.ndim} key.dim: {b.ndim} and value.dim: {c.ndim} instead."
        )
    if not a.dtype == b.dtype == c.dtype:
        names = [dtypes.c_name(dtypes.of(x.dtype)) for x in (a, b, c)]
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{names[0]} key.dtype: {names[1]} and value.dtype: {names[2]} instead."
        )
    if mask is not None:
        kind = mask._array.dtype
        if kind not in (_BOOL, dtypes.float32.numpy, a.dtype):
            names = [dtypes.c_name(dtypes.of(x)) for x in (kind, a.dtype)]
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
                f"attn_mask.dtype: {names[0]} and  query.dtype: {names[1]} instead."
            )
