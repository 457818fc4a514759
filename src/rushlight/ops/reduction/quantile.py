"""Quantiles: between which ranks they fall, and how much of each."""

from __future__ import annotations

import math
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.arrays.host import asarray, from_host
from rushlight.core.graph import Node, TensorBase, wrap
from rushlight.core.observer import observer
from rushlight.ops.checks import check_tensor, raw_dtype
from rushlight.ops.numbers import Operand
from rushlight.ops.reduction.family import Fold, declare, dims_of, fold, unfold
from rushlight.ops.registry import op

_INT64: Final = dtypes.int64.numpy
_WAYS: Final = ("linear", "lower", "higher", "midpoint", "nearest")


@op
class Quantile(Fold):
    """The quantiles `q` (0-d, or 1-d: then its axis comes first) over `dims`.

    Its node has the name of the last step by which PyTorch computes it.
    """

    name, node = "quantile", "SqueezeBackward4"
    inputs, saves = ("self", "q"), ("self", "q")
    params = ("dims", "keepdim", "interpolation", "skip")
    lies = ""  # the axis of `q` is moved to the front

    def __init__(
        self, dims: tuple[int, ...] | None, keepdim: bool, interpolation: str, skip: bool
    ) -> None:
        super().__init__(dims, keepdim)
        self.interpolation = interpolation
        self.skip = skip  # pass over NaN

    def ranks(self, z: Any, q: Any) -> Any:
        """Where in the sorted last axis of `z` each of `q` falls: shape (..., number of q)."""
        n = z.shape[-1]
        line = v.reshape(q, (math.prod(q.shape),))
        if self.skip:
            numbers = v.cast(v.reduce_sum(v.equal(z, z), (-1,), True), raw_dtype(z))
            r = v.where(v.greater(numbers, 0), line * (numbers - 1), 0)
        else:
            r = v.where(v.reduce_any(v.isnan(z), (-1,), True), n - 1, line * (n - 1))
        r = v.broadcast(r, (*z.shape[:-1], math.prod(q.shape)))
        turn = {"lower": v.floor, "higher": v.ceil, "nearest": v.rint}.get(self.interpolation)
        return r if turn is None else turn(r)

    def parts(self, z: Any, q: Any) -> tuple[Any, Any, Any, Any]:
        """The places in `z` of the element below and of that above, the step from the one to the
        other by which the quantile lies, and how fast that grows with `q` (None: not at all)."""
        r = self.ranks(z, q)
        order = v.sort(z, -1, False, True)
        below = v.gather(order, -1, v.cast(v.floor(r), _INT64))
        above = v.gather(order, -1, v.cast(v.ceil(r), _INT64))
        if self.interpolation == "midpoint":
            return below, above, 0.5, None
        if self.interpolation != "linear":
            return below, above, 0.0, None
        if self.skip:
            speed = v.cast(v.reduce_sum(v.equal(z, z), (-1,), True), raw_dtype(z)) - 1
        else:
            speed = z.shape[-1] - 1
        return below, above, r - v.floor(r), speed

    def reduced_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if self.keepdim:
            return self.expanded(None, shape)
        if self.dims is None:
            return ()
        gone = [d % len(shape) for d in self.dims]
        return tuple([n for d, n in enumerate(shape) if d not in gone])

    def arrange(self, y: Any, q: Any, shape: tuple[int, ...]) -> Any:
        """(..., number of q) as PyTorch lays it out: the axis of `q` in front, if it has one."""
        if q.ndim == 0:
            return v.reshape(y, self.reduced_shape(shape))
        y = v.permute(y, (y.ndim - 1, *range(y.ndim - 1)))
        return v.reshape(y, (math.prod(q.shape), *self.reduced_shape(shape)))

    def unarrange(self, g: Any, q: Any, z: Any) -> Any:
        """The inverse of `arrange`."""
        rest = z.shape[:-1]
        if q.ndim == 0:
            return v.reshape(g, (*rest, 1))
        return v.permute(v.reshape(g, (math.prod(q.shape), *rest)), (*range(1, len(rest) + 1), 0))

    def forward(self, x: Any, q: Any) -> Any:
        z = fold(x, self.dims)
        below, above, w, _ = self.parts(z, q)
        low, high = v.gather(z, -1, below), v.gather(z, -1, above)
        step = high - low
        # from the nearer end, as PyTorch's lerp does
        y = v.where(v.greater(0.5, w), low + w * step, high - step * (1 - w))
        return self.arrange(v.where(v.equal(low, high), low, y), q, x.shape)

    def vjp(self, node: Node, g: Any, x: Any, q: Any) -> Any:
        kinds = node._input_dtypes
        assert kinds is not None
        z = fold(x, self.dims)
        below, above, w, speed = self.parts(z, q)
        g = self.unarrange(g, q, z)
        for_x = for_q = None
        if node._needs_grad(0):
            zeros = v.full(g, z.shape, 0, kinds[0])
            lower = v.scatter_add(zeros, -1, below, g * (1 - w))
            for_x = unfold(v.scatter_add(lower, -1, above, g * w), self.dims, x.shape)
        if node._needs_grad(1) and speed is not None:
            grown = g * (v.gather(z, -1, above) - v.gather(z, -1, below)) * speed
            for_q = v.reshape(v.reduce_sum(grown, tuple(range(-grown.ndim, -1)), False), q.shape)
        return for_x, for_q

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        x, q = xs
        z = fold(x, self.dims)
        below, above, w, speed = self.parts(z, q)
        moved: Any = None
        if ts[0] is not None:
            t = fold(ts[0], self.dims)
            moved = v.gather(t, -1, below) * (1 - w) + v.gather(t, -1, above) * w
        if ts[1] is not None and speed is not None:
            step = (v.gather(z, -1, above) - v.gather(z, -1, below)) * speed
            step = step * v.reshape(ts[1], (math.prod(q.shape),))
            moved = step if moved is None else moved + step
        return y * 0 if moved is None else self.arrange(moved, q, x.shape)

    @staticmethod
    def samples(draw: Any) -> Any:
        for way in _WAYS:
            yield Quantile((-1,), False, way, False), draw.real(2, 4), draw.probability()
        yield Quantile(None, False, "linear", False), draw.real(2, 3), draw.probability(2)
        yield Quantile((-2,), True, "linear", True), draw.real(3, 2), draw.probability(2)


