"""Views: shapes, strides, shared memory, pieces, writes through views, errors."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import rushlight as torch


def count(*shape: int) -> Any:
    """0., 1., 2., … in a shape."""
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


# --- shapes ---------------------------------------------------------------------------------------
def test_view_shares_memory_and_version() -> None:
    x = count(2, 3)
    y = x.view(3, -1)
    y.mul_(2)
    assert y.shape == (3, 2)
    assert x.tolist() == [[0, 2, 4], [6, 8, 10]]
    assert x._version == y._version
    assert y.data_ptr() == x.data_ptr()


def test_view_needs_strides_that_allow_it() -> None:
    x = count(3, 4)
    assert x.t().unsqueeze(0).view(4, 1, 3).shape == (4, 1, 3)
    assert x[:, ::2].view(3, 2, 1).shape == (3, 2, 1)
    assert x[:, :2].unsqueeze(1).view(3, 2).shape == (3, 2)
    assert x[:1, ::2].view(2).tolist() == [0, 2]
    for wrong in (lambda: x.t().view(12), lambda: x[:, :2].view(6), lambda: x.t().view(2, 6)):
        with pytest.raises(RuntimeError, match="view size is not compatible with input tensor's"):
            wrong()


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((5,), r"shape '\[5\]' is invalid for input of size 6"),
        ((-1, -1), "only one dimension can be inferred"),
        ((-2, 3), r"invalid shape dimension -2 at index 0 of shape \[-2, 3\]"),
        ((4, -1), r"shape '\[4, -1\]' is invalid for input of size 6"),
    ],
)
def test_wrong_shapes(shape: tuple[int, ...], text: str) -> None:
    for f in (lambda x: x.view(shape), lambda x: torch.reshape(x, shape)):
        with pytest.raises(RuntimeError, match=text):
            f(count(2, 3))


def test_ambiguous_shape_of_an_empty_tensor() -> None:
    with pytest.raises(RuntimeError, match="cannot reshape tensor of 0 elements into shape"):
        torch.zeros(0, 2).view(-1, 0)
    assert torch.zeros(0, 2).view(3, 0).stride() == (1, 1)


def test_view_as_dtype() -> None:
    x = torch.tensor([1.0, -2.0])
    y = x.view(torch.int32)
    assert y.tolist() == [1065353216, -1073741824]
    assert torch.zeros(2, 4).view(torch.float64).shape == (2, 2)
    assert torch.zeros(2, 2, dtype=torch.float64).view(torch.int32).shape == (2, 4)
    with pytest.raises(RuntimeError, match=r"self.size\(-1\) must be divisible by 2 to view Float"):
        torch.zeros(3).view(torch.float64)
    with pytest.raises(RuntimeError, match=r"self.dim\(\) cannot be 0 to view Float as Double"):
        torch.tensor(1.0).view(torch.float64)


def test_reshape_views_or_copies() -> None:
    x = leaf(2, 3)
    same, alias, copy = x.reshape(6), x.t().reshape(3, 2, 1), x.t().reshape(6)
    assert [t.grad_fn.name() for t in (same, alias, copy)] == [
        "ViewBackward0", "ReshapeAliasBackward0", "UnsafeViewBackward0",
    ]  # fmt: skip
    assert same._base is x and alias._base is x and copy._base is None
    assert copy.grad_fn.next_functions[0][0].name() == "CloneBackward0"
    assert grad_of(copy, x) == [[1, 3, 5], [2, 4, 6]]
    assert x.reshape(shape=(6,)).shape == (6,)


def test_flatten_and_unflatten() -> None:
    x = count(2, 3, 4)
    assert x.flatten(1).shape == (2, 12)
    assert torch.flatten(x, 0, 1).shape == (6, 4)
    v = count(3)
    assert v.flatten() is v
    assert torch.tensor(2.0).flatten().shape == (1,)
    assert x.unflatten(-1, (2, -1)).shape == (2, 3, 2, 2)
    assert count(2, 3).t().ravel().tolist() == [0, 3, 1, 4, 2, 5]
    with pytest.raises(RuntimeError, match="start_dim cannot come after end_dim"):
        x.flatten(2, 1)
    with pytest.raises(RuntimeError, match=r"unflatten: Provided sizes \[2, 2\] don't multiply up"):
        x.unflatten(1, (2, 2))


# --- order ----------------------------------------------------------------------------------------
def test_orders() -> None:
    x = count(2, 3, 4)
    assert x.permute(2, 0, 1).stride() == (1, 12, 4)
    assert torch.permute(x, (-1, 0, 1)).shape == (4, 2, 3)
    assert x.transpose(0, -1).stride() == (1, 4, 12)
    assert x.mT.shape == (2, 4, 3)
    assert x.movedim((0, 1), (-1, 0)).shape == (3, 4, 2)
    assert x.swapaxes(0, 1).shape == x.swapdims(0, 1).shape == (3, 2, 4)
    m = count(2, 3)
    assert m.t().tolist() == m.T.tolist() == m.H.tolist() == [[0, 3], [1, 4], [2, 5]]
    z = torch.tensor([[1 + 2j]])
    assert z.mH.tolist() == [[1 - 2j]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert x.T.shape == (4, 3, 2)
        assert torch.tensor(1.0).T.shape == ()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("x.t()", RuntimeError, r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D"),
        ("x.permute(0, 0, 1)", RuntimeError, r"permute\(\): duplicate dims are not allowed."),
        ("x.permute(0, 1)", RuntimeError, "does not match the length of the desired ordering"),
        ("x.transpose(0, 3)", IndexError, r"Dimension out of range \(expected to be in range of"),
        ("x.movedim((0, 0), (1, 2))", RuntimeError, "movedim: repeated dim in `source`"),
        ("x[0, 0].mT", RuntimeError, "tensor.mT is only supported on matrices or batches"),
        ("x.H", RuntimeError, r"tensor.H is only supported on matrices \(2-D tensors\). Got 3-D"),
        ("x.unsqueeze(4)", IndexError, r"expected to be in range of \[-4, 3\], but got 4"),
        ("x.squeeze((0, 0))", RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (
            "x.expand(3, 4)",
            RuntimeError,
            r"expand\(torch.FloatTensor\{\[2, 3, 4\]\}, size=\[3, 4\]",
        ),
        ("x.expand(5, 3, 4)", RuntimeError, r"The expanded size of the tensor \(5\) must match"),
        ("x.expand(-1, 2, 3, 4)", RuntimeError, "isn't allowed in a leading, non-existing dim"),
        ("x.narrow(0, 1, 2)", RuntimeError, r"start \(1\) \+ length \(2\) exceeds dimension size"),
        ("x.select(0, 2)", IndexError, r"select\(\): index 2 out of range for tensor of size"),
        ("x.split(0)", RuntimeError, "split_size can only be 0 if dimension size is 0"),
        ("x.split([1, 2])", RuntimeError, "split_with_sizes expects split_sizes to sum exactly"),
        ("x.chunk(0)", RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0"),
        ("x.hsplit(2)", RuntimeError, "torch.hsplit attempted to split along dimension 1, but"),
        ("x.unfold(0, 3, 1)", RuntimeError, "maximum size for tensor at dimension 0 is 2 but"),
        ("x.diagonal(0, 1, 1)", RuntimeError, "diagonal dimensions cannot be identical 1, 1"),
        ("x.as_strided((9,), (9,))", RuntimeError, r"setStorage: sizes \[9\], strides \[9\], sto"),
        ("x.size(3)", IndexError, r"expected to be in range of \[-3, 2\], but got 3"),
        ("x.reshape()", TypeError, "reshape.. missing 1 required positional arguments"),
        ("torch.reshape(x, 24)", TypeError, "must be tuple of ints, not int"),
        ("len(x[0, 0, 0])", TypeError, "len.. of a 0-d tensor"),
        ("list(x[0, 0, 0])", TypeError, "iteration over a 0-d tensor"),
        ("x[0, 0, 0].unbind()", IndexError, "Dimension specified as 0 but tensor has no dim"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3, 4), "torch": torch})


# --- size 1 and repetition ------------------------------------------------------------------------
def test_squeeze_has_three_nodes() -> None:
    x = leaf(1, 2, 1)
    names = [t.grad_fn.name() for t in (x.squeeze(), x.squeeze(0), x.squeeze((0, 2)))]
    assert names == ["SqueezeBackward0", "SqueezeBackward1", "SqueezeBackward2"]
    assert x.squeeze(1).shape == (1, 2, 1)
    assert x.squeeze((0, 1)).shape == (2, 1)
    assert torch.tensor(1.0).squeeze(0).shape == ()
    assert grad_of(x.squeeze(), x) == [[[1], [2]]]


def test_strides_of_size_one() -> None:
    x = count(2, 3, 4)
    assert x.unsqueeze(1).stride() == (12, 12, 4, 1)
    assert x.unsqueeze(-1).stride() == (12, 4, 1, 1)
    assert torch.zeros(2, 1, 3).stride() == (3, 3, 1)
    assert torch.zeros(3, 0).stride() == (1, 1)
    assert torch.zeros(0, 3).stride() == (3, 1)
    assert x[0:1].stride() == (12, 4, 1)


def test_expand() -> None:
    x = leaf(2, 1)
    y = x.expand(3, -1, 2)
    assert y.stride() == (0, 1, 0)
    assert grad_of(y, x) == [[1 + 2 + 5 + 6 + 9 + 10], [3 + 4 + 7 + 8 + 11 + 12]]
    assert torch.tensor(5.0).expand(2, 0).shape == (2, 0)
    a, b = torch.broadcast_tensors(count(2, 1), count(3))
    assert a.tolist() == [[0, 0, 0], [1, 1, 1]] and b.tolist() == [[0, 1, 2], [0, 1, 2]]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        count(2, 1).expand(2, 3).add_(1)


# --- regions and pieces ---------------------------------------------------------------------------
def test_regions() -> None:
    x = leaf(3, 4)
    assert grad_of(x.narrow(1, -3, 2), x) == [[0, 1, 2, 0], [0, 3, 4, 0], [0, 5, 6, 0]]
    assert grad_of(x.select(0, -1), x) == [[0] * 4, [0] * 4, [1, 2, 3, 4]]
    assert grad_of(x.diagonal(1), x) == [[0, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 3]]
    assert grad_of(x.diagonal(9), x) == [[0] * 4] * 3
    v = leaf(4)
    assert v.unfold(0, 2, 1).tolist() == [[0, 1], [1, 2], [2, 3]]
    assert grad_of(v.unfold(0, 2, 1), v) == [1, 2 + 3, 4 + 5, 6]
    assert grad_of(v.unfold(0, 3, 1), v) == [1, 2 + 4, 3 + 5, 6]
    assert torch.tensor(7.0).unfold(0, 1, 1).tolist() == [7]


def test_as_strided() -> None:
    x = leaf(6)
    y = x.as_strided((2, 2), (1, 2), 1)
    assert y.tolist() == [[1, 3], [2, 4]]
    assert y.storage_offset() == 1
    assert grad_of(y, x) == [0, 1, 3, 2, 4, 0]
    assert grad_of(x.as_strided((3,), (0,)), x) == [6, 0, 0, 0, 0, 0]
    z = count(2, 3).t()
    z.as_strided((2,), (1,), 4).zero_()
    assert z.tolist() == [[0, 3], [1, 0], [2, 0]]


def test_pieces() -> None:
    x = leaf(5)
    a, b, c = x.split(2)
    assert [t.tolist() for t in (a, b, c)] == [[0, 1], [2, 3], [4]]
    assert a.grad_fn is b.grad_fn and a.grad_fn.name() == "SplitBackward0"
    assert grad_of(b, x) == [0, 0, 1, 2, 0]
    assert [t.tolist() for t in x.split([1, 0, 4])] == [[0], [], [1, 2, 3, 4]]
    assert [len(t) for t in x.chunk(4)] == [2, 2, 1]
    assert [len(t) for t in torch.zeros(0).chunk(3)] == [0, 0, 0]
    assert [len(t) for t in x.tensor_split(3)] == [2, 2, 1]
    assert [len(t) for t in x.tensor_split((1, 9))] == [1, 4, 0]
    rows = leaf(2, 3)
    one, two = rows
    assert one.grad_fn.name() == "UnbindBackward0" and two.output_nr == 1
    assert grad_of(two, rows) == [[0, 0, 0], [1, 2, 3]]
    assert [t.tolist() for t in reversed(count(2, 1))] == [[1], [0]]


def test_pieces_may_not_be_written() -> None:
    x = leaf(4) * 1
    a, _ = x.split(2)
    with pytest.raises(RuntimeError, match="This view is the output of a function that returns"):
        a.add_(1)


# --- writing through views ------------------------------------------------------------------------
def test_write_through_a_chain_of_views() -> None:
    x = leaf(2, 3)
    y = x * 1
    y.t()[0].mul_(2)
    y.view(-1)[1:3].add_(x[0, 0])
    assert y.tolist() == [[0, 1, 2], [6, 4, 5]]
    assert y._version == 2
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    assert grad_of(y, x) == [[2 + 2 + 3, 2, 3], [8, 5, 6]]


def test_write_through_a_diagonal_and_a_step() -> None:
    x = leaf(3, 3)
    y = x * 2
    y.diagonal().mul_(10)
    y[::2, 1].zero_()
    assert y.tolist() == [[0, 0, 4], [6, 80, 10], [12, 0, 160]]
    assert grad_of(y, x) == [[20, 0, 6], [8, 100, 12], [14, 0, 180]]


def test_write_through_as_strided() -> None:
    x = leaf(2, 2)
    y = x * 1
    y.as_strided((2,), (2,), 1).mul_(3)
    assert y.tolist() == [[0, 3], [2, 9]]
    assert grad_of(y, x) == [[1, 6], [3, 12]]


def test_second_derivative_through_a_written_view() -> None:
    x = leaf(3)
    y = x * x
    y[1:].mul_(x[:2])
    (g,) = torch.autograd.grad([y.sum()], [x], create_graph=True)
    assert g.tolist() == [0 + 1, 0 + 4, 4]
    (h,) = torch.autograd.grad([g.sum()], [x])
    assert h.tolist() == [2 + 2 * 1, 2 * 1 + 2 * 0 + 2 * 2, 2 * 2 + 2 * 1]


def test_a_stale_view_gets_a_new_node() -> None:
    x = leaf(2, 2)
    y = x * 1
    row = y[0]
    y.mul_(3)
    assert row.grad_fn.name() == "AsStridedBackward0"
    assert grad_of(row, x) == [[3, 6], [0, 0]]


def test_in_place_views() -> None:
    x = leaf(2, 3)
    y = x * 1
    assert y.t_() is y and y.shape == (3, 2) and y._version == 1
    assert y.grad_fn.name() == "TBackward1"
    assert grad_of(y, x) == [[1, 3, 5], [2, 4, 6]]
    z = count(2)
    assert z.unsqueeze_(0).shape == (1, 2) and z.squeeze_().shape == (2,)
    assert count(2, 3, 4).transpose_(0, 2).shape == (4, 3, 2)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf(2, 2).t_()
    base = leaf(2, 2) * 1
    part = base[:, :1]
    part.t_()
    part.mul_(2)
    assert base.tolist() == [[0, 1], [4, 3]]
    assert base.grad_fn.name() == "torch::autograd::CopySlices"


# --- what can be asked ----------------------------------------------------------------------------
def test_questions() -> None:
    x = count(2, 3, 4)
    assert x.size() == (2, 3, 4) and x.size(-1) == 4
    assert x.dim() == x.ndimension() == 3
    assert x.numel() == x.nelement() == torch.numel(x) == 24
    assert x.element_size() == x.itemsize == 4 and x.nbytes == 96
    assert x[1, 2:].storage_offset() == 20
    assert x.unfold(2, 2, 1)[1, 1].storage_offset() == 16
    assert x.is_contiguous() and not x.mT.is_contiguous()
    assert x.contiguous() is x and x.mT.contiguous().stride() == (12, 3, 1)
    assert x.is_set_to(x.view(2, 3, 4)) and not x.is_set_to(x[0])
    image = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert image.stride() == (60, 1, 15, 3)
    assert image.is_contiguous(memory_format=torch.channels_last)
    assert len(x) == 2
    assert [t.shape for t in (torch.atleast_1d(x[0, 0, 0]), torch.atleast_3d(x[0, 0]))] == [
        (1,), (1, 4, 1),
    ]  # fmt: skip


def test_detach_shares_memory_and_version() -> None:
    x = leaf(2) * 1
    y = x.detach()
    y.add_(1)
    assert x.tolist() == [1, 2] and x._version == 1
    assert not y.requires_grad and y._base is None
