"""Normalisation: `layer_norm` and `batch_norm`.

Note [Statistics are outputs]
    Normalising keeps the mean and the inverse deviation for its backward pass. They are outputs of
    the op, with derivatives of their own: so a second differentiation, which finds them among the
    saved values, sees how they depend on the input.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import fused, norms
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import without_histories
from rushlight.arrays.kernels import bound
from rushlight.core import plain_norms
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.checks import (
    check_tensor,
    is_batched,
    not_implemented,
    raw_dtype,
    refuse_grad,
    vmap_levels_of,
)
from rushlight.ops.reduction.family import widen
from rushlight.ops.registry import function, functional, op, shared_op
from rushlight.ops.sample_inputs import Draw
from rushlight.size import Size

_FLOAT32: Final = dtypes.float32.numpy


class Normalise(Op):
    """(x - mean) / deviation over `axes`, then times a weight, plus a bias; see Note [Statistics
    are outputs]. A subclass says how weight and bias lie next to x (`align_weight`)."""

    inputs = ("input", "weight", "bias")
    outputs = ("result", "result1", "result2")
    saves = ("input", "weight", "result1", "result2")
    axes: tuple[int, ...] = ()
    summed: tuple[int, ...] = ()  # the axes over which one weight is used
    eps: float = 0.0

    def count(self, x: Any) -> int:
        return math.prod([x.shape[d] for d in self.axes])

    def align_weight(self, w: Any) -> Any:
        raise NotImplementedError

    def forward(self, x: Any, w: Any, b: Any) -> Any:
        n = self.count(x)
        mean = v.reduce_sum(x, self.axes, True) / n
        z = x - mean
        rstd = 1 / v.sqrt(v.reduce_sum(z * z, self.axes, True) / n + self.eps)
        y = z * rstd
        if w is not None:
            y = y * self.align_weight(w)
        if b is not None:
            y = y + self.align_weight(b)
        return y, mean, rstd

    def vjp(self, node: Node, g: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
        gy, gmean, grstd = g
        z = (x - mean) * rstd
        gx = gw = gb = None
        if node._needs_grad(0):
            n = self.count(x)
            h = gy if w is None else gy * self.align_weight(w)
            c = (rstd * v.reduce_sum(h * z, self.axes, True) + grstd * rstd * rstd) / n
            gx = rstd * h - (rstd * v.reduce_sum(h, self.axes, True) - gmean) / n - z * c
        if node._needs_grad(1):
            gw = self.back(gy * z, node, 1)
        if node._needs_grad(2):
            gb = self.back(gy, node, 2)
        return gx, gw, gb

    def forward_in_float32(self, x: Any, w: Any, b: Any) -> Any:
        """`forward` of low precision: the statistics stay as they are, the result is rounded."""
        y, mean, rstd = self.forward(*[None if t is None else widen(t) for t in (x, w, b)])
        return v.cast(y, x.dtype), mean, rstd

    def vjp_in_float32(self, node: Any, g: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
        """`vjp` of low precision: each gradient is rounded once."""
        wide = (widen(g[0]), g[1], g[2])
        found = self.vjp(node, wide, widen(x), None if w is None else widen(w), mean, rstd)
        kinds = node._input_dtypes
        return tuple([None if y is None else v.cast(y, kinds[i]) for i, y in enumerate(found)])

    def back(self, g: Any, node: Any, i: int) -> Any:
        """A gradient next to x, summed to that of weight or bias."""
        shapes = node._input_shapes
        return v.reshape(v.reduce_sum(g, self.summed, False), shapes[i])

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        x, w, _ = xs
        _, mean, rstd = y
        z = (x - mean) * rstd
        tx = x * 0 if ts[0] is None else ts[0]
        n = self.count(x)
        tmean = v.reduce_sum(tx, self.axes, True) / n
        slope = v.reduce_sum(tx * z, self.axes, True) / n
        tz = rstd * (tx - tmean - z * slope)
        ty = tz if w is None else tz * self.align_weight(w)
        if ts[1] is not None:
            ty = ty + z * self.align_weight(ts[1])
        if ts[2] is not None:
            ty = ty + self.align_weight(ts[2])
        return ty, tmean, -rstd * rstd * slope


@op
class LayerNorm(Normalise):
    """Normalise each sample over its last `width` dimensions; `rank` is that of the input."""

    name = "native_layer_norm"
    params = ("width", "rank", "eps")
    lies = "rows"

    def __init__(self, width: int, rank: int, eps: float) -> None:
        super().__init__()
        self.width = width
        self.rank = rank
        self.eps = eps
        self.axes = tuple(range(-width, 0))
        self.summed = tuple(range(-rank, -width))

    def mover(self, rule: str) -> Any:
        if rule == "forward":
            return norms.layer_norm_kernel(self.width, self.eps)
        return bound(norms.layer_norm_back, self.width)

    def forward(self, x: Any, w: Any, b: Any) -> Any:
        if v.low_precision(x.dtype):
            return self.forward_in_float32(x, w, b)
        quick = norms.layer_norm(self.width, self.eps, x, w, b)
        if quick is None:
            quick = fused.layer_norm(x, w, b, self.width, self.eps)
        return super().forward(x, w, b) if quick is None else quick

    def vjp(self, node: Node, g: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
        if v.low_precision(raw_dtype(x)):
            return self.vjp_in_float32(node, g, x, w, mean, rstd)
        quick = norms.layer_norm_back(self.width, node._needs_grad_mask, g, x, w, mean, rstd)
        if quick is None:
            wants = (node._needs_grad(0), node._needs_grad(1), node._needs_grad(2))
            gy, gmean, grstd = g
            quick = fused.layer_norm_back(gy, gmean, grstd, x, w, mean, rstd, self.width, wants)
        return super().vjp(node, g, x, w, mean, rstd) if quick is None else quick

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        if not flags[0]:
            return None
        if not (flags[1] or flags[2]):  # the batch is one more dimension of samples
            return shared_op(LayerNorm, self.width, self.rank + 1, self.eps), xs
        own = [has_batch_dim or x is None for x, has_batch_dim in zip(xs, flags, strict=True)]
        return (self, xs) if all(own) else None

    def align_weight(self, w: Any) -> Any:
        if w.ndim == self.width:
            return w
        cut = w.ndim - self.width
        return v.reshape(w, (*w.shape[:cut], *(1,) * (self.rank - self.width), *w.shape[cut:]))

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield LayerNorm(1, 2, 1e-5), draw.real(2, 3), draw.real(3), draw.real(3)
        yield LayerNorm(2, 3, 1e-3), draw.real(2, 3, 2), draw.real(3, 2), None
        yield LayerNorm(2, 2, 1e-3), draw.real(3, 2), None, None
        yield LayerNorm(1, 2, 1e-5), draw.real(0, 3), draw.real(3), draw.real(3)


@op
class BatchNorm(Normalise):
    """Normalise each channel (dimension 1 of `rank`) over the batch and all positions."""

    name = "native_batch_norm"
    shown_edges = (0, 1, 2)
    params = ("rank", "eps")
    lies = "channels"

    def __init__(self, rank: int, eps: float) -> None:
        super().__init__()
        self.rank = rank
        self.eps = eps
        self.axes = self.summed = tuple(d for d in range(-rank, 0) if d != 1 - rank)

    def mover(self, rule: str) -> Any:
        if rule == "forward":
            return bound(norms.batch_norm, self.axes, self.eps)
        return bound(norms.batch_norm_back, self.axes)

    def forward(self, x: Any, w: Any, b: Any) -> Any:
        if v.low_precision(x.dtype):
            return self.forward_in_float32(x, w, b)
        quick = norms.batch_norm(self.axes, self.eps, x, w, b)
        return super().forward(x, w, b) if quick is None else quick

    def vjp(self, node: Node, g: Any, x: Any, w: Any, mean: Any, rstd: Any) -> Any:
        if v.low_precision(raw_dtype(x)):
            return self.vjp_in_float32(node, g, x, w, mean, rstd)
        quick = norms.batch_norm_back(self.axes, node._needs_grad_mask, g, x, w, mean, rstd)
        return super().vjp(node, g, x, w, mean, rstd) if quick is None else quick

    def align_weight(self, w: Any) -> Any:
        return align_channels(w, self.rank)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield BatchNorm(2, 1e-5), draw.real(3, 2), draw.real(2), draw.real(2)
        yield BatchNorm(3, 1e-3), draw.real(2, 3, 2), draw.real(3), None
        yield BatchNorm(4, 1e-3), draw.real(2, 2, 1, 2), None, draw.real(2)


def align_channels(w: Any, rank: int) -> Any:
    """A value a channel, in the shape that broadcasts against an input of `rank` dimensions."""
    return v.reshape(w, (*w.shape[:-1], 1, w.shape[-1], *(1,) * (rank - 2)))


@op
class BatchNormEval(Op):
    """Batch normalisation by given statistics: an affine map a channel."""

    name = "batch_norm_eval"
    aten = "native_batch_norm.default"
    shown_edges = (0, 1, 2)
    node = "NativeBatchNormBackward0"
    inputs = ("input", "weight", "bias", "running_mean", "running_var")
    saves = ("input", "weight", "running_mean", "running_var")
    reads: ClassVar = {
        0: ("weight", "running_var"),
        1: ("input", "running_mean", "running_var"),
        3: ("weight", "running_var"),
        4: ("input", "weight", "running_mean", "running_var"),
    }
    params = ("rank", "eps")
    rank: int
    eps: float
    lies = "channels"

    def mover(self, rule: str) -> Any:
        way = norms.channel_norm if rule == "forward" else norms.channel_norm_back
        return bound(way, self.eps)

    def scale(self, var: Any) -> Any:
        return align_channels(1 / v.sqrt(var + self.eps), self.rank)

    def forward(self, x: Any, w: Any, b: Any, mean: Any, var: Any) -> Any:
        if v.low_precision(x.dtype):
            wide = [None if t is None else v.cast(t, _FLOAT32) for t in (x, w, b, mean, var)]
            return v.cast(self.forward(*wide), x.dtype)
        quick = norms.channel_norm(self.eps, x, w, b, mean, var)
        if quick is not None:
            return quick
        one, zero = 1 if w is None else w, 0 if b is None else b
        scale, shift = fused.channel_map(one, zero, mean, var, self.eps)
        return x * align_channels(scale, self.rank) + align_channels(shift, self.rank)

    def vjp(self, node: Any, g: Any, x: Any, w: Any, mean: Any, var: Any) -> Any:
        if v.low_precision(raw_dtype(g)):
            wide = [None if t is None else widen(t) for t in (g, x, w, mean, var)]
            found, kinds = self.vjp(node, *wide), node._input_dtypes
            return tuple([None if y is None else v.cast(y, kinds[i]) for i, y in enumerate(found)])
        quick = norms.channel_norm_back(self.eps, node._needs_grad_mask, g, x, w, mean, var)
        if quick is not None:
            return quick
        gx = gw = gb = gmean = gvar = None
        axes = tuple(d for d in range(-self.rank, 0) if d != 1 - self.rank)
        if node._needs_grad(0) or node._needs_grad(3) or node._needs_grad(4):
            gx = g * self.scale(var)
            if w is not None:
                gx = gx * align_channels(w, self.rank)
        if node._needs_grad(1):
            z = (x - align_channels(mean, self.rank)) * self.scale(var)
            gw = v.reduce_sum(g * z, axes, False)
        if node._needs_grad(2):
            gb = v.reduce_sum(g, axes, False)
        if node._needs_grad(3):
            gmean = -v.reduce_sum(gx, axes, False)
        if node._needs_grad(4):
            spread = v.reduce_sum(gx * (x - align_channels(mean, self.rank)), axes, False)
            gvar = -0.5 * spread / (var + self.eps)
        return gx, gw, gb, gmean, gvar

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        x, w, _, mean, var = xs
        out = y * 0
        scale = self.scale(var) if w is None else self.scale(var) * align_channels(w, self.rank)
        if ts[0] is not None:
            out = out + ts[0] * scale
        if ts[3] is not None:
            out = out - align_channels(ts[3], self.rank) * scale
        if ts[4] is not None:
            share = align_channels(ts[4] / (var + self.eps), self.rank)
            out = out - 0.5 * (x - align_channels(mean, self.rank)) * scale * share
        if ts[1] is not None:
            z = (x - align_channels(mean, self.rank)) * self.scale(var)
            out = out + z * align_channels(ts[1], self.rank)
        if ts[2] is not None:
            out = out + align_channels(ts[2], self.rank)
        return out

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield (
            BatchNormEval(3, 1e-5), draw.real(2, 3, 2), draw.real(3), draw.real(3),
            draw.real(3), draw.positive(3),
        )  # fmt: skip
        yield BatchNormEval(2, 1e-5), draw.real(0, 2), None, None, draw.real(2), draw.positive(2)


# --- normalisation --------------------------------------------------------------------------------
def _layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    check_tensor(input, "layer_norm")
    if not isinstance(normalized_shape, (tuple, list, Size)):
        raise TypeError(
            "layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, not "
            f"{type(normalized_shape).__name__}"
        )
    want = tuple(int(n) for n in normalized_shape)
    if not want:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            "element, but got normalized_shape = []"
        )
    x = input._array
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and t._array.shape != want:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(t._array.shape)} and normalized_shape = {list(want)}"
            )
    if x.ndim < len(want) or x.shape[x.ndim - len(want) :] != want:
        inner = ", ".join(str(n) for n in want)
        raise RuntimeError(
            f"Given normalized_shape={list(want)}, expected input with shape [*, {inner}], but got "
            f"input of size{list(x.shape)}"
        )
    _check_kinds("LayerNormKernelImpl", x, weight, bias)
    return apply(shared_op(LayerNorm, len(want), x.ndim, eps), input, weight, bias)


def _check_kinds(kernel: str, x: Any, *others: Any) -> None:
    kind = dtypes.of(x.dtype)
    if not kind.is_floating_point:
        raise not_implemented(kernel, kind)
    for t in others:
        if t is not None and t._array.dtype != x.dtype:
            low = v.low_precision(x.dtype)
            if low and t._array.dtype == _FLOAT32:
                continue
            want = "Float" if low else kind.scalar_type
            raise RuntimeError(f"mixed dtype (CPU): expect parameter to have scalar type of {want}")


@functional(settles=True)
def layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    """Each sample, normalised over its last dimensions to mean 0 and variance 1, then times
    `weight` plus `bias`.

    >>> torch.nn.functional.layer_norm(torch.tensor([[1., 3.]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    return _layer_norm(input, normalized_shape, weight, bias, eps)[0]


@function(name="layer_norm", method=False)
def _free_layer_norm(
    input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Any:  # fmt: skip
    """`nn.functional.layer_norm`.

    >>> torch.layer_norm(torch.tensor([[1., 3.]]), (2,))
    tensor([[-1.0000,  1.0000]])
    """
    return _layer_norm(input, normalized_shape, weight, bias, eps)[0]


@function(method=False, returns="tuple[Tensor, Tensor, Tensor]")
def native_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """`layer_norm`, with the mean and the inverse of the deviation.

    >>> torch.native_layer_norm(torch.tensor([[1., 3.]]), (2,), None, None, 0.)[1]
    tensor([[2.]])
    """
    y, mean, rstd = _layer_norm(input, normalized_shape, weight, bias, eps)
    mean, rstd = mean.detach(), rstd.detach()  # PyTorch gives these two no derivative
    kind = dtypes.of((input if weight is None else weight)._array.dtype)
    return y, mean.to(kind), rstd.to(kind)


_UNBATCHED: Final = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be "
    "updated in place, were not batched.\nIf you are using a module and do not need eval mode, "
    "please set `track_running_stats` to be False.If you are using a prebuilt module and do not "
    "need eval mode, please see the functorch website for resources on how to patch your module to "
    "work with vmap"
)


def normalise_batch(
    input: Any, mean: Any, var: Any, weight: Any, bias: Any, training: bool,
    momentum: float, eps: float,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """The batch normalised, and its mean and inverse deviation (None if given ones were used)."""
    x = input._array
    if x.ndim < 2 and x.size == 0:
        return input.clone(), None, None
    if x.ndim < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(x.ndim, 1)}, "
            f"{max(x.ndim, 1) - 1}], but got 1)"
        )
    channels = x.shape[1]
    if not training:
        for name, t in (("running_mean", mean), ("running_var", var)):
            if t is None:
                raise RuntimeError(f"{name} must be defined in evaluation mode")
    for name, t in (
        ("running_mean", mean),
        ("running_var", var),
        ("weight", weight),
        ("bias", bias),
    ):
        if t is not None and t._array.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {t._array.size}")
    refuse_grad("native_batch_norm", running_mean=mean, running_var=var)
    _check_kinds("batch_norm", x, weight, bias)
    if training and is_batched(input):
        for t in (mean, var):
            if t is not None and not vmap_levels_of(x) <= vmap_levels_of(t._array):
                raise RuntimeError(_UNBATCHED)
    if not training:
        y = apply(shared_op(BatchNormEval, x.ndim, eps), input, weight, bias, mean, var)
        return y, None, None
    what = shared_op(BatchNorm, x.ndim, eps)
    y, batch_mean, batch_rstd = apply(what, input, weight, bias)
    n = what.count(x)
    for running, rule, statistic, numbers in (
        (mean, fused.follow_mean, batch_mean, ()),
        (var, fused.follow_var, batch_rstd, (eps, n / (n - 1) if n > 1 else math.inf)),
    ):
        if running is not None:
            # in a batch the statistic may have a history inside
            value = without_histories(v.reshape(statistic._array, (channels,)))
            fused.follow(running._array, rule, value, 1 - momentum, momentum, *numbers)
            running._storage.written()
    return y, batch_mean, batch_rstd


@functional(
    settles=True, quick=plain_norms.batch_norm, told=functools.partial(shared_op, BatchNorm)
)
def batch_norm(
    input: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    """Each channel (dimension 1), normalised over the batch (in training) or by the running
    statistics, then times `weight` plus `bias`.

    >>> x = torch.tensor([[1., 10.], [3., 30.]])
    >>> torch.nn.functional.batch_norm(x, None, None, training=True)
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """
    if training:
        shape = input._array.shape
        each = shape[0] if shape else 1
        for n in shape[2:]:
            each *= n
        if each == 1:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{Size(shape)}\nA batch of one has no spread: take larger batches "
                "(`drop_last=True` in the DataLoader), or call `model.eval()` to use the running "
                "statistics."
            )
    if training and eps <= 0.0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return normalise_batch(input, running_mean, running_var, weight, bias, training, momentum, eps)[
        0
    ]


@function(name="batch_norm", method=False)
def _free_batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
    momentum: float, eps: float, cudnn_enabled: bool = False,
) -> Any:  # fmt: skip
    """`nn.functional.batch_norm`, with its arguments in another order.

    >>> x = torch.tensor([[1.], [3.]])
    >>> torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)
    tensor([[-1.0000],
            [ 1.0000]])
    """
    return normalise_batch(input, running_mean, running_var, weight, bias, training, momentum, eps)[
        0
    ]


@function(method=False, returns="tuple[Tensor, Tensor, Tensor]")
def native_batch_norm(
    input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool,
    momentum: float, eps: float,
) -> Any:  # fmt: skip
    """`batch_norm`, with the mean and the inverse of the deviation of each channel; of none if the
    running statistics were used.

    >>> x = torch.tensor([[1.], [3.]])
    >>> torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0.)[1]
    tensor([2.])
    """
    y, mean, rstd = normalise_batch(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    if mean is None:
        mean = rstd = input.new_empty(0)
    kind = dtypes.of((input if weight is None else weight)._array.dtype)
    return y, *[t.detach().to(kind).reshape(-1) for t in (mean, rstd)]