def _declare_quantile(name: str, skip: bool, text: str, example: str, gives: str) -> None:
    """The function `quantile` or `nanquantile`."""

    def fn(
        input: Any, q: Operand, dim: int | None = None, keepdim: bool = False, *,
        interpolation: str = "linear",
    ) -> Any:  # fmt: skip
        array = check_tensor(input, name)
        if array.size == 0:
            raise RuntimeError(f"{name}() input tensor must be non-empty")
        if array.dtype not in (dtypes.float32.numpy, dtypes.float64.numpy):
            raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
        if isinstance(q, TensorBase):
            if q._array.ndim > 1:
                raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
            if q._array.dtype != array.dtype:
                raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
            observer.keep_nothing()  # its values decide: see Note [What may be kept]
            values = bottom(q._array)
            if not bool(((values >= 0) & (values <= 1)).all()):
                raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
        else:
            if not 0 <= q <= 1:
                raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
            q = wrap(from_host(asarray(q, array.dtype), array))
        if interpolation not in _WAYS:
            raise RuntimeError(
                f"{name}() interpolation must be one of linear, lower, higher, midpoint or "
                f"nearest, but got {interpolation}"
            )
        return Quantile(dims_of(name, dim, array.ndim), keepdim, interpolation, skip), (input, q)

    declare(fn, name, text, f"torch.{name}({example})", gives, out=True)


_declare_quantile(
    "quantile", False, "The values below which a share `q` of the elements lies.",
    "torch.tensor([1., 2., 3., 4.]), 0.5", "tensor(2.5000)",
)  # fmt: skip
_declare_quantile(
    "nanquantile", True, "The quantiles of the elements that are not NaN.",
    "torch.tensor([1., float('nan'), 3.]), 0.5", "tensor(2.)",
)  # fmt: skip
