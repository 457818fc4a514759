"""`any` and `all`."""

from __future__ import annotations

import numpy as np

from tests.ops.reduction.helpers import NAN, same, tensor


def test_any_and_all() -> None:
    x = tensor([[0.0, 1.0], [2.0, NAN]])
    same(x.any(1), [True, True], np.bool_)
    same(x.all(1), [False, True], np.bool_)
    same(x.all(), False, np.bool_)
    same(x.any(()), [[False, True], [True, True]], np.bool_)
    same(tensor([2, 0], np.uint8).any(), 1, np.uint8)
    same(x.count_nonzero(), 3, np.int64)
    same(x.count_nonzero(dim=0), [1, 2], np.int64)
    same(tensor([]).all(), True)
    same(tensor([]).any(), False)
