"""Padding: a border of a constant, or of the tensor's own elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight.arrays import kernels
from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.ops.apply import run
from rushlight.ops.checks import check_tensor, ints
from rushlight.ops.creation.fill import number_for
from rushlight.ops.each_member import batch_leading
from rushlight.ops.numbers import Number
from rushlight.ops.registry import function, functional, implements, op
from rushlight.ops.sample_inputs import Draw, drawn


def axis_region(x: Any, dim: int, start: int, stop: int) -> Any:
    """A region of one axis (a negative int)."""
    return v.window(x, (..., slice(start, stop)) + (v.ALL,) * (-dim - 1))


def pad_by(x: Any, pad: tuple[int, ...], value: Any) -> Any:
    """`value` around an array: `pad` says how many (before, after) from the last axis on; negative
    numbers cut off."""
    if not pad:
        return v.copy(x)
    widths = [(0, 0)] * x.ndim
    key: list[Any] = [v.ALL] * x.ndim
    for k in range(len(pad) // 2):
        before, after = pad[2 * k], pad[2 * k + 1]
        n = x.shape[-1 - k]
        widths[-1 - k] = (max(before, 0), max(after, 0))
        key[-1 - k] = slice(max(-before, 0), n + min(after, 0))
    if any(p < 0 for p in pad):
        x = v.window(x, tuple(key))
    return v.pad(x, tuple(widths), value)


@op
class ConstantPadNd(Op):
    """A border of one value."""

    name, params = "constant_pad_nd", ("pad", "value")
    saved_names = "pad"
    pad: tuple[int, ...]
    value: Any = 0
    vmap_rule = batch_leading
    lies = "channels"

    def forward(self, x: Any) -> Any:
        return pad_by(x, self.pad, self.value)

    def mover(self, rule: str) -> Any:
        if rule == "forward":
            return kernels.bound(kernels.padded, self.pad, self.value)
        return kernels.bound(kernels.padded, tuple([-p for p in self.pad]), 0)

    def vjp(self, node: Node, g: Any) -> Any:
        return (pad_by(g, tuple([-p for p in self.pad]), 0),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return pad_by(ts[0], self.pad, 0)

    samples = drawn(
        real=[((1, 2), 3.0, (2, 3)), ((-1, 1, 2, -1), (3, 3)), ((), ()), ((1, 1), (2, 0))],
        complex=[((1, 0), 1j, (2,))],
    )


class Border(Linear):
    """A border of the tensor's own elements: axis by axis, from the last.

    `before(x, dim, n)` and `after(x, dim, n)` give the `n` elements to put there; `fold_before`
    and `fold_after` add a gradient of those onto the gradient of the middle.
    """

    params = ("padding",)
    padding: tuple[int, ...]
    margin: ClassVar[int]  # which border that is to `codegen.margins`
    cuts_first: ClassVar[bool] = False  # whether negative padding cuts before the rest looks
    lies = "channels"

    def sides(self) -> list[tuple[int, int, int]]:
        """(axis, before, after) for each padded axis."""
        p = self.padding
        return [(-1 - k, p[2 * k], p[2 * k + 1]) for k in range(len(p) // 2)]

    def mover(self, rule: str) -> Any:
        if rule != "forward":
            return None
        return kernels.bound(kernels.margined, self.margin, self.padding)

    def forward(self, x: Any) -> Any:
        rule: Any = self
        for dim, before, after in self.sides():
            if self.cuts_first:
                x = axis_region(x, dim, max(-before, 0), x.shape[dim] + min(after, 0))
            n = x.shape[dim]
            parts = [x]
            if before > 0:
                parts.insert(0, rule.before(x, dim, before, n))
            if after > 0:
                parts.append(rule.after(x, dim, after, n))
            if len(parts) > 1:
                x = v.concat(parts, dim)
            if not self.cuts_first and (before < 0 or after < 0):
                x = axis_region(x, dim, max(-before, 0), x.shape[dim] + min(after, 0))
        return v.laid_out(x, None) if min(self.padding) <= 0 else x

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        made = kernels.unmargined(self.margin, self.padding, shape, g)
        if made is not None:
            return made
        rule: Any = self
        for dim, before, after in reversed(self.sides()):
            n = shape[dim]
            lost = max(-before, 0), max(-after, 0)
            if self.cuts_first:
                n -= sum(lost)
            elif any(lost):
                g = pad_at(g, dim, *lost)
            first, second = max(before, 0), max(after, 0)
            middle = axis_region(g, dim, first, first + n)
            if first:
                middle = middle + rule.fold_before(axis_region(g, dim, 0, first), dim, first, n)
            if second:
                rest = axis_region(g, dim, first + n, first + n + second)
                middle = middle + rule.fold_after(rest, dim, second, n)
            g = pad_at(middle, dim, *lost) if self.cuts_first and any(lost) else middle
        return g


def pad_at(x: Any, dim: int, before: int, after: int) -> Any:
    """Zeros before and after one axis."""
    widths = [(0, 0)] * x.ndim
    widths[dim] = (before, after)
    return v.pad(x, tuple(widths), 0)


class Reflect(Border):
    """A border that mirrors the tensor, without repeating its edge."""

    margin = 0

    def before(self, x: Any, dim: int, k: int, n: int) -> Any:
        return v.flip(axis_region(x, dim, 1, k + 1), (dim,))

    def after(self, x: Any, dim: int, k: int, n: int) -> Any:
        return v.flip(axis_region(x, dim, n - 1 - k, n - 1), (dim,))

    def fold_before(self, g: Any, dim: int, k: int, n: int) -> Any:
        return pad_at(v.flip(g, (dim,)), dim, 1, n - 1 - k)

    def fold_after(self, g: Any, dim: int, k: int, n: int) -> Any:
        return pad_at(v.flip(g, (dim,)), dim, n - 1 - k, 1)


class Replicate(Border):
    """A border that repeats the tensor's edge."""

    margin = 1

    def before(self, x: Any, dim: int, k: int, n: int) -> Any:
        return _spread(axis_region(x, dim, 0, 1), dim, k)

    def after(self, x: Any, dim: int, k: int, n: int) -> Any:
        return _spread(axis_region(x, dim, n - 1, n), dim, k)

    def fold_before(self, g: Any, dim: int, k: int, n: int) -> Any:
        return pad_at(v.reduce_sum(g, (dim,), True), dim, 0, n - 1)

    def fold_after(self, g: Any, dim: int, k: int, n: int) -> Any:
        return pad_at(v.reduce_sum(g, (dim,), True), dim, n - 1, 0)


