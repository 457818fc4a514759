"""Gathering and scattering, masks, flat positions: values, gradients, in-place forms, errors."""

# ruff: noqa: E501 (PyTorch's error texts are long)

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch

T = torch.tensor


def count(*shape: int) -> Any:
    """0., 1., 2., … in a shape."""
    return torch.arange(float(math.prod(shape))).reshape(shape)


def leaf(*shape: int) -> Any:
    return count(*shape).clone().requires_grad_()


def grads(y: Any, *xs: Any) -> list[Any]:
    """d(sum of y * (1, 2, 3, …)) / dx, for each x."""
    weight = torch.arange(1.0, y.numel() + 1).reshape(y.shape)
    return [g.tolist() for g in torch.autograd.grad([y], list(xs), [weight])]


# --- gather, scatter ------------------------------------------------------------------------------
def test_gather() -> None:
    x = count(2, 3)
    assert x.gather(1, T([[0, 0], [2, 1]])).tolist() == [[0, 0], [5, 4]]
    assert x.gather(0, T([[1, 0]])).tolist() == [[3, 1]]  # a smaller index
    assert x.t().gather(0, T([[2, 2]])).tolist() == [[2, 5]]  # not contiguous
    assert T(5.0).gather(0, T([0, 0])).tolist() == [5, 5]
    assert T([5.0, 6.0]).gather(0, T(1)).item() == 6
    assert x.gather(1, torch.zeros(0, dtype=torch.int64)).shape == (0,)
    assert x.gather(1, T([[0]], dtype=torch.int32)).tolist() == [[0]]


def test_gather_gradient_adds_up() -> None:
    x = leaf(2, 2)
    assert grads(x.gather(1, T([[0, 0, 1], [1, 1, 1]])), x) == [[[3, 3], [0, 15]]]
    assert [type(n).__name__ for n, _ in x.gather(1, T([[0]])).grad_fn.next_functions] == [
        "AccumulateGrad"
    ]


def test_scatter() -> None:
    x = torch.zeros(2, 3)
    index = T([[0], [2]])
    assert x.scatter(1, index, 1.5).tolist() == [[1.5, 0, 0], [0, 0, 1.5]]
    assert x.scatter(1, index, count(2, 3)).tolist() == [[0, 0, 0], [0, 0, 3]]  # a larger source
    assert x.scatter_(1, index, 1.0) is x and x.tolist() == [[1, 0, 0], [0, 0, 1]]
    assert x.scatter(1, index, 3, reduce="add").tolist() == [[4, 0, 0], [0, 0, 4]]
    assert x.scatter(1, index, T([[5.0], [6.0]]), reduce="multiply")[1, 2].item() == 6
    assert T(5.0).scatter(0, T(0), 3.0).item() == 3


def test_scatter_gradients() -> None:
    x, src = leaf(2, 2), leaf(1, 2)
    y = x.scatter(0, T([[1, 0]]), src)
    assert y.tolist() == [[0, 1], [0, 3]]
    assert grads(y, x, src) == [[[1, 0], [0, 4]], [[3, 2]]]
    assert grads(x.scatter(0, T([[1, 0]]), 7.0), x) == [[[1, 0], [0, 4]]]
    assert grads(x.scatter_add(0, T([[1, 1]]), src), x, src) == [[[1, 2], [3, 4]], [[3, 4]]]


def test_a_larger_source_gets_zeros_outside_the_index() -> None:
    src = leaf(2, 2)
    assert grads(torch.zeros(3).scatter_add(0, T([2]), src[0]), src) == [[[3, 0], [0, 0]]]


def test_scatter_add_repeats() -> None:
    x = torch.zeros(3)
    assert x.scatter_add(0, T([0, 0, 2]), T([1.0, 2.0, 3.0])).tolist() == [3, 0, 3]
    assert x.scatter_add_(0, T([1, 1]), T([1.0, 1.0])).tolist() == [0, 2, 0]
    low = torch.zeros(1, dtype=torch.bfloat16)
    ones = torch.ones(1000, dtype=torch.bfloat16)
    assert low.scatter_add(0, torch.zeros(1000, dtype=torch.int64), ones).item() == 1000


