"""`Size`: Python ints, whatever it is made of."""

from __future__ import annotations

import numpy as np

from rushlight.size import Size, unchecked


def test_size_holds_python_ints() -> None:
    made = Size([np.int64(2), True])
    assert [type(n) for n in made] == [int, int]
    one = (1,)
    assert type(made[1:]) is type(made + one) is type(one + made) is type(made * 2) is Size
    assert unchecked((2, 3)) == Size([2, 3])
    assert type(unchecked((2, 3))) is Size