def _spread(x: Any, dim: int, k: int) -> Any:
    shape = list(x.shape)
    shape[dim] = k
    return v.broadcast(x, tuple(shape))


@op
class PadCircular(Border):
    """A border that goes on at the other end."""

    name, cuts_first, margin = "pad_circular", True, 2
    aten = None
    lies = "rows"

    def before(self, x: Any, dim: int, k: int, n: int) -> Any:
        return axis_region(x, dim, n - k, n)

    def after(self, x: Any, dim: int, k: int, n: int) -> Any:
        return axis_region(x, dim, 0, k)

    def fold_before(self, g: Any, dim: int, k: int, n: int) -> Any:
        return pad_at(g, dim, n - k, 0)

    def fold_after(self, g: Any, dim: int, k: int, n: int) -> Any:
        return pad_at(g, dim, 0, n - k)

    samples = drawn(real=[((1, 2), (2, 3)), ((2, -1, 0, 1), (3, 3))])


def _pad_ops(base: Any, start: str, *cases: tuple[Any, ...]) -> tuple[Any, ...]:
    """Ops for one, two and three axes, which PyTorch's nodes tell apart: `cases` has for each of
    them paddings, and the shapes of samples."""

    def make(n: int, *samples: Any) -> Any:
        class Made(base):  # type: ignore[misc]  # the base is a value
            name, node = f"{start.lower()}_pad{n}d", f"{start}Pad{n}DBackward0"

            @staticmethod
            def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
                for kind, padding, shape in samples:
                    yield Made(padding), getattr(draw, kind)(*shape)

        Made.__doc__ = f"`{base.__name__}` of {('one axis', 'two axes', 'three axes')[n - 1]}."
        Made.__name__ = Made.__qualname__ = f"{start}Pad{n}d"
        return op(Made)

    return tuple([make(n, *samples) for n, samples in enumerate(cases, 1)])


