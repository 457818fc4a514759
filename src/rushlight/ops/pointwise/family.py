"""What the files of element-wise functions share: families of ops, and how a function is made of
an op."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.dispatch import binary, unary
from rushlight.core.elementwise import operand, result_dtype
from rushlight.core.families import Elementwise, conj
from rushlight.core.graph import Node, TensorBase
from rushlight.ops.checks import check_tensors, not_implemented, raw_dtype
from rushlight.ops.operands import zeros
from rushlight.ops.registry import describe, function, implements, op

PI: Final = math.pi
LN2: Final = math.log(2.0)
LN10: Final = math.log(10.0)


# --- families -------------------------------------------------------------------------------------
# NumPy's kinds of dtype; V and W are those of low precision that ml_dtypes adds.
_KINDS: Final = {"b": "b", "i": "i", "u": "i", "f": "f", "V": "f", "c": "c", "W": "c"}


class Pointwise(Elementwise):
    """An element-wise op that does not take every dtype: `refuses` names kinds of dtype (b, i, f,
    c), and `kernel` what PyTorch's error calls the op."""

    kernel: ClassVar[str] = ""
    refuses: ClassVar[str] = ""

    def check(self, common: Any) -> None:
        if _KINDS[common.numpy.kind] in self.refuses:
            short = self.name.removeprefix("special_")
            raise not_implemented(self.kernel or f"{short}_cpu", common)


