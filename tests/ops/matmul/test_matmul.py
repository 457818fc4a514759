"""Products and `einsum`: ranks, dtypes, empty operands, nodes, gradients by hand, errors."""

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch
from rushlight.ops.registry import namespaces

F = namespaces["nn.functional"]
NAN = math.nan


def leaf(*rows: Any) -> Any:
    return torch.tensor(rows, requires_grad=True)


def count(*shape: int, dtype: Any = None) -> Any:
    """1, 2, 3, … in a shape."""
    n = math.prod(shape)
    return torch.tensor([float(i) for i in range(1, n + 1)]).reshape(shape).to(dtype or torch.float)


def names(t: Any) -> str:
    """The nodes behind a tensor, newest first, along the first edges."""
    out = []
    node = t.grad_fn
    while node is not None and "Accumulate" not in type(node).__name__:
        out.append(type(node).__name__.removesuffix("Backward0"))
        node = node.next_functions[0][0]
    return " ".join(out)


# --- values ---------------------------------------------------------------------------------------
def test_every_rank() -> None:
    v, m = torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (v @ v).item() == 5.0
    assert (v @ v).shape == ()
    assert (m @ v).tolist() == [5.0, 11.0]
    assert (v @ m).tolist() == [7.0, 10.0]
    assert (m @ m).tolist() == [[7.0, 10.0], [15.0, 22.0]]
    batch = torch.stack([m, 2 * m])
    assert (batch @ v).tolist() == [[5.0, 11.0], [10.0, 22.0]]
    assert (v @ batch).tolist() == [[7.0, 10.0], [14.0, 20.0]]
    assert (batch @ m)[1].tolist() == [[14.0, 20.0], [30.0, 44.0]]
    assert (m @ batch)[1].tolist() == [[14.0, 20.0], [30.0, 44.0]]
    assert (batch @ batch)[1].tolist() == [[28.0, 40.0], [60.0, 88.0]]


@pytest.mark.parametrize(
    ("a", "b", "out"),
    [
        ((3,), (5, 3, 2), (5, 2)),
        ((5, 2, 3), (1, 3, 4), (5, 2, 4)),
        ((6, 1, 2, 3), (5, 3, 4), (6, 5, 2, 4)),
        ((2, 3), (6, 5, 3, 4), (6, 5, 2, 4)),
        ((6, 5, 2, 3), (3,), (6, 5, 2)),
        ((0, 2, 3), (3, 4), (0, 2, 4)),
        ((2, 0), (0, 3), (2, 3)),
        ((0,), (0,), ()),
        ((4, 0, 3), (4, 3, 2), (4, 0, 2)),
    ],
)
def test_shapes(a: Any, b: Any, out: Any) -> None:
    y = torch.ones(a) @ torch.ones(b)
    assert y.shape == out
    assert all(value == a[-1] for value in y.reshape(-1).tolist())
    x, z = torch.ones(a, requires_grad=True), torch.ones(b, requires_grad=True)
    y = x @ z
    assert y.shape == out
    y.sum().backward()
    assert x.grad.shape == a and z.grad.shape == b


def test_transposed_and_strided_operands() -> None:
    m = count(2, 3)
    assert torch.mm(m.t(), m).tolist() == [
        [17.0, 22.0, 27.0],
        [22.0, 29.0, 36.0],
        [27.0, 36.0, 45.0],
    ]
    assert torch.mm(m[:, ::2], m[:, ::2].t()).tolist() == [[10.0, 22.0], [22.0, 52.0]]
    row = torch.ones(1, 3).expand(2, 3)
    assert torch.mm(row, m.t()).tolist() == [[6.0, 15.0], [6.0, 15.0]]


def test_dtypes() -> None:
    ints = torch.tensor([[1, 2], [3, 4]])
    assert (ints @ ints).tolist() == [[7, 10], [15, 22]]
    assert (ints @ ints).dtype is torch.int64
    tiny = torch.tensor([[100, 100]], dtype=torch.int8)
    assert torch.mm(tiny, tiny.t()).tolist() == [[20000 - 78 * 256]]  # wraps round
    z = torch.tensor([1 + 2j, 3j])
    assert torch.dot(z, z).item() == (1 + 2j) ** 2 + (3j) ** 2
    assert torch.vdot(z, z).item() == 14
    for low in (torch.float16, torch.bfloat16):
        ones = torch.ones(1, 4096, dtype=low)
        y = torch.mm(ones, ones.t())  # in float16 or bfloat16 the sum would stop growing at 2048
        assert y.dtype is low and y.item() == 4096
        assert (ones[0] @ ones[0]).item() == 4096
        assert torch.addmm(torch.zeros(1, dtype=low), ones, ones.t()).item() == 4096


