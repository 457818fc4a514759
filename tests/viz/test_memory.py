"""`viz.memory`: every byte counted once, by line and by node."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import viz
from rushlight.core.graph import here
from rushlight.viz.memory import size

F = torch.nn.functional


def test_storages_are_counted_once() -> None:
    x = torch.ones(1000, requires_grad=True)
    y = x.exp()
    z = (y * y.view(10, 100).view(1000)).sum() + y.sin().sum()
    report = viz.memory(z)
    assert report.total == 4000 and len(report.kept) == 1
    (only,) = report.kept
    assert (only.name, only.shape, only.leaf) == ("result", (1000,), False)


def test_lines_are_the_users() -> None:
    x = torch.ones(100, requires_grad=True)
    first = here().line + 1
    y = x.exp()
    z = (y * 3).sqrt().sum()
    report = viz.memory(z)
    assert [(line.bytes, line.nodes) for line in report.lines] == [(400, 1), (400, 3)] or [
        (line.bytes, line.nodes) for line in report.lines
    ] == [(400, 3), (400, 1)]
    places = {int(line.place.split()[0].split(":")[1]) for line in report.lines}
    assert places == {first, first + 1}


def test_what_belongs_to_leaves_is_marked() -> None:
    w = torch.ones(10, 10, requires_grad=True)
    x = torch.ones(10, 10)
    report = viz.memory((x @ w).sum())
    assert (report.total, report.of_leaves) == (400, 0)  # only x: its gradient is not wanted
    report = viz.memory((w @ w).sum())
    assert (report.total, report.of_leaves) == (400, 400)


def test_a_part_holds_all_of_its_memory() -> None:
    x = torch.ones(4, requires_grad=True)
    large = torch.ones(1000)
    assert viz.memory((x * large[:4]).sum()).total == 4000


def test_nothing_is_held_after_backward() -> None:
    x = torch.ones(10, requires_grad=True)
    y = x.exp().sum()
    assert viz.memory(y).total == 40
    y.backward()
    assert viz.memory(y).total == 0


def test_every_kind_of_node() -> None:
    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, None)
            ctx.where = "an attribute of the user's"
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = torch.ones(5, requires_grad=True)
    h = Keep.apply(x * 1)
    report = viz.memory(h.sum())
    assert report.total == 20 and "h = Keep.apply(x * 1)" in str(report)
    h = x * 1
    h[0] = x[1] * 2
    h[1:].mul_(x[1:])
    assert viz.memory(h.sum()).total > 0
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
        packed = x.exp().sum()
    assert viz.memory(packed).total == 10
    table = torch.nn.Embedding(10, 2, sparse=True)
    assert viz.memory(table(torch.tensor([1, 2])).sum()).total == 16
    z = torch.ones(3, dtype=torch.complex64, requires_grad=True)
    assert viz.memory((z * z.conj()).real.sum()).total == 24
    meta = torch.ones(3, device="meta", requires_grad=True)
    assert viz.memory(meta.exp().sum()).nodes == 2
    lstm = torch.nn.LSTM(3, 4)
    out, _ = lstm(torch.ones(2, 1, 3))
    assert viz.memory([out.sum(), packed]).total > 100
    assert viz.memory(x, warn=False).nodes == 0


# --- many iterations ------------------------------------------------------------------------------
def looped(n: int, step: Any) -> Any:
    net, total = torch.nn.Linear(3, 1), 0.0
    for _ in range(n):
        loss = net(torch.ones(2, 3)).pow(2).mean()
        step(loss)
        total = total + loss
    return total


def test_a_sum_that_keeps_iterations_alive_is_warned_of() -> None:
    total = looped(6, lambda loss: None)
    with pytest.warns(UserWarning, match="6 iterations are kept alive by one sum:\n  test_memory"):
        report = viz.memory(total)
    (said,) = report.warnings
    assert "total = total + loss" in said and "If it is only for a log" in said
    assert said.split("\n")[0] in str(report)


def test_more_so_after_backward() -> None:
    total = looped(4, lambda loss: loss.backward())
    with pytest.warns(UserWarning, match="backward\\(\\) was called on them already"):
        viz.memory(total)


@pytest.mark.parametrize("n", [1, 2])
def test_few_terms_are_a_loss_of_several_parts(n: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not viz.memory(looped(n, lambda loss: None)).warnings


def test_a_chain_of_a_hundred_thousand() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    report = viz.memory(y.sum(), warn=False)
    assert report.nodes == 100_001 and report.total == 0


# --- how it is shown ------------------------------------------------------------------------------
def test_text_and_page(tmp_path: Path) -> None:
    x = torch.ones(1000, requires_grad=True)
    z = x.exp().sum()  # <b>markup & so on</b>
    report = viz.memory(z)
    assert str(report).splitlines()[0] == "3.9 KB held for backward, in 1 storage of 2 nodes"
    assert repr(report) == str(report)
    report.save(tmp_path / "memory.html")
    page = (tmp_path / "memory.html").read_text("utf-8")
    assert "<b>markup" not in page and "&lt;b&gt;markup &amp; so on" in page
    assert "result of ExpBackward0, 1000 float32" in page and page in page.strip()
    assert report._repr_html_() in page
    with pytest.raises(ValueError, match="saved as .html"):
        report.save("memory.txt")


@pytest.mark.parametrize(
    ("n", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (5 * 2**30, "5.0 GB")]
)
def test_sizes(n: int, text: str) -> None:
    assert size(n) == text
