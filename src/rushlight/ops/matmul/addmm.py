"""Products added to something: `addmm` and its family (for `linear` see there)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import kernels
from rushlight.arrays.fused import add_to
from rushlight.arrays.vocabulary import cast, low_precision, reduce_sum, reshape, swap
from rushlight.core.dispatch import columns_of
from rushlight.core.elementwise import result_dtype
from rushlight.core.families import conj
from rushlight.core.graph import Node, Op
from rushlight.core.record import apply
from rushlight.core.views.inplace import write
from rushlight.errors import ONE_DTYPE, check_expandable, product_mismatch
from rushlight.ops import old_forms
from rushlight.ops.checks import c_name, check_tensor, tensor_type
from rushlight.ops.creation.fill import number_for
from rushlight.ops.matmul.mm import (
    left_of,
    mat_vec,
    matmul_wide,
    outer_of,
    refuse_matmul_dtype,
    right_of,
)
from rushlight.ops.numbers import Number
from rushlight.ops.out import write_out
from rushlight.ops.registry import describe, function, op, variant
from rushlight.ops.sample_inputs import Draw, drawn

_FLOAT32: Final = dtypes.float32.numpy


class AddProduct(Op):
    """beta * self + alpha * (a × b): a subclass says what × is, with its two adjoints.

    With beta 0 what is in `self` does not count, NaN included.
    """

    params = ("beta", "alpha")
    beta: Any = 1
    alpha: Any = 1
    complex_too = True

    def forward(self, x: Any, a: Any, b: Any) -> Any:
        dtype = a.dtype
        if low_precision(dtype):
            wide = [cast(each, _FLOAT32) for each in (x, a, b)]
            return cast(self.combine(*wide), dtype)
        return self.combine(x, a, b)

    def combine(self, x: Any, a: Any, b: Any) -> Any:
        rule: Any = self
        y = rule.times(a, b)
        if self.alpha != 1:
            y = y * self.alpha
        if self.beta == 0:
            return y
        return add_to(y, x if self.beta == 1 else x * self.beta)

    def vjp(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        rule: Any = self
        h = g if self.alpha == 1 else g * conj(self.alpha)
        return (
            (g if self.beta == 1 else g * conj(self.beta)) if node._needs_grad(0) else None,
            rule.left(h, conj(b), a) if node._needs_grad(1) else None,
            rule.right(h, conj(a), b) if node._needs_grad(2) else None,
        )

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        rule: Any = self
        terms: list[Any] = []
        if ts[1] is not None:
            terms.append(rule.times(ts[1], xs[2]) * self.alpha)
        if ts[2] is not None:
            terms.append(rule.times(xs[1], ts[2]) * self.alpha)
        if ts[0] is not None:
            terms.append(ts[0] * self.beta)
        out = terms[0]
        for term in terms[1:]:
            out = out + term
        return out if out.shape == y.shape else out + y * 0


@op
class Addmm(AddProduct):
    """beta * self + alpha * mat1 @ mat2."""

    name = "addmm"
    inputs = ("self", "mat1", "mat2")
    saves = ("mat1", "mat2")
    saved_names: ClassVar[str | None] = (
        "alpha beta mat1_sym_sizes=mat1.sizes mat1_sym_strides=mat1.strides "
        "mat2_sym_sizes=mat2.sizes mat2_sym_strides=mat2.strides"
    )
    reads: ClassVar = {1: ("mat2",), 2: ("mat1",)}

    def __init__(self, beta: Any = 1, alpha: Any = 1, columns: int = 0) -> None:
        super().__init__(beta, alpha)
        self.columns = columns  # as in `Mm`

    def mover(self, rule: str) -> Any:
        if self.beta != 1 or self.alpha != 1:
            return None
        if rule == "forward":
            return kernels.multiplied
        return kernels.bound(kernels.multiplied_back, self.columns, 3)

    def times(self, a: Any, b: Any) -> Any:
        return matmul_wide(a, b)

    def left(self, g: Any, b: Any, a: Any) -> Any:
        return left_of(g, b, self.columns)

    def right(self, g: Any, a: Any, b: Any) -> Any:
        return right_of(g, a, self.columns)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Addmm(), draw.real(2, 4), draw.real(2, 3), draw.real(3, 4)
        yield Addmm(0.5, 2), draw.real(4), draw.real(2, 3), draw.real(3, 4)
        yield Addmm(0, 1), draw.real(2, 2), draw.real(2, 1), draw.real(1, 2)
        yield Addmm(), draw.real(), draw.real(2, 0), draw.real(0, 2)
        yield Addmm(2, 1 + 2j), draw.complex(2, 2), draw.complex(2, 3), draw.complex(3, 2)


@op
class Baddbmm(Addmm):
    """beta * self + alpha * batch1 @ batch2, for each of a batch."""

    name = "baddbmm"
    inputs = ("self", "batch1", "batch2")
    saves = ("batch1", "batch2")
    saved_names = None
    reads: ClassVar = {1: ("batch2",), 2: ("batch1",)}
    mover: Any = None  # batches have no kernel

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Baddbmm(), draw.real(2, 2, 4), draw.real(2, 2, 3), draw.real(2, 3, 4)
        yield Baddbmm(0.5, 2), draw.real(4), draw.real(2, 2, 3), draw.real(2, 3, 4)
        yield Baddbmm(), draw.real(0, 2, 2), draw.real(0, 2, 3), draw.real(0, 3, 2)


@op
class Addbmm(AddProduct):
    """beta * self + alpha * the sum over the batch of batch1 @ batch2."""

    name = "addbmm"
    inputs = ("self", "batch1", "batch2")
    saves = ("batch1", "batch2")
    saved_names = (
        "alpha beta batch1_sym_argsize_0=batch1.0 batch1_sym_argsize_1=batch1.1 "
        "batch2_sym_argsize_2=batch2.2"
    )
    reads: ClassVar = {1: ("batch2",), 2: ("batch1",)}

    def times(self, a: Any, b: Any) -> Any:
        return reduce_sum(matmul_wide(a, b), (-3,), False)

    def left(self, g: Any, b: Any, a: Any) -> Any:
        return matmul_wide(batch_of_one(g), swap(b, -1, -2))

    def right(self, g: Any, a: Any, b: Any) -> Any:
        return matmul_wide(swap(a, -1, -2), batch_of_one(g))

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        yield Addbmm(), draw.real(2, 4), draw.real(2, 2, 3), draw.real(2, 3, 4)
        yield Addbmm(0.5, 2), draw.real(4), draw.real(2, 2, 3), draw.real(2, 3, 4)
        yield Addbmm(), draw.real(2, 2), draw.real(0, 2, 3), draw.real(0, 3, 2)


def batch_of_one(g: Any) -> Any:
    """A batch of one for the last two axes."""
    return reshape(g, (*g.shape[:-2], 1, *g.shape[-2:]))


@op
class Addmv(AddProduct):
    """beta * self + alpha * mat @ vec."""

    name = "addmv"
    inputs = ("self", "mat", "vec")
    saves = ("mat", "vec")
    reads: ClassVar = {1: ("vec",), 2: ("mat",)}

    def times(self, a: Any, b: Any) -> Any:
        return mat_vec(a, b)

    def left(self, g: Any, b: Any, a: Any) -> Any:
        return outer_of(g, b)

    def right(self, g: Any, a: Any, b: Any) -> Any:
        return mat_vec(swap(a, -1, -2), g)

    samples = drawn(real=[((2,), (2, 3), (3,)), (0.5, 2, (1,), (2, 3), (3,)), ((2,), (2, 0), (0,))])


@op
class Addr(AddProduct):
    """beta * self + alpha * the outer product of vec1 and vec2."""

    name = "addr"
    inputs = ("self", "vec1", "vec2")
    saves = ("vec1", "vec2")
    reads: ClassVar = {1: ("vec2",), 2: ("vec1",)}
    lies = "operands"

    def times(self, a: Any, b: Any) -> Any:
        return outer_of(a, b)

    def left(self, g: Any, b: Any, a: Any) -> Any:
        return mat_vec(g, b)

    def right(self, g: Any, a: Any, b: Any) -> Any:
        return mat_vec(swap(g, -1, -2), a)

    samples = drawn(real=[((2, 3), (2,), (3,)), (0.5, 2, (3,), (2,), (3,)), ((0, 3), (0,), (3,))])


ADDMMS: Final = tuple([Addmm(1, 1, columns) for columns in range(4)])


# --- checks ---------------------------------------------------------------------------------------
def _fits(x: Any, shape: tuple[int, ...]) -> None:
    """PyTorch's error unless `x` can be expanded to `shape`."""
    check_expandable(tensor_type(x), x._array.shape, shape)


