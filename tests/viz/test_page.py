"""The page: its data, and a real click-through in headless Chromium.

Where there is no Chromium, or playwright is not installed, only the click-through is left out.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import nn, viz
from rushlight.viz.page import embedded, template

CHROMIUM = next(filter(None, map(shutil.which, (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
))), None)  # fmt: skip


def drawn() -> Any:
    """A graph with modules, a loop, a large kept value and recorded gradients."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 1))
    x = torch.randn(12, 20)
    prediction = model(x)
    h = prediction.mean()
    for _ in range(40):
        h = (h * 0.9).sin()
    loss = h.square()
    return viz.graph(loss, params=model, backward=True)


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


# --- what stands in it ----------------------------------------------------------------------------
def test_one_file_that_asks_for_nothing_else() -> None:
    page = re.sub(r'id="data">.*?</script>', "", drawn().html(), flags=re.DOTALL)
    assert not re.search(r'(src|href)="', page)
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|@import|url\((?!#)", page)
    assert "default-src 'none'" in page


def test_the_data_says_what_the_graph_is() -> None:
    data = data_of(drawn().html())
    titles = [item["title"] for item in data["items"]]
    assert titles.count("sin") == 40 and titles[-1] == "loss"
    mul = data["items"][titles.index("mul")]
    assert data["rules"][mul["rule"]]["backward"][0].startswith("<math")
    assert mul["received"][0] >= 0
    file, line, function = data["places"][mul["place"]]
    assert (file, function) == (__file__, "drawn")
    source = data["files"][file]
    assert "h * 0.9" in source["lines"][line - source["first"]]
    assert all(
        edge[5] >= 0 for edge in data["edges"] if data["items"][edge[0]]["kind"] != "constant"
    )
    assert len(data["order"]) == sum(i["kind"] == "op" for i in data["items"])
    assert data["order"] == sorted(data["order"], reverse=True)


def test_nodes_that_work_alike_share_their_formula() -> None:
    data = data_of(drawn().html())
    assert len(data["rules"]) < 16


def test_markup_in_data_cannot_end_the_script() -> None:
    text = embedded({"a": "</script><!--&"})
    assert not set("<>&") & set(text) and json.loads(text) == {"a": "</script><!--&"}


def test_large_graphs_make_pages_of_bearable_size() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x
    for _ in range(5000):
        y = (y * 1.0001).sin()
    page = viz.graph(y.sum()).html()
    assert len(page) < 4_000_000


def test_every_file_is_in_the_page() -> None:
    whole = template()
    assert "@FILE" not in whole and "Permission is hereby granted" in whole
    for mark in ("--paper:", "function seen()", "function render()", "function fit()",
                 "function tellValues(", "function tell()", "function markStep()"):  # fmt: skip
        assert mark in whole


# --- a visit --------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


class Visit:
    """The page, opened, and what went wrong on it."""

    def __init__(self, browser: Any, address: str, context: Any = None, **options: Any) -> None:
        made = {"offline": True, "reduced_motion": "reduce", **options}
        self.context = browser.new_context(**made) if context is None else context
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda m: self.faults.append(m.text) if m.type == "error" else None)
        self.page.on("request", lambda r: None if r.url == address else self.faults.append(r.url))
        self.page.goto(address)

    def count(self, selector: str) -> int:
        found: int = self.page.locator(selector).count()
        return found

    def text(self, selector: str) -> str:
        found: str = self.page.locator(selector).inner_text()
        return found

    def box(self, key: object) -> Any:
        return self.page.locator(f'.box[data-key="{key}"]')

    def find(self, words: str) -> None:
        self.page.keyboard.press("/")
        self.page.locator("#search").fill(words)
        self.page.keyboard.press("Enter")

    def until(self, selector: str, pattern: str) -> None:
        from playwright.sync_api import expect

        expect(self.page.locator(selector)).to_have_text(re.compile(pattern), timeout=30000)

    def at_slider(self) -> None:
        self.page.locator("#slider").focus()

    def transform(self) -> str:
        found: str = self.page.locator("#world").evaluate("e => e.style.transform")
        return found


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "graph.html"
    drawn().save(path)
    return path.as_uri()


@pytest.fixture(scope="module")
def desk(browser: Any) -> Any:
    size = {"width": 1200, "height": 800}
    return browser.new_context(offline=True, reduced_motion="reduce", viewport=size)


@pytest.fixture
def visit(browser: Any, desk: Any, address: str) -> Iterator[Visit]:
    made = Visit(browser, address, desk)
    yield made
    made.page.close()
    assert made.faults == []


def test_search_finds_nodes_by_op_name_line_and_module(visit: Visit) -> None:
    visit.page.keyboard.press("/")
    visit.page.locator("#search").fill("sin")
    assert visit.count("#found li") == 60  # as many as are listed, those of that name first
    assert visit.page.locator("#found li").nth(38).inner_text().startswith("sin")
    visit.page.locator("#search").fill("addmm 2")
    assert visit.count("#found li") == 1
    visit.page.locator("#search").fill("no such thing")
    assert visit.text("#found") == "nothing found"
    visit.find("prediction")
    assert visit.text("#panel h2") == "prediction = addmm"
    assert visit.count(".box.picked") == 1


def test_a_click_tells_op_rule_shapes_values_gradients_and_source(visit: Visit) -> None:
    key = visit.page.locator(".box.op", has_text="tanh").get_attribute("data-key")
    visit.page.keyboard.press("0")
    visit.box(key).click()
    told = visit.text("#panel")
    assert "TanhBackward0" in told and "float32 [12, 16]" in told
    assert visit.count("#panel math") == 2
    math = visit.page.locator("#panel math").last
    assert math.bounding_box()["height"] > 10  # drawn as maths, not as a line of text
    assert math.text_content() == "dx=g·(1−y2)"
    assert visit.count("#panel canvas") == 3  # the gradient received, sent on, and the kept result
    assert "mean" in told and "std" in told
    assert visit.text("#source .now").strip() == "prediction = model(x)"


def test_small_values_are_shown_in_full(visit: Visit) -> None:
    visit.find("loss output")
    assert visit.count("#panel td") == 2  # the loss, and the gradient it was given: 1


def test_a_line_carries_its_gradient(visit: Visit) -> None:
    visit.page.keyboard.press("0")
    visit.page.locator(".touch").first.dispatch_event("click")
    assert visit.text("#panel h2") == "edge"
    assert "Gradient that flowed back".upper() in visit.text("#panel").upper()
    assert visit.count(".edge.picked") == 1


def test_the_source_leads_to_the_nodes_and_back(visit: Visit) -> None:
    row = visit.page.locator("#source .made", has_text="prediction.mean()")
    row.hover()
    assert visit.count(".box.line") == 1
    row.click()
    assert visit.text("#panel h2") == "mean"
    assert row.evaluate("e => e.classList.contains('now')")


def test_groups_are_unfolded_and_folded(visit: Visit) -> None:
    visit.page.locator("#fold").click()
    folded = visit.count(".box")
    assert visit.count(".box.group") >= 3
    loop = visit.page.locator(".box.group", has_text="40 ×")
    loop.click()
    assert "loop of 80 nodes" in visit.text("#panel")
    visit.page.locator("#open-group").click()
    opened = visit.count(".box")
    assert opened > folded
    assert visit.count(".cluster") == 1
    visit.page.locator("#labels text").first.click()
    assert visit.count(".box") == folded
    visit.page.locator(".box.group", has_text="40 ×").dblclick()
    assert visit.count(".box") == opened
    visit.page.locator("#unfold").click()
    assert visit.count(".box.group") == 0 and visit.count(".box") > 90


def test_search_unfolds_what_it_finds(visit: Visit) -> None:
    visit.page.locator("#fold").click()
    assert visit.count(".box.op") < 10
    visit.page.keyboard.press("/")
    visit.page.locator("#search").fill("sin")
    visit.page.locator("#found li").nth(20).click()
    assert visit.count(".box.picked") == 1
    assert visit.text("#panel h2") == "sin"


def test_the_slider_plays_forward_then_backward(visit: Visit) -> None:
    nodes = len(data_of(drawn().html())["order"])
    visit.at_slider()
    visit.page.keyboard.press("ArrowRight")
    assert visit.text("#step").startswith("forward 1/")
    assert visit.count(".box.current") == 1 and visit.count(".box.ahead") > 0
    visit.page.locator("#slider").evaluate(
        f"e => {{ e.value = {nodes + 1}; e.dispatchEvent(new Event('input')); }}"
    )
    assert visit.text("#step").startswith("backward 1/") and "loss" in visit.text("#step")
    assert visit.count(".edge.back") >= 1
    assert "GRADIENT RECEIVED" in visit.text("#panel").upper()
    visit.page.keyboard.press("End")
    assert visit.text("#step").startswith(f"backward {nodes}/{nodes}")
    assert visit.count(".box.ahead") == 0
    visit.page.keyboard.press("Escape")
    assert visit.count(".box.back") == 0


def test_it_plays_by_itself(visit: Visit) -> None:
    visit.page.locator("#play").click()
    visit.until("#step", r"forward [3-9]/")
    visit.page.locator("#play").click()
    assert visit.page.locator("#play").get_attribute("aria-label") == "Play"


def test_the_keyboard_is_enough(visit: Visit) -> None:
    visit.find("loss output")
    visit.page.keyboard.press("Tab")
    visit.box(visit.page.locator(".box.picked").get_attribute("data-key")).focus()
    visit.page.keyboard.press("ArrowUp")
    assert visit.text("#panel h2") == "loss = pow"
    visit.page.keyboard.press("ArrowUp")
    first = visit.text("#panel h2")
    visit.page.keyboard.press("ArrowDown")
    assert visit.text("#panel h2") == "loss = pow" != first
    visit.page.keyboard.press("f")
    visit.page.keyboard.press("ArrowRight")
    before = visit.count(".box")
    for _ in range(12):
        if visit.count(".box.group.picked"):
            break
        visit.page.keyboard.press("ArrowRight")
    visit.page.keyboard.press("Enter")
    assert visit.count(".box") > before
    visit.page.keyboard.press("Backspace")
    assert visit.count(".box") == before
    visit.page.keyboard.press(".")
    assert visit.text("#step").startswith("forward 1/")
    visit.page.keyboard.press(",")
    visit.page.keyboard.press("?")
    assert visit.page.locator("#keys").is_visible()
    visit.page.keyboard.press("Escape")
    assert not visit.page.locator("#keys").is_visible()


def test_pan_and_zoom(visit: Visit) -> None:
    before = visit.transform()
    stage = visit.page.locator("#stage").bounding_box()
    x, y = stage["x"] + 12, stage["y"] + 12
    visit.page.mouse.move(x, y)
    visit.page.mouse.down()
    visit.page.mouse.move(x + 60, y + 30, steps=4)
    visit.page.mouse.up()
    panned = visit.transform()
    assert panned != before
    visit.page.keyboard.press("+")
    scale = re.compile(r"scale\(([\d.]+)\)")
    bigger, smaller = (float(scale.findall(t)[0]) for t in (visit.transform(), panned))
    assert bigger > smaller
    visit.page.mouse.wheel(0, -300)
    visit.page.wait_for_timeout(50)  # until the wheel has arrived
    assert float(scale.findall(visit.transform())[0]) > bigger
    visit.page.locator("#fit").click()
    assert visit.transform() != panned


def test_light_and_dark(browser: Any, address: str) -> None:
    colours = []
    for scheme in ("light", "dark"):
        visit = Visit(browser, address, color_scheme=scheme)
        read = "() => getComputedStyle(document.body).backgroundColor"
        colours.append(visit.page.evaluate(read))
        visit.page.keyboard.press("t")
        colours.append(visit.page.evaluate(read))
        assert visit.faults == []
        visit.context.close()
    light, switched, dark, back = colours
    assert light == back != dark == switched


def test_readable_at_phone_width(browser: Any, address: str) -> None:
    visit = Visit(browser, address, viewport={"width": 360, "height": 740}, has_touch=True)
    wide = "() => document.documentElement.scrollWidth"
    assert visit.page.evaluate(wide) <= 360
    visit.find("tanh")
    panel, stage = (visit.page.locator(s).bounding_box() for s in ("#panel", "#stage"))
    assert panel["width"] >= 340 and panel["y"] >= stage["y"] + stage["height"] - 1
    assert stage["height"] > 200
    box = visit.page.locator(".box.picked").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 361
    for button in ("#fold", "#fit", "#theme", "#play"):
        assert visit.page.locator(button).bounding_box()["height"] >= 28
    assert visit.page.evaluate(wide) <= 360
    assert visit.faults == []
    visit.context.close()


def test_markup_from_programs_is_shown_as_text(browser: Any, tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>"
    y = torch.ones(2, requires_grad=True) * 2
    leaf = y.grad_fn.next_functions[0][0].variable
    viz.graph(y, params={name: leaf}, backward=True).save(tmp_path / "g.html")
    visit = Visit(browser, (tmp_path / "g.html").as_uri())
    visit.find("onerror")
    assert visit.text("#panel h2") == name
    assert visit.count("img") == 0
    assert visit.faults == []
    visit.context.close()


def test_ten_thousand_nodes_can_be_explored(browser: Any, tmp_path: Path) -> None:
    x = torch.ones(3, requires_grad=True)
    y = x
    for _ in range(5000):
        y = (y * 1.0001).sin()
    viz.graph(y.sum()).save(tmp_path / "g.html")
    visit = Visit(browser, (tmp_path / "g.html").as_uri())
    visit.page.locator("#unfold").click()
    assert "too many" in visit.text("#note")
    visit.page.keyboard.press("/")
    visit.page.locator("#search").fill("sin")
    visit.page.locator("#found li").nth(40).click()
    assert visit.text("#panel h2") == "sin"
    assert visit.count(".box") < 80
    assert visit.faults == []
    visit.context.close()
