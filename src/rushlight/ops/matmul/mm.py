"""Products that sum over a shared axis: `mm`, `bmm`, `mv`, `dot`, and what is made of them.

`matmul` and its like, composed of these and of views, stand in `matmul.py`; the forms that add
to something (`addmm`, `baddbmm`) in `addmm.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from rushlight import dtypes
from rushlight.arrays import kernels
from rushlight.arrays.vocabulary import matrices, narrow_matmul, reduce_sum, reshape, swap, turned
from rushlight.core.dispatch import binary, columns_of
from rushlight.core.families import Bilinear, conj, is_complex
from rushlight.core.grad_mode import state
from rushlight.core.graph import Node
from rushlight.core.record import apply
from rushlight.errors import ONE_DTYPE, product_mismatch
from rushlight.ops.checks import c_name, check_tensor, check_tensors
from rushlight.ops.each_member import batch_leading
from rushlight.ops.out import write_out
from rushlight.ops.registry import function, op
from rushlight.ops.sample_inputs import drawn

_FLOAT32: Final = dtypes.float32.numpy
_FLOAT64: Final = dtypes.float64.numpy
_REFUSED: Final = (dtypes.bool_, dtypes.uint16, dtypes.uint32, dtypes.uint64)


def refuse_matmul_dtype(raw: Any, kernel: str) -> None:
    """PyTorch has no product of bools, nor of the wider unsigned integers."""
    if raw.kind in "bu" and dtypes.of(raw) in _REFUSED:
        kind = dtypes.of(raw).scalar_type
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind}'")


# --- the products, over any number of batch dimensions in front -----------------------------------
def matmul_wide(a: Any, b: Any) -> Any:
    """The matrix product; low precision is summed in float32."""
    if a.dtype.itemsize < 4:
        return narrow_matmul(a, b)
    return matrices(a, b)


def mat_vec(a: Any, x: Any) -> Any:
    """A matrix times a vector."""
    if x.ndim == 1:
        return matmul_wide(a, x)
    y = matmul_wide(a, reshape(x, (*x.shape, 1)))
    return reshape(y, y.shape[:-1])


def vec_vec(a: Any, b: Any) -> Any:
    """The sum of the products of two vectors' elements."""
    if a.ndim == 1 and b.ndim == 1:
        return matmul_wide(a, b)
    return reduce_sum(a * b, (-1,), False)


def outer_of(a: Any, b: Any) -> Any:
    """The matrix of products of two vectors' elements."""
    return reshape(a, (*a.shape, 1)) * reshape(b, (*b.shape[:-1], 1, b.shape[-1]))


def scale_vector(g: Any, x: Any) -> Any:
    """One number (an axis less than the vector `x`) times a vector."""
    return reshape(g, (*g.shape, 1)) * x


def left_of(g: Any, b: Any, columns: int) -> Any:
    """The gradient of the left factor of a product; see Note [Products of turned matrices]."""
    return (
        swap(matmul_wide(b, swap(g, -1, -2)), -1, -2) if columns & 1 else matmul_wide(g, turned(b))
    )


def right_of(g: Any, a: Any, columns: int) -> Any:
    """The gradient of the right factor, likewise."""
    return (
        swap(matmul_wide(swap(g, -1, -2), a), -1, -2)
        if columns & 2
        else matmul_wide(swap(a, -1, -2), g)
    )


