"""Comparisons of two tensors, and choosing by a condition (`where`)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import without_histories
from rushlight.arrays.layouts import arrange
from rushlight.core.dispatch import binary
from rushlight.core.elementwise import number_in, operand, result_dtype
from rushlight.core.families import Elementwise, is_complex
from rushlight.core.graph import Node, Op, TensorBase, normal, wrap
from rushlight.core.operators import compare
from rushlight.core.record import apply
from rushlight.core.transforms.stack import stack
from rushlight.errors import broadcast_mismatch
from rushlight.ops.apply import run_inplace, run_out
from rushlight.ops.checks import (
    check_second,
    check_tensors,
    invalid,
    is_batched,
    is_number,
    not_implemented,
)
from rushlight.ops.creation.fill import number_for
from rushlight.ops.each_member import align_members
from rushlight.ops.mistakes import BLAMED, better_error
from rushlight.ops.operands import attach_operator, integral, number_from, zeros
from rushlight.ops.out import write_array
from rushlight.ops.pointwise.family import row
from rushlight.ops.registry import (
    function,
    functions,
    implements,
    methods,
    op,
    overridden,
    takes_over,
)
from rushlight.ops.sample_inputs import Draw
from rushlight.ops.warned import warn_caller


# --- comparisons ----------------------------------------------------------------------------------
class Compare(Elementwise):
    """A comparison in the operands' common dtype."""

    inputs, promotion, differentiable = ("self", "other"), "bool", False
    whole = True
    ordered: ClassVar[bool] = True  # not for complex numbers

    def check(self, common: Any) -> None:
        if self.ordered and common.is_complex:
            raise not_implemented(f"{self.name}_cpu", common)


def _expose_written(made: Any, names: tuple[str, ...]) -> None:
    """The in-place methods of a comparison: a float tensor that was overwritten has a gradient of
    zeros."""
    cls: Any = type(made)

    class Written(cls):  # type: ignore[misc]  # the base is a variable
        node, differentiable = f"{cls.__name__}Backward0", True

        def vjp(self, node: Node, g: Any) -> Any:
            return zeros(g), zeros(g)

        def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
            return zeros(xs[0])

    class WrittenTensor(Written):
        node = f"{cls.__name__}Backward1"  # PyTorch's node for a tensor, not a number

    by_number, by_tensor = Written(), WrittenTensor()

    @functools.wraps(functions[made.name + "_"])
    def write(input: Any, other: Any) -> Any:
        try:
            check_second(made.name + "_", input, other)
            written = by_tensor if isinstance(other, TensorBase) else by_number
            return run_inplace(written, (input, other))
        except BLAMED as error:
            if takes_over((other,), {}):
                return overridden(write, input, other)
            if (
                better := better_error(made.name + "_", write, (input, other), {}, error)
            ) is not None:
                raise better from None
            raise

    for name in names:
        functions[name + "_"] = methods[name + "_"] = write


def _compare(
    name: str, text: str, forward: Any, symbol: str, primitive: str, gives: str,
    aliases: tuple[str, ...] = (), ordered: bool = True,
) -> Any:  # fmt: skip
    """A comparison: its op, its function, the function in place, and the operator."""
    made = row(
        name, Compare, text, forward, scalar=f"({{0}} {symbol} {{1}})", ordered=ordered,
        aten=f"{name}.Tensor|Scalar",
        complex_too=not ordered, primitive=primitive, aliases=aliases, choose=check_second,
        quick=compare,
        at="torch.tensor([1, 2, 3]), 2", gives=gives,
    )  # fmt: skip
    _expose_written(made, (name, *aliases))

    # not torch.eq itself: of arrays and other objects Python decides how they compare
    def operator(a: Any, b: Any) -> Any:
        return binary(made, a, b)

    attach_operator(name, operator, None, swapped=False, made=made)
    return made