# --- scatter_reduce -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("reduce", "include", "result"),
    [
        ("sum", True, [8, 3, 3]),
        ("sum", False, [7, 2, 3]),
        ("prod", True, [12, 2, 3]),
        ("prod", False, [12, 2, 3]),
        ("mean", True, [8 / 3, 1.5, 3]),
        ("mean", False, [3.5, 2, 3]),
        ("amax", True, [4, 2, 3]),
        ("amin", True, [1, 1, 3]),
        ("amin", False, [3, 2, 3]),
    ],
)
def test_scatter_reduce(reduce: str, include: bool, result: list[float]) -> None:
    x, index, src = T([1.0, 1.0, 3.0]), T([0, 0, 1]), T([3.0, 4.0, 2.0])
    y = x.scatter_reduce(0, index, src, reduce, include_self=include)
    assert y.tolist() == pytest.approx(result)


def test_scatter_reduce_of_integers_and_nan() -> None:
    y = T([1, 2]).scatter_reduce(0, T([0, 0]), T([-5, -6]), "mean", include_self=False)
    assert y.tolist() == [-6, 2]
    y = T([1, 2]).scatter_reduce(0, T([0, 0]), T([-5, -6]), "amax", include_self=False)
    assert y.tolist() == [-5, 2]
    y = T([1.0]).scatter_reduce(0, T([0, 0]), T([math.nan, 2.0]), "amax")
    assert math.isnan(y.item())


def test_ties_share_the_gradient() -> None:
    x, src = T([2.0], requires_grad=True), T([2.0, 1.0, 2.0], requires_grad=True)
    y = x.scatter_reduce(0, T([0, 0, 0]), src, "amax")
    gx, gs = torch.autograd.grad(y, [x, src])
    assert gx.tolist() == pytest.approx([1 / 3])
    assert gs.tolist() == pytest.approx([1 / 3, 0, 1 / 3])


def test_product_with_zeros() -> None:
    x, src = T([2.0], requires_grad=True), T([0.0, 3.0], requires_grad=True)
    y = x.scatter_reduce(0, T([0, 0]), src, "prod")
    gx, gs = torch.autograd.grad(y, [x, src])
    assert gx.tolist() == [0]
    assert gs.tolist() == [6, 0]


# --- index_* --------------------------------------------------------------------------------------
def test_index_select() -> None:
    x = leaf(2, 3)
    y = x.index_select(1, T([2, 0, 2]))
    assert y.tolist() == [[2, 0, 2], [5, 3, 5]]
    assert grads(y, x) == [[[2, 0, 4], [5, 0, 10]]]
    assert T(5.0).index_select(0, T([0])).item() == 5


def test_index_add() -> None:
    x, src = leaf(2, 2), leaf(3, 2)
    y = x.index_add(0, T([1, 1, 0]), src, alpha=2)
    assert y.tolist() == [[8, 11], [6, 11]]
    assert grads(y, x, src) == [[[1, 2], [3, 4]], [[6, 8], [6, 8], [2, 4]]]
    z = torch.zeros(2, 2)
    assert z.index_add_(1, T([0]), torch.ones(2, 1)) is z
    assert z.tolist() == [[1, 0], [1, 0]]


def test_index_copy_and_fill() -> None:
    x, src, s = leaf(3, 2), leaf(2, 2), T(7.0, requires_grad=True)
    y = x.index_copy(0, T([2, 0]), src)
    assert y.tolist() == [[2, 3], [2, 3], [0, 1]]
    assert grads(y, x, src) == [[[0, 0], [3, 4], [0, 0]], [[5, 6], [1, 2]]]
    y = x.index_fill(0, T([-1, 2]), s)
    assert y.tolist() == [[0, 1], [2, 3], [7, 7]]
    assert grads(y, x, s) == [[[1, 2], [3, 4], [0, 0]], 11]  # a place named twice counts once
    assert torch.zeros(3).index_fill_(0, T([1]), 2).tolist() == [0, 2, 0]


