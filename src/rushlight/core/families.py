"""Families of ops: state what is particular, the rest follows.

    Elementwise   give `forward` and `partials`: vjp, jvp, broadcasting and dtypes follow
    Linear        give `forward` and `adjoint`: jvp is the op itself
    ViewOp        a Linear op whose result shares memory
    Reduce        a Linear or other op over `dims`
    Bilinear      linear in each of two inputs: give `forward`, `left` and `right`

Rules are plain maths over the words of `arrays.vocabulary`; the same letters everywhere: x input,
y output, g cotangent, t tangent.
"""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight.arrays.vocabulary import broadcast, conjugate, window
from rushlight.core.graph import Node, Op, TensorBase
from rushlight.errors import broadcast_mismatch
from rushlight.native import mypyc_attr


def is_complex(x: Any) -> bool:
    """Whether an array or tensor holds complex numbers."""
    if isinstance(x, TensorBase):
        x = x._array
    if isinstance(x, (int, float)):
        return False
    if isinstance(x, complex):
        return True
    kind: str = x.dtype.kind
    return kind == "c" or kind == "W"  # W: ml_dtypes' complex32


def conj(x: Any) -> Any:
    """The complex conjugate; real values as they are, at no cost."""
    return conjugate(x) if x is not None and is_complex(x) else x


@mypyc_attr(allow_interpreted_subclasses=True)
class Elementwise(Op):
    """One output element from the elements at the same place of each (broadcast) input.

    `partials(*saved)` gives, for each input, the derivative of the output by it (None: zero).
    `promotion` says how the dtype comes about: "default"; "float" (integers become the default
    float); "bool" (compare in the common dtype, answer in bool); "int" (integers and bool only).
    """

    asked_once = True
    promotion: ClassVar[str] = "default"
    scalar: ClassVar[str] = ""  # the expression of one element, for kernels: "tanh({0})"
    domain: ClassVar[str] = "real"  # where samples are drawn: a method of `ops.sample_inputs.Draw`
    complex_too: ClassVar[bool] = False  # takes complex inputs
    lies = "operands"
    # Low precision is computed in float32 and rounded once, but operands of another dtype are
    # rounded to it first: so has PyTorch it. `unrounded` are the inputs that it reads as they are
    # if they are numbers; `low` is set by ops that compute in the low precision itself.
    unrounded: ClassVar[tuple[int, ...]] = ()
    low: ClassVar[bool] = False

    def check(self, common: Any) -> None:
        """Refuse a dtype the op does not take (`common` is the operands' promoted dtype)."""

    def check_operands(self, xs: tuple[Any, ...]) -> None:
        """Refuse operands the op does not take, whatever their common dtype."""

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        rule: Any = self
        ps = rule.partials(*saved)
        outs: list[Any] = []
        for i in range(len(node._next_edges)):
            p = ps[i] if node._next_edges[i] is not None else None
            outs.append(None if p is None else g * conj(p))
        return outs

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        rule: Any = self
        saved = [xs[s] if s >= 0 else y for s in self.plan.sources]
        total: Any = None
        ps = rule.partials(*saved)
        for i in range(len(ts)):
            if ts[i] is not None and ps[i] is not None:
                term = ts[i] * ps[i]
                total = term if total is None else total + term
        if total is None:
            return y * 0
        return total if total.shape == y.shape else broadcast(total, y.shape)

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        """The op itself; the batch is in front of the longest member."""
        ranks: list[int] = []
        for i in range(len(xs)):
            ranks.append(xs[i].ndim - 1 if flags[i] else getattr(xs[i], "ndim", 0))
        rank = max(ranks)
        ready: list[Any] = []
        for i in range(len(xs)):
            short = rank - ranks[i] if flags[i] else 0
            ready.append(window(xs[i], (slice(None), *[None] * short)) if short else xs[i])
        return self, tuple(ready)

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        shapes = [x.shape for x in xs if hasattr(x, "shape")]
        if isinstance(error, ValueError):
            for other in shapes[1:]:
                text = broadcast_mismatch(shapes[0], other)
                if "must match" in text:
                    return RuntimeError(text)
        return error


@mypyc_attr(allow_interpreted_subclasses=True)
class Linear(Op):
    """Linear in its one tensor: `adjoint(g, shape)` is the transposed map, to inputs of `shape`."""

    asked_once = True

    def vjp(self, node: Node, g: Any) -> Any:
        rule: Any = self
        shapes = node._input_shapes
        assert shapes is not None
        return (rule.adjoint(g, shapes[0]),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        rule: Any = self
        return rule.forward(ts[0])


@mypyc_attr(allow_interpreted_subclasses=True)
class ViewOp(Linear):
    """A linear op whose result shares its input's memory (`forward` returns a view)."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Reduce(Op):
    """An op over the axes `dims` (negative ints, None: all), kept as size 1 if `keepdim`."""

    params: ClassVar[tuple[str, ...]] = ("dims", "keepdim")
    lies = "rows"

    def __init__(self, dims: tuple[int, ...] | None, keepdim: bool) -> None:
        super().__init__()
        self.dims = dims
        self.keepdim = keepdim

    def expanded(self, y: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of `y` with the reduced axes back as size 1, for an input of `shape`."""
        if self.dims is None:
            return (1,) * len(shape)
        out = list(shape)
        for d in self.dims:
            if out:
                out[d] = 1
        return tuple(out)

    def vmap_rule(self, xs: tuple[Any, ...], flags: tuple[bool, ...], size: int) -> Any:
        """The op itself: its axes count from the end. If it means all, those of a member."""
        if len(xs) != 1:
            return None
        rank: int = xs[0].ndim - 1
        if rank == 0:
            return None
        if self.dims is not None:
            return self, xs
        every = tuple([d - rank for d in range(rank)])
        values = [every if p == "dims" else getattr(self, p) for p in self.params]
        make: Any = type(self)
        return make(*values), xs


@mypyc_attr(allow_interpreted_subclasses=True)
class Bilinear(Op):
    """Linear in each of two inputs: `left(g, b, shape)` and `right(g, a, shape)` are the adjoints
    for the first and the second; conjugation is done here."""

    asked_once = True
    inputs = ("self", "other")
    saves = ("self", "other")
    reads: ClassVar[dict[int, tuple[str, ...]]] = {0: ("other",), 1: ("self",)}

    def vjp(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        rule: Any = self
        shapes = node._input_shapes
        assert shapes is not None
        return (
            rule.left(g, conj(b), shapes[0]) if node._next_edges[0] is not None else None,
            rule.right(g, conj(a), shapes[1]) if node._next_edges[1] is not None else None,
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        rule: Any = self
        a, b = xs
        ta, tb = ts
        if tb is None:
            return rule.forward(ta, b)
        if ta is None:
            return rule.forward(a, tb)
        return rule.forward(ta, b) + rule.forward(a, tb)
