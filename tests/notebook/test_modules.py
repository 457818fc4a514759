"""Modules as tables."""

from __future__ import annotations

import rushlight as torch
from rushlight import nn
from rushlight.notebook.modules import module_html


def test_parameters_are_listed() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    net[0].requires_grad_(False)
    net(torch.ones(2)).sum().backward()
    text = module_html(net)
    assert "13 parameters, 9 of them frozen" in text
    assert "(1): ReLU()" in text
    assert text.count("<tr>") == 5  # a head, and four parameters
    assert "<td>0.weight</td><td>3×2</td>" in text and "<td>frozen</td>" in text
    assert "<td>2.bias</td><td>1</td>" in text
    assert text.endswith("<td>1</td></tr></table></details>")


def test_many_parameters() -> None:
    net = nn.ModuleList(nn.Linear(1, 1) for _ in range(30))
    assert "and 20 more" in module_html(net)


def test_nothing_is_written_unescaped() -> None:
    class Odd(nn.Module):
        def extra_repr(self) -> str:
            return "<b>"

    assert "&lt;b&gt;" in module_html(Odd()) and "<b>" not in module_html(Odd())
    assert "no numbers" in module_html(nn.Linear(1, 1, device="meta"))
