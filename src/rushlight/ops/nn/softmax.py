"""Functions over one dimension that are one node each: softmax and its kin, `glu`, likeness.

Who needs them in a formula writes the formula; these exist for their stable arithmetic and because
PyTorch's graphs show them as one node.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import without_histories
from rushlight.core.elementwise import result_dtype
from rushlight.core.graph import Node, Op, TensorBase
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, not_implemented, one_dim
from rushlight.ops.each_member import batch_leading
from rushlight.ops.numbers import Operand
from rushlight.ops.out import write_out
from rushlight.ops.pointwise.family import Through
from rushlight.ops.reduction.family import narrow, widen
from rushlight.ops.registry import describe, function, functional, functions, op, shared_op, variant
from rushlight.ops.sample_inputs import drawn
from rushlight.ops.view.expand import broadcast_shape
from rushlight.ops.warned import warn_caller

_FLOAT32: Final = dtypes.float32.numpy


class Along(Op):
    """An op along one dimension; a 0-d input has none, and `dims` is then empty."""

    params = ("dim",)

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim
        self.dims: tuple[int, ...] = () if dim is None else (dim,)

    def forward(self, x: Any) -> Any:
        rule: Any = self
        if x.size == 0:
            return x * 1
        if x.dtype.itemsize < 4:
            return v.cast(rule.compute(v.cast(x, _FLOAT32)), x.dtype)
        return rule.compute(x)


@op
class Softmax(Through, Along):
    """exp(x), divided by its sum along a dimension."""

    name = "softmax"
    aten = "_softmax.default"
    profile_name = "softmax"
    saved_names = "dim"
    saves = ("result",)
    vmap_rule = batch_leading
    lies = "rows"

    def compute(self, x: Any) -> Any:
        e = v.exp(x - v.reduce_max(x, self.dims, True))
        return e / v.reduce_sum(e, self.dims, True)

    def through(self, g: Any, y: Any) -> Any:
        """The Jacobian, which is its own transpose."""
        w = widen(y)
        h = widen(g) * w
        return narrow(h - w * v.reduce_sum(h, self.dims, True), y)

    samples = drawn(real=[(-1, (2, 3)), (-2, (2, 3)), (-1, (2, 0)), (None, ())])


@op
class SafeSoftmax(Softmax):
    """A softmax whose result is 0 where a row has nothing but -infinity."""

    name = "safe_softmax"
    aten = "_safe_softmax.default"
    profile_name = "_safe_softmax"

    def compute(self, x: Any) -> Any:
        top = v.reduce_max(x, self.dims, True)
        e = v.exp(x - v.where(v.equal(top, -math.inf), 0, top))
        total = v.reduce_sum(e, self.dims, True)
        return e / v.where(v.equal(total, 0), 1, total)

    samples = drawn(real=[(-1, (2, 3)), (-2, (2, 3)), (-1, (2, 0)), (None, ())])


@op
class LogSoftmax(Along):
    """x less the logarithm of the sum of exp(x) along a dimension."""

    name = "log_softmax"
    aten = "_log_softmax.default"
    profile_name = "log_softmax"
    saved_names = "dim"
    saves = ("result",)
    vmap_rule = batch_leading
    lies = "rows"

    def compute(self, x: Any) -> Any:
        z = x - v.reduce_max(x, self.dims, True)
        return z - v.log(v.reduce_sum(v.exp(z), self.dims, True))

    def vjp(self, node: Node, g: Any, y: Any) -> Any:
        w = widen(g)
        return (narrow(w - v.exp(widen(y)) * v.reduce_sum(w, self.dims, True), g),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = widen(ts[0])
        return narrow(t - v.reduce_sum(v.exp(widen(y)) * t, self.dims, True), y)

    samples = drawn(real=[(-1, (2, 3)), (-2, (2, 3)), (-1, (2, 0)), (None, ())])


def apply_along(cls: Any, title: str, input: Any, dim: Any, dtype: Any) -> Any:
    """Apply softmax or log_softmax, after a cast if `dtype` is given."""
    if not isinstance(input, TensorBase):
        check_tensor(input, title)
    rank = input._array.ndim
    at = dim if type(dim) is int and -rank <= dim < 0 else one_dim(dim, rank)
    if dtype is not None:
        input = input.to(dtype)
    if input._array.dtype.kind not in "fV":
        last = "_lastdim" if at == -1 else ""
        raise not_implemented(f"{title}{last}_kernel_impl", input._array.dtype)
    return apply(_op_along(cls, at if rank else None), input)


@functools.lru_cache(maxsize=64)
def _op_along(cls: Any, dim: int | None) -> Any:
    return cls(dim)


def _implicit(title: str, input: Any, dim: Any, level: int) -> Any:
    """The dimension that older code left out: PyTorch still guesses, and warns."""
    if dim is not None:
        return dim
    warn_caller(
        f"Implicit dimension choice for {title} has been deprecated. Change the call to include "
        "dim=X as an argument.",
    )
    return 0 if input._array.ndim in (0, 1, 3) else 1


def _export(cls: Any, text: str, example: str, shown: str, half: str) -> None:
    """Make `torch.f` (and the method), and `nn.functional.f`, where `dim` may be left out."""
    name = cls.name

    def free(input: Any, dim: Any, dtype: Any = None, *, out: Any = None) -> Any:
        if out is None:
            return apply_along(cls, name, input, dim, dtype)
        return write_out(name, (input,), out, lambda: apply_along(cls, name, input, dim, dtype))

    def guessing(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        return apply_along(cls, name, input, _implicit(name, input, dim, _stacklevel), dtype)

    doc = describe(text, f"torch.{name}(torch.tensor([{example}]), dim=0)", shown)
    function(settles="rank")(variant(free, name, doc))
    call = f"torch.nn.functional.{name}(torch.tensor([0., 0.]), dim=0)"
    functional(settles="rank")(
        variant(guessing, name, describe(text, call, f"tensor([{half}, {half}])"))
    )


_export(
    Softmax, "exp(input), divided by its sum along `dim`.", "0., 0., 0., 0.",
    "tensor([0.2500, 0.2500, 0.2500, 0.2500])", "0.5000",
)  # fmt: skip
_export(
    LogSoftmax, "log(softmax(input)), without rounding small probabilities to 0.", "0., 0.",
    "tensor([-0.6931, -0.6931])", "-0.6931",
)  # fmt: skip


@function(method=False)
def _safe_softmax(input: Any, dim: int, dtype: Any = None) -> Any:
    """`softmax`, and zeros where all elements are -inf.

    >>> torch._safe_softmax(torch.tensor([-torch.inf, -torch.inf]), 0)
    tensor([0., 0.])
    """
    return apply_along(SafeSoftmax, "softmax", input, dim, dtype)


@functional()
def softmin(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """softmax(-input).

    >>> torch.nn.functional.softmin(torch.tensor([0., 0.]), dim=0)
    tensor([0.5000, 0.5000])
    """
    return apply_along(
        Softmax, "softmax", -input, _implicit("softmin", input, dim, _stacklevel), dtype
    )


@functional()
def gumbel_softmax(
    logits: Any, tau: Operand = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Any:
    """A differentiable draw from the categories with these logits: softmax of the logits plus
    Gumbel noise. With `hard` the result is one-hot, and the gradient is that of the soft draw.

    Args:
        tau: the temperature: the lower, the nearer to one-hot vectors.

    >>> torch.nn.functional.gumbel_softmax(torch.tensor([1., 2.]), hard=True).sum()
    tensor(1.)
    """
    if eps != 1e-10:
        warn_caller("`eps` parameter is deprecated and has no effect.")
    kind = dtypes.contiguous_format
    noise = functions["empty_like"](logits, memory_format=kind).exponential_()
    soft = apply_along(Softmax, "softmax", (logits - noise.log()) / tau, dim, None)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = soft.detach() * 0
    return one_hot.scatter_(dim, index, 1.0) - soft.detach() + soft


# --- glu ------------------------------------------------------------------------------------------
@op
class Glu(Op):
    """The first half along a dimension times the sigmoid of the second."""

    name = "glu"
    saves = ("self",)
    params = ("dim",)
    dim: int
    vmap_rule = batch_leading

    def halves(self, x: Any) -> tuple[Any, Any]:
        n = x.shape[self.dim] // 2
        rest = (slice(None),) * (-1 - self.dim)
        return v.window(x, (..., slice(0, n), *rest)), v.window(x, (..., slice(n, 2 * n), *rest))

    def forward(self, x: Any) -> Any:
        a, b = self.halves(x)
        return a * v.special(b, "expit")

    def vjp(self, node: Node, g: Any, x: Any) -> Any:
        a, b = self.halves(x)
        s = v.special(b, "expit")
        return (v.concat([g * s, g * a * s * (1 - s)], self.dim),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        a, b = self.halves(xs[0])
        ta, tb = self.halves(ts[0])
        s = v.special(b, "expit")
        return ta * s + tb * a * s * (1 - s)

    samples = drawn(real=[(-1, (2, 4)), (-2, (2, 4)), (-1, (2, 0))])


@functional()
def glu(input: Any, dim: int = -1) -> Any:
    """The first half of `input` along `dim` times the sigmoid of the second half.

    >>> torch.nn.functional.glu(torch.tensor([1., 2., 0., 0.]))
    tensor([0.5000, 1.0000])
    """
    x = input._array
    if x.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    at = one_dim(dim, x.ndim)
    if x.shape[at] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {at % x.ndim} is size {x.shape[at]}"
        )
    kind = dtypes.of(x.dtype)
    if not kind.is_floating_point:
        raise not_implemented("glu_cpu", kind)
    return apply(shared_op(Glu, at), input)


# --- likeness -------------------------------------------------------------------------------------
@functional(settles=True)
def normalize(input: Any, p: Any = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """input divided by its norm along `dim`, or by `eps` where that is larger.

    >>> torch.nn.functional.normalize(torch.tensor([[3., 4.]]))
    tensor([[0.6000, 0.8000]])
    """
    kind = dtypes.of(input._array.dtype)
    if not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. "
            f"Got {kind.scalar_type}"
        )
    scale = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return write_out("normalize", (input,), out, lambda: input / scale)


@function(method=False, namespace="nn.functional")
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between two vectors along `dim`.

    >>> torch.cosine_similarity(torch.tensor([[3., 4.]]), torch.tensor([[4., 3.]]))
    tensor([0.9600])
    """
    common = result_dtype((x1, x2))
    if not common.is_floating_point:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {common.scalar_type}"
        )
    x1, x2 = (x if x._array.dtype == common.numpy else x.to(common) for x in (x1, x2))
    if x1._array.shape != x2._array.shape:
        shape = broadcast_shape(x1._array.shape, x2._array.shape)
        x1, x2 = x1.expand(shape), x2.expand(shape)
    return (x1 / _length(x1, dim, eps) * (x2 / _length(x2, dim, eps))).sum(dim)


def _length(x: Any, dim: int, eps: float) -> Any:
    """The norm, at least `eps`. The gradient is the norm's own even where `eps` was put."""
    n = x.norm(2, dim, keepdim=True).clone()
    raw = without_histories(n._array)
    v.overwrite(raw, v.maximum(raw, eps))
    return n


@function(method=False, namespace="nn.functional")
def pairwise_distance(
    x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Any:
    """The p-norm of x1 - x2 + eps over the last dimension.

    >>> torch.pairwise_distance(torch.tensor([[3., 4.]]), torch.zeros(1, 2))
    tensor([5.0000])
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)
