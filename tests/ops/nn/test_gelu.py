"""`gelu`, `elu`, `silu`, `softplus` and other smooth activations: values and slopes."""

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch
from tests.ops.nn.helpers import INF, F, same, slopes

# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


@pytest.mark.parametrize(
    ("fn", "values", "results", "derivatives"),
    [
        (F.elu, [-INF, 0, 2], [-1, 0, 2], [0, 1, 1]),
        (F.celu, [-INF, 0, 2], [-1, 0, 2], [0, 1, 1]),
        (F.softplus, [-1000, 0, 1000], [0, math.log(2), 1000], [0, 0.5, 1]),
        (F.logsigmoid, [-1000, 0, 1000], [-1000, -math.log(2), 0], [1, 0.5, 0]),
        (F.silu, [0, 1000], [0, 1000], [0.5, 1]),
        (F.gelu, [0, 1000], [0, 1000], [0.5, 1]),
        (F.mish, [0, 1000], [0, 1000], [0.6, 1]),
    ],
)
def test_activations(fn: Any, values: Any, results: Any, derivatives: Any) -> None:
    values = [float(value) for value in values]
    assert same(fn(torch.tensor(values, dtype=torch.double)), results)
    assert slopes(fn, values) == pytest.approx(derivatives, abs=1e-12)


def test_gelu_and_its_approximation() -> None:
    x = torch.tensor([1.0], dtype=torch.double)
    assert F.gelu(x).item() == pytest.approx(0.5 * (1 + math.erf(math.sqrt(0.5))))
    inner = math.sqrt(2 / math.pi) * 1.044715
    assert F.gelu(x, approximate="tanh").item() == pytest.approx(0.5 * (1 + math.tanh(inner)))
    with pytest.raises(RuntimeError, match="approximate argument must be either none or tanh"):
        F.gelu(x, approximate="x")