def test_nan_and_infinity_pass() -> None:
    m = torch.tensor([[NAN, 0.0], [1.0, 1.0]])
    y = m @ torch.ones(2, 2)
    assert math.isnan(y[0, 0].item()) and y[1].tolist() == [2.0, 2.0]


# --- nodes and gradients --------------------------------------------------------------------------
def test_matmul_is_made_of_its_parts() -> None:
    def path(a: Any, b: Any) -> str:
        return names(torch.ones(a, requires_grad=True) @ torch.ones(b, requires_grad=True))

    assert path((2, 3), (3, 2)) == "Mm"
    assert path((3,), (3,)) == "Dot"
    assert path((2, 3), (3,)) == "Mv"
    assert path((5, 2, 3), (3, 2)) == "UnsafeView Mm View"
    assert path((5, 2, 3), (3,)) == "UnsafeView Mv View"
    assert path((5, 2, 3), (5, 3, 4)) == "UnsafeView Bmm View Expand"
    assert path((2, 3), (5, 3, 4)) == "Clone Transpose UnsafeView Mm UnsafeView Clone Transpose"


def test_gradients_by_hand() -> None:
    a, b = leaf([1.0, 2.0]), leaf([3.0], [4.0])
    (a @ b).backward()
    assert a.grad.tolist() == [[3.0, 4.0]] and b.grad.tolist() == [[1.0], [2.0]]
    u, v = leaf(1.0, 2.0), leaf(3.0, 4.0)
    torch.dot(u, v).backward()
    assert u.grad.tolist() == [3.0, 4.0] and v.grad.tolist() == [1.0, 2.0]
    m, x = leaf([1.0, 2.0], [3.0, 4.0]), leaf(5.0, 6.0)
    (m @ x).backward(torch.tensor([1.0, 10.0]))
    assert m.grad.tolist() == [[5.0, 6.0], [50.0, 60.0]] and x.grad.tolist() == [31.0, 42.0]


def test_only_wanted_gradients_keep_values() -> None:
    a = torch.ones(2, 3, requires_grad=True)
    node = (a @ torch.ones(3, 2)).grad_fn
    assert node._saved_self is None and node._saved_mat2.shape == (3, 2)


def test_second_derivative() -> None:
    a = leaf([1.0, 2.0], [3.0, 4.0])
    (g,) = torch.autograd.grad((a @ a).sum(), a, create_graph=True)
    (h,) = torch.autograd.grad((g * g).sum(), a)
    # g[i, j] = Σ_k a[j, k] + Σ_k a[k, i], from g = 1 aᵀ + aᵀ 1
    rows, columns = [3.0, 7.0], [4.0, 6.0]
    expect = [[rows[j] + columns[i] for j in range(2)] for i in range(2)]
    assert g.tolist() == expect
    down = [2 * (expect[0][j] + expect[1][j]) for j in range(2)]
    across = [2 * (expect[i][0] + expect[i][1]) for i in range(2)]
    assert h.tolist() == [[down[i] + across[j] for j in range(2)] for i in range(2)]


def test_complex_gradients_are_conjugated() -> None:
    a = torch.tensor([[1 + 1j]], requires_grad=True)
    b = torch.tensor([[2 + 3j]], requires_grad=True)
    (a @ b).backward(torch.ones(1, 1, dtype=torch.complex64))
    assert a.grad.item() == 2 - 3j and b.grad.item() == 1 - 1j


# --- forms that add -------------------------------------------------------------------------------
def test_addmm_family() -> None:
    m = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    one = torch.ones(2)
    assert torch.addmm(one, m, m).tolist() == [[8.0, 11.0], [16.0, 23.0]]
    assert torch.addmm(one, m, m, beta=10, alpha=0.5).tolist() == [[13.5, 15.0], [17.5, 21.0]]
    assert torch.addmm(torch.full((2, 2), NAN), m, m, beta=0).tolist() == (m @ m).tolist()
    assert torch.addmv(one, m, one, alpha=2).tolist() == [7.0, 15.0]
    assert torch.addr(torch.zeros(2, 2), one, torch.tensor([1.0, 2.0])).tolist() == [[1.0, 2.0]] * 2
    batch = torch.stack([m, m])
    assert torch.addbmm(torch.zeros(2, 2), batch, batch).tolist() == (2 * (m @ m)).tolist()
    assert torch.baddbmm(one, batch, batch)[1].tolist() == (m @ m + 1).tolist()
    ints = torch.ones(2, 2, dtype=torch.int64)
    assert torch.addmm(ints, ints, ints, alpha=0.5).tolist() == [[1, 1], [1, 1]]  # 0.5 becomes 0
    assert torch.addr(ints > 0, ints[0] > 0, ints[0] > 0).dtype is torch.bool


