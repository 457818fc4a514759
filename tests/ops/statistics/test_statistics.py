"""Statistics, windows and masked functions give what PyTorch's give: stored, and live."""

from __future__ import annotations

import pytest

import rushlight as torch
from tests.ops.expressions import check
from tests.ops.statistics.cases_statistics import cases


@pytest.mark.parametrize("line", cases)
def test_is_as_in_pytorch(line: str) -> None:
    check(cases, "ops/statistics/statistics", line, nodes=False)


def test_second_derivatives() -> None:
    x = torch.rand(3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(torch.cov, x)
    assert torch.autograd.gradgradcheck(lambda x: torch.gradient(x * x), x)
    mask = torch.tensor([True, False, True, True, False])
    assert torch.autograd.gradgradcheck(lambda x: torch.masked.softmax(x, 1, mask=mask), x)
