"""`view`, `reshape`, `flatten`: shared memory, strides that allow it, dtypes, errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.view.helpers import count, grad_of, leaf


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


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("x.reshape()", TypeError, "reshape.. missing 1 required positional arguments"),
        ("torch.reshape(x, 24)", TypeError, "must be tuple of ints, not int"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3, 4), "torch": torch})
