"""Sobol's sequence on raw arrays: direction numbers, scrambling, points.

The primitive polynomials and first direction numbers are Joe and Kuo's, in the table that SciPy
brings along.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any, Final

import numpy as np

BITS: Final = 30
MAX_DIMENSION: Final = 21201


def direction_numbers(dimension: int) -> Any:
    """Direction numbers, an int64 each, of shape [dimension, BITS]; the first moves most."""
    spec = importlib.util.find_spec("scipy")
    assert spec is not None and spec.submodule_search_locations is not None
    path = os.path.join(spec.submodule_search_locations[0], "stats")
    with np.load(os.path.join(path, "_sobol_direction_numbers.npz")) as table:
        polynomial = table["poly"][:dimension].astype(np.int64)
        initial = table["vinit"][:dimension].astype(np.int64)
    degree = np.zeros_like(polynomial)
    for bit in range(1, 32):
        degree[polynomial >> bit > 0] = bit
    m = np.zeros((dimension, BITS), np.int64)
    width = min(initial.shape[1], BITS)
    m[:, :width] = initial[:, :width]
    m[degree == 0] = 1
    for k in range(BITS):
        # m_k from the `degree` numbers before it, by the coefficients of the polynomial
        late = np.flatnonzero((degree > 0) & (degree <= k))
        before, poly = degree[late], polynomial[late]
        new = m[late, k - before]
        for j in range(1, int(before.max(initial=0)) + 1):
            has = (j <= before) & ((poly >> np.maximum(before - j, 0)) & 1 == 1)
            new ^= np.where(has, m[late, k - np.minimum(j, k)] << j, 0)
        m[late, k] = new
    return m << np.arange(BITS - 1, -1, -1)


def scramble(numbers: Any, matrices: Any) -> Any:
    """Direction numbers after random lower triangular matrices of bits, one a dimension."""
    powers = np.left_shift(1, np.arange(BITS - 1, -1, -1))
    rows = (matrices * powers).sum(-1)  # a row of bits as one number
    rows |= powers  # with ones on the diagonal
    both = rows[:, None, :] & numbers[:, :, None]
    for shift in (16, 8, 4, 2, 1):  # the parity of all bits
        both ^= both >> shift
    return ((both & 1) * powers).sum(-1)


def to_number(bits: Any) -> Any:
    """Rows of bits, the lowest first, as numbers."""
    return (bits * np.left_shift(1, np.arange(BITS))).sum(-1)


def advance(numbers: Any, start: Any, count: int, generated: int) -> Any:
    """The `count` points behind number `generated`, which is `start`; ints, [count, dimension]."""
    n = np.arange(generated, generated + count)
    lowest_zero = np.bitwise_count((n ^ (n + 1)) >> 1)
    steps = numbers[:, lowest_zero].T
    return np.bitwise_xor.accumulate(np.concatenate([start[None], steps]), axis=0)[1:]
