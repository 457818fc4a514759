"""`viz.flame`: time by line, and a page that can be used."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import viz
from rushlight.core.graph import here
from rushlight.profiler import profile, record_function
from rushlight.viz.flame import Box, FlamePage, frame

CHROMIUM = next(filter(None, map(shutil.which, (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
))), None)  # fmt: skip


def recorded(**options: Any) -> tuple[FlamePage, int]:
    """A flame page, and the number of the line with the product."""
    x = torch.ones(20, 20, requires_grad=True)
    with profile(**options) as prof:
        for _ in range(3):
            with record_function("forward"):
                line = here().line + 1
                y = (x @ x).sum()  # </script><b>
            y.backward()
    return viz.flame(prof), line


def test_lines_have_their_forward_and_backward_time() -> None:
    page, line = recorded()
    found = {x.place: x for x in page.lines}
    mine = found[f"test_flame.py:{line}"]
    assert mine.forward > 0 and mine.backward > 0 and mine.calls == 6
    assert mine.source == "y = (x @ x).sum()  # </script><b>"
    assert str(page).splitlines()[0].split() == ["total", "forward", "backward", "calls", "line"]
    assert f"test_flame.py:{line}     y = (x @ x).sum()" in str(page)


def test_boxes_add_up() -> None:
    page, line = recorded()
    spent = sum(max(0.0, event.self_cpu_time_total) for event in page.events)
    assert page.root.total == pytest.approx(spent)
    forward = page.root.inside["forward", "range"]
    (place,) = [box for box in forward.inside.values() if box.kind == "line"]
    assert place.name == f"test_flame.py:{line}"
    assert {name for name, _ in place.inside} == {"aten::mm", "aten::sum"}
    assert place.inside["aten::mm", "forward"].calls == 3
    back = page.root.inside[place.name, "line"]
    assert ("engine, MmBackward0", "backward") in back.inside


def test_stacks_show_the_way() -> None:
    page, line = recorded(with_stack=True)
    names: set[str] = set()
    boxes: list[Box] = [page.root]
    while boxes:
        box = boxes.pop()
        names.add(box.name)
        boxes += box.inside.values()
    assert f"test_flame.py:{line}" in names
    assert any(name.endswith("test_stacks_show_the_way") for name in names)
    assert frame("/a/b/train.py(12): main") == "train.py:12 main"


def test_the_page_is_one_file_and_safe(tmp_path: Path) -> None:
    page, _ = recorded()
    page.save(tmp_path / "profile.html")
    text = (tmp_path / "profile.html").read_text("utf-8")
    assert not re.search(r'(src|href)="', text) and "default-src 'none'" in text
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert data["n"] == "all" and data["v"] == pytest.approx(page.root.total, rel=1e-3)
    assert "</script><b>" not in found[1] and "# </script><b>" in json.dumps(data)
    assert len(text) < 40_000


def test_what_was_not_recorded_is_not_drawn() -> None:
    with profile() as prof:
        pass
    with pytest.raises(ValueError, match="nothing was recorded"):
        viz.flame(prof)
    with torch.autograd.profiler.profile() as old:
        torch.ones(2) * 2
    assert viz.flame(old).root.total > 0
    assert "<h2>By operation</h2>" in viz.flame(old)._repr_html_()


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}, {"width": 360}])
def test_a_visit(options: dict[str, Any], tmp_path: Path) -> None:
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    page, _ = recorded()
    boxes_of: list[Box] = [page.root]
    for box in boxes_of:  # as wide as they were called often: no clock decides what is seen
        box.own = float(box.calls)
        boxes_of += box.inside.values()
    page.save(tmp_path / "profile.html")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        size = {"width": options.get("width", 1000), "height": 800}
        context = browser.new_context(
            offline=True, viewport=size, color_scheme=options.get("color_scheme", "light")
        )
        visit = context.new_page()
        wrong: list[str] = []
        visit.on("pageerror", lambda error: wrong.append(str(error)))
        visit.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
        visit.goto(f"file://{tmp_path}/profile.html")
        boxes = visit.locator("#flame button")
        before = boxes.count()
        assert before > 3
        visit.keyboard.press("/")
        visit.keyboard.type("aten::mm")
        assert visit.locator("#flame button.hit").count() == 1
        visit.locator("#flame button.range", has_text="forward").press("Enter")
        assert boxes.count() < before
        assert "forward" in visit.locator("#said").inner_text()
        visit.keyboard.press("Enter")  # the focus is on it: out again
        assert boxes.count() == before
        visit.locator("#flame button.line").first.click()
        visit.keyboard.press("Escape")
        assert boxes.count() == before and visit.locator("#find").input_value() == ""
        wide = visit.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert wide, "the page must not scroll sideways"
        paper = visit.evaluate("getComputedStyle(document.body).backgroundColor")
        assert paper == ("rgb(20, 24, 31)" if "color_scheme" in options else "rgb(255, 255, 255)")
        assert not wrong
        browser.close()
