"""`viz.graph`: what it draws, what it calls things, and that it leaves the graph as it is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.dom.minidom import parseString

import pytest

import rushlight as torch
from rushlight import nn, viz

F = nn.functional


def edges_of(picture: Any) -> set[tuple[str, str]]:
    items = picture.model.items
    return {(items[e.source].title, items[e.target].title) for e in picture.model.edges}


def test_a_small_graph_is_read_as_it_is() -> None:
    w = torch.tensor([2.0, 3.0], requires_grad=True)
    x = torch.tensor([1.0, 4.0])
    loss = (w * x).sum()
    picture = viz.graph(loss)
    assert edges_of(picture) == {("w", "mul"), ("x", "mul"), ("mul", "sum"), ("sum", "loss")}
    mul, total = picture.model.nodes
    assert (mul.title, mul.size_text, total.size_text) == ("mul", "float32 [2]", "float32 scalar")
    assert total.label == "loss"
    assert mul.kept == {"other": (2,)} and total.kept == {}
    place = mul.place
    assert place is not None and place.file == __file__ and place.source == "loss = (w * x).sum()"
    assert place.function == "test_a_small_graph_is_read_as_it_is"
    kinds = {item.title: item.kind for item in picture.model.items}
    assert (kinds["w"], kinds["x"], kinds["loss"]) == ("leaf", "constant", "output")
    assert "x" not in {i.title for i in viz.graph(loss, constants=False).model.items}


def test_leaves_are_named_from_a_module() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    y = model(torch.ones(1, 2)).sum()
    expected = {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert {leaf.title for leaf in viz.graph(y, params=model).model.leaves} == expected
    pairs = list(model.named_parameters())
    assert {leaf.title for leaf in viz.graph(y, params=pairs).model.leaves} == expected
    assert {leaf.title for leaf in viz.graph(y, params=dict(pairs)).model.leaves} == expected
    found = {leaf.title for leaf in viz.graph(y).model.leaves}
    assert found == {f"model.{name}" for name in expected}
    renamed = viz.graph(y, params={"net": model})
    assert {leaf.title for leaf in renamed.model.leaves} == {f"net.{name}" for name in expected}


def test_leaves_are_named_by_variables_lists_dicts_and_objects() -> None:
    class Holder:
        def __init__(self) -> None:
            self.scale = torch.ones(1, requires_grad=True)

    weights = [torch.ones(1, requires_grad=True) for _ in range(2)]
    table = {"bias": torch.ones(1, requires_grad=True)}
    holder = Holder()
    y = weights[0] * weights[1] + table["bias"] * holder.scale
    found = {leaf.title for leaf in viz.graph(y).model.leaves}
    assert found == {"weights[0]", "weights[1]", "table['bias']", "holder.scale"}


def test_variables_of_callers_count() -> None:
    def inner(y: Any) -> Any:
        return viz.graph(y)

    outside = torch.ones(1, requires_grad=True)
    assert [leaf.title for leaf in inner(outside * 2).model.leaves] == ["outside"]


@pytest.mark.parametrize("params", [3, [1, 2], {"a": 3}])
def test_params_of_another_kind_are_refused(params: Any) -> None:
    with pytest.raises(TypeError, match="params"):
        viz.graph(torch.ones(1, requires_grad=True) * 2, params=params)


def test_what_has_no_graph_is_refused() -> None:
    with pytest.raises(RuntimeError, match="does not require grad"):
        viz.graph(torch.ones(2))
    with pytest.raises(TypeError, match="not int"):
        viz.graph([3])
    with pytest.raises(ValueError, match="nothing to draw"):
        viz.graph([])


# --- graphs of every kind -------------------------------------------------------------------------
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


def ones(*shape: int) -> Any:
    return torch.ones(*shape, requires_grad=True)


def not_finite() -> Any:
    x = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0], requires_grad=True)
    return (x * x.log()).sum()


def complex_numbers() -> Any:
    x = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    return (x * x.conj()).abs().sum()


def masks() -> Any:
    x = ones(3)
    mask = torch.tensor([True, False, True])
    return x.masked_fill(mask, 0).where(~mask, x).sum()


def sparse() -> Any:
    places = torch.tensor([[0, 1], [1, 0]])
    s = torch.sparse_coo_tensor(places, torch.tensor([1.0, 2.0]), (2, 2)).requires_grad_()
    return torch.sparse.mm(s, ones(2, 2)).sum()


def second_derivative() -> Any:
    x = ones(2)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    return (g * g).sum()


def several_roots() -> Any:
    x = ones(3)
    return [x.exp(), x.sin(), x]


def views_written_in_place() -> Any:
    y = ones(3, 3) * 2
    y[0] = y[1] * 3
    y[1:].mul_(2)
    z = y.t()
    z.add_(1)
    return [y.sum(), z, y[0]]


def packed() -> Any:
    x = ones(3)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: ("packed", t), lambda p: p[1]):
        y = x * x.exp()
    return y.sum()


def checkpointed() -> Any:
    from rushlight.utils.checkpoint import checkpoint

    return checkpoint(lambda t: t.exp().sin(), ones(3), use_reentrant=False).sum()


def several_outputs() -> Any:
    x = torch.rand(3, 4, requires_grad=True)
    return [x.max(1)[0].sum(), torch.linalg.svd(x)[1].sum(), x.unbind(0)[1].sum(), x.split(2, 1)[1]]


def convolution() -> Any:
    model = nn.Sequential(
        nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(18, 2),
    )  # fmt: skip
    return F.cross_entropy(model(torch.rand(2, 1, 8, 8)), torch.tensor([0, 1]))


GRAPHS: dict[str, Callable[[], Any]] = {
    "not finite": not_finite, "complex": complex_numbers, "masks": masks, "sparse": sparse,
    "second derivative": second_derivative, "several roots": several_roots,
    "views": views_written_in_place, "packed": packed, "checkpointed": checkpointed,
    "several outputs": several_outputs, "convolution": convolution,
    "empty": lambda: (ones(0, 3) * 2).sum(),
    "0-d": lambda: torch.tensor(2.0, requires_grad=True)**3,
    "complex root": lambda: torch.tensor([1 + 2j], requires_grad=True) ** 2,
    "custom": lambda: Square.apply(ones(3)).sum(),
    "in place": lambda: (ones(3) * 2).add_(1).mul_(3),
    "a leaf": lambda: ones(3), "a node": lambda: ones(3).exp().grad_fn,
    "vmap": lambda: torch.func.vmap(lambda a: a.sin() * a)(ones(3)).sum(),
    "func.grad": lambda: torch.func.grad(lambda a: (a**3).sum())(ones(3)).sum(),
    "lstm": lambda: nn.LSTM(3, 4, 2)(torch.rand(5, 2, 3))[0].sum(),
    "embedding": lambda: nn.Embedding(10, 3)(torch.tensor([1, 2])).sum(),
    "bfloat16": lambda: (torch.ones(3, dtype=torch.bfloat16, requires_grad=True) * 2).sum(),
    "batch of large arrays": lambda: (ones(100, 100) @ ones(100, 100)).relu().mean(),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("backward", [False, True])
def test_every_kind_of_graph_is_drawn(name: str, backward: bool) -> None:
    picture = viz.graph(GRAPHS[name](), backward=backward)
    assert all(item.shape is not None for item in picture.model.nodes)
    page = picture.html()
    assert page.count("</script>") == 2
    assert picture.dot().count("->") >= 1
    pytest.importorskip("igraph")
    for each in (picture, picture.fold(), picture.unfold()):
        parseString(each._repr_svg_())


def test_tensors_without_memory_are_drawn() -> None:
    y = (torch.ones(3, device="meta", requires_grad=True) * 2).sum()
    assert "a meta tensor has no numbers" in viz.graph(y).html()


def test_a_freed_graph_is_drawn() -> None:
    x = ones(3)
    y = x.exp().sum()
    y.backward()
    picture = viz.graph(y)
    assert [node.size_text for node in picture.model.nodes] == ["float32 [3]", "float32 scalar"]
    assert "test_graph.py" in picture.html()


# --- the graph stays as it is ---------------------------------------------------------------------
def test_drawing_changes_nothing() -> None:
    x = ones(3)
    y = (x.exp() * x).sum()
    node = y.grad_fn
    edges = [tuple(n._next_edges) for n in (node, node._next_edges[0])]
    viz.graph(y, backward=True).html()
    assert [tuple(n._next_edges) for n in (node, node._next_edges[0])] == edges
    assert x.grad is None
    y.backward()
    assert torch.allclose(x.grad, (x.exp() * (x + 1)).detach())


def test_a_pass_for_the_picture_starts_from_given_gradients() -> None:
    x = ones(2)
    y = x * 3
    picture = viz.graph(y, backward=torch.tensor([1.0, 10.0]))
    (sent,) = picture._recorded.sent.values()
    assert sent["values"] == ["3", "30"]
    assert x.grad is None


def test_hostile_names_stay_text() -> None:
    name = "</script><script>alert(1)</script>&\"'\x00]]>"
    y = ones(2) * 2
    picture = viz.graph(y, params={name: y.grad_fn.next_functions[0][0].variable})
    assert picture.model.leaves[0].title == name
    page = picture.html()
    assert page.count("</script>") == 2 and "<script>alert" not in page
    assert "<script>" not in picture.dot() or '\\"' in picture.dot()
    pytest.importorskip("igraph")
    svg = picture._repr_svg_()
    assert "<script" not in svg
    parseString(svg)


def test_templates_are_filled_once(tmp_path: Path) -> None:
    names = {"@DATA@": ones(2)}
    picture = viz.graph(names["@DATA@"] * 2, params=names)
    assert picture.html().count("</script>") == 2


# --- large graphs ---------------------------------------------------------------------------------
def test_ten_thousand_nodes_fold_into_a_few_boxes() -> None:
    x = ones(3)
    y = x
    for _ in range(5000):
        y = y * 1.0001
        y = y + x
    picture = viz.graph(y.sum())
    assert len(picture.model.nodes) == 10001
    assert len(picture._view().shown) <= 45
    pytest.importorskip("igraph")
    parseString(picture._repr_svg_())


def test_a_deep_chain_needs_no_recursion() -> None:
    y = ones(1)
    for _ in range(3000):
        y = y.sin().cos()
    assert len(viz.graph(y)._view().shown) <= 45


# --- it costs nothing while it is not used --------------------------------------------------------
def test_nothing_of_it_is_imported_before_it_is_used() -> None:
    code = """
import sys
import rushlight as torch
x = torch.ones(2, requires_grad=True)
x.exp().sum().backward()
assert not [name for name in sys.modules if name.startswith("rushlight.viz")]
assert "viz" not in dir(torch)
torch.viz.graph(x.exp())
assert "matplotlib" not in sys.modules and "igraph" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_functions_are_not_hidden_by_the_modules_they_are_in() -> None:
    code = """
import rushlight.viz.graph
import rushlight.viz.record
import rushlight.viz.formula
from rushlight import viz
assert callable(viz.graph) and callable(viz.record) and callable(viz.formula)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
