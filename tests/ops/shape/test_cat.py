"""Copies in other shapes: joining, repeating, turning, triangles, padding, grids."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import rushlight as torch
from rushlight.ops.registry import namespaces
from rushlight.ops.shape.pad import pad


def count(*shape: int) -> Any:
    size = 1
    for n in shape:
        size *= n
    return torch.arange(float(size)).view(*shape)


def leaf(*shape: int) -> Any:
    return count(*shape).clone().requires_grad_()


def grad_of(y: Any, x: Any) -> Any:
    """d(sum of y * (1, 2, 3, …)) / dx."""
    weight = torch.arange(1.0, y.numel() + 1).reshape(y.shape)
    return torch.autograd.grad([y], [x], [weight])[0].tolist()


# --- joining --------------------------------------------------------------------------------------
def test_cat() -> None:
    x = leaf(1, 2)
    y = torch.cat([x, torch.ones(2, 2), x * 10], 0)
    assert y.tolist() == [[0, 1], [1, 1], [1, 1], [0, 10]]
    assert y.grad_fn.name() == "CatBackward0"
    assert grad_of(y, x) == [[1 + 70, 2 + 80]]
    assert torch.concat((count(2, 1), count(2, 2)), -1).tolist() == [[0, 0, 1], [1, 2, 3]]
    assert torch.cat([count(2), count(1)], axis=0).tolist() == [0, 1, 0]


def test_cat_promotes_and_skips_empty_vectors() -> None:
    assert torch.cat([torch.tensor([1]), torch.tensor([0.5])]).dtype is torch.float32
    assert torch.cat([torch.tensor([True]), torch.tensor([2])]).tolist() == [1, 2]
    x = torch.zeros(0, requires_grad=True)
    y = torch.cat([x, leaf(2, 2)])
    assert y.shape == (2, 2)
    assert grad_of(y, x) == []
    double = torch.zeros(0, dtype=torch.float64)
    assert torch.cat([double, count(2, 2)]).dtype is torch.float64
    assert torch.cat([torch.zeros(0), torch.zeros(0)]).shape == (0,)
    half = torch.ones(1, dtype=torch.bfloat16)
    assert torch.cat([half, half]).dtype is torch.bfloat16


def test_cat_out() -> None:
    out = torch.empty(4)
    assert torch.cat([count(2), count(2)], out=out) is out
    assert out.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("torch.cat([])", ValueError, r"torch.cat\(\): expected a non-empty list of Tensors"),
        ("torch.cat([x, x[0]])", RuntimeError, "Tensors must have same number of dimensions: got"),
        ("torch.cat([x, x[0, 0]])", RuntimeError, r"zero-dimensional tensor \(at position 1\)"),
        ("torch.cat([x, x.t()])", RuntimeError, "Sizes of tensors must match except in dimens"),
        ("torch.cat(x)", TypeError, r"cat\(\): argument 'tensors' \(position 1\) must be tuple of"),
        ("torch.cat([x, 1])", TypeError, "expected Tensor as element 1 in argument 0, but got int"),
        ("torch.cat([x, x], 2)", IndexError, "Dimension out of range"),
        ("torch.stack([])", RuntimeError, "stack expects a non-empty TensorList"),
        ("torch.stack([x, x.t()])", RuntimeError, "stack expects each tensor to be equal size"),
        ("torch.stack([x, x], 3)", IndexError, r"expected to be in range of \[-3, 2\]"),
        ("torch.hstack([])", RuntimeError, "hstack expects a non-empty TensorList"),
        ("x.repeat(2)", RuntimeError, "Number of dimensions of repeat dims can not be smaller"),
        ("x.repeat(-1, 1)", RuntimeError, "Trying to create tensor with negative dimension -2"),
        ("x.repeat_interleave(-1)", RuntimeError, "Repeats must be non-negative"),
        ("x.flip(0, 0)", RuntimeError, "dim 0 appears multiple times in the list of dims"),
        ("x[0].fliplr()", RuntimeError, "Input must be >= 2-d."),
        ("x.roll((1, 2))", RuntimeError, "shifts and dimensions must align. shifts: 2, dims:0"),
        ("x[0].rot90()", RuntimeError, "expected total dims >= 2, but got total dims = 1"),
        ("x.rot90(1, (0, 0))", RuntimeError, "expected rotation dims to be different"),
        ("x[0].tril()", RuntimeError, "tril: input tensor must have at least 2 dimensions"),
        ("torch.diag(x[0, 0])", RuntimeError, r"diag\(\): Supports 1D or 2D tensors. Got 0D"),
        ("torch.cross(x, x, 0)", RuntimeError, "inputs dimension 0 must have length 3. Got 2"),
        ("torch.diff(x[0, 0])", RuntimeError, "diff expects input to be at least one-dimension"),
        ("torch.combinations(x)", RuntimeError, r"Expect a 1D vector, but got shape \[2, 3\]"),
        ("torch.tril_indices(-1, 2)", RuntimeError, "row must be non-negative, got-1"),
        ("pad(x, (1,))", RuntimeError, "Padding length must be divisible by 2"),
        ("pad(x, (1, 1), 'bad')", NotImplementedError, "Unrecognised padding mode bad"),
        ("pad(x, (3, 0), 'reflect')", RuntimeError, "Padding size should be less than the corre"),
        ("pad(x, (4, 0), 'circular')", RuntimeError, "Padding value causes wrapping around more"),
        ("pad(x[0], (1, 1), 'reflect')", NotImplementedError, "is not supported for 1D input"),
        ("pad(x, (1, 1), 'reflect', 1.0)", RuntimeError, "doesn't take in value argument"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3), "torch": torch, "pad": pad})


def test_stack() -> None:
    x = leaf(2)
    y = torch.stack([x, x * 10], -1)
    assert y.tolist() == [[0, 0], [1, 10]]
    assert grad_of(y, x) == [1 + 20, 3 + 40]
    assert torch.stack([torch.tensor(1), torch.tensor(2.5)]).tolist() == [1.0, 2.5]
    assert torch.stack([torch.zeros(0, 2)] * 3).shape == (3, 0, 2)


def test_other_stacks() -> None:
    a, b = torch.tensor([1, 2]), torch.tensor([3, 4])
    assert torch.hstack([a, b]).tolist() == [1, 2, 3, 4]
    assert torch.hstack([torch.tensor(1), torch.tensor(2)]).tolist() == [1, 2]
    assert torch.vstack([a, b]).tolist() == torch.row_stack([a, b]).tolist() == [[1, 2], [3, 4]]
    assert torch.dstack([a, b]).tolist() == [[[1, 3], [2, 4]]]
    assert torch.column_stack([a, b]).tolist() == [[1, 3], [2, 4]]


# --- repeating and turning ------------------------------------------------------------------------
def test_repeat() -> None:
    x = leaf(2)
    y = x.repeat(2, 2)
    assert y.tolist() == [[0, 1, 0, 1]] * 2
    assert grad_of(y, x) == [1 + 3 + 5 + 7, 2 + 4 + 6 + 8]
    assert x.repeat(0).shape == (0,)
    assert torch.tensor(3).repeat(2).tolist() == [3, 3]
    assert torch.tile(count(2, 2), (2,)).tolist() == [[0, 1, 0, 1], [2, 3, 2, 3]]


def test_repeat_interleave() -> None:
    x = leaf(2)
    assert x.repeat_interleave(2).tolist() == [0, 0, 1, 1]
    assert grad_of(x.repeat_interleave(2), x) == [3, 7]
    assert count(2, 2).repeat_interleave(2, 1).tolist() == [[0, 0, 1, 1], [2, 2, 3, 3]]
    assert torch.repeat_interleave(torch.tensor([2, 0, 1])).tolist() == [0, 0, 2]


def test_turning() -> None:
    x = leaf(2, 3)
    assert x.flip(0, 1).tolist() == [[5, 4, 3], [2, 1, 0]]
    assert grad_of(x.flip(-1), x) == [[3, 2, 1], [6, 5, 4]]
    assert x.roll(1).tolist() == [[5, 0, 1], [2, 3, 4]]
    assert x.roll((1, 1), (0, 1)).tolist() == [[5, 3, 4], [2, 0, 1]]
    assert grad_of(x.roll(-1, 1), x) == [[3, 1, 2], [6, 4, 5]]
    assert x.rot90().tolist() == [[2, 5], [1, 4], [0, 3]]
    assert grad_of(x.rot90(), x) == [[5, 3, 1], [6, 4, 2]]
    assert x.rot90(-1).tolist() == [[3, 0], [4, 1], [5, 2]]
    assert torch.fliplr(count(1, 2)).tolist() == [[1, 0]]
    assert torch.flipud(count(2)).tolist() == [1, 0]


def test_copies_never_share_memory() -> None:
    x = torch.ones(1, 1)
    copies = [
        x.flip(0), x.roll(1), x.roll(1, 0), x.repeat(1, 1), torch.cat([x]), x.clone(), x.tril(),
        x.rot90(0), x.rot90(2), x.tile(1), pad(x, (0, 0)), pad(x, (0, 0), "circular"),
        pad(x, (0, 0), "reflect"), pad(x, (0, 0), "replicate"), x.narrow_copy(0, 0, 1),
        x.diag(), torch.block_diag(x), torch.diff(x, 0),
    ]  # fmt: skip
    for y in copies:
        y.fill_(9)
    assert x.item() == 1


def test_clone_keeps_the_order_of_strides() -> None:
    x = count(2, 3, 4)
    assert x.permute(2, 0, 1).clone().stride() == (1, 12, 4)
    assert x[:, :, ::2].clone().stride() == (6, 2, 1)
    assert x[:1].expand(5, 3, 4).clone().stride() == (12, 4, 1)
    row = x.permute(2, 0, 1).clone(memory_format=torch.contiguous_format)
    assert row.stride() == (6, 3, 1)
    y = leaf(2)
    assert y.clone().grad_fn.name() == "CloneBackward0"


# --- triangles and diagonals ----------------------------------------------------------------------
def test_triangles() -> None:
    x = leaf(2, 3)
    assert x.tril().tolist() == [[0, 0, 0], [3, 4, 0]]
    assert x.triu(1).tolist() == [[0, 1, 2], [0, 0, 5]]
    assert grad_of(x.triu(), x) == [[1, 2, 3], [0, 5, 6]]
    infinite = torch.full((2, 2), float("inf"))
    assert infinite.tril_().tolist() == [[float("inf"), 0], [float("inf"), float("inf")]]
    assert torch.ones(2, 2, dtype=torch.bool).tril().tolist() == [[True, False], [True, True]]
    assert torch.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]
    assert torch.tril_indices(0, 3).shape == (2, 0)


def test_diagonals() -> None:
    v = leaf(2)
    assert torch.diag(v, 1).tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert grad_of(torch.diag(v), v) == [1, 4]
    m = leaf(2, 2)
    d = m.diag()
    assert d.tolist() == [0, 3] and d._base is None
    assert d.grad_fn.name() == "DiagonalBackward0_copy"
    assert grad_of(d, m) == [[1, 0], [0, 2]]
    assert torch.diag_embed(count(2, 1), 0, 0, 2).shape == (1, 2, 1)
    assert torch.diagflat(count(2, 1)).tolist() == [[0, 0], [0, 1]]
    both = torch.block_diag(m, torch.tensor([7, 8]))
    assert both.tolist() == [[0, 1, 0, 0], [2, 3, 0, 0], [0, 0, 7, 8]]
    assert grad_of(both, m) == [[1, 2], [5, 6]]


# --- padding --------------------------------------------------------------------------------------
def test_constant_padding() -> None:
    x = leaf(2, 2)
    y = pad(x, (1, 0, 0, 1), value=9.0)
    assert y.tolist() == [[9, 0, 1], [9, 2, 3], [9, 9, 9]]
    assert grad_of(y, x) == [[2, 3], [5, 6]]
    assert pad(x, (-1, 1)).tolist() == [[1, 0], [3, 0]]
    assert grad_of(pad(x, (-1, 1)), x) == [[0, 1], [0, 3]]
    assert pad(torch.tensor([1, 2]), (0, 1)).dtype is torch.int64
    assert pad(torch.zeros(2, 0), (1, 1), value=2).tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize(
    ("mode", "values", "grad"),
    [
        ("reflect", [2, 1, 0, 1, 2, 1], [3, 2 + 4 + 6, 1 + 5]),
        ("replicate", [0, 0, 0, 1, 2, 2], [1 + 2 + 3, 4, 5 + 6]),
        ("circular", [1, 2, 0, 1, 2, 0], [3 + 6, 1 + 4, 2 + 5]),
    ],
)
def test_padding_by_itself(mode: str, values: list[float], grad: list[float]) -> None:
    x = leaf(1, 3)
    y = pad(x, (2, 1), mode)
    assert y.tolist() == [values]
    assert grad_of(y, x) == [grad]


def test_padding_two_dimensions() -> None:
    y = pad(count(1, 2, 2), (1, 0, 0, 1), "reflect")
    assert y.tolist() == [[[1, 0, 1], [3, 2, 3], [1, 0, 1]]]
    y = pad(count(1, 2, 2), (1, 0, 0, 1), "replicate")
    assert y.tolist() == [[[0, 0, 1], [2, 2, 3], [2, 2, 3]]]


# --- grids ----------------------------------------------------------------------------------------
def test_grids() -> None:
    a, b = torch.tensor([1, 2]), torch.tensor([3, 4, 5])
    x, y = torch.meshgrid(a, b, indexing="ij")
    assert x.tolist() == [[1, 1, 1], [2, 2, 2]] and y.tolist() == [[3, 4, 5], [3, 4, 5]]
    x, y = torch.meshgrid([a, b], indexing="xy")
    assert x.shape == (3, 2) and y.tolist() == [[3, 3], [4, 4], [5, 5]]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.meshgrid(a)
    assert "it will be required to pass the indexing" in str(seen[0].message)
    assert torch.cartesian_prod(a, a).tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert torch.cartesian_prod(a) is a


def test_products_and_differences() -> None:
    x = leaf(2)
    assert torch.kron(x, torch.tensor([1.0, 10.0])).tolist() == [0, 0, 1, 10]
    assert grad_of(torch.kron(x, torch.tensor([1.0, 10.0])), x) == [1 + 20, 3 + 40]
    assert torch.kron(torch.eye(2), torch.tensor(3.0)).tolist() == [[3, 0], [0, 3]]
    e = leaf(3)
    c = torch.cross(e, torch.tensor([1.0, 0.0, 0.0]), dim=0)
    assert c.tolist() == [0, 2, -1]
    assert grad_of(c, e) == [0, -3, 2]
    linalg = namespaces["linalg"]["cross"]
    assert (
        linalg(torch.eye(3), torch.eye(3)[[1, 2, 0]]).tolist() == torch.eye(3)[[2, 0, 1]].tolist()
    )
    s = torch.tensor([1, 4, 9, 16])
    assert torch.diff(s, 2).tolist() == [2, 2]
    assert torch.diff(s, append=torch.tensor([0])).tolist() == [3, 5, 7, -16]
    assert torch.diff(torch.tensor([True, False])).tolist() == [True]
    assert torch.vander(torch.tensor([2.0, 3.0]), 3).tolist() == [[4, 2, 1], [9, 3, 1]]
