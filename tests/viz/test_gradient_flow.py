"""`viz.gradient_flow`: the numbers, the table, and the plot."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn, viz


def model() -> Any:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.Linear(2, 2))
    net[1].register_parameter("unused", nn.Parameter(torch.ones(2)))
    net[2](net[1](net[0](torch.ones(5, 3)))).pow(2).mean().backward()
    net[3].weight.grad = torch.zeros(2, 2)
    net[3].bias.grad = torch.tensor([math.nan, 1.0])
    return net


def test_numbers() -> None:
    net = model()
    flow = viz.gradient_flow(net)
    found = {x.name: x for x in flow.layers}
    first = found["0.weight"]
    g = net[0].weight.grad
    assert first.mean == pytest.approx(g.abs().mean().item())
    assert first.biggest == pytest.approx(g.abs().max().item())
    assert first.norm == pytest.approx(g.norm().item())
    assert first.ratio == pytest.approx((g.norm() / net[0].weight.norm()).item())
    states = {name: x.state for name, x in found.items()}
    assert states == {
        "0.weight": "fine", "0.bias": "fine", "1.unused": "none", "2.weight": "fine",
        "2.bias": "fine", "3.weight": "zero", "3.bias": "not finite",
    }  # fmt: skip
    assert found["3.bias"].bad == 1 and found["3.weight"].zeros == 1.0


def test_table() -> None:
    lines = str(viz.gradient_flow(model())).splitlines()
    assert lines[0].split() == "parameter mean |g| max |g| norm g / weight zeros".split()
    assert lines[3].split() == ["1.unused", "None"]
    assert lines[6].endswith("100%  zero") and lines[7].endswith("not finite")
    assert max(map(len, lines)) <= 80


def test_other_things_than_modules() -> None:
    x = torch.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    assert viz.gradient_flow({"x": x}).layers[0].mean == 3.0
    assert viz.gradient_flow([("x", x)]).layers[0].name == "x"
    zero = torch.zeros(2, requires_grad=True)
    (zero * 3).sum().backward()
    assert str(viz.gradient_flow({"zero": zero})).split()[-2:] == ["-", "0%"]
    table = nn.Embedding(10, 2, sparse=True)
    table(torch.tensor([1, 1])).sum().backward()
    assert viz.gradient_flow(table).layers[0].zeros == 0.9
    with pytest.raises(ValueError, match="no parameters"):
        viz.gradient_flow(nn.ReLU())


def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    flow = viz.gradient_flow(model())
    figure = flow.figure()
    (axes,) = figure.axes
    assert axes.get_yscale() == "log" and len(axes.patches) == 7
    assert [t.get_text() for t in axes.get_xticklabels()] == [x.name for x in flow.layers]
    assert {t.get_text() for t in axes.texts} == {"None", "0", "NaN/inf"}
    flow.save(tmp_path / "flow.png")
    flow.save(tmp_path / "flow.svg")
    assert (tmp_path / "flow.png").read_bytes()[1:4] == b"PNG"
    assert flow._repr_png_()[1:4] == b"PNG"
    assert flow.figure(axes).axes == [axes]


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    flow = viz.gradient_flow(model())
    assert "0.weight" in str(flow)
    with pytest.raises(ImportError, match=r"pip install 'rushlight\[viz\]'"):
        flow.figure()