def _same_dtype(**tensors: Any) -> None:
    names = list(tensors)
    last = dtypes.of(tensors[names[-1]]._array.dtype)
    for name in (names[1], names[0]):
        have = dtypes.of(tensors[name]._array.dtype)
        if have is not last:
            raise RuntimeError(
                f"{name} and {names[-1]} must have the same dtype, but got {have.scalar_type} "
                f"and {last.scalar_type}\n{ONE_DTYPE}"
            )


def _weights(a: Any, beta: Any, alpha: Any) -> tuple[Any, Any]:
    """The two factors as the dtype takes them: whole numbers for integers."""
    if a._array.dtype.kind != "c":
        given = (beta, alpha)
        beta, alpha = (number_for(x, a._array.dtype) if type(x) is complex else x for x in given)
    if a._array.dtype.kind in "iu":
        return int(beta), int(alpha)
    if a._array.dtype.kind == "b":
        return bool(beta), bool(alpha)
    return beta, alpha


def _go(
    name: str, what: Any, xs: tuple[Any, ...], shape: tuple[int, ...], out: Any, place: bool
) -> Any:
    if place:
        have = xs[0]._array.shape
        if have != shape:
            raise RuntimeError(
                f"Bad in-place call: input tensor size {list(have)} and output tensor size "
                f"{list(shape)} should match"
            )
        return write(what, *xs)
    _fits(xs[0], shape)
    return write_out(name, xs, out, lambda: apply(what, *xs))


