"""The rules of addition, subtraction, multiplication, division, negation: the hottest ops.

Compiled, which their public functions in `ops.pointwise.arithmetic` are not: mypyc drops
docstrings. Their `vjp`s are written out rather than derived from `partials`, which saves a call and
a list on every step of a backward pass.
"""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight import dtypes
from rushlight.arrays.vocabulary import broadcast
from rushlight.core.families import Elementwise, conj
from rushlight.core.graph import Node, TensorBase
from rushlight.native import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Arithmetic(Elementwise):
    """An element-wise op of two operands whose calls are compiled: the hottest ops alone."""

    inputs = ("self", "other")
    complex_too = True
    direct = True

    def forward(self, a: Any, b: Any) -> Any:
        raise NotImplementedError

    def forward_binary(self, a: Any, b: Any) -> Any:
        return self.forward(a, b)

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        return self.vjp_binary(node, g, *saved) if saved else self.vjp_binary(node, g, None, None)


class Add(Arithmetic):
    """input + alpha * other."""

    name = "add"
    aten = "add.Tensor"
    params = ("alpha",)
    scalar = "({0} + {1})"
    whole = True

    def __init__(self, alpha: Any = 1) -> None:
        super().__init__()
        self.alpha = alpha
        # a number that a kernel is written for is neither
        self.plain: bool = alpha is True or (type(alpha) is int and alpha == 1)

    def forward(self, a: Any, b: Any) -> Any:
        return a + b if self.plain else a + b * self.alpha

    def vjp_binary(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        return g, (g if self.plain else g * conj(self.alpha))

    def partials(self) -> Any:
        return 1, self.alpha


def refuse_bools(xs: tuple[Any, ...]) -> None:
    """PyTorch subtracts no bools: neither two tensors of them, nor one from something else."""
    bools = 0
    tensors = 0
    for x in xs:
        is_tensor = isinstance(x, TensorBase)
        if isinstance(x, bool) or (is_tensor and x._array.dtype.kind == "b"):
            bools += 1
            tensors += is_tensor
    if bools == 0:
        return
    if tensors == len(xs):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the "
            "`^` or `logical_xor()` operator instead."
        )
    raise RuntimeError(
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are "
        "trying to invert a mask, use the `~` or `logical_not()` operator instead."
    )


class Sub(Arithmetic):
    """input - alpha * other."""

    name = "sub"
    aten = "sub.Tensor"
    params = ("alpha",)
    scalar = "({0} - {1})"
    whole = True

    def __init__(self, alpha: Any = 1) -> None:
        super().__init__()
        self.alpha = alpha
        self.plain: bool = alpha is True or (type(alpha) is int and alpha == 1)

    def check_operands(self, xs: tuple[Any, ...]) -> None:
        refuse_bools(xs)

    def forward(self, a: Any, b: Any) -> Any:
        return a - b if self.plain else a - b * self.alpha

    def vjp_binary(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        if node._next_edges[1] is None:
            return g, None
        return g, (-g if self.plain else g * -conj(self.alpha))

    def partials(self) -> Any:
        return 1, -self.alpha


class Mul(Arithmetic):
    """input * other."""

    name = "mul"
    aten = "mul.Tensor"
    unrounded = (0, 1)
    saves = ("self", "other")
    reads: ClassVar[dict[int, tuple[str, ...]]] = {0: ("other",), 1: ("self",)}
    scalar = "({0} * {1})"
    whole = True

    def forward(self, a: Any, b: Any) -> Any:
        return a * b

    def vjp_binary(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        nexts = node._next_edges
        if not node._fits_as_is:
            a, b = conj(a), conj(b)
        return (
            g * b if nexts[0] is not None else None,
            g * a if nexts[1] is not None else None,
        )

    def partials(self, a: Any, b: Any) -> Any:
        return b, a


class Div(Arithmetic):
    """input / other."""

    name = "div"
    aten = "div.Tensor"
    unrounded = (1,)
    saves = ("self", "other")
    reads: ClassVar[dict[int, tuple[str, ...]]] = {0: ("other",), 1: ("self", "other")}
    promotion = "float"
    scalar = "({0} / {1})"

    def forward(self, a: Any, b: Any) -> Any:
        return a / b

    def vjp_binary(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        nexts = node._next_edges
        left = g / (b if node._fits_as_is else conj(b))
        return (
            left if nexts[0] is not None else None,
            -left * conj(a / b) if nexts[1] is not None else None,
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        ta, tb = ts
        top = ta
        if tb is not None:
            top = -tb * y if ta is None else ta - tb * y
        t = top / xs[1]  # not times `1 / b`, which fails for the number 0
        return t if t.shape == y.shape else broadcast(t, y.shape)

    def partials(self, a: Any, b: Any) -> Any:
        return 1 / b, -(a / b) / b


class Neg(Elementwise):
    """-input."""

    name = "neg"
    complex_too = True
    scalar = "(-{0})"

    def check(self, common: Any) -> None:
        if common is dtypes.bool_:
            raise RuntimeError(
                "Negation, the `-` operator, on a bool tensor is not supported. If you are trying "
                "to invert a mask, use the `~` or `logical_not()` operator instead."
            )

    def forward(self, x: Any) -> Any:
        return -x

    def vjp(self, node: Node, g: Any) -> Any:
        return (-g,)

    def partials(self) -> Any:
        return (-1,)