EQ = _compare(
    "eq", "Whether elements are equal.", v.equal, "==", "equal", "[False,  True, False]",
    ordered=False,
)  # fmt: skip
_compare(
    "ne", "Whether elements differ.", v.not_equal, "!=", "not_equal", "[ True, False,  True]",
    ("not_equal",), ordered=False,
)  # fmt: skip
_compare(
    "lt", "Whether elements of input are less.", v.less, "<", "less", "[ True, False, False]",
    ("less",),
)  # fmt: skip
_compare(
    "le", "Whether elements of input are less or equal.", v.less_equal, "<=", "less_equal",
    "[ True,  True, False]", ("less_equal",),
)  # fmt: skip
_compare(
    "gt", "Whether elements of input are greater.", v.greater, ">", "greater",
    "[False, False,  True]", ("greater",),
)  # fmt: skip
_compare(
    "ge", "Whether elements of input are greater or equal.", v.greater_equal, ">=",
    "greater_equal", "[False,  True,  True]", ("greater_equal",),
)  # fmt: skip


@function()
def isclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Any:
    """Whether elements are close: |input - other| <= atol + rtol · |other|.

    >>> torch.isclose(torch.tensor([1., 2.]), torch.tensor([1. + 1e-7, 2.1]))
    tensor([ True, False])
    """
    check_tensors("isclose", input=input, other=other)
    a, b = both = input._array, other._array
    if a.dtype != b.dtype:
        mine, theirs = dtypes.of(a.dtype).scalar_type, dtypes.of(b.dtype).scalar_type
        raise RuntimeError(f"{mine} did not match {theirs}")
    rtol, atol = number_from(rtol, "isclose", "rtol"), number_from(atol, "isclose", "atol")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")
    try:
        close = v.equal(a, b)
    except ValueError:
        raise RuntimeError(broadcast_mismatch(a.shape, b.shape)) from None
    if equal_nan and not integral(a):
        close = v.logical_or(close, v.logical_and(v.isnan(a), v.isnan(b)))
    if rtol == 0 and atol == 0:
        return wrap(arrange(normal(close), both))
    if integral(b):
        b = v.cast(b, dtypes.default.numpy)
        a = v.cast(a, dtypes.default.numpy)
    apart = v.absolute(a - b)
    allowed = atol + v.absolute(rtol * b)
    close = v.logical_or(close, v.logical_and(v.isfinite(apart), apart <= allowed))
    return wrap(arrange(normal(close), both))


@function()
def allclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements are close, as `isclose` has it.

    >>> torch.allclose(torch.tensor([1., 2.]), torch.tensor([1., 2. + 1e-7]))
    True
    """
    check_tensors("allclose", input=input, other=other)
    if stack.batches != 0 and any(is_batched(x) for x in (input, other)):
        raise RuntimeError(
            "vmap over torch.allclose isn't supported yet. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues if you need this feature.\n"
            "Compare with `torch.isclose(a, b).all()`: its answer is a tensor, one a member."
        )
    return bool(v.reduce_all(isclose(input, other, rtol, atol, equal_nan)._array, None, False))


@function()
def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same shape and the same elements.

    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True
    """
    check_tensors("equal", input=input, other=other)
    if stack.batches != 0 and any(is_batched(x) for x in (input, other)):
        raise RuntimeError(
            "Batching rule not implemented for aten::equal. We could not generate a fallback.\n"
            "Compare with `(a == b).all()`: its answer is a tensor, one a member."
        )
    if input._array.shape != other._array.shape:
        return False
    return bool(v.reduce_all(binary(EQ, input, other)._array, None, False))


