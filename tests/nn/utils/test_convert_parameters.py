"""Parameters as one vector."""

from __future__ import annotations

import rushlight as torch
from rushlight import nn


def test_parameters_as_a_vector() -> None:
    m = nn.Linear(2, 1)
    vector = nn.utils.parameters_to_vector(m.parameters())
    assert vector.shape == (3,) and vector.requires_grad
    nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), m.parameters())
    assert m.weight.tolist() == [[1, 2]] and m.bias.tolist() == [3]
