"""Whatever the op: its backward pass can be told in words, stepped through, and weighed."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight import viz
from rushlight.core.record import apply
from tests.laws.test_laws import SMOOTH, leaves, listed

FIRST = [case for case in SMOOTH if str(case.id).endswith("-0")]


@pytest.mark.parametrize(("op", "xs"), FIRST)
def test_every_op_can_be_told(op: Any, xs: tuple[Any, ...]) -> None:
    ts = leaves(xs)
    outs = [y for y in listed(apply(op, *ts)) if y.requires_grad]
    loss = sum((y.abs() if y.is_complex() else y).sum().double() for y in outs)
    text = str(torch.explain(loss, show=False))
    assert max(map(len, text.splitlines())) <= 100
    found = {id(s.leaf): s.grads[0] for s in torch.autograd.graph.steps(loss) if s.leaf is not None}
    assert viz.memory(loss, warn=False).total >= 0
    loss.backward()
    for t in ts:
        if id(t) in found and found[id(t)] is not None:
            same = (found[id(t)] == t.grad) | (t.grad != t.grad)
            assert bool(same.all())
