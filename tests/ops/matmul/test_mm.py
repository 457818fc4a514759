"""`mm`, `bmm`, `mv`, `dot`: layouts, dtypes, gradients by hand, `out=`, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.matmul.helpers import F, count


def leaf(*rows: Any) -> Any:
    return torch.tensor(rows, requires_grad=True)


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


def test_out() -> None:
    m = torch.ones(2, 2)
    out = torch.empty(0)
    assert torch.mm(m, m, out=out) is out and out.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got doub"):
        torch.mm(m, m, out=torch.empty(2, 2, dtype=torch.double))
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.matmul(m.requires_grad_(), m, out=torch.empty(2, 2))


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