def test_index_put() -> None:
    x, v = leaf(2, 2), T(1.0, requires_grad=True)
    at = (T([0, 0]), T([1, 1]))
    y = x.index_put(at, v, accumulate=True)
    assert y.tolist() == [[0, 3], [2, 3]]
    assert grads(y, x, v) == [[[1, 2], [3, 4]], 4]
    assert grads(x.index_put(at, v), x, v) == [[[1, 0], [3, 4]], 4]
    z = torch.zeros(20, 3)
    z.index_put_((torch.arange(40) % 20,), torch.ones(40, 3), accumulate=True)
    assert z.tolist() == [[2] * 3] * 20


def test_index_reduce() -> None:
    x = torch.ones(2, 2)
    y = x.index_reduce(0, T([0, 0]), T([[2.0, 3.0], [4.0, 1.0]]), "prod")
    assert y.tolist() == [[8, 3], [1, 1]]
    with pytest.raises(RuntimeError, match="Expected reduce to be one of prod, mean, amax or amin"):
        x.index_reduce(0, T([0]), torch.ones(1, 2), "sum")


# --- masks ----------------------------------------------------------------------------------------
def test_masked_fill() -> None:
    x, s = leaf(2, 2), T(9.0, requires_grad=True)
    mask = T([True, False])
    assert x.masked_fill(mask, -math.inf).tolist() == [[-math.inf, 1], [-math.inf, 3]]
    assert grads(x.masked_fill(mask, 5), x) == [[[0, 2], [0, 4]]]
    assert grads(x.masked_fill(mask, s), x, s) == [[[0, 2], [0, 4]], 4]
    assert T([1, 2]).masked_fill(mask, 1.7).tolist() == [1, 2]  # stays integral
    assert torch.zeros(2).masked_fill(torch.ones(3, 2, dtype=torch.bool), 1).shape == (3, 2)
    with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match"):
        torch.zeros(2).masked_fill_(torch.ones(3, 2, dtype=torch.bool), 1)
    half = torch.zeros(2, dtype=torch.bfloat16)
    assert half.masked_fill(mask, 2).dtype is torch.bfloat16


def test_masked_fill_hides_nan() -> None:
    x = leaf(2)
    y = x.masked_fill(T([True, False]), 0.0)
    assert torch.autograd.grad([y], [x], [T([math.nan, 1.0])])[0].tolist() == [0, 1]


def test_masked_scatter_and_select() -> None:
    x, src = leaf(2, 2), leaf(5)
    mask = T([[True, False], [True, True]])
    y = x.masked_scatter(mask, src)
    assert y.tolist() == [[0, 1], [1, 2]]
    assert grads(y, x, src) == [[[0, 2], [0, 0]], [1, 3, 4, 0, 0]]
    y = x.masked_select(mask)
    assert y.tolist() == [0, 2, 3]
    assert grads(y, x) == [[[1, 0], [2, 3]]]
    assert grads(x.masked_select(T([[[True, False]], [[True, True]]])), x) == [[[4, 4], [7, 6]]]
    z = torch.zeros(3)
    assert z.masked_scatter_(T([True, False, True]), T([5.0, 6.0])).tolist() == [5, 0, 6]


# --- flat positions -------------------------------------------------------------------------------
def test_take_and_put() -> None:
    x, src = leaf(2, 2), leaf(2)
    assert grads(x.take(T([0, -1, 0])), x) == [[[4, 0], [0, 2]]]
    y = x.put(T([3, 0]), src)
    assert y.tolist() == [[1, 1], [2, 0]]
    assert grads(y, x, src) == [[[0, 2], [3, 0]], [4, 1]]
    assert x.put(T([1, 1]), src, accumulate=True).tolist() == [[0, 2], [2, 3]]
    z = torch.zeros(2, 2).t()
    z.put_(T([1]), T([5.0]))
    assert z.tolist() == [[0, 5], [0, 0]]