def test_in_place_forms() -> None:
    x = torch.zeros(2, 2)
    m = torch.ones(2, 2, requires_grad=True)
    assert x.addmm_(m, m) is x
    assert x.tolist() == [[2.0, 2.0], [2.0, 2.0]] and names(x) == "Addmm"
    x.sum().backward()
    assert m.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]
    with pytest.raises(RuntimeError, match=r"Bad in-place call: input tensor size \[2\] and"):
        torch.ones(2).addmm_(torch.ones(2, 2), torch.ones(2, 2))
    assert torch.zeros(2).addmv_(torch.ones(2, 3), torch.ones(3)).tolist() == [3.0, 3.0]
    assert torch.zeros(1, 2).addr_(torch.ones(1), torch.ones(2)).tolist() == [[1.0, 1.0]]


def test_out() -> None:
    m = torch.ones(2, 2)
    out = torch.empty(0)
    assert torch.mm(m, m, out=out) is out and out.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got doub"):
        torch.mm(m, m, out=torch.empty(2, 2, dtype=torch.double))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.matmul(m.requires_grad_(), m, out=torch.empty(2, 2))


def test_linear() -> None:
    linear = F["linear"]
    w = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], requires_grad=True)
    b = torch.tensor([10.0, 20.0, 30.0], requires_grad=True)
    x = torch.tensor([[1.0, 1.0]])
    y = linear(x, w, b)
    assert y.tolist() == [[13.0, 27.0, 41.0]] and names(y) == "Addmm"
    assert names(linear(x, w)) == "Mm"
    y.sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0]] * 3 and b.grad.tolist() == [1.0, 1.0, 1.0]
    assert linear(x[0], w, b).tolist() == [13.0, 27.0, 41.0]
    assert linear(torch.ones(4, 5, 2), w, b).shape == (4, 5, 3)
    assert linear(torch.ones(4, 2, 5).transpose(1, 2), w, b).shape == (4, 5, 3)
    assert linear(torch.ones(0, 2), w, b).shape == (0, 3)
    y = F["bilinear"](torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0]]), torch.ones(1, 2, 1))
    assert y.tolist() == [[9.0]]


def test_inner_outer_tensordot_and_chains() -> None:
    v, m = torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert torch.inner(m, v).tolist() == [5.0, 11.0]
    assert torch.inner(torch.tensor(2.0), v).tolist() == [2.0, 4.0]
    assert torch.outer(v, v).tolist() == [[1.0, 2.0], [2.0, 4.0]]
    assert torch.ger(v, torch.tensor([3])).dtype is torch.float32
    assert torch.tensordot(m, m, 2).item() == 30.0
    assert torch.tensordot(m, v, 0).shape == (2, 2, 2)
    assert torch.tensordot(m, m, ([0], [1])).tolist() == [[7.0, 15.0], [10.0, 22.0]]
    chain = namespaces["linalg"]["multi_dot"]
    assert chain([v, m, m, v]).item() == (v @ m @ m @ v).item()
    assert chain([m, m, m]).tolist() == (m @ m @ m).tolist()
    with pytest.warns(UserWarning, match=r"torch.chain_matmul is deprecated"):
        assert torch.chain_matmul(m, m).tolist() == (m @ m).tolist()


# --- einsum ---------------------------------------------------------------------------------------
def test_einsum() -> None:
    m, v = count(2, 3), torch.tensor([1.0, 1.0, 2.0])
    e = torch.einsum
    assert e("ij,j->i", m, v).tolist() == (m @ v).tolist()
    assert e("ij,jk", m, m.t()).tolist() == (m @ m.t()).tolist()
    assert e("ij->ji", m).tolist() == m.t().tolist()
    assert e("ij->", m).item() == 21.0
    assert e("ii", torch.eye(3)).item() == 3.0
    square = count(2, 2)
    assert e("ii->i", square).tolist() == [1.0, 4.0]
    assert e("ij,ij,ij->i", m, m, m).tolist() == [36.0, 405.0]
    assert e("...ij,...jk->...ik", count(4, 2, 3), m.t()).shape == (4, 2, 2)
    assert e("...ij->ij...", count(4, 2, 3)).shape == (2, 3, 4)
    assert e(" i j , j -> i ", m, v).tolist() == (m @ v).tolist()
    assert (
        e("bA,Ab", count(2, 3), count(3, 2)).item() == e("ij,ji", count(2, 3), count(3, 2)).item()
    )
    assert e(m, [0, 1], v, [1], [0]).tolist() == (m @ v).tolist()
    assert e(m, [0, ...], [..., 0]).shape == (3, 2)
    assert e("ij,jk->ik", torch.ones(2, 0), torch.ones(0, 4)).tolist() == [[0.0] * 4] * 2
    assert e("i,i->i", torch.tensor([1, 2]), torch.tensor([3, 4])).tolist() == [3, 8]
    assert e("ij,i->j", m, torch.ones(1)).tolist() == [5.0, 7.0, 9.0]  # size 1 broadcasts