@function(method=False)
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False,
    out: Any = None,
) -> Any:  # fmt: skip
    """Whether each of `elements` is among `test_elements`.

    >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 3]))
    tensor([False,  True,  True])
    """
    tensors = [isinstance(x, TensorBase) for x in (elements, test_elements)]
    fine = all(isinstance(x, TensorBase) or is_number(x) for x in (elements, test_elements))
    if not any(tensors) or not fine:
        raise invalid(
            "isin", (elements, test_elements),
            "(Tensor elements, Tensor test_elements, *, bool assume_unique = False, "
            "bool invert = False, Tensor out = None)",
            "(Number element, Tensor test_elements, *, bool assume_unique = False, "
            "bool invert = False, Tensor out = None)",
            "(Tensor elements, Number test_element, *, bool assume_unique = False, "
            "bool invert = False, Tensor out = None)",
        )  # fmt: skip
    a, b = operand(elements), operand(test_elements)
    for x in (a, b):
        if isinstance(x, TensorBase) and (is_complex(x) or x._array.dtype.kind == "b"):
            kind = dtypes.of(x._array.dtype).scalar_type
            raise RuntimeError(f"Unsupported input type encountered for isin(): {kind}")
        if isinstance(x, (complex, bool)):
            kind = "Bool" if isinstance(x, bool) else "ComplexDouble"
            raise RuntimeError(f"Unsupported input type encountered for isin(): {kind}")
    promoted = result_dtype((a, b))
    a, b = (x if isinstance(x, TensorBase) else number_in(x, promoted) for x in (a, b))
    common = promoted.numpy
    raws = [without_histories(t._array) if isinstance(t, TensorBase) else None for t in (a, b)]
    x = v.constant(raws[1], a, common) if raws[0] is None else v.cast(raws[0], common)
    many = v.constant(raws[0], b, common) if raws[1] is None else v.cast(raws[1], common)
    found = _among(x, v.reshape(many, (-1,)))
    result = normal(v.logical_not(found) if invert else found)
    return wrap(result) if out is None else write_array(out, result)


def _among(x: Any, many: Any) -> Any:
    """Whether elements of a raw array are in a flat one: look each up in the sorted values."""
    if many.shape[0] == 0:
        return v.full(x, tuple(x.shape), False, dtypes.bool_.numpy)
    if v.low_precision(x.dtype):  # NumPy finds nothing in bfloat16 that is next to a NaN
        x, many = v.cast(x, dtypes.float32.numpy), v.cast(many, dtypes.float32.numpy)
    ordered = v.gather(many, 0, v.sort(many, 0, False, False))
    at = v.minimum(v.searchsorted(ordered, v.reshape(x, (-1,)), False), many.shape[0] - 1)
    return v.reshape(v.equal(v.gather(ordered, 0, at), v.reshape(x, (-1,))), tuple(x.shape))


