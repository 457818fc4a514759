"""Loops, modules and layers are found again in the graph they left behind."""

from __future__ import annotations

from typing import Any

import rushlight as torch
from rushlight import nn, viz
from rushlight.viz.folding import FEW, Group
from rushlight.viz.visible import groups_of


def folded(y: Any, **options: Any) -> Any:
    return viz.graph(y, **options)


def loops(picture: Any) -> list[Group]:
    return [g for g in groups_of(picture._root) if g.kind == "loop"]


def in_order(picture: Any) -> None:
    """All nodes are in the tree once, in the order in which they were made."""
    assert picture._root.nodes() == [item.id for item in picture.model.nodes]


def test_a_loop_is_one_group_with_its_steps() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(7):
        y = y * 2
        y = y.sin()
    picture = folded(y)
    in_order(picture)
    (loop,) = loops(picture)
    assert loop.title.startswith("7 × ")
    assert [c.title for c in loop.children if isinstance(c, Group)] == [
        f"step {n}" for n in range(1, 8)
    ]


def test_one_line_in_a_loop_gives_the_group_its_name() -> None:
    y = torch.ones(2, requires_grad=True)
    for _ in range(5):
        y = (y * 2).sin()
    (loop,) = loops(folded(y))
    assert loop.title == "5 × y = (y * 2).sin()"
    assert loop.subtitle.startswith("test_folding.py:")


def test_loops_inside_loops() -> None:
    y = torch.ones(2, requires_grad=True)
    for _ in range(4):
        y = y.exp()
        for _ in range(5):
            y = y.sin()
    picture = folded(y)
    in_order(picture)
    titles = [g.title.partition(" ")[0] for g in loops(picture)]
    assert titles == ["4", "5", "5", "5", "5"]


def test_inner_loops_of_different_lengths_look_alike() -> None:
    y = torch.ones(2, requires_grad=True)
    for n in range(4, 9):
        y = y.exp()
        for _ in range(n):
            y = y.sin()
    picture = folded(y)
    in_order(picture)
    assert loops(picture)[0].title.startswith("5 × ")


def test_long_loops_show_their_first_steps_and_the_last() -> None:
    y = torch.ones(2, requires_grad=True)
    for _ in range(1000):
        y = (y * 2).sin()
    picture = folded(y)
    in_order(picture)
    (loop,) = loops(picture)
    titles = [c.title for c in loop.children if isinstance(c, Group)]
    assert titles == ["step 1", "step 2", "steps 3 to 999", "step 1000"]
    assert all(len(g.children) <= FEW for g in groups_of(picture._root))


def test_modules_are_groups() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    picture = folded(model(torch.ones(1, 2)).sum(), params=model)
    in_order(picture)
    assert picture.groups == ["0", "2"]
    modules = {item.title: item.module for item in picture.model.nodes}
    assert modules["relu"] == () and modules["addmm"] == ("2",)
    (group, *_) = groups_of(picture._root)
    assert group.subtitle == "Linear" and len(group.leaves) == 2


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return x + self.second(self.first(x).relu())


def test_layers_of_one_kind_are_folded_as_a_loop() -> None:
    model = nn.Sequential(*[Block() for _ in range(6)])
    picture = folded(model(torch.ones(1, 4)).sum(), params=model)
    in_order(picture)
    assert "6 × Block" in {g.title for g in loops(picture)} or any(
        "Block" in g.title for g in loops(picture)
    )


def test_what_stands_between_two_parts_belongs_to_what_both_are_in() -> None:
    model = nn.ModuleDict({"block": Block()})
    picture = folded(model["block"](torch.ones(1, 4)).sum(), params=model)
    relu = next(item for item in picture.model.nodes if item.title == "relu")
    assert relu.module == ("block",)


def test_recorded_calls_tell_the_module_exactly() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1), nn.Sigmoid())
    with viz.record() as seen:
        model(torch.ones(1, 2)).sum().backward()
    picture = seen.graph(params=model)
    modules = {item.title: item.module for item in picture.model.nodes}
    assert (modules["relu"], modules["sigmoid"], modules["sum"]) == (("1",), ("3",), ())


def test_steps_of_a_recurrent_cell() -> None:
    cell = nn.LSTMCell(3, 4)
    h, c = torch.zeros(2, 4), torch.zeros(2, 4)
    for _ in range(20):
        h, c = cell(torch.ones(2, 3), (h, c))
    picture = folded(h.sum())
    in_order(picture)
    assert picture.groups[0] == "cell"
    (loop,) = loops(picture)
    assert loop.title == "20 × h, c = cell(torch.ones(2, 3)…" or loop.title.startswith("20 × h, c")
    # weights that only the cell reads are drawn inside it
    cell_group = groups_of(picture._root)[0]
    assert len(cell_group.leaves) + len(loop.leaves) >= 4


def test_programs_without_repetition_are_folded_by_lines_or_in_parts() -> None:
    y = torch.ones(2, requires_grad=True)
    for n in range(400):
        y = getattr(y, ("sin", "cos", "exp", "tanh", "atan", "sigmoid")[(n * n * 7 + n // 5) % 6])()
    picture = folded(y)
    in_order(picture)
    assert len(picture._view().shown) <= 45