_MODES: Final[dict[str, tuple[Any, ...]]] = {
    "reflect": _pad_ops(
        Reflect, "Reflection",
        (("real", (1, 2), (2, 4)), ("complex", (-1, 1), (2, 4))),
        (("real", (1, 2, 1, 0), (2, 3, 4)),),
        (("real", (1, 1, 1, 0, 0, 1), (1, 2, 2, 2)),),
    ),
    "replicate": _pad_ops(
        Replicate, "Replication",
        (("real", (1, 2), (2, 3)), ("complex", (3, -1), (2, 3))),
        (("real", (1, 2, 1, 0), (1, 2, 2)),),
        (("real", (1, 1, 1, 0, 0, 1), (1, 2, 2, 2)),),
    ),
    "circular": (PadCircular, PadCircular, PadCircular),
}  # fmt: skip


@function(method=False, settles=True)
def constant_pad_nd(input: Any, pad: Any, value: Number = 0) -> Any:
    """A border of `value`: `pad` says how many before and after, from the last dimension on.

    >>> torch.constant_pad_nd(torch.tensor([1, 2]), (1, 1))
    tensor([0, 1, 2, 0])
    """
    check_tensor(input, "constant_pad_nd")
    widths = ints("constant_pad_nd", "pad", (pad,))
    shape = input._array.shape
    if len(widths) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(widths)}")
    if len(widths) > 2 * len(shape):
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad "
            f"length is {len(widths)} while the input has {len(shape)} dimensions."
        )
    for k in range(len(widths) // 2):
        before, after = widths[2 * k], widths[2 * k + 1]
        n = shape[-1 - k]
        if n + min(before, 0) + min(after, 0) < 0 and (before < 0 or after < 0):
            raise RuntimeError("narrow(): length must be non-negative.")
        if n + before + after < 0:
            raise RuntimeError(
                f"The input size {n}, plus negative padding {before} and {after} resulted in a "
                f"negative output size, which is invalid. Check dimension {len(shape) - 1 - k} of "
                "your input."
            )
    if isinstance(value, complex) and input._array.dtype.kind != "c":
        value = number_for(value, input._array.dtype)
    return run(ConstantPadNd(widths, value), (input,))


@functional(settles=True)
def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """A border around the last dimensions: "constant", "reflect", "replicate" or "circular".

    Args:
        mode: what the new places hold: 'constant', 'reflect', 'replicate' or 'circular'.
        value: the constant; 0 if None.

    >>> from rushlight.ops.shape.pad import pad
    >>> pad(torch.tensor([[1., 2., 3.]]), (1, 1), "reflect")
    tensor([[2., 1., 2., 3., 2.]])
    """
    check_tensor(input, "pad")
    widths = ints("pad", "pad", (pad,))
    shape = input._array.shape
    rank = len(shape)
    if len(widths) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(widths) > 2 * rank:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(widths)} and input of dimension {rank}"
        )
    if mode == "constant":
        if isinstance(value, complex):
            raise TypeError("pad(): argument 'value' (position 4) must be float, not complex")
        return constant_pad_nd(input, widths, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    count = len(widths) // 2
    if not (1 <= count <= 3 and rank in (count + 1, count + 2)):
        raise NotImplementedError(
            f"Padding size {len(widths)} is not supported for {rank}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    if mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    _check(mode, shape, widths)
    return apply(_MODES[mode][count - 1](widths), input)


def _check(mode: str, shape: tuple[int, ...], widths: tuple[int, ...]) -> None:
    for k in range(len(widths) // 2):
        before, after = widths[2 * k], widths[2 * k + 1]
        n = shape[-1 - k]
        if mode == "reflect" and (before >= n or after >= n):
            raise RuntimeError(
                f"Argument #{4 + 2 * k}: Padding size should be less than the corresponding input "
                f"dimension, but got: padding ({before}, {after}) at dimension "
                f"{len(shape) - 1 - k} of input {list(shape)}"
            )
        if mode == "circular" and (before > n or after > n):
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if mode == "circular" and n + before + after < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        if n + before + after < 1:
            raise RuntimeError(
                f"input (W: {n}) is too small. Calculated output W: {n + before + after}"
            )


@implements("pad")
def _pad(x: Any, widths: Any, value: Any) -> Any:
    flat: list[int] = []
    for before, after in reversed(widths):
        flat += (before, after)
    return apply(ConstantPadNd(tuple(flat), value), x)