def test_take_along_dim() -> None:
    x = T([[3.0, 1.0, 2.0], [4.0, 6.0, 5.0]])
    assert x.take_along_dim(x.argsort(1), 1).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert x.take_along_dim(T([[-1]]), 1).tolist() == [[2], [5]]
    assert x.take_along_dim(T([5, 0])).tolist() == [5, 3]


def test_nonzero() -> None:
    x = T([[0, 1], [2, 0]])
    assert x.nonzero().tolist() == [[0, 1], [1, 0]]
    assert [i.tolist() for i in torch.nonzero(x, as_tuple=True)] == [[0, 1], [1, 0]]
    assert T(1.0).nonzero().shape == (1, 0) and T(0.0).nonzero().shape == (0, 0)
    assert T(1.0).nonzero(as_tuple=True)[0].tolist() == [0]
    assert torch.zeros(0, 3).nonzero().shape == (0, 2)
    assert torch.argwhere(x).dtype is torch.int64


# --- a region written to a copy -------------------------------------------------------------------
def test_regions() -> None:
    x, src = leaf(2, 2), leaf(2)
    cases = [
        (x.select_scatter(src, 0, -1), [[0, 1], [0, 1]], [[1, 2], [0, 0]], [3, 4]),
        (x.diagonal_scatter(src), [[0, 1], [2, 1]], [[0, 2], [3, 0]], [1, 4]),
        (x.slice_scatter(src[None], 0, 1), [[0, 1], [0, 1]], [[1, 2], [0, 0]], [3, 4]),
        (x.as_strided_scatter(src, (2,), (2,), 1), [[0, 0], [2, 1]], [[1, 0], [3, 0]], [2, 4]),
    ]
    for y, value, gx, gs in cases:
        assert y.tolist() == value
        assert grads(y, x, src) == [gx, gs]
    assert x.tolist() == [[0, 1], [2, 3]]


