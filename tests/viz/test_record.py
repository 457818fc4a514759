"""`viz.record`: what flowed through each edge."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.core.engine.observers import begins
from rushlight.nn.modules.everywhere import everywhere


def test_gradients_and_kept_values_are_noted_before_they_are_freed() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    with viz.record() as seen:
        y.backward()
    assert [node.name() for node in seen.order] == ["SumBackward0", "MulBackward0"]
    total, mul = seen.order
    assert seen.received[total][0]["values"] == "1"
    assert seen.sent[mul, 0]["values"] == seen.sent[mul, 1]["values"] == ["1", "2"]
    assert [(name, told["values"]) for name, told in seen.kept[mul]] == [
        ("x", ["1", "2"]),
        ("other", ["1", "2"]),
    ]
    assert seen.roots == [total]


def test_broadcast_gradients_are_shown_as_they_arrive() -> None:
    w = torch.ones(3, requires_grad=True)
    x = torch.ones(2, 3)
    with viz.record() as seen:
        (w * x).sum().backward()
    assert seen.sent[seen.order[1], 0]["values"] == ["2", "2", "2"]


def test_the_last_pass_counts() -> None:
    x = torch.ones(1, requires_grad=True)
    with viz.record() as seen:
        x.exp().backward()
        x.sin().backward()
    assert [node.name() for node in seen.order] == ["SinBackward0"]


def test_a_pass_inside_a_pass_is_part_of_it() -> None:
    from rushlight.utils.checkpoint import checkpoint

    x = torch.ones(1, requires_grad=True)
    y = checkpoint(torch.sin, x, use_reentrant=True).exp()
    with viz.record() as seen:
        y.sum().backward()
    names = [node.name() for node in seen.order]
    assert names == ["SumBackward0", "ExpBackward0", "CheckpointFunctionBackward", "SinBackward0"]


def test_without_values_only_the_order_is_noted() -> None:
    x = torch.ones(1, requires_grad=True)
    with viz.record(values=False) as seen:
        x.exp().sin().backward()
    assert len(seen.order) == 2 and not seen.sent and not seen.kept


def test_nothing_is_left_behind() -> None:
    model = nn.Linear(2, 1)
    before = (list(begins), dict(everywhere.calls))
    with pytest.raises(ZeroDivisionError), viz.record():
        model(torch.ones(1, 2)).sum().backward()
        raise ZeroDivisionError
    assert (list(begins), dict(everywhere.calls)) == before


def test_a_recording_without_a_pass_says_so() -> None:
    with viz.record() as seen:
        torch.ones(1, requires_grad=True).exp()
    with pytest.raises(RuntimeError, match="no backward pass ran"):
        seen.graph()


def test_the_gradient_that_was_seen_is_the_gradient() -> None:
    def spied(*shape: int) -> Any:
        return torch.rand(*shape, generator=torch.Generator().manual_seed(1)).requires_grad_()

    a, b = spied(3, 4), spied(4, 2)
    with viz.record() as seen:
        (a @ b).tanh().square().mean().backward()
    mm = seen.order[-1]
    rows = a.grad.tolist()
    assert seen.sent[mm, 0]["values"] == [[f"{x:.4g}" for x in row] for row in rows]
