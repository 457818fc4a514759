"""`SymInt` and its kin: nothing is one, and the functions for both kinds are Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
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


@pytest.mark.parametrize("choose", [torch.sym_max, torch.sym_min])
def test_the_larger_and_the_smaller_are_of_numbers(choose: Any) -> None:
    assert repr(choose(np.float32(1), 2)) in ("1.0", "2.0") and repr(choose(1, 2)) in ("1", "2")
    for wrong in ("x", None, [1], np.ones(2), torch.ones(1)):
        with pytest.raises(AssertionError, match="^expected .*, got <class"):
            choose(wrong, 1)
        with pytest.raises(AssertionError, match="^expected .*, got <class"):
            choose(1, wrong)