def addmm_of(x: Any, a: Any, b: Any, beta: Any, alpha: Any, out: Any, place: bool) -> Any:
    for name, t in (("mat1", a), ("mat2", b)):
        if t._array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {t._array.ndim}-D tensor")
    (n, k), (m, p) = a._array.shape, b._array.shape
    if k != m:
        raise RuntimeError(product_mismatch((n, k), (m, p)))
    if not x._array.dtype == a._array.dtype == b._array.dtype:
        _same_dtype(self=x, mat1=a, mat2=b)
    refuse_matmul_dtype(a._array.dtype, "addmm_impl_cpu_")
    columns = columns_of(a, b)
    if beta == 1 and alpha == 1:
        what = ADDMMS[columns]
    else:
        what = Addmm(*_weights(a, beta, alpha), columns)
    return _go("addmm", what, (x, a, b), (n, p), out, place)


def _addmv(x: Any, a: Any, b: Any, beta: Any, alpha: Any, out: Any, place: bool) -> Any:
    ranks = x._array.ndim, a._array.ndim, b._array.ndim
    if ranks[0] > 1 or ranks[1:] != (2, 1):
        shown = ", ".join(str(r) for r in ranks)
        raise RuntimeError(f"vector + matrix @ vector expected, got {shown}")
    n, k = a._array.shape
    size = x._array.size
    if b._array.shape[0] != k or (size not in (1, n)):
        raise RuntimeError(
            f"size mismatch, got input ({size}), mat ({n}x{k}), vec ({b._array.shape[0]})"
        )
    if not x._array.dtype == a._array.dtype == b._array.dtype:
        kinds = [dtypes.of(t._array.dtype).scalar_type for t in (x, a, b)]
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{kinds[0]}, {kinds[1]}, and {kinds[2]}\n{ONE_DTYPE}"
        )
    refuse_matmul_dtype(a._array.dtype, "addmv_impl_cpu")
    return _go("addmv", Addmv(*_weights(a, beta, alpha)), (x, a, b), (n,), out, place)


def _batches(a: Any, b: Any) -> tuple[int, int, int]:
    for name, t in (("batch1", a), ("batch2", b)):
        if t._array.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    (count, n, k), (count_b, m, p) = a._array.shape, b._array.shape
    if (count, k) != (count_b, m):
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{count}, {k}] but got: [{count_b}, {m}]."
        )
    refuse_matmul_dtype(a._array.dtype, "bmm")
    return count, n, p


def _addbmm(x: Any, a: Any, b: Any, beta: Any, alpha: Any, out: Any, place: bool) -> Any:
    if a._array.ndim > 1 and b._array.ndim > 2:
        _fits(x, (a._array.shape[1], b._array.shape[2]))
    _, n, p = _batches(a, b)
    _one_dtype(x, a, b)
    return _go("addbmm", Addbmm(*_weights(a, beta, alpha)), (x, a, b), (n, p), out, place)


def _one_dtype(x: Any, *others: Any) -> None:
    if any(t._array.dtype != x._array.dtype for t in others):
        mine, first, second = (c_name(t._array.dtype) for t in (x, *others))
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {mine}, batch1: {first}, batch2: {second}"
        )