# --- errors ---------------------------------------------------------------------------------------
X = count(3, 4)
I24 = torch.zeros(2, 4, dtype=torch.int64)
MASK = torch.ones(4, dtype=torch.bool)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: X.gather(0, T([[3]])), RuntimeError, "index 3 is out of bounds for dimension 0 with size 3"),
        (lambda: X.gather(0, T([[-1]])), RuntimeError, "index -1 is out of bounds for dimension 0"),
        (lambda: X.gather(0, T([[0.0]])), RuntimeError, "gather(): Expected dtype int32/int64 for index"),
        (lambda: X.gather(0, T([0])), RuntimeError, "Index tensor must have the same number of dimensions as input tensor"),
        (lambda: X.gather(1, torch.zeros(5, 2, dtype=torch.int64)), RuntimeError, "Size does not match at dimension 0 expected index [5, 2] to be no larger than self [3, 4] apart from dimension 1"),
        (lambda: X.gather(5, I24), IndexError, "Dimension out of range"),
        (lambda: X.scatter(0, I24, torch.ones(1, 4)), RuntimeError, "Expected index [2, 4] to be no larger than self [3, 4] apart from dimension 0 and to be no larger size than src [1, 4]"),
        (lambda: X.scatter(0, I24, torch.ones(2, 4).double()), RuntimeError, "scatter(): Expected self.dtype to be equal to src.dtype"),
        (lambda: X.scatter(0, I24, 1.0, reduce="sum"), RuntimeError, "reduce argument must be either add or multiply."),
        (lambda: X.scatter_add(0, I24, 1.0), TypeError, "scatter_add(): argument 'src' (position 3) must be Tensor, not float"),
        (lambda: X.scatter_reduce(0, I24, X, "foo"), RuntimeError, "reduce argument must be either sum, prod, mean, amax or amin, got foo"),
        (lambda: X.index_select(0, T([3])), IndexError, "index out of range in self"),
        (lambda: X.index_select(0, T([[0]])), IndexError, "index_select(): Index is supposed to be a vector"),
        (lambda: X.index_select(0, T([0.0])), RuntimeError, "index_select(): Expected dtype int32 or int64 for index"),
        (lambda: X.index_add(0, T([0, 2]), torch.ones(3, 4)), RuntimeError, "index_add_(): Number of indices (2) should be equal to source.size(dim): (3), for dim: 0"),
        (lambda: X.index_add(0, T([0, -1]), torch.ones(2, 4)), RuntimeError, "index -1 is out of bounds for dimension 0 with size 3"),
        (lambda: X.index_copy(0, T([3]), torch.ones(1, 4)), IndexError, "index_copy_(): index 3 is out of bounds for dimension 0 with size 3"),
        (lambda: X.index_fill(0, T([-4]), 1), IndexError, "index -4 is out of bounds for dimension 0 with size 3"),
        (lambda: X.masked_fill(torch.ones(4), 1), RuntimeError, "masked_fill_ only supports boolean masks, but got mask with dtype float"),
        (lambda: X.masked_fill(MASK, torch.ones(1)), RuntimeError, "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s)."),
        (lambda: X.masked_fill(MASK, 1j), RuntimeError, "value cannot be converted to type float without overflow"),
        (lambda: X.masked_scatter(MASK, torch.ones(3)), RuntimeError, "Number of elements of source < number of ones in mask"),
        (lambda: X.masked_select(torch.ones(4)), RuntimeError, "masked_select: expected BoolTensor for mask"),
        (lambda: X.masked_select(torch.ones(5, dtype=torch.bool)), RuntimeError, "The size of tensor a (5) must match the size of tensor b (4) at non-singleton dimension 1"),
        (lambda: X.take(T([12])), IndexError, "out of range: tried to access index 12 on a tensor of 12 elements."),
        (lambda: X.put(T([0]), torch.ones(2)), IndexError, "put_(): Expected source and index to have the same number of elements"),
        (lambda: X.index_put(T([0]), torch.ones(1)), TypeError, "index_put(): argument 'indices' (position 1) must be tuple of Tensors, not Tensor"),
        (lambda: X.index_put((T([0]),) * 3, torch.ones(1)), IndexError, "too many indices for tensor of dimension 2 (got 3)"),
        (lambda: X.select_scatter(torch.ones(3), 0, 0), RuntimeError, "expected src to have a size equal to the slice of self. src size = [3], slice size = [4]"),
        (lambda: X.slice_scatter(X, step=0), RuntimeError, "slice step must be positive"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)


def test_out() -> None:
    out = torch.zeros(1, 2)
    assert torch.gather(X, 0, T([[1, 2]]), out=out) is out
    assert out.tolist() == [[4, 9]]


def test_a_region_that_overlaps_itself() -> None:
    x = torch.arange(6.0).requires_grad_()
    src = torch.tensor([[10.0, 11.0], [12.0, 13.0], [14.0, 15.0]], requires_grad=True)
    y = torch.as_strided_scatter(x, src, (3, 2), (1, 1))
    assert y.tolist() == [10, 12, 14, 15, 4, 5]  # the last writer of a place stays
    gx, gs = torch.autograd.grad((y * torch.arange(1.0, 7.0)).sum(), (x, src))
    assert gx.tolist() == [0, 0, 0, 0, 5, 6]
    assert gs.tolist() == [[1, 2], [2, 3], [3, 4]]
    for size, stride in (((3,), (0,)), ((2, 2), (1, 0))):
        with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
            torch.as_strided_scatter(x, torch.ones(size), size, stride, 1)
