"""`Embedding`."""

from __future__ import annotations

import rushlight as torch
from rushlight import nn


def test_embedding_from_vectors() -> None:
    vectors = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    m = nn.Embedding.from_pretrained(vectors)
    assert m(torch.tensor([1])).tolist() == [[3, 4]] and not m.weight.requires_grad
    assert nn.Embedding.from_pretrained(vectors, freeze=False).weight.requires_grad