def test_einsum_gradient() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    torch.einsum("ii,jk->", x, x).backward()  # trace times sum of all
    assert x.grad.tolist() == [[15.0, 5.0], [5.0, 15.0]]


@pytest.mark.parametrize(
    ("equation", "shapes", "text"),
    [
        ("ij,jk->ik", [(2, 3)], "fewer operands were provided than specified"),
        ("ij->ji", [(2, 3), (2, 3)], "more operands were provided than specified"),
        ("ij->iz", [(2, 3)], "output subscript z does not appear in the equation"),
        ("ij->ii", [(2, 3)], "output subscript i appears more than once"),
        ("ijk->i", [(2, 3)], r"number of subscripts in the equation \(3\) does not match"),
        ("ij,ij->ij", [(2, 3), (3, 3)], "subscript i has size 3 for operand 1 which does not"),
        (
            "ii->i",
            [(2, 3)],
            "subscript i is repeated for operand 0 but the sizes don't match, 3 != 2",
        ),
        ("i1->i", [(2, 3)], "invalid subscript given at index 1 in the equation string"),
        ("i.j->i", [(2, 3)], r"found '\.' for operand 0 that is not part of any ellipsis"),
        ("...i...->i", [(2, 3)], r"found '\.' for operand 0 for which an ellipsis was already"),
    ],
)
def test_einsum_errors(equation: str, shapes: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=r"einsum\(\): .*" + text):
        torch.einsum(equation, *[torch.ones(s) for s in shapes])


# --- errors ---------------------------------------------------------------------------------------
def test_shape_errors() -> None:
    a, b, batch = torch.ones(2, 3), torch.ones(4, 5), torch.ones(5, 2, 3)
    cases: list[tuple[Any, str]] = [
        (lambda: a @ b, r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"),
        (lambda: torch.mm(a, a[0]), "mat2 must be a matrix"),
        (lambda: torch.mm(batch, a), "self must be a matrix"),
        (lambda: a @ torch.tensor(1.0), "both arguments to matmul need to be at least 1D"),
        (lambda: torch.bmm(a, a), "batch1 must be a 3D tensor"),
        (lambda: torch.bmm(batch, torch.ones(4, 3, 2)), "Expected size for first two dimensions"),
        (lambda: torch.bmm(batch, torch.ones(1, 3, 2)), "Expected size for first two dimensions"),
        (lambda: batch @ torch.ones(4, 3, 2), r"The size of tensor a \(5\) must match the size"),
        (lambda: a @ torch.ones(4), r"size mismatch, got input \(2\), mat \(2x3\), vec \(4\)"),
        (lambda: a[0] @ torch.ones(4), "inconsistent tensor size"),
        (lambda: torch.dot(a, a), "1D tensors expected, but got 2D and 2D tensors"),
        (lambda: torch.outer(a, a[0]), "outer: Expected 1-D argument self, but got 2-D"),
        (lambda: torch.inner(a, b), r"inner\(\) the last dimension must match"),
        (lambda: torch.addmm(torch.ones(7), a, a.t()), r"The expanded size of the tensor \(2\)"),
        (lambda: torch.tensordot(a, b, 1), "contracted dimensions need to match"),
        (lambda: F["linear"](a, b), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 5x4\)"),
    ]
    for call, text in cases:
        with pytest.raises(RuntimeError, match=text):
            call()


def test_dtype_errors() -> None:
    a, d = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.double)
    with pytest.raises(RuntimeError, match="expected m1 and m2 to have the same dtype, but got: f"):
        a @ d
    with pytest.raises(RuntimeError, match="got: float != long int"):
        a @ torch.ones(2, 2, dtype=torch.long)
    with pytest.raises(RuntimeError, match="dot : expected both vectors to have same dtype"):
        a[0] @ d[0]
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        torch.bmm(a[None], d[None])
    with pytest.raises(RuntimeError, match="self and mat2 must have the same dtype"):
        torch.addmm(d, a, a)
    with pytest.raises(NotImplementedError, match=r"addmm_impl_cpu_.* not implemented for 'Bool'"):
        (a > 0) @ (a > 0)


def test_strangers() -> None:
    a = torch.ones(2, 2)
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for @: 'Tensor' and 'int'"):
        a @ 3
    with pytest.raises(TypeError, match=r"for @: 'list' and 'Tensor'"):
        [1, 2] @ a
    with pytest.raises(TypeError, match=r"matmul\(\): argument 'other' \(position 2\) must be Ten"):
        torch.matmul(a, 3)
    b = a
    b @= a  # Python makes a new tensor
    assert b is not a and b.tolist() == [[2.0, 2.0], [2.0, 2.0]]
