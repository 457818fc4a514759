"""`SymInt` and its kin: nothing is one, and the functions for both kinds are Python's."""

from __future__ import annotations

import pytest

import rushlight as torch


def test_functions() -> None:
    assert not isinstance(torch.ones(2).shape[0], (torch.SymInt, torch.SymFloat, torch.SymBool))
    assert torch.sym_int(-2.7) == -2 and torch.sym_float(2) == 2.0
    assert torch.sym_max(2, 1.5) == 2.0 and isinstance(torch.sym_max(2, 1.5), float)
    assert torch.sym_min(2, 3) == 2 and isinstance(torch.sym_min(2, 3), int)
    assert torch.sym_not(False) is True and torch.sym_ite(False, 1, 2) == 2
    assert torch.sym_sum([1, 2, 3]) == torch.sym_sum(1, 2, 3) == 6 and torch.sym_sqrt(4) == 2.0
    with pytest.raises(RuntimeError, match="rushlight knows every size"):
        torch.SymInt(3)