# --- choosing -------------------------------------------------------------------------------------
@op
class Where(Op):
    """Elements of one tensor where a condition holds, of another where not.

    `dtype` is the result's raw dtype (None: the arrays'). The condition comes last, so that the
    edges of the node begin as PyTorch's do.
    """

    name, inputs, saves = "where", ("self", "other", "condition"), ("condition",)
    aten = "where.self"
    saved_names = ""
    shown_edges = (0, 1)
    params = ("dtype",)
    vmap_rule = align_members
    lies = "operands"
    leads = (2, 0, 1)
    dtype: Any = None

    def forward(self, a: Any, b: Any, condition: Any) -> Any:
        if self.dtype is not None:
            a, b = self.fit(a, condition), self.fit(b, condition)
        return v.where(condition, a, b)

    def fit(self, x: Any, like: Any) -> Any:
        """A number or array in the result's dtype."""
        if isinstance(x, (bool, int, float, complex)):
            return v.constant(like, x, self.dtype)
        return v.cast(x, self.dtype)

    def vjp(self, node: Node, g: Any, condition: Any) -> Any:
        return (
            v.where(condition, g, 0) if node._needs_grad(0) else None,
            v.where(condition, 0, g) if node._needs_grad(1) else None,
            None,
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        a = 0 if ts[0] is None else ts[0]
        b = 0 if ts[1] is None else ts[1]
        t = v.where(xs[2], a, b)
        return t if t.shape == y.shape else v.broadcast(t, tuple(y.shape))

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        shapes = [x.shape for x in (xs[2], xs[0], xs[1]) if hasattr(x, "shape")]
        if isinstance(error, ValueError):
            for i, first in enumerate(shapes):
                for second in shapes[i + 1 :]:
                    text = broadcast_mismatch(first, second)
                    if "must match" in text:
                        return RuntimeError(text)
        return error

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Where(), draw.real(2, 3), draw.real(2, 3), draw.mask(2, 3)
        yield Where(), draw.real(), draw.real(), draw.mask()
        yield Where(), draw.real(3), draw.real(2, 1), draw.mask(2, 3)
        yield Where(), draw.real(0, 2), draw.real(0, 2), draw.mask(0, 2)
        yield Where(), draw.complex(2, 2), draw.complex(2, 2), draw.mask(2, 2)


WHERE = Where()
_BOOL: Final = dtypes.bool_.numpy


@implements("where")
def choose(condition: Any, a: Any, b: Any) -> Any:
    """The op, for operands whose dtypes may differ; either may be a number."""
    condition = operand(condition)
    made = WHERE
    mixed = not isinstance(a, TensorBase) or not isinstance(b, TensorBase)
    if mixed or a._array.dtype is not b._array.dtype:
        a, b = operand(a), operand(b)
        common = result_dtype((a, b)).numpy
        made = Where(common)
        if not isinstance(a, TensorBase):
            a = number_for(a, common, False)
        if not isinstance(b, TensorBase):
            b = number_for(b, common, False)
    return apply(made, a, b, condition)


@function(method=False, settles=True)
def where(*args: Any, out: Any = None, **named: Any) -> Any:
    """Elements of `input` where `condition` holds, of `other` elsewhere; both may be numbers.
    With the condition alone: where it holds, as `nonzero(condition, as_tuple=True)`.

    Args:
        args: `condition`, and then, unless the indices are wanted, `input` and `other`.

    >>> x = torch.tensor([1., -2., 3.])
    >>> torch.where(x > 0, x, 0.)
    tensor([1., 0., 3.])
    """
    names = ("condition", "input", "other")
    given = dict(zip(names, args))
    given.update({("input" if name == "self" else name): x for name, x in named.items()})
    xs = tuple(given[name] for name in names if name in given)
    condition = given.get("condition")
    fine = isinstance(condition, TensorBase) and len(args) + len(named) == len(xs) in (1, 3)
    if not fine or not all(isinstance(x, TensorBase) or is_number(x) for x in xs):
        raise invalid(
            "where", xs, "(Tensor condition)",
            "(Tensor condition, Tensor input, Tensor other, *, Tensor out = None)",
            "(Tensor condition, Number self, Tensor other)",
            "(Tensor condition, Tensor input, Number other)",
            "(Tensor condition, Number self, Number other)",
        )  # fmt: skip
    assert isinstance(condition, TensorBase)
    if len(xs) == 1:
        return (
            tuple(wrap(i) for i in v.nonzero(condition._array))
            if condition._array.ndim
            else (wrap(v.nonzero(v.reshape(condition._array, (1,)))[0]),)
        )
    kind = dtypes.of(condition._array.dtype)
    if kind is dtypes.uint8:
        warn_caller(
            "where received a uint8 condition tensor. This behavior is deprecated and will be "
            "removed in a future version of PyTorch. Use a boolean condition instead."
        )
        condition = wrap(v.not_equal(condition._array, 0))
    elif kind is not dtypes.bool_:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{kind.scalar_type}"
        )
    if out is not None:
        a, b = operand(xs[1]), operand(xs[2])
        return run_out("where", Where(result_dtype((a, b)).numpy), (a, b, condition), out)
    return choose(condition, xs[1], xs[2])


@function(name="where", free=False, bare=True)
def _where_method(self: Any, condition: Any, other: Any) -> Any:
    """The tensor's elements where `condition` holds, `other`'s elsewhere.

    Args:
        condition: where it is true the tensor's own element is taken, elsewhere `other`'s.
    """
    return functions["where"](condition, self, other)
