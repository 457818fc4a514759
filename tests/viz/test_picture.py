"""Files, notebooks, folding by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn, viz


def picture(steps: int = 30) -> Any:
    w = torch.ones(2, requires_grad=True)
    h = w
    for _ in range(steps):
        h = torch.tanh(h * w)
    return viz.graph(h.sum())


def test_what_is_saved_follows_from_the_ending(tmp_path: Path) -> None:
    made = picture()
    made.save(tmp_path / "g.html")
    made.save(str(tmp_path / "g.dot"))
    assert (tmp_path / "g.html").read_text("utf-8").startswith("<!doctype html>")
    assert (tmp_path / "g.dot").read_text("utf-8").startswith("digraph ")
    with pytest.raises(ValueError, match=r"\.svg, \.png, \.html or \.dot, not '.gif'"):
        made.save(tmp_path / "g.gif")


def test_svg_and_notebooks(tmp_path: Path) -> None:
    pytest.importorskip("igraph")
    made = picture()
    made.save(tmp_path / "g.svg")
    text = (tmp_path / "g.svg").read_text("utf-8")
    assert text == made._repr_svg_() and text.startswith("<svg ")
    assert text in made._repr_html_()
    y = torch.ones(2, requires_grad=True) + 1
    assert ">×2</text>" in viz.graph(y * y)._repr_svg_()


def test_png(tmp_path: Path) -> None:
    pytest.importorskip("igraph")
    pytest.importorskip("matplotlib")
    picture().save(tmp_path / "g.png")
    assert (tmp_path / "g.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_without_the_layout_library_an_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "igraph", None)
    with pytest.raises(ImportError, match=r"pip install 'rushlight\[viz\]'"):
        picture()._repr_svg_()
    assert "digraph" in picture().dot()  # needs no places


def test_fold_and_unfold_give_other_pictures() -> None:
    made = picture()
    before = len(made._view().shown)
    closed = made.fold()
    assert len(closed._view().shown) < before == len(made._view().shown)
    every = made.unfold()
    assert len(every._view().shown) == len(made.model.items)
    (loop, *_) = made.groups
    assert loop.startswith("30 × ")
    assert len(closed.unfold(loop)._view().shown) > len(closed._view().shown)
    assert len(every.fold(loop)._view().shown) == len(closed._view().shown)


def test_unfolding_an_inner_group_opens_those_around_it() -> None:
    closed = picture().fold()
    assert "5" not in closed.groups
    opened = closed.unfold("step 5")
    titles = [getattr(shown, "title", "") for shown in opened._view().shown.values()]
    assert titles.count("tanh") == 1


def test_an_unknown_group_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="there is no group 'nothing'. Groups: '30 ×"):
        picture().unfold("nothing")


def test_folded_pictures_have_no_cycles() -> None:
    from rushlight.viz.layout import layers_of

    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    whole = viz.graph(model(torch.ones(2, 5, 8)).sum(), params=model)
    for each in (whole, whole.fold(), *[whole.fold().unfold(g) for g in whole.groups]):
        view = each._view()
        layers = layers_of(list(view.shown), list(view.joined))
        assert layers.keys() == view.shown.keys()
        assert all(layers[a] < layers[b] for a, b in view.joined)


def test_how_it_prints() -> None:
    made = picture()
    assert str(made) == "graph of output: 61 nodes, 1 leaf"
    assert repr(made) == "<graph of output: 61 nodes, 1 leaf>"