class Through:
    """A rule for both modes, of an op of one input: `through(g, *saved)` is what the op makes of a
    gradient, and of a tangent alike, for its Jacobian is its own transpose."""

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        rule: Any = self
        return (rule.through(g, *saved),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        rule: Any = self
        saved = [xs[s] if s >= 0 else y for s in rule.plan.sources]
        return rule.through(ts[0], *saved)


class Flat(Pointwise):
    """A step function: its derivatives are zero."""

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        z = zeros(g)
        return [z] * len(node._next_edges)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return zeros(y)


class Unfinished(Pointwise):
    """An op whose derivative PyTorch does not define: asking for it is an error.

    Such ops stay out of the table, whose laws are about derivatives.
    """

    node = "NotImplemented"

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{self.name} is not implemented")

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        raise NotImplementedError(
            f"Trying to use forward AD with {self.name} that does not support it because it has "
            "not been implemented yet."
        )


class Numbered(Pointwise):
    """An op of tensors and Python numbers; the numbers stand in `params` and count in promotion."""

    def count(self, *numbers: Any) -> None:
        """Let numbers take part: a float makes integers the default float."""
        if any(isinstance(n, (float, complex)) for n in numbers):
            self.promotion = "float"  # type: ignore[misc]  # of this instance
        self.bools: bool = all(n is None or isinstance(n, bool) for n in numbers)

    def lift_bools(self, x: Any) -> Any:
        """Bools as integers, where there are numbers among the operands that are."""
        if raw_dtype(x).kind == "b" and not self.bools:
            return v.cast(x, dtypes.int64.numpy)
        return x


class Smooth(Pointwise):
    """A function of real and complex numbers; integers become the default float."""

    promotion, complex_too = "float", True


class OneOver(Smooth):
    """A function whose derivative is one over `below`, a function of what it saves.

    Gradients and tangents are divided by it: at a complex pole `g / 0` is infinite, as in PyTorch,
    but `g * (1 / 0)` is NaN.
    """

    saves: ClassVar[tuple[str, ...]] = ("self",)

    def below(self, saved: Any) -> Any:
        """What the derivative has below the line."""
        raise NotImplementedError

    def vjp(self, node: Node, g: Any, saved: Any) -> Any:
        return (g / conj(self.below(saved)),)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return ts[0] / self.below(xs[0] if self.saves == ("self",) else y)


# --- functions from ops ---------------------------------------------------------------------------
_SAVED: Final = {"x": "self", "a": "self", "b": "other", "y": "result"}


def row(
    name: str, base: Any, text: str, forward: Callable[..., Any] | None,
    partials: Callable[..., Any] | None = None, *, at: str, gives: str,
    aliases: tuple[str, ...] = (), inplace: bool = True, out: bool = True, method: bool = True,
    free: bool = True, namespace: str = "", primitive: str = "",
    choose: Callable[[str, Any, Any], Any] | None = None,
    quick: Callable[..., Any] | None = None, **facts: Any,
) -> Any:  # fmt: skip
    """An op whose rules take a line each: its class and its public function. Returns the op.

    `forward` (None: the base has it) and `partials` are methods without `self`. What is saved for
    `partials` follows from the names of its parameters: `x` or `a` is the input, `b` the other
    input, `y` the result. `facts` are further attributes of the class, functions likewise without
    `self`. The other arguments are those of `expose`.
    """
    members = {key: staticmethod(x) if callable(x) else x for key, x in facts.items()}
    if forward is not None:
        members["forward"] = staticmethod(forward)
    if partials is not None:
        read = partials.__code__.co_varnames[: partials.__code__.co_argcount]
        members["saves"] = tuple(_SAVED[letter] for letter in read)
        members["partials"] = staticmethod(partials)
    title = "".join(part.capitalize() for part in name.removeprefix("special_").split("_"))
    members.update(name=name, __doc__=text)
    return expose(
        op(type(title, (base,), members)), at, gives, aliases=aliases, inplace=inplace, out=out,
        method=method, free=free, namespace=namespace, primitive=primitive, choose=choose,
        quick=quick,
    )  # fmt: skip


def expose(
    cls: Any, at: str, gives: str, *, aliases: tuple[str, ...] = (), inplace: bool = True,
    out: bool = True, method: bool = True, free: bool = True, namespace: str = "",
    primitive: str = "", choose: Callable[[str, Any, Any], Any] | None = None,
    quick: Callable[..., Any] | None = None,
) -> Any:  # fmt: skip
    """The public function of an op of one or two inputs; its text is the op's. Returns the op.

    The example in the text shows what the arguments `at` (a list: the tensor of it) give.
    `primitive` is the one that the op implements on tensors. Two operands must both be tensors,
    unless there is `choose`: then it refuses them, or says which op they take (None: this one).
    `quick` is compiled code that is asked first, and told the op.
    """
    made = cls()
    title: str = cls.name.removeprefix("special_")
    refuses: str = getattr(cls, "refuses", "")
    integers = "f" in refuses

    def one(input: Any) -> Any:
        return (made, (input,)) if out or inplace else unary(made, input)

    def two(input: Any, other: Any) -> Any:
        chosen = made
        if isinstance(input, TensorBase) and isinstance(other, TensorBase):
            kind = input._array.dtype
            if kind is other._array.dtype and kind.kind not in refuses:
                return made, (input, other)
        else:
            if choose is None:
                check_tensors(title, input=input, other=other)
            else:
                chosen = choose(cls.name, input, other) or made
        if integers:  # the fast path for floats does not check
            made.check(result_dtype((operand(input), operand(other))))
        return chosen, (input, other)

    fn: Callable[..., Any] = one if len(cls.inputs) == 1 else two
    shown = f"torch.tensor({at})" if at.endswith("]") else at
    home = "torch" if free else f"torch.{namespace}"
    fn.__name__ = fn.__qualname__ = title
    fn.__module__ = cls.__module__
    fn.__doc__ = describe(cls.__doc__, f"{home}.{title}({shown})", f"tensor({gives})")
    function(
        name=title, aliases=aliases, inplace=inplace, out=out, method=method, free=free,
        namespace=namespace, made=None if integers else made, quick=quick, told=made,
    )(fn)  # fmt: skip
    if primitive:
        register_impl(primitive, made)
    return made


def register_impl(primitive: str, made: Any) -> None:
    """Let an op of one or two inputs implement a primitive on tensors."""

    def one(x: Any) -> Any:
        return unary(made, operand(x))

    def two(a: Any, b: Any) -> Any:
        return binary(made, operand(a), operand(b))

    implements(primitive)(one if len(made.inputs) == 1 else two)


# --- maths that several ops share -----------------------------------------------------------------
def direction(x: Any) -> Any:
    """x / |x|, and 0 where x is 0 or NaN."""
    s = v.sign(x)
    if isinstance(x, TensorBase) or raw_dtype(x).kind in "iubc":
        return s
    return v.where(v.isnan(x), 0, s)