@op
class Mm(Bilinear):
    """Matrix times matrix. `columns` has bit 0 set if the first lies in memory column by column,
    bit 1 if the second does.

    Note [Products of turned matrices]
        The gradient of a factor lies as the factor does, as in PyTorch: that of `w.t()` column by
        column, so that what arrives at `w` lies in rows and need not be turned for `w.grad`.
    """

    name = "mm"
    saved_names = (
        "self_sym_sizes=self.sizes self_sym_strides=self.strides "
        "mat2_sym_sizes=mat2.sizes mat2_sym_strides=mat2.strides"
    )
    inputs = ("self", "mat2")
    saves = ("self", "mat2")
    reads: ClassVar = {0: ("mat2",), 1: ("self",)}
    vmap_rule = batch_leading

    def __init__(self, columns: int = 0) -> None:
        super().__init__()
        self.columns = columns  # no parameter: the result does not depend on it

    def mover(self, rule: str) -> Any:
        if rule == "forward":
            return kernels.multiplied
        return kernels.bound(kernels.multiplied_back, self.columns, 2)

    def forward(self, a: Any, b: Any) -> Any:
        return matrices(a, b) if a.dtype.itemsize >= 4 else narrow_matmul(a, b)

    def vjp(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        left, right = node._next_edges
        if is_complex(g):
            a, b = conj(a), conj(b)
        return (
            left_of(g, b, self.columns) if left is not None else None,
            right_of(g, a, self.columns) if right is not None else None,
        )

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        a, b = xs
        if a.shape[-1] != b.shape[-2]:
            return RuntimeError(product_mismatch(a.shape[-2:], b.shape[-2:]))
        return error

    samples = drawn(
        real=[((2, 3), (3, 4)), ((1, 3), (3, 1)), ((2, 0), (0, 2)), ((0, 2), (2, 3))],
        complex=[((2, 2), (2, 3))],
    )


@op
class Bmm(Mm):
    """Matrix times matrix, for each of a batch."""

    name = "bmm"
    saved_names = ""
    vmap_rule = batch_leading
    lies = "rows"

    def mover(self, rule: str) -> Any:
        return kernels.multiplied_batches if rule == "forward" else None

    def explain(self, error: Exception, xs: tuple[Any, ...]) -> Exception:
        a, b = xs
        if (a.shape[-3], a.shape[-1]) != b.shape[-3:-1]:
            return RuntimeError(
                "Expected size for first two dimensions of batch2 tensor to be: "
                f"[{a.shape[-3]}, {a.shape[-1]}] but got: [{b.shape[-3]}, {b.shape[-2]}]."
            )
        return error

    samples = drawn(
        real=[((2, 2, 3), (2, 3, 4)), ((1, 2, 1), (1, 1, 2)), ((0, 2, 3), (0, 3, 2))],
        complex=[((2, 1, 2), (2, 2, 2))],
    )


@op
class Mv(Bilinear):
    """Matrix times vector."""

    name = "mv"
    inputs = ("self", "vec")
    saves = ("self", "vec")
    reads: ClassVar = {0: ("vec",), 1: ("self",)}
    vmap_rule = batch_leading

    def forward(self, a: Any, x: Any) -> Any:
        return mat_vec(a, x)

    def left(self, g: Any, x: Any, shape: Any) -> Any:
        return outer_of(g, x)

    def right(self, g: Any, a: Any, shape: Any) -> Any:
        return mat_vec(swap(a, -1, -2), g)

    samples = drawn(real=[((2, 3), (3,)), ((2, 0), (0,)), ((0, 2), (2,))], complex=[((2, 2), (2,))])


@op
class Dot(Bilinear):
    """Vector times vector."""

    name = "dot"
    inputs = ("self", "tensor")
    saves = ("self", "tensor")
    reads: ClassVar = {0: ("tensor",), 1: ("self",)}
    vmap_rule = batch_leading

    def mover(self, rule: str) -> Any:
        return kernels.multiplied_vectors if rule == "forward" else None

    def forward(self, a: Any, b: Any) -> Any:
        return vec_vec(a, b)

    def left(self, g: Any, b: Any, shape: Any) -> Any:
        return scale_vector(g, b)

    def right(self, g: Any, a: Any, shape: Any) -> Any:
        return scale_vector(g, a)

    samples = drawn(real=[((3,), (3,)), ((0,), (0,))], complex=[((3,), (3,))])


@op
class Vdot(Bilinear):
    """The conjugate of a vector times a vector. Not linear in the first: own rules."""

    name = "vdot"
    vmap_rule = batch_leading

    def forward(self, a: Any, b: Any) -> Any:
        return vec_vec(conj(a), b)

    def vjp(self, node: Node, g: Any, a: Any, b: Any) -> Any:
        return (
            scale_vector(conj(g), b) if node._needs_grad(0) else None,
            scale_vector(g, a) if node._needs_grad(1) else None,
        )

    samples = drawn(real=[((3,), (3,))], complex=[((3,), (3,))])


MM, BMM, MV, DOT, VDOT = Mm(), Bmm(), Mv(), Dot(), Vdot()
MMS: Final = (MM, Mm(1), Mm(2), Mm(3))  # by `columns`


# --- checked, on tensors --------------------------------------------------------------------------
def mm_of(a: Any, b: Any) -> Any:
    xa, xb = a._array, b._array
    raw = xa.dtype
    if (
        raw is xb.dtype
        and (raw is _FLOAT32 or raw is _FLOAT64)
        and state.active == 0
        and type(xa) is type(xb)
    ):
        return binary(MMS[columns_of(a, b)], a, b)  # the quick way: one dtype, nothing to promote
    if raw is not xb.dtype and raw != xb.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{c_name(raw)} != {c_name(xb.dtype)}\n{ONE_DTYPE}"
        )
    if raw.kind != "f":
        refuse_matmul_dtype(raw, "addmm_impl_cpu_")
    return apply(MMS[columns_of(a, b)], a, b)


