"""The pictures of docs/pictures.md: each stands behind the block that makes it, and is small."""

from __future__ import annotations

import importlib.util
import re
from typing import Any

from tests.harness import ROOT

PAGE = ROOT / "docs" / "pictures.md"


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("make_pictures", ROOT / "tools/make_pictures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_picture_is_made_by_the_block_before_it() -> None:
    text = PAGE.read_text("utf-8")
    pictures = re.findall(r"\]\(figures/([\w.]+)\)", text)
    made = tool().wanted(text)
    assert [picture for _, _, picture, _ in made] == pictures and len(pictures) >= 7
    for file, code, picture, options in made:
        stem = picture.partition(".")[0]
        assert file == f"{stem}.py"
        assert f'.save("{stem}.' in code
        assert options.keys() <= {"find", "step", "fit", "theme", "width", "height", "scale"}


def test_pictures_are_there_and_small() -> None:
    for _, _, picture, _ in tool().wanted(PAGE.read_text("utf-8")):
        assert 1000 < (ROOT / "docs" / "figures" / picture).stat().st_size < 120_000
