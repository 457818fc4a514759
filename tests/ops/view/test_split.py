"""`split`, `chunk`, `unbind`: pieces, which may not be written; errors."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.view.helpers import count, grad_of, leaf


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("x.split(0)", RuntimeError, "split_size can only be 0 if dimension size is 0"),
        ("x.split([1, 2])", RuntimeError, "split_with_sizes expects split_sizes to sum exactly"),
        ("x.chunk(0)", RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0"),
        ("x.hsplit(2)", RuntimeError, "torch.hsplit attempted to split along dimension 1, but"),
        ("x[0, 0, 0].unbind()", IndexError, "Dimension specified as 0 but tensor has no dim"),
    ],
)
def test_errors(call: str, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        eval(call, {"x": count(2, 3, 4), "torch": torch})


def test_split_chunk_and_unbind() -> None:
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
