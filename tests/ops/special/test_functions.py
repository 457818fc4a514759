"""Special functions of few programs give what PyTorch's give: stored, and live."""

from __future__ import annotations

import pytest

from tests.ops.expressions import check
from tests.ops.special.cases_functions import cases


@pytest.mark.parametrize("line", cases)
def test_is_as_in_pytorch(line: str) -> None:
    check(cases, "ops/special/functions", line)
