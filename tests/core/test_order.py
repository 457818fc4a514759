"""Which results of element-wise ops stay as they lie: `keeps_rows` and `arrange` agree."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np

from rushlight.arrays.layouts import arrange
from rushlight.core.dispatch import keeps_rows


def layouts(rng: random.Random, shape: tuple[int, ...]) -> Any:
    """An array of a shape, or one that is broadcast to it, in any layout."""
    sizes = [n if rng.random() < 0.8 else 1 for n in shape][rng.choice((0, 0, 0, 1)) :]
    order = list(range(len(sizes)))
    if rng.random() < 0.5:
        rng.shuffle(order)
    base = np.zeros([sizes[d] + rng.choice((0, 0, 2)) for d in order])
    cut = base[tuple(slice(0, sizes[d]) for d in order)]
    x = cut.transpose([order.index(d) for d in range(len(order))])
    if rng.random() < 0.2 and x.ndim:
        x = np.broadcast_to(x[..., :1], x.shape)
    return x[..., None, :][..., 0, :] if x.ndim and rng.random() < 0.2 else x


def test_what_keeps_its_rows_is_arranged_as_it_lies() -> None:
    rng = random.Random(0)
    kept = 0
    for _ in range(4000):
        shape = tuple(rng.choice((1, 2, 3, 5)) for _ in range(rng.randint(1, 4)))
        a, b = layouts(rng, shape), layouts(rng, shape)
        if np.broadcast_shapes(a.shape, b.shape) != shape:
            continue
        y = np.zeros(shape)
        if keeps_rows(y, a, b):
            kept += 1
            z = arrange(y, (a, b))
            assert z.strides == y.strides, (shape, a.strides, b.strides)
    assert kept > 500


def test_common_layouts_keep_their_rows() -> None:
    whole, column, row = np.zeros((4, 3)), np.zeros((4, 9))[:, 2:3], np.zeros(3)
    part = np.zeros((4, 9))[:, 2:5]
    for a, b in itertools.product((whole, column, row, part), repeat=2):
        if np.broadcast_shapes(a.shape, b.shape) == (4, 3):
            assert keeps_rows(np.zeros((4, 3)), a, b)
    assert not keeps_rows(whole, np.zeros((3, 4)).T, whole)
