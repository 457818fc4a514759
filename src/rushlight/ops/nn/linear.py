"""`linear` and `bilinear`: the products that layers are made of."""

from __future__ import annotations

from typing import Any, ClassVar

from rushlight import dtypes
from rushlight.arrays.vocabulary import cast, contiguous, low_precision, reduce_sum, reshape, swap
from rushlight.core.dispatch import columns_of
from rushlight.core.families import conj
from rushlight.core.graph import Node, Op
from rushlight.core.linear import linear as plain_linear
from rushlight.core.record import apply
from rushlight.errors import hide_insides
from rushlight.ops.checks import check_tensor, raw_dtype
from rushlight.ops.matmul.addmm import ADDMMS, addmm_of, batch_of_one
from rushlight.ops.matmul.matmul import matmul_product
from rushlight.ops.matmul.mm import matmul_wide
from rushlight.ops.registry import function, functional, op
from rushlight.ops.sample_inputs import drawn


@functional(settles=True, quick=plain_linear, told=ADDMMS)
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """input @ weight.T + bias.

    Args:
        weight: the matrix, of shape [out, in].

    >>> torch.nn.functional.linear(torch.ones(1, 3), torch.ones(2, 3), torch.tensor([0., 1.]))
    tensor([[3., 4.]])
    """
    try:
        check_tensor(input, "linear")
        check_tensor(weight, "linear", "weight", 2)
        m, n = input._array.ndim, weight._array.ndim
        if m == 0 or n == 0:
            raise RuntimeError(
                f"both arguments to linear need to be at least 1D, but they are {m}D and {n}D"
            )
        turned = weight.t()
        if bias is None:
            return matmul_product(input, turned)
        check_tensor(bias, "linear", "bias", 3)
        if n == 2:
            if m == 2:
                x, w, b = input._array, weight._array, bias._array
                if (
                    x.dtype is w.dtype
                    and x.dtype is b.dtype
                    and x.dtype.kind == "f"
                    and x.shape[1] == w.shape[1]
                    and b.shape == w.shape[:1]
                ):
                    # the usual case: nothing to check
                    return apply(ADDMMS[columns_of(input, turned)], bias, input, turned)
                return addmm_of(bias, input, turned, 1, 1, None, False)
            if bias._array.ndim < 2 and input._array.flags.c_contiguous:
                *lead, k = input._array.shape
                rows = 1
                for size in lead:
                    rows *= size
                y = addmm_of(bias, input.reshape(rows, k), turned, 1, 1, None, False)
                return y.view(*lead, weight._array.shape[0])
        return matmul_product(input, turned) + bias
    except Exception as error:
        text = str(error)
        if text.startswith("mat1 and mat2 shapes cannot be multiplied"):
            have, want = input._array.shape[-1], weight._array.shape[-1]
            error.args = (
                f"{text.partition(chr(10))[0]}\nThe data has {have} features in its last "
                f"dimension, and the weight takes {want}.",
            )
        hide_insides(error)
        raise


@op
class Trilinear(Op):
    """out[n, o] = Σ_ij x1[n, i] weight[o, i, j] x2[n, j]."""

    name = "trilinear"
    aten = "_trilinear.default"
    inputs = ("i1", "i2", "i3")
    saves = ("i1", "i2", "i3")
    reads: ClassVar = {0: ("i2", "i3"), 1: ("i1", "i3"), 2: ("i1", "i2")}
    complex_too = True

    def forward(self, a: Any, w: Any, b: Any) -> Any:
        dtype = raw_dtype(a)
        low = low_precision(dtype)
        if low:
            a, w, b = (cast(x, dtypes.float32.numpy) for x in (a, w, b))
        inner = matmul_wide(batch_of_one(a), w)  # [o, n, j]
        if low:  # rounded here as well, as in PyTorch, where this is a product of its own
            inner = cast(cast(inner, dtype), dtypes.float32.numpy)
        y = reduce_sum(inner * batch_of_one(b), (-1,), False)  # [o, n]
        return contiguous(swap(cast(y, dtype), -1, -2))

    def vjp(self, node: Node, g: Any, a: Any, w: Any, b: Any) -> Any:
        h = swap(g, -1, -2)
        h = reshape(h, (*h.shape, 1))  # [o, n, 1]
        ga = gw = gb = None
        if node._needs_grad(0):
            back = matmul_wide(batch_of_one(conj(b)), swap(conj(w), -1, -2))  # [o, n, i]
            ga = reduce_sum(h * back, (-3,), False)
        if node._needs_grad(1):
            gw = matmul_wide(swap(h * batch_of_one(conj(a)), -1, -2), batch_of_one(conj(b)))
        if node._needs_grad(2):
            gb = reduce_sum(h * matmul_wide(batch_of_one(conj(a)), conj(w)), (-3,), False)
        return ga, gw, gb

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        out: Any = None
        for i, t in enumerate(ts):
            if t is not None:
                parts = list(xs)
                parts[i] = t
                term = self.forward(parts[0], parts[1], parts[2])
                out = term if out is None else out + term
        return out

    samples = drawn(real=[((2, 3), (5, 3, 4), (2, 4)), ((0, 3), (2, 3, 2), (0, 2))])


TRILINEAR = Trilinear()


@function(method=False, namespace="nn.functional")
def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Any:
    """For each output o: input1 · weight[o] · input2 + bias[o].

    Args:
        weight: the matrices, of shape [out, in1, in2].

    >>> torch.nn.functional.bilinear(torch.ones(1, 2), torch.ones(1, 3), torch.ones(1, 2, 3))
    tensor([[6.]])
    """
    a, b, w = input1._array.shape, input2._array.shape, weight._array.shape
    if len(a) != len(b):
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {len(a)} and {len(b)}")
    for d, (m, n) in enumerate(zip(a[:-1], b[:-1])):
        if m != n:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {d}: got {m} and {n}"
            )
    if len(w) < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [-{len(w)}, {len(w) - 1}], "
            "but got 2)"
        )
    for name, have, want in (("input1", a[-1], w[1]), ("input2", b[-1], w[2])):
        if have != want:
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: got {have} but expected "
                f"{want}"
            )
    if bias is not None and bias._array.shape[0] != w[0]:
        raise RuntimeError(
            "bilinear(): bias size does not match weight size: got "
            f"{bias._array.shape[0]} but expected {w[0]}"
        )
    rows = 1
    for size in a[:-1]:
        rows *= size
    y = apply(TRILINEAR, input1.reshape(rows, a[-1]), weight, input2.reshape(rows, b[-1]))
    y = y.reshape(*a[:-1], w[0])
    return y if bias is None else y + bias
