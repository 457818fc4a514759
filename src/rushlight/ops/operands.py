"""What the files of element-wise functions share: checks of operands, Python's operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import bottom
from rushlight.core.elementwise import number_in, operand, result_dtype
from rushlight.core.graph import Op, TensorBase
from rushlight.core.observer import observer
from rushlight.core.operators import compare, operate, operate_reflected
from rushlight.core.operators import table as operators
from rushlight.errors import hide_insides
from rushlight.ops.checks import not_implemented, raw_dtype, scalar_name
from rushlight.ops.numbers import number
from rushlight.ops.registry import asking, methods, overridden, takes_over

_NUMBERS: Final = (TensorBase, int, float, complex)


# --- what users wrote -----------------------------------------------------------------------------
def number_from(x: Any, function: str, name: str) -> Any:
    """A number that users passed as Python's, or PyTorch's TypeError."""
    found = number(x)
    if found is NotImplemented:
        raise TypeError(f"{function}(): argument '{name}' must be Number, not {scalar_name(x)}")
    return found


def check_integers(kernel: str, input: Any, other: Any) -> None:
    """Refuse bools, complex numbers, and a zero among integers that others are divided by."""
    common = result_dtype((operand(input), operand(other)))
    if common is dtypes.bool_ or common.is_complex:
        raise not_implemented(kernel, common)
    if common.numpy.kind in "iu":
        if isinstance(other, TensorBase):
            observer.keep_nothing()  # its values decide: see Note [What may be kept]
        if has_zero(other, common):
            raise RuntimeError("ZeroDivisionError")


# --- arrays and tensors in rules ------------------------------------------------------------------
def integral(x: Any) -> bool:
    """Whether an array or tensor holds integers or bools."""
    kind: str = raw_dtype(x).kind
    return kind in "iub"


def match_dtypes(*xs: Any) -> tuple[Any, ...]:
    """Operands in the dtype in which PyTorch compares them. Left to NumPy, a 0-d array of a wider
    dtype would widen the other, and what an op took for equal would no longer be so in its rule."""
    raw: Any = None
    for x in xs:
        if not isinstance(x, (int, float)):  # a bare number is weak in NumPy too
            have = raw_dtype(x)
            if raw is None:
                raw = have
            elif have is not raw and have != raw:
                break
    else:
        return xs
    arrays = [x for x in xs if not isinstance(x, (int, float))]
    seen: list[Any] = [(dtypes.of(raw_dtype(x)), "dim" if x.ndim else "zero") for x in arrays]
    common = dtypes.promote(seen).numpy
    return tuple([x if isinstance(x, (int, float)) else v.cast(x, common) for x in xs])


def widen_small_ints(x: Any) -> Any:
    """Bools and integers of 8 bits as int64, for a rule: NumPy takes their logarithms and powers of
    two in half precision."""
    if hasattr(x, "dtype") and raw_dtype(x).kind in "biu" and raw_dtype(x).itemsize == 1:
        return v.cast(x, dtypes.int64.numpy)
    return x


def zeros(g: Any) -> Any:
    """Zeros like `g`, whatever is in it: `g * 0` would keep its NaNs."""
    return v.full(g, tuple(g.shape), 0, raw_dtype(g))


def has_zero(x: Any, common: dtypes.dtype) -> bool:
    """Whether there is a zero in a tensor or number, as the common dtype holds it: integers cannot
    be divided by it."""
    if isinstance(x, TensorBase):
        return not bool(v.reduce_all(v.cast(bottom(x._array), common.numpy), None, False))
    return bool(number_in(x, common) == 0)


# --- Python's operators ---------------------------------------------------------------------------
def attach_operator(
    name: str, fn: Callable[..., Any] | None, inplace: Callable[..., Any] | None,
    swapped: bool = True, made: Op | None = None,
) -> None:  # fmt: skip
    """Make `fn` the operator `__name__`, the other way round `__rname__`, and `inplace`
    `__iname__`. For operands that PyTorch refuses they return NotImplemented, so that Python raises
    its TypeError. `made` is the op, where `fn` does nothing but apply it."""

    def attach(title: str, function: Callable[..., Any], reflected: bool) -> None:
        def method(self: Any, other: Any) -> Any:
            try:
                if isinstance(other, _NUMBERS) or operators.accepts(other):
                    if reflected:
                        return function(operand(other), self)
                    return function(self, operand(other))
            except Exception as error:
                hide_insides(error)
                raise
            if takes_over((other,), {}):
                return overridden(method, self, other)
            return NotImplemented

        method.__name__ = method.__qualname__ = title
        ask = compare if made is not None else operate_reflected if reflected else operate
        methods[title] = asking(method, 3, ask, made or function)

    if fn is not None:
        attach(f"__{name}__", fn, False)
        if swapped:
            attach(f"__r{name}__", fn, True)
    if inplace is not None:
        attach(f"__i{name}__", inplace, False)
