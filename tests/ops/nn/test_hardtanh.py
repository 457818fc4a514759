"""`hardtanh` and other activations in pieces: values and slopes where the pieces meet."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from tests.ops.nn.helpers import F, same, slopes

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(
    ("fn", "values", "results", "derivatives"),
    [
        (F.hardtanh, [-2, -1, 0.5, 1, 2], [-1, -1, 0.5, 1, 1], [0, 0, 1, 0, 0]),
        (F.hardsigmoid, [-4, -3, 0, 3, 4], [0, 0, 0.5, 1, 1], [0, 0, 1 / 6, 0, 0]),
        (F.hardswish, [-4, -3, 0, 3, 4], [0, 0, 0, 3, 4], [0, 0, 0.5, 1, 1]),
        (F.softshrink, [-1, -0.5, 0.2, 0.5, 2], [-0.5, 0, 0, 0, 1.5], [1, 0, 0, 0, 1]),
        (F.hardshrink, [-1, -0.5, 0.2, 0.5, 2], [-1, 0, 0, 0, 2], [1, 0, 0, 0, 1]),
        (F.softsign, [-1, 0, 3], [-0.5, 0, 0.75], [0.25, 1, 1 / 16]),
        (F.tanhshrink, [0], [0], [0]),
    ],
)
def test_activations(fn: Any, values: Any, results: Any, derivatives: Any) -> None:
    values = [float(value) for value in values]
    assert same(fn(torch.tensor(values, dtype=torch.double)), results)
    assert slopes(fn, values) == pytest.approx(derivatives, abs=1e-12)
