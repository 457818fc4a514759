"""`explain`: a table that fits its width, tells the truth and changes nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest

import rushlight as torch
from rushlight.explaining import Explanation, nested, number, short, size_of
from tests.running import python


def told(y: Any, *args: Any, **options: Any) -> Explanation:
    return torch.explain(y, *args, show=False, **options)


def test_a_table_of_a_small_graph() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    y = x + 2
    out = (y * y * 3).mean()
    lines = str(torch.explain(out, show=False)).splitlines()
    assert lines[0] == (
        "The backward pass of out = 27, from the gradient 1: 5 steps, the newest node first."
    )
    assert lines[2].split() == ["#", "node", "rule", "gradient", "in", "gradients", "out"]
    assert lines[4].startswith("test_explaining.py:") and lines[4].endswith(
        "out = (y * y * 3).mean()"
    )
    assert lines[5].split()[:2] == ["1", "MeanBackward0"] and "dx = g / 4" in lines[5]
    assert lines[-1].split()[:2] == ["5", "AccumulateGrad"]
    assert lines[-1].endswith("x.grad = 2x2, all 4.5")
    assert any("the sum there: 2x2, all 4.5" in line for line in lines)
    assert x.grad is None


def test_it_prints_and_returns(capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.tensor(3.0, requires_grad=True)
    said = torch.explain(x * x)
    assert capsys.readouterr().out == f"{said}\n"
    assert repr(said) == "<explanation of a backward pass of 2 steps>"


def test_stored_only_if_asked() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    told(y, accumulate=True)
    assert x.grad.item() == 6.0
    text = str(told(y))
    assert "x.grad = 12" in text and "it was 6" in text and x.grad.item() == 6.0


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_no_line_is_wider_than_asked(width: int) -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(9, 33), torch.nn.LogSoftmax(1), torch.nn.Linear(33, 1)
    )
    loss = torch.nn.functional.smooth_l1_loss(
        net(torch.ones(5, 9)).clamp(min=-1.0).std(), torch.zeros(())
    )
    said = told(loss, width=width)
    assert max(map(len, str(said).splitlines()[2:])) <= width
    assert "of loss" in str(torch.explain(loss, show=False))


def test_many_steps_are_shortened() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(500):
        y = y * 1.001
    text = str(told(y, limit=12))
    assert "... 489 more steps ..." in text and len(text.splitlines()) < 25
    assert "AccumulateGrad" in text


def test_nothing_of_it_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, rushlight\n"
        "rushlight.ones(2, requires_grad=True).sum().backward()\n"
        "late = ('explaining', 'reasons', 'viz', 'autograd.steps')\n"
        "assert not [m for m in late if 'rushlight.' + m in sys.modules]\n"
        "assert not {'explain', 'why', 'viz'} & {*dir(rushlight)}\n"
        "assert callable(rushlight.explain) and callable(rushlight.why)\n"
    )
    assert python("-c", code) == (0, "", "")


def test_names_may_be_given() -> None:
    weights = {"w": torch.ones(2, requires_grad=True)}
    assert "w.grad = [2, 2]" in str(told((weights["w"] * 2).sum(), names=weights))
    assert "a leaf [2]" in str(told((torch.ones(2, requires_grad=True) * 2).sum()))


def test_several_roots_and_edges() -> None:
    x = torch.ones(2, requires_grad=True)
    a, b = (x * 2).sum(), x.exp()
    head = str(told([a, b], [None, torch.tensor([1.0, 2.0])])).splitlines()[0]
    assert head.startswith("The backward pass of 2 tensors, from the gradient None, [1, 2]: ")
    edge = torch.autograd.graph.get_gradient_edge(a)
    assert str(told(edge)).startswith("The backward pass of SumBackward0, from the gradient 1: ")
    said = torch.explain(b, torch.ones(2), show=False)
    assert str(said).startswith("The backward pass of b = [2.718, 2.718], from the gradient [1, 1]")


def test_everything_can_be_told() -> None:
    """Complex, double, half, sparse and empty gradients, several outputs, custom functions."""

    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x / 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g / 2

    z = torch.tensor([1 + 2j], requires_grad=True)
    assert "backward() of Half" in str(told(Half.apply((z * z.conj()).real.sum())))
    empty = torch.ones(0, requires_grad=True)
    assert "AccumulateGrad" in str(told(empty.sum()))
    _, layer = list(torch.autograd.graph.steps(torch.nn.LSTM(2, 3)(torch.ones(2, 1, 2))[0].sum()))[
        :2
    ]
    assert layer.rule.startswith("the derivative of: y, h and c of a layer of LSTM cells")
    assert layer.rule.endswith(" ...") and len(layer.rule) < 120
    table = torch.nn.Embedding(20, 2, sparse=True)
    assert "20x2" in str(told(table(torch.tensor([1, 2])).sum()))
    low = torch.ones(9, dtype=torch.bfloat16, requires_grad=True)
    assert "9, norm 3" in str(told(low.sum()))
    x = torch.ones(2, 3, requires_grad=True)
    values, _ = x.max(1)
    assert "2 tensors" in str(told([values.sum(), x.sum()])).splitlines()[0]
    bad = torch.zeros(8, requires_grad=True)
    assert "8 infinite of 8" in str(told(bad.sqrt().sum()))


# --- tensors in a few words ----------------------------------------------------------------------
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("x", "text"),
    [(1.0, "1"), (0.1 + 0.2, "0.3"), (-1e-9, "-1e-09"), (123456.0, "1.235e+05"), (NAN, "nan"),
     (-INF, "-inf"), (True, "True"), (7, "7")],
)  # fmt: skip
def test_numbers(x: Any, text: str) -> None:
    assert number(x) == text


def test_nested_lists() -> None:
    assert nested([[1.0, 0.5], [NAN, 2 - 1j]]) == "[[1, 0.5], [nan, 2-1j]]"


@pytest.mark.parametrize(
    ("t", "text"),
    [
        (None, "None"),
        (torch.tensor(2.5), "2.5"),
        (torch.tensor([1.0, 1.0]), "[1, 1]"),
        (torch.ones(3), "3, all 1"),
        (torch.zeros(0), "[]"),
        (torch.tensor([1, 2, 3]), "[1, 2, 3]"),
        (torch.arange(10), "10"),
        (torch.full((3, 3), 2.0), "3x3, norm 6"),
        (torch.full((8,), NAN), "8, norm nan, 8 NaN of 8"),
        (torch.tensor([INF, NAN, *[0.0] * 6]), "8, norm nan, 1 NaN, 1 infinite of 8"),
        (torch.full((8,), 3 + 4j), "8, norm 14.14"),
        (torch.ones(3, 4, device="meta"), "3x4, float32"),
        (torch.ones(2, 5).to_sparse(), "2x5, float32"),
    ],
)
def test_tensors(t: Any, text: str) -> None:
    assert short(t) == text


def test_integers_have_no_norm() -> None:
    assert size_of(torch.arange(3)) is None and size_of(torch.tensor([3.0, 4.0])) == 5.0
    assert size_of(torch.eye(2).to_sparse()) == pytest.approx(math.sqrt(2))