def bmm_of(a: Any, b: Any) -> Any:
    raw, other = a._array.dtype, b._array.dtype
    if a._array.shape[0] != b._array.shape[0]:  # NumPy would broadcast a batch of 1
        raise BMM.explain(ValueError(), (a._array, b._array))
    if raw != other:
        have, got = dtypes.of(raw).scalar_type, dtypes.of(other).scalar_type
        raise RuntimeError(f"expected scalar type {have} but found {got}\n{ONE_DTYPE}")
    refuse_matmul_dtype(raw, "bmm")
    return apply(BMM, a, b)


def mv_of(a: Any, x: Any) -> Any:
    n, k = a._array.shape
    if x._array.shape[0] != k:
        raise RuntimeError(
            f"size mismatch, got input ({n}), mat ({n}x{k}), vec ({x._array.shape[0]})"
        )
    raw, other = a._array.dtype, x._array.dtype
    if raw != other:
        mat, vec = dtypes.of(raw).scalar_type, dtypes.of(other).scalar_type
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {vec}, {mat}, and {vec}\n"
            f"{ONE_DTYPE}"
        )
    refuse_matmul_dtype(raw, "addmv_impl_cpu")
    return apply(MV, a, x)


def dot_of(what: Any, a: Any, b: Any) -> Any:
    xa, xb = a._array, b._array
    if xa.ndim != 1 or xb.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {xa.ndim}D and {xb.ndim}D tensors")
    if xa.dtype != xb.dtype:
        have, got = dtypes.of(xa.dtype).scalar_type, dtypes.of(xb.dtype).scalar_type
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {have} and {got}"
        )
    if xa.shape != xb.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{xa.size}] and src [{xb.size}] to have "
            f"the same number of elements, but got {xa.size} and {xb.size} elements respectively"
        )
    refuse_matmul_dtype(xa.dtype, "dot")
    return apply(what, a, b)


@function(settles=True)
def mm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """The product of two matrices.

    >>> torch.mm(torch.tensor([[1., 2.]]), torch.tensor([[3.], [4.]]))
    tensor([[11.]])
    """
    check_tensor(input, "mm")
    check_tensor(mat2, "mm", "mat2", 2)
    for name, x in (("self", input), ("mat2", mat2)):
        if x._array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    return write_out("mm", (input, mat2), out, lambda: mm_of(input, mat2))


@function(settles=True)
def bmm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """The products of two batches of matrices.

    >>> torch.bmm(torch.ones(2, 1, 3), torch.ones(2, 3, 1))
    tensor([[[3.]],
    <BLANKLINE>
            [[3.]]])
    """
    check_tensor(input, "bmm")
    check_tensor(mat2, "bmm", "mat2", 2)
    for name, x in (("batch1", input), ("batch2", mat2)):
        if x._array.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    return write_out("bmm", (input, mat2), out, lambda: bmm_of(input, mat2))


@function(settles=True)
def mv(input: Any, vec: Any, *, out: Any = None) -> Any:
    """A matrix times a vector.

    >>> torch.mv(torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([3., 7.])
    """
    if input._array.ndim != 2 or vec._array.ndim != 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got 1, {input._array.ndim}, {vec._array.ndim}"
        )
    return write_out("mv", (input, vec), out, lambda: mv_of(input, vec))


@function(settles=True)
def dot(input: Any, tensor: Any, *, out: Any = None) -> Any:
    """The sum of the products of two vectors' elements.

    >>> torch.dot(torch.tensor([2., 3.]), torch.tensor([2., 1.]))
    tensor(7.)
    """
    return write_out("dot", (input, tensor), out, lambda: dot_of(DOT, input, tensor))


@function()
def vdot(input: Any, other: Any, *, out: Any = None) -> Any:
    """`dot` with the complex conjugate of the first vector.

    >>> torch.vdot(torch.tensor([2., 3.]), torch.tensor([2., 1.]))
    tensor(7.)
    """
    check_tensors("vdot", input=input, other=other)
    return write_out("vdot", (input, other), out, lambda: dot_of(VDOT, input, other))


@function(settles=True)
def outer(input: Any, vec2: Any, *, out: Any = None) -> Any:
    """The matrix of the products of two vectors' elements.

    >>> torch.outer(torch.tensor([1., 2.]), torch.tensor([3., 4.]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    check_tensors("outer", input=input, vec2=vec2)
    for name, x in (("self", input), ("vec2", vec2)):
        if x._array.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x._array.ndim}-D")
    return write_out(
        "outer", (input, vec2), out, lambda: input.reshape(input._array.size, 1) * vec2
    )


@function()
def ger(input: Any, vec2: Any, *, out: Any = None) -> Any:
    """Another name of `outer`.

    >>> torch.ger(torch.tensor([1., 2.]), torch.tensor([3.]))
    tensor([[3.],
            [6.]])
    """
    return outer(input, vec2, out=out)
