"""The reference of functions, as tools/make_api.py writes it for the documents."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight.core import arithmetic
from tests.harness import ROOT


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("make_api", ROOT / "tools" / "make_api.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("api")
    (folder / "stale.md").touch()
    assert torch.sin and torch.nn.functional.relu  # handed out: then they say another module
    tool().write(folder)
    return {path.stem: path.read_text("utf-8") for path in folder.glob("*.md")}


def test_sources_of_what_is_compiled_are_read_from_its_file() -> None:
    source: str = tool().compiled_source(arithmetic.Mul, "partials")
    assert source == "def partials(self, a: Any, b: Any) -> Any:\n    return b, a"


def section(page: str, name: str) -> str:
    return page.split(f"## `{name}`\n")[1].split("\n## ")[0]


def test_every_page_is_listed_and_none_is_stale(pages: dict[str, str]) -> None:
    listed = set(re.findall(r"\]\((\w+)\.md\)", pages["index"]))
    assert listed == pages.keys() - {"index"}
    assert len(listed) > 20


def test_public_functions_are_there_once(pages: dict[str, str]) -> None:
    names = [name for page in pages.values() for name in re.findall(r"^## `(.*)`$", page, re.M)]
    assert len(names) == len(set(names)) > 800
    wanted = {"torch.add", "torch.nn.functional.conv2d", "torch.linalg.svd", "Tensor.view"}
    assert wanted <= set(names)
    assert f"{len(names)} functions" in pages["index"]


@pytest.mark.parametrize(
    ("page", "name", "rule", "formula"),
    [
        ("pointwise", "torch.sin", "lambda x: (v.cos(x),)", "dx = g · cos(x)"),
        ("pointwise", "torch.mul", "    return b, a", "dx = g · other, d other = g · x"),
        ("nn", "torch.softmax", "def through(", "dx = g · y − y · "),
        ("reduction", "torch.sum", "def vjp(", "dx = "),
    ],
)
def test_the_rule_of_an_op_is_shown(
    pages: dict[str, str], page: str, name: str, rule: str, formula: str
) -> None:
    text = section(pages[page], name)
    assert f"{name}(" in text and ">>> " in text and "Backward0`" in text
    assert rule in text.split("Its rule, ")[1]
    assert f"```text\n{formula}" in text


def test_fences_are_closed(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        marks = re.findall(r"^```(.*)$", page, re.MULTILINE)
        assert all(not mark for mark in marks[1::2]), name
        assert len(marks) % 2 == 0
