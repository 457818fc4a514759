"""What `%%grad` shows: values, gradients and the graph, and nothing is changed by looking."""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.notebook.report import GradReport, node_html


def test_values_and_gradients() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    c = torch.ones(2, 2)
    unused = torch.ones(1, requires_grad=True)
    y = x + 2 * c
    out = (y * y * 3).mean()
    report = GradReport("out", out, {"y": y, "x": x, "c": c, "unused": unused, "out": out})
    text = str(report)
    assert list(report.tensors) == ["x", "c", "unused", "y"]
    assert text.startswith("out = tensor(27., grad_fn=<MeanBackward0>)\nx = tensor([[1., 1.],")
    assert text.count("4.5000") == 8
    assert "c = tensor([[1., 1.],\n        [1., 1.]])\n    gradient: none: it does not req" in text
    assert "none: the loss does not depend on it" in text
    assert x.grad is None
    out.backward()  # the graph is still there


def test_html() -> None:
    pytest.importorskip("igraph")
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    text = GradReport("loss", (w * 3).sum(), {"w": w})._repr_html_()
    assert text.count("<tr>") == 3 and text.count("<svg") >= 3
    assert "MulBackward0" not in text.split("</table>")[0].split("gradient")[0]
    assert text.split("</table>")[1].count(">w<") == 1  # the leaf has its name in the graph


def test_what_draws_graphs_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def graph(root: Any, params: Any) -> Any:
        raise ImportError("pip install <viz>")

    monkeypatch.setattr(torch.viz, "graph", graph)
    w = torch.ones(2, requires_grad=True)
    loss = (w * 3).sum()
    assert (
        GradReport("loss", loss, {"w": w})._repr_html_().endswith("<p>pip install &lt;viz&gt;</p>")
    )
    assert node_html(loss.grad_fn) == "<p>pip install &lt;viz&gt;</p>"


def test_of_a_vector_the_sum_counts() -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    assert GradReport("y", w * 3, {"w": w}).gradients["w"].tolist() == [3.0, 3.0]


def test_after_backward_what_it_left_is_shown() -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    h = w * w
    loss = h.sum()
    loss.backward()
    report = GradReport("loss", loss, {"w": w, "h": h})
    assert report.gradients["w"].tolist() == [2.0, 4.0]
    assert "h = tensor([1., 4.], grad_fn=<MulBackward0>)\n    gradient: unknown\n" in str(report)
    assert str(report).endswith("The cell has called backward(): shown is what it left in .grad.")


def test_other_errors_are_not_hidden() -> None:
    w = torch.ones(2, requires_grad=True)
    h = w.exp()
    loss = h.sum()
    h.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        GradReport("loss", loss, {"w": w})
