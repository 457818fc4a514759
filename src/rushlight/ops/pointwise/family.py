"""What the files of element-wise functions share: families of ops, and how a function is made of
an op. Only `ops` imports it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.dispatch import binary, unary
from rushlight.core.elementwise import operand, result_dtype
from rushlight.core.families import Elementwise
from rushlight.core.graph import Node, TensorBase
from rushlight.ops.arguments import raw_dtype
from rushlight.ops.checks import check_tensors, not_implemented
from rushlight.ops.numbers import has_negative_zero
from rushlight.ops.operands import zeros
from rushlight.ops.registry import function, implements

PI: Final = math.pi
LN2: Final = math.log(2.0)
LN10: Final = math.log(10.0)


# --- families -------------------------------------------------------------------------------------
class Pointwise(Elementwise):
    """An element-wise op that does not take every dtype: `refuses` names kinds of dtype (b, i, f,
    c), and `kernel` what PyTorch's error calls the op."""

    kernel: ClassVar[str] = ""
    refuses: ClassVar[str] = ""

    def check(self, common: Any) -> None:
        kind = common.numpy.kind
        if ("i" if kind == "u" else "f" if kind == "V" else kind) in self.refuses:
            short = self.name.removeprefix("special_")
            raise not_implemented(self.kernel or f"{short}_cpu", common)


class Flat(Pointwise):
    """A step function: its derivatives are zero."""

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        z = zeros(g)
        return [z] * len(node._next_edges)

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return zeros(y)

    def partials(self, *saved: Any) -> Any:
        return (0,) * len(self.inputs)


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


def with_numbers(cls: Any, *numbers: Any) -> Any:
    """An op of a class with numbers as parameters: the same object for the same numbers, since
    making one costs as much as applying it."""
    if 0.0 in numbers and has_negative_zero(numbers):
        return cls(*numbers)
    return _kept(cls, *numbers)


@functools.lru_cache(maxsize=256, typed=True)
def _kept(cls: Any, *numbers: Any) -> Any:
    return cls(*numbers)


class Numbered(Pointwise):
    """An op of tensors and Python numbers; the numbers stand in `params` and count in promotion."""

    def count(self, *numbers: Any) -> None:
        """Let numbers take part: a float makes integers the default float."""
        if any(isinstance(n, (float, complex)) for n in numbers):
            self.promotion = "float"  # type: ignore[misc]  # of this instance
        self.bools: bool = all(n is None or isinstance(n, bool) for n in numbers)

    def lifted(self, x: Any) -> Any:
        """Bools as integers, where there are numbers among the operands that are."""
        if raw_dtype(x).kind == "b" and not self.bools:
            return v.cast(x, dtypes.int64.numpy)
        return x


class Smooth(Pointwise):
    """A function of real and complex numbers; integers become the default float."""

    promotion, complex_too = "float", True


# --- functions from ops ---------------------------------------------------------------------------
def expose(
    cls: Any, example: str, shown: str, *, name: str = "", aliases: tuple[str, ...] = (),
    inplace: bool = True, out: bool = True, method: bool = True, free: bool = True,
    namespace: str = "",
) -> Any:  # fmt: skip
    """The public function of an op of one tensor; its text is the op's. Returns the op."""
    made = cls()
    title = name or cls.name

    def fn(input: Any) -> Any:
        if not isinstance(input, TensorBase):
            check_tensors(title, input=input)
        return (made, (input,)) if out or inplace else unary(made, input)

    home = f"torch.{namespace}.{title}" if namespace and not free else f"torch.{title}"
    tail = ", *, out=None" if out else ""
    fn.__name__ = fn.__qualname__ = title
    fn.__module__ = cls.__module__
    fn.__doc__ = (
        f"{title}(input{tail}) -> Tensor\n\n{cls.__doc__}\n\n"
        f">>> import rushlight as torch\n>>> {home}({example})\n{shown}\n"
    )
    function(
        name=title, aliases=aliases, inplace=inplace, out=out, method=method, free=free,
        namespace=namespace,
    )(fn)  # fmt: skip
    return made


def register_impl(primitive: str, made: Any) -> None:
    """Let an op of one or two inputs answer to a word on tensors."""

    def one(x: Any) -> Any:
        return unary(made, operand(x))

    def two(a: Any, b: Any) -> Any:
        return binary(made, operand(a), operand(b))

    implements(primitive)(one if len(made.inputs) == 1 else two)


def check_both(name: str, input: Any, other: Any) -> None:
    """Both operands, tensors: PyTorch's error unless they are."""
    check_tensors(name, input=input, other=other)


def expose_pair(
    cls: Any, args: str, shown: str, *, inplace: bool, aliases: tuple[str, ...] = (),
    check: Callable[[str, Any, Any], None] = check_both,
) -> Any:  # fmt: skip
    """The public function of an op of two operands; its text is the op's. Returns the op.

    `check` refuses operands, where they are not two tensors.
    """
    made = cls()
    title: str = cls.name
    integers = "f" in getattr(cls, "refuses", "")

    def fn(input: Any, other: Any) -> Any:
        if not (isinstance(input, TensorBase) and isinstance(other, TensorBase)):
            check(title, input, other)
        if integers:  # the fast path for floats does not check
            made.check(result_dtype((operand(input), operand(other))))
        return made, (input, other)

    fn.__name__ = fn.__qualname__ = title
    fn.__module__ = cls.__module__
    fn.__doc__ = (
        f"{title}(input, other, *, out=None) -> Tensor\n\n{cls.__doc__}\n\n"
        f">>> import rushlight as torch\n>>> torch.{title}({args})\n{shown}\n"
    )
    function(name=title, aliases=aliases, out=True, inplace=inplace)(fn)
    return made


# --- maths that several ops share -----------------------------------------------------------------
def direction(x: Any) -> Any:
    """x / |x|, and 0 where x is 0 or NaN."""
    s = v.sign(x)
    if isinstance(x, TensorBase) or raw_dtype(x).kind in "iubc":
        return s
    return v.where(v.isnan(x), 0, s)
