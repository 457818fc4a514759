"""Functions that are gone say so."""

from __future__ import annotations

import pytest

import rushlight as torch


def test_functions_that_are_gone_say_so() -> None:
    x = torch.eye(2)
    for call in (x.symeig, x.eig, lambda: torch.solve(x, x), lambda: torch.lstsq(x, x)):
        with pytest.raises(RuntimeError, match="^This function was deprecated since version 1.9"):
            call()
    with pytest.raises(RuntimeError, match=r"^reinforce\(\) was removed."):
        x.reinforce(1)
    with pytest.raises(RuntimeError, match="^unknown parameter type"):
        x.record_stream(None)
