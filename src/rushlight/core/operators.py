"""Python's arithmetic operators on tensors: the hottest calls, so they stand in compiled code.

Which op an operator means is not known here: the op table fills `table`. The attributes of tensors
that programs read most are read here too (`read_shape` and its like).
"""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.core.dispatch import binary, columns_of, pair, plain_pair, unary, with_number
from rushlight.core.elementwise import elementwise
from rushlight.core.graph import Op, TensorBase, requires_grad, shape_of
from rushlight.errors import hide_insides
from rushlight.native import mypyc_attr
from rushlight.size import Size

_new_tuple: Final[Any] = tuple.__new__
dtype_of: Final[Any] = dtypes.of
_by_numpy: Final[dict[Any, Any]] = dtypes.BY_NUMPY


class OperatorTable:
    """The op objects behind the operators, and who turns foreign operands away."""

    def __init__(self) -> None:
        self.add: Op = Op()
        self.sub: Op = self.add
        self.mul: Op = self.add
        self.div: Op = self.add
        self.neg: Op = self.add
        self.rsub: Op = self.add  # other - self
        self.reciprocal: Op = self.add
        self.mm: tuple[Op, ...] = (self.add,)  # by which factors lie column by column
        self.matmul: Any = None  # of tensors that are not two plain matrices
        self.accepts: Any = None  # accepts(x): may x stand next to a tensor?
        self.foreign: Any = None  # foreign(name, tensor, x): what the operator gives if not
        self.warn_of_no_grad: Any = None  # `.grad` of a tensor that is no leaf, and has none


table: Final = OperatorTable()


def _both(op: Op, a: TensorBase, b: Any, title: str) -> Any:
    """`op` with the tensor on the left."""
    try:
        if isinstance(b, TensorBase):
            return pair(op, a, b)
        if type(b) is float or type(b) is int:
            return with_number(op, a, b, False)
        if isinstance(b, bool) or table.accepts(b):
            return elementwise(op, (a, b))
    except Exception as error:
        hide_insides(error)
        raise
    return table.foreign(title, a, b)


@mypyc_attr(allow_interpreted_subclasses=True)
class Operators(TensorBase):
    """The operators of arithmetic."""

    def __add__(self, other: Any) -> Any:
        return _both(table.add, self, other, "__add__")

    def __radd__(self, other: Any) -> Any:
        return _both(table.add, self, other, "__radd__")

    def __sub__(self, other: Any) -> Any:
        return _both(table.sub, self, other, "__sub__")

    def __rsub__(self, other: Any) -> Any:
        return _both(table.rsub, self, other, "__rsub__")

    def __mul__(self, other: Any) -> Any:
        return _both(table.mul, self, other, "__mul__")

    def __rmul__(self, other: Any) -> Any:
        return _both(table.mul, self, other, "__rmul__")

    def __truediv__(self, other: Any) -> Any:
        return _both(table.div, self, other, "__truediv__")

    def __rtruediv__(self, other: Any) -> Any:
        if not isinstance(other, (float, int)) and not table.accepts(other):
            return table.foreign("__rtruediv__", self, other)
        # PyTorch's graph of 1 / x: a reciprocal, then a product
        return _both(table.mul, unary(table.reciprocal, self), other, "__rtruediv__")

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, TensorBase):
            return table.foreign("__matmul__", self, other)
        b: TensorBase = other
        try:
            if self._array.ndim == 2 and b._array.ndim == 2 and plain_pair(self, b):
                return pair(table.mm[columns_of(self, b)], self, b)
            return table.matmul(self, b)
        except Exception as error:
            hide_insides(error)
            raise

    def __neg__(self) -> Any:
        return unary(table.neg, self)


# --- operators that are public functions: `ops.operands.attach_operator` --------------------------
def operate(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`function` of a tensor and a tensor or a number; None for other operands."""
    if len(args) != 2 or kwargs or not _is_operand(args[1]):
        return None
    return function(args[0], args[1])


def operate_reflected(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same, with the tensor on the right."""
    if len(args) != 2 or kwargs or not _is_operand(args[1]):
        return None
    return function(args[1], args[0])


def compare(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An element-wise op of a tensor and a tensor or a number; None for other operands."""
    if len(args) != 2 or kwargs or not _is_operand(args[1]) or not isinstance(args[0], TensorBase):
        return None
    return binary(op, args[0], args[1])


def _is_operand(x: Any) -> bool:
    return isinstance(x, TensorBase) or type(x) is float or type(x) is int


# --- attributes -----------------------------------------------------------------------------------
def read_shape(t: TensorBase) -> Any:
    return _new_tuple(Size, shape_of(t, t._array))


def read_ndim(t: TensorBase) -> Any:
    return int(t._array.ndim)


def read_dtype(t: TensorBase) -> Any:
    raw = t._array.dtype
    found = _by_numpy.get(raw)
    return dtype_of(raw) if found is None else found


def read_requires_grad(t: TensorBase) -> bool:
    return requires_grad(t)


def read_grad(t: TensorBase) -> Any:
    found = t._accumulated_grad
    return table.warn_of_no_grad(t) if found is None and t._node is not None else found
