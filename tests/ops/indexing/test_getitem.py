"""Indexing: what `x[...]` picks, what `x[...] = v` writes, their graphs, and their errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.ops.indexing.helpers import count, leaf, names


def grad_of(y: Any, x: Any) -> Any:
    """d(sum of y * (1, 2, 3, …)) / dx."""
    weight = torch.arange(1.0, y.numel() + 1).reshape(y.shape)
    return torch.autograd.grad([y], [x], [weight])[0].tolist()


# --- reading: views -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("index", "nodes"),
    [
        (0, ["SelectBackward0"]),
        (slice(None), ["SliceBackward0"]),  # alone, even a full slice is a node
        ((slice(None), 1), ["SelectBackward0"]),  # beside others it is not
        ((slice(None), slice(0, 9)), ["AliasBackward0"]),
        ((slice(-2, None),), ["SliceBackward0"]),  # all of it, but PyTorch does not see that
        (..., ["AliasBackward0"]),
        ((), ["AliasBackward0"]),
        (None, ["UnsqueezeBackward0"]),
        ((0, 1), ["SelectBackward0", "SelectBackward0"]),
        ((slice(0, 1), None, 2), ["SelectBackward0", "UnsqueezeBackward0", "SliceBackward0"]),
        (torch.tensor(1), ["SelectBackward0"]),
        (np.int64(1), ["SelectBackward0"]),
        ([0, 1], ["IndexBackward0"]),
        (True, ["IndexBackward0", "UnsqueezeBackward0"]),
        ((0, [0, 1]), ["IndexBackward0", "SelectBackward0"]),
    ],
)
def test_nodes_are_pytorchs(index: Any, nodes: list[str]) -> None:
    y = leaf(2, 3)[index]
    assert names(y) == [*nodes, "AccumulateGrad"]


def test_basic_indexing_shares_memory() -> None:
    x = count(3, 4)
    row, part, new = x[1], x[1:, ::2], x[..., None]
    x[1, 2] = 50.0
    assert row.tolist() == [4, 5, 50, 7]
    assert part.tolist() == [[4, 50], [8, 10]]
    assert new.shape == (3, 4, 1) and new[1, 2, 0].item() == 50
    assert row._version == x._version == 1


def test_negative_and_clipped() -> None:
    x = count(4)
    assert x[-1].item() == 3
    assert x[-3:-1].tolist() == [1, 2]
    assert x[2:99].tolist() == [2, 3]
    assert x[3:1].shape == (0,)
    assert x[torch.tensor(1) : torch.tensor(3)].tolist() == [1, 2]


# --- reading: picks -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("index", "shape"),
    [
        ((slice(None), [0, 1, 0]), (2, 3, 4)),
        (([0, 1], slice(None), [0, 3]), (2, 3)),  # arrays apart: their dimension goes in front
        ((slice(None), [0, 2], [0, 3]), (2, 2)),  # arrays together: it stays
        ((0, slice(None), [0, 3]), (3, 2)),  # an int is applied first, and is not an array
        (([0, 1], None, [0, 2]), (2, 1, 4)),
        (([[0], [1]], [0, 1, 2]), (2, 3, 4)),  # broadcast
        ((..., [0, 1]), (2, 3, 2)),
        (np.array([[0, 1], [1, 1]]), (2, 2, 3, 4)),
        ((np.array([True, False]), 0), (1, 4)),
        ([], (0, 3, 4)),
        ((True, [0, 1]), (2, 3, 4)),
        (False, (0, 2, 3, 4)),
        (torch.tensor(True), (1, 2, 3, 4)),
        (torch.zeros(2, 0, dtype=torch.int64), (2, 0, 3, 4)),
        (range(2), (2, 3, 4)),
    ],
)
def test_shapes(index: Any, shape: tuple[int, ...]) -> None:
    assert count(2, 3, 4)[index].shape == shape


def test_values_agree_with_numpy() -> None:
    raw = np.arange(24.0).reshape(2, 3, 4)
    x = torch.tensor(raw)
    mask = raw % 3 == 0
    for index in (([1, 0], slice(None), [[0], [-1]]), (slice(1), [2, -1, 0]), mask, (..., [3, 3])):
        ours = tuple(torch.tensor(i) if isinstance(i, np.ndarray) else i for i in index) \
            if isinstance(index, tuple) else torch.tensor(index)  # fmt: skip
        np.testing.assert_array_equal(x[ours].numpy(), raw[index])


def test_masks() -> None:
    x = count(2, 3)
    assert x[x > 2].tolist() == [3, 4, 5]
    assert x[torch.tensor([False, True])].tolist() == [[3, 4, 5]]
    assert x[:, torch.tensor([True, False, True])].tolist() == [[0, 2], [3, 5]]
    with pytest.warns(UserWarning, match=r"indexing with dtype torch\.uint8"):
        assert x[torch.tensor([0, 1], dtype=torch.uint8)].tolist() == [[3, 4, 5]]


def test_lists_of_lists_still_read_as_tuples() -> None:
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        assert count(2, 3)[[[0, 1], [1, 2]]].tolist() == [1, 5]


def test_pick_is_a_copy() -> None:
    x = count(3)
    y = x[[0, 1]]
    y.zero_()
    assert x.tolist() == [0, 1, 2]
    assert x._version == 0


def test_other_dtypes() -> None:
    assert torch.tensor([True, False])[[1, 0]].tolist() == [False, True]
    assert torch.tensor([1, 2], dtype=torch.bfloat16)[[1, 1]].tolist() == [2, 2]
    assert torch.tensor([1j, 2.0])[1:].tolist() == [2]


# --- reading: gradients ---------------------------------------------------------------------------
def test_gradients_add_up_where_an_index_repeats() -> None:
    x = leaf(3)
    assert grad_of(x[[0, 2, 0]], x) == [4, 0, 2]
    x = leaf(2, 2)
    assert grad_of(x[[0, 1, 0], [1, 1, 1]], x) == [[0, 4], [0, 2]]
    assert grad_of(x[:, [0, -1, 1]], x) == [[1, 5], [4, 11]]
    assert grad_of(x[x > 0.5], x) == [[0, 1], [2, 3]]


def test_gradient_of_separated_arrays() -> None:
    x = leaf(2, 2, 2)
    y = x[[0, 1], :, [1, 1]]  # y[k, j] = x[k, j, 1]
    assert y.shape == (2, 2)
    assert grad_of(y, x) == [[[0, 1], [0, 2]], [[0, 3], [0, 4]]]


def test_many_rows_add_up() -> None:
    index = np.arange(30_000) % 7
    x = torch.zeros(7, 3, requires_grad=True)
    g = torch.autograd.grad(x[torch.tensor(index)].sum(), x)[0]
    assert g[:, 0].tolist() == np.bincount(index).tolist()


def test_second_derivative() -> None:
    x = leaf(3)
    y = (x[[0, 0, 2]] ** 3).sum()
    g = torch.autograd.grad(y, x, create_graph=True)[0]
    h = torch.autograd.grad(g.sum(), x)[0]
    assert g.tolist() == [0, 0, 12]
    assert h.tolist() == [0, 0, 12]


def test_self_is_not_kept_but_the_index_is() -> None:
    x, i = leaf(3), torch.tensor([0, 1])
    h = x * 1
    y = h[i]
    h.add_(1)  # fine: the rule does not read it
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 0]
    z = (x * 1)[i]
    i.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


# --- reading: errors ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        (5, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        ((0, -4), IndexError, "index -4 is out of bounds for dimension 1 with size 3"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        (([0],) * 3, IndexError, "too many indices for tensor of dimension 2"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        ([2], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
        ((slice(None), [-4]), IndexError, "index -4 is out of bounds for dimension 0 with size 3"),
        (([0, 1], [0, 1, 2]), IndexError, "shape mismatch: indexing tensors could not be broadcast "
         "together with shapes [2], [3]"),
        (1.5, IndexError, "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
         "Variables are valid indices (got float)"),
        (torch.tensor([1.0]), IndexError, "tensors used as indices must be long, int, byte or bool "
         "tensors"),
        (torch.tensor([True] * 3), IndexError, "The shape of the mask [3] at index 0 does not "
         "match the shape of the indexed tensor [2, 3] at index 0"),
        (torch.ones(2, 4, dtype=torch.bool), IndexError, "The shape of the mask [2, 4] at index 1 "
         "does not match the shape of the indexed tensor [2, 3] at index 1"),
        ("a", TypeError, "new(): invalid data type 'str'"),
    ],
)  # fmt: skip
def test_errors(index: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        count(2, 3)[index]
    assert str(caught.value).startswith(text)


def test_zero_dim() -> None:
    x = torch.tensor(3.0)
    assert x[None].tolist() == [3] and x[...].item() == 3 and x[True].tolist() == [3]
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        x[0]
    with pytest.raises(IndexError, match=r"slice\(\) cannot be applied to a 0-dim tensor"):
        x[:]


# --- writing --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("index", "value", "result"),
    [
        (0, 9.0, [[9, 9, 9], [3, 4, 5]]),
        ((slice(None), 1), 9, [[0, 9, 2], [3, 9, 5]]),
        ((slice(None), slice(1, None)), [7.0, 8.0], [[0, 7, 8], [3, 7, 8]]),
        ([1, 0], [[1.0], [2.0]], [[2, 2, 2], [1, 1, 1]]),
        (([0, 1], [2, 0]), [7.0, 8.0], [[0, 1, 7], [8, 4, 5]]),
        (1, [[[4.0, 4.0, 4.0]]], [[0, 1, 2], [4, 4, 4]]),  # leading ones fall away
        (False, 9.0, [[0, 1, 2], [3, 4, 5]]),
        (True, 9.0, [[9, 9, 9], [9, 9, 9]]),
        ((), 9.0, [[9, 9, 9], [9, 9, 9]]),
    ],
)
def test_writes(index: Any, value: Any, result: Any) -> None:
    x = count(2, 3)
    x[index] = torch.tensor(value) if isinstance(value, list) else value
    assert x.tolist() == result


def test_masked_writes() -> None:
    x = count(2, 3)
    x[x > 3] = -1
    x[torch.tensor([True, False])] = torch.tensor([7.0, 8.0, 9.0])
    assert x.tolist() == [[7, 8, 9], [3, -1, -1]]
    x[x < 0] = torch.tensor(2.5, dtype=torch.float64)  # one number for a mask may be of any dtype
    assert x[1].tolist() == [3, 2.5, 2.5]


def test_values_are_cast() -> None:
    half = torch.zeros(1, dtype=torch.half)
    half[0] = torch.tensor(1e6)  # too large: infinity, without a word
    assert half.item() == math.inf
    x = torch.zeros(3, dtype=torch.int64)
    x[0] = 2.7
    x[1] = torch.tensor(-1.7)
    x[2] = True
    assert x.tolist() == [2, -1, 1]
    b = torch.zeros(2, dtype=torch.bool)
    b[0] = 0.5
    assert b.tolist() == [True, False]


@pytest.mark.parametrize(
    ("index", "value", "nodes"),
    [
        (slice(None), 3.0, ["FillBackward3", "MulBackward0"]),
        (slice(None), torch.ones(2, 3), ["CopyBackwards", "MulBackward0"]),
        (0, 3.0, ["CopySlices", "MulBackward0"]),
        ([0], 3.0, ["IndexPutBackward0", "MulBackward0"]),
        ((0, [1]), 3.0, ["CopySlices", "MulBackward0"]),
    ],
)
def test_history_of_writes(index: Any, value: Any, nodes: list[str]) -> None:
    x = leaf(2, 3) * 1
    x[index] = value
    assert names(x) == [*nodes, "AccumulateGrad"]
    assert x._version == 1


def test_gradients_of_base_and_value() -> None:
    x, v = leaf(2, 3), torch.ones(3, requires_grad=True)
    h = x * 2
    h[1] = v
    gx, gv = torch.autograd.grad([h], [x, v], [count(2, 3)])
    assert gx.tolist() == [[0, 2, 4], [0, 0, 0]]
    assert gv.tolist() == [3, 4, 5]


def test_gradient_of_a_broadcast_value() -> None:
    x, v = leaf(2, 3), torch.ones(1, requires_grad=True)
    h = x * 1
    h[:, 1:] = v
    gx, gv = torch.autograd.grad([h], [x, v], [count(2, 3)])
    assert gx.tolist() == [[0, 0, 0], [3, 0, 0]]
    assert gv.tolist() == [1 + 2 + 4 + 5]


def test_gradient_of_an_advanced_write() -> None:
    x, v = leaf(3), torch.tensor([5.0, 6.0], requires_grad=True)
    h = x * 1
    h[[2, 0]] = v
    gx, gv = torch.autograd.grad([h], [x, v], [torch.tensor([1.0, 2.0, 3.0])])
    assert gx.tolist() == [0, 2, 0]
    assert gv.tolist() == [3, 1]


def test_write_through_a_view_reaches_the_base() -> None:
    x = leaf(2, 3)
    h = x * 1
    row = h[0]
    row[1] = 9.0
    assert h.tolist() == [[0, 9, 2], [3, 4, 5]]
    assert names(row)[0] == "AsStridedBackward0"
    assert grad_of(h, x) == [[1, 0, 3], [4, 5, 6]]


def test_nan_in_a_gradient_stops_at_what_was_overwritten() -> None:
    x = leaf(3)
    h = x * 1
    h[[0]] = 5.0
    g = torch.autograd.grad([h], [x], [torch.tensor([math.nan, 1.0, 1.0])])[0]
    assert g.tolist() == [0, 1, 1]


def test_writing_a_leaf_is_refused() -> None:
    x = leaf(2, 2)
    for index in (0, slice(None), [0]):
        with pytest.raises(RuntimeError, match=r"leaf Variable that requires grad"):
            x[index] = 1.0
    with torch.no_grad():
        x[0] = 7.0
    assert x[0].tolist() == [7, 7]


@pytest.mark.parametrize(
    ("index", "value", "error", "text"),
    [
        (0, [1, 2], TypeError, "can't assign a list to a torch.FloatTensor"),
        (0, None, TypeError, "can't assign a NoneType to a torch.FloatTensor"),
        (0, np.ones(3), TypeError, "can't assign a numpy.ndarray to a torch.FloatTensor"),
        (0, 1j, RuntimeError, "value cannot be converted to type float without overflow"),
        (0, torch.ones(2), RuntimeError, "The expanded size of the tensor (3) must match the "
         "existing size (2) at non-singleton dimension 0.  Target sizes: [3].  Tensor sizes: [2]"),
        (0, torch.ones(2, 3), RuntimeError, "expand(torch.FloatTensor{[2, 3]}, size=[3]): the "
         "number of sizes provided (1) must be greater or equal to the number of dimensions in the "
         "tensor (2)"),
        ([0], torch.ones(2), RuntimeError, "shape mismatch: value tensor of shape [2] cannot be "
         "broadcast to indexing result of shape [1, 3]"),
        ([0], torch.ones(3).double(), RuntimeError, "Index put requires the source and destination "
         "dtypes match, got Float for the destination and Double for the source."),
        ([5], 1.0, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
        (5, 1.0, IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    ],
)  # fmt: skip
def test_errors_of_writes(index: Any, value: Any, error: type[Exception], text: str) -> None:
    x = count(2, 3)
    with pytest.raises(error) as caught:
        x[index] = value
    assert str(caught.value).startswith(text)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]] and x._version == 0


# --- in, del --------------------------------------------------------------------------------------
def test_contains() -> None:
    x = torch.tensor([1, 2])
    assert 2 in x and 3 not in x and torch.tensor(1) in x and 1.0 in x
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar"):
        "a" in x  # noqa: B015


def test_del_is_refused() -> None:
    with pytest.raises(TypeError, match="Tensor does not support deleting items"):
        del torch.ones(2)[0]


def test_an_index_tensor_beside_a_number_is_read_each_time() -> None:
    x = torch.arange(9.0).view(3, 3)
    for _ in range(2):
        assert [x[2, torch.tensor(k)].item() for k in (1, 0, 2)] == [7, 6, 8]
        assert [x[torch.tensor(k), 1].item() for k in (1, 0, 2)] == [4, 1, 7]
        assert [x[0, torch.tensor(k)].tolist() for k in (True, False)] == [[[0, 1, 2]], []]
