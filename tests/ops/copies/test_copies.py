"""What is made from other functions gives what PyTorch gives: stored, and live."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.ops.copies.cases_copies import cases
from tests.ops.expressions import check

# Their nodes are of other functions here.
OTHER_NODES = (
    "_weight_norm", "norm", "_softmax(", "_unsafe_index", "sum_to_size", "cond", "_foreach_mul([x]",
)  # fmt: skip


@pytest.mark.parametrize("line", cases)
def test_is_as_in_pytorch(line: str) -> None:
    check(cases, "ops/copies/copies", line, nodes=not any(name in line for name in OTHER_NODES))


def test_copies_share_no_memory() -> None:
    x = torch.zeros(2, 3)
    for y in (torch.t_copy(x), torch.alias_copy(x), torch.view_copy(x, (6,)), torch.detach_copy(x)):
        y.fill_(1)
    for part in torch.unbind_copy(x):
        part.fill_(1)
    assert not x.any()


def test_second_derivatives_of_copies() -> None:
    x = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: torch.diagonal_copy(x * x), x)
    assert torch.autograd.gradgradcheck(lambda x: torch.unfold_copy(x * x, 1, 2, 1), x)