def _baddbmm(x: Any, a: Any, b: Any, beta: Any, alpha: Any, out: Any, place: bool) -> Any:
    if not place and a._array.ndim > 1 and b._array.ndim > 2:
        _fits(x, (*a._array.shape[:2], b._array.shape[2]))
    shape = _batches(a, b)
    _one_dtype(x, a, b)
    return _go("baddbmm", Baddbmm(*_weights(a, beta, alpha)), (x, a, b), shape, out, place)


def _addr(x: Any, a: Any, b: Any, beta: Any, alpha: Any, out: Any, place: bool) -> Any:
    for name, t in (("vec1", a), ("vec2", b)):
        if t._array.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {t._array.ndim}-D")
    shape = a._array.shape[0], b._array.shape[0]
    if place and x._array.ndim != 2:
        raise RuntimeError(f"2D tensor expected, got {x._array.ndim}D tensor for input")
    common = result_dtype((x, a, b))
    xs = [t if t._array.dtype == common.numpy else t.to(common) for t in (x, a, b)]
    for name, number in (("beta", beta), ("alpha", alpha)):
        if isinstance(number, bool) and common is not dtypes.bool_:
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if isinstance(number, (float, complex)) and not (
            common.is_floating_point or common.is_complex
        ):
            raise RuntimeError(
                f"For integral input tensors, argument {name} must not be a floating point number."
            )
    what = Addr(*_weights(xs[1], beta, alpha))
    return _go("addr", what, tuple(xs), shape, out, place)


# --- the public functions -------------------------------------------------------------------------
def _export(
    name: str, first: str, second: str, compute: Callable[..., Any], text: str, example: str,
    shown: str, free: bool = False,
) -> None:  # fmt: skip
    """The function `name` and its in-place form, a free function too if `free`."""

    def check(input: Any, a: Any, b: Any) -> None:
        check_tensor(input, name)
        check_tensor(a, name, first, 2)
        check_tensor(b, name, second, 3)

    def add(
        input: Any, a: Any, b: Any, *deprecated: Any, beta: Number = 1, alpha: Number = 1,
        out: Any = None,
    ) -> Any:  # fmt: skip
        if deprecated:
            args = (input, a, b, *deprecated)
            input, a, b, beta, alpha = old_forms.reorder_weighted(name, args, first, second)
        check(input, a, b)
        return compute(input, a, b, beta, alpha, out, False)

    def write(
        input: Any, a: Any, b: Any, *deprecated: Any, beta: Number = 1, alpha: Number = 1
    ) -> Any:
        if deprecated:
            args = (input, a, b, *deprecated)
            input, a, b, beta, alpha = old_forms.reorder_weighted(f"{name}_", args, first, second)
        check(input, a, b)
        return compute(input, a, b, beta, alpha, None, True)

    doc = describe(f"beta * input + alpha * {text}.", f"torch.{name}({example})", shown)
    function(settles=True)(variant(add, name, doc, a=first, b=second))
    itself = "input" if free else "self"
    doc = describe(f"In-place version of `{name}`.")
    function(free=free)(variant(write, f"{name}_", doc, input=itself, a=first, b=second))


_export(
    "addmm", "mat1", "mat2", addmm_of, "(mat1 @ mat2)",
    "torch.ones(2), torch.ones(1, 3), torch.ones(3, 2)", "tensor([[4., 4.]])",
)  # fmt: skip
_export(
    "addmv", "mat", "vec", _addmv, "(mat @ vec)",
    "torch.ones(2), torch.ones(2, 3), torch.ones(3), alpha=2", "tensor([7., 7.])", free=True,
)  # fmt: skip
_export(
    "addbmm", "batch1", "batch2", _addbmm, "the sum of the products of two batches of matrices",
    "torch.ones(1, 1), torch.ones(2, 1, 3), torch.ones(2, 3, 1)", "tensor([[7.]])",
)  # fmt: skip
_export(
    "baddbmm", "batch1", "batch2", _baddbmm, "the products of two batches of matrices",
    "torch.ones(1, 1, 1), torch.ones(1, 1, 3), torch.ones(1, 3, 1)", "tensor([[[4.]]])",
)  # fmt: skip
_export(
    "addr", "vec1", "vec2", _addr, "the outer product of two vectors",
    "torch.zeros(2, 1), torch.tensor([1., 2.]), torch.tensor([3.])",
    "tensor([[3.],\n        [6.]])",
)  # fmt: skip
