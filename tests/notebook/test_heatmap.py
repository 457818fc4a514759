"""Tensors as pictures: every kind of tensor can be shown, and nothing is written unescaped."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

import rushlight as torch
from rushlight.notebook.heatmap import chosen, colours, tensor_html

inf, nan = float("inf"), float("nan")


def drawn(x: Any) -> tuple[str, list[str], list[str]]:
    """The caption, the tooltips, and what is written on the squares; the picture is well formed."""
    text = tensor_html(x)
    caption = re.sub(r"<[^>]*>", "", text.split("<br>")[0])
    tips: list[str] = []
    written: list[str] = []
    for svg in re.findall(r"<svg.*?</svg>", text):
        tree = ElementTree.fromstring(svg)
        tips += [str(node.text) for node in tree.iter() if node.tag.endswith("title")]
        written += [str(node.text) for node in tree.iter() if node.tag.endswith("text")]
    return caption, tips, written


@pytest.mark.parametrize(
    ("x", "caption", "written"),
    [
        (torch.tensor([1.0, -2.5]), "2 float32", ["1.", "-2.5"]),
        (torch.tensor([[1, 2], [3, 4]]), "2×2 int64", ["1", "2", "3", "4"]),
        (torch.tensor([True, False]), "2 bool", ["True", "False"]),
        (torch.tensor([nan, inf, -inf]), "3 float32", ["nan", "inf", "-inf"]),
        (torch.tensor([3 + 4j]), "1 complex64", ["5."]),
        (torch.zeros(2, dtype=torch.bfloat16), "2 bfloat16", ["0.", "0."]),
        (torch.eye(2).to_sparse(), "2×2 float32, sparse_coo", ["1.", "0.", "0.", "1."]),
        (torch.tensor([1e-20]), "1 float32", ["1e-20"]),
    ],
    ids=str,
)
def test_small_tensors_are_written_out(x: Any, caption: str, written: list[str]) -> None:
    said, tips, found = drawn(x)
    assert said == caption
    assert found == written
    assert len(tips) == len(written)


def test_history_is_told() -> None:
    x = torch.ones(2, requires_grad=True)
    assert drawn(x)[0] == "2 float32, requires_grad"
    assert drawn(x * 2)[0] == "2 float32, from MulBackward0"


@pytest.mark.parametrize(
    ("x", "part"),
    [
        (torch.tensor(2.5), "<b>2.5</b>"),
        (torch.tensor(3), "<b>3</b>"),
        (torch.tensor(1 + 2j), "<b>(1+2j)</b>"),
        (torch.tensor(nan), "<b>nan</b>"),
        (torch.empty(0, 3), "<i>empty</i>"),
        (torch.empty(3, device="meta"), "the device is meta"),
        (torch.zeros(2, 3, 4, 5), "the first of 6 matrices"),
        (torch.zeros(100, 3), "48 of 100 rows, 3 of 3 columns"),
    ],
)
def test_what_is_not_drawn_is_said(x: Any, part: str) -> None:
    assert part in tensor_html(x)


def test_large_tensors_are_small_pictures() -> None:
    x = torch.arange(1000.0 * 1000).reshape(1000, 1000)
    caption, tips, written = drawn(x)
    assert "from 0. to 1e+06, mean 5e+05" in caption
    assert len(tips) == 48 * 48 and not written
    assert tips[0] == "[0, 0] 0." and tips[-1] == "[999, 999] 1e+06"
    assert len(tensor_html(x)) < 400_000


def test_many_numbers_of_which_some_are_lost() -> None:
    x = torch.zeros(200)
    x[0] = nan
    assert "from 0. to 0., mean 0., 1 not finite" in tensor_html(x)
    assert "nothing is finite" in tensor_html(torch.full((200,), nan))


def test_rows_that_are_chosen() -> None:
    assert chosen(3) == [0, 1, 2]
    assert (chosen(1000)[0], chosen(1000)[-1], len(set(chosen(1000)))) == (0, 999, 48)


def test_colours() -> None:
    assert colours(0.0, 0.0)[0] == colours(0.0, 5.0)[0] == "#f7f7f7"
    assert colours(5.0, 5.0) == ("#b2182b", "#ffffff")
    assert colours(-5.0, 5.0) == ("#2166ac", "#ffffff")
    assert colours(nan, 5.0)[0] == colours(inf, 5.0)[0] == "#8a8a8a"
