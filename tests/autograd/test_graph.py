"""`autograd.graph`: edges, nodes, hooks on several gradients, and which pass is running.

Each test runs on rushlight, and on PyTorch too where it is installed: what is asserted is true of
both, unless the test says that it is rushlight's own.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest

import rushlight
from tests.autograd.cases_graph import cases
from tests.harness import LIBRARIES, stored


def task(torch: Any) -> int:
    if torch is rushlight:
        return rushlight.autograd.graph._current_graph_task_id()
    return int(torch._C._current_graph_task_id())


# --- edges and nodes ------------------------------------------------------------------------------
def test_gradient_edges(torch: Any) -> None:
    graph = torch.autograd.graph
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    edge = graph.get_gradient_edge(y)
    assert isinstance(edge, graph.GradientEdge) and edge.ownership_token is None
    assert (edge.node.name(), edge.output_nr) == ("MulBackward0", 0)
    leaf = graph.get_gradient_edge(x)
    assert leaf.node.name() == "torch::autograd::AccumulateGrad" and leaf.node.variable is x
    parts = y.unbind()
    assert graph.get_gradient_edge(parts[1]).output_nr == 1
    out = (y * y).sum()
    (g, h) = torch.autograd.grad(out, [edge, leaf], retain_graph=True)
    assert g.tolist() == [6.0, 12.0] and h.tolist() == [18.0, 36.0]
    torch.autograd.backward(edge, torch.ones(2))
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="^It is not possible to get the gradient edge for a Te"):
        graph.get_gradient_edge(torch.ones(2))


def test_nodes(torch: Any) -> None:
    graph = torch.autograd.graph
    x = torch.ones(2, 3, requires_grad=True)

    class Two(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x.sum()

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g * 2 + h

    y, _ = Two.apply(x)
    z = y * 2
    for node in (z.grad_fn, y.grad_fn, y.grad_fn.next_functions[0][0]):
        assert isinstance(node, graph.Node)
        assert node.requires_grad is True
        node.metadata["key"] = 1
        assert node.metadata == {"key": 1}
        with pytest.raises(AttributeError):
            node.requires_grad = False
    assert z.grad_fn._sequence_nr() > y.grad_fn._sequence_nr()
    metas = y.grad_fn._input_metadata
    assert [list(m.shape) for m in metas] == [[2, 3], []]
    assert {m.dtype for m in metas} == {torch.float32}
    assert not metas[0].is_nested_tensor
    (meta,) = y.grad_fn.next_functions[0][0]._input_metadata
    assert list(meta.shape) == [2, 3]


def test_the_shape_of_an_output_is_worked_out_again() -> None:
    x = rushlight.ones(2, 3, requires_grad=True)
    y = x
    for _ in range(5000):  # deeper than Python may recurse
        y = y * 2
    (meta,) = y.grad_fn._input_metadata
    assert (meta.shape, meta.dtype, meta.device.type) == ([2, 3], rushlight.float32, "cpu")
    z = rushlight.zeros(2, dtype=rushlight.float64)
    for i in range(3000):  # the base had no history, and now one write follows another
        z[i % 2] = x[0, 0]
    (meta,) = z.grad_fn._input_metadata
    assert (meta.shape, meta.dtype, meta.device.type) == ([2], rushlight.float64, "cpu")
    edge = rushlight.autograd.graph.get_gradient_edge(z)
    (g,) = rushlight.autograd.grad(edge, x, rushlight.tensor([3.0, 4.0], dtype=rushlight.float64))
    assert g.tolist() == [[7, 0, 0], [0, 0, 0]]


def test_a_number_set_by_the_user_does_not_change_the_order() -> None:
    x = rushlight.tensor(2.0, requires_grad=True)
    y = x * 3
    z = y * y + y
    y.grad_fn._set_sequence_nr(10**9)
    assert y.grad_fn._sequence_nr() == 10**9
    z.backward()
    assert x.grad.item() == 39


@pytest.mark.parametrize("name", LIBRARIES)
def test_as_pytorch(name: str) -> None:
    found = stored("autograd/graph")
    assert found.keys() == cases.keys()
    wrong = cases.differing(importlib.import_module(name), found)
    assert not wrong, "\n".join(wrong)


def test_what_nodes_show(torch: Any) -> None:
    x = torch.tensor([[0.5, 1.5, -0.7], [0.2, -1.1, 0.9]], requires_grad=True)
    shown = {
        "sum": (x.sum(1), {"dim": (1,), "keepdim": False, "self_sym_sizes": (2, 3)}),
        "mean": (x.mean(), {"self_sym_sizes": (2, 3), "self_sym_numel": 6}),
        "transpose": (x.transpose(0, 1), {"dim0": 0, "dim1": 1}),
        "slice": (x[:, :2], {"dim": 1, "start": 0, "end": 2, "step": 1, "self_sym_sizes": (2, 3)}),
        "unsqueeze": (x.unsqueeze(1), {"dim": 1}),
        "cat": (torch.cat([x, x], 1), {"dim": 1}),
        "exp": (x.exp(), {}),
        "pow": (x**2, {"exponent": 2}),
        "rpow": (2**x, {"self": 2}),
        "clone": (x.clone(), {}),
        "softmax": (x.softmax(1), {"dim": 1}),
    }
    for name, (y, values) in shown.items():
        node = y.grad_fn
        raw = {n[len("_raw_saved_") :] for n in dir(node) if n.startswith("_raw_saved_")}
        rest = {n[len("_saved_") :] for n in dir(node) if n.startswith("_saved_")} - raw
        assert {n: getattr(node, "_saved_" + n) for n in rest} == values, name
    assert (x * 2).grad_fn._saved_other.tolist() == 2


def test_a_hook_on_a_root_is_called_here() -> None:
    """PyTorch forgets the root itself when it counts what a multi-hook has to wait for."""
    a = rushlight.tensor([1.0], requires_grad=True)
    b, c = a * 2, a * 3
    seen: list[Any] = []
    rushlight.autograd.graph.register_multi_grad_hook((b, c), seen.append)
    b.backward()
    assert len(seen) == 1 and seen[0][0].tolist() == [1.0] and seen[0][1] is None


def test_increment_version(torch: Any) -> None:
    increment = torch.autograd.graph.increment_version
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    z = x * x
    increment(x)
    increment([x, y])
    assert (x._version, y._version) == (2, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    with torch.inference_mode():
        i = torch.ones(1)
    increment(i)
    with pytest.raises(RuntimeError, match="^increment_version expect a Iterable.Tensor. as input"):
        increment(3)
    with pytest.raises(RuntimeError, match="^increment_version expects each element of the iterab"):
        increment([3])


def test_settings_that_are_accepted(torch: Any) -> None:
    graph = torch.autograd.graph
    graph.set_warn_on_accumulate_grad_stream_mismatch(True)
    graph.set_override_stale_capture_stream(False)
    with (
        pytest.raises(RuntimeError, match="can only be used inside a torch.compile region"),
        graph.region_activation_memory_budget(0.5),
    ):
        pass


# --- hooks on several gradients -------------------------------------------------------------------
def test_a_hook_on_several_gradients(torch: Any) -> None:
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True)
    c, d = a * b, a * b
    seen: list[Any] = []

    def hook(grads: Any) -> None:
        assert not torch.is_grad_enabled()
        seen.append([None if g is None else g.tolist() for g in grads])

    handle = torch.autograd.graph.register_multi_grad_hook((a, b, c, d), hook)
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c + 2 * d).sum().backward(retain_graph=True)
    assert seen == [
        [[3.0, 4.0], [1.0, 2.0], [1.0, 1.0], None],
        [[3.0, 4.0], None, [1.0, 1.0], None],
        [[9.0, 12.0], [3.0, 6.0], [1.0, 1.0], [2.0, 2.0]],
    ]
    text = "^A leaf node was passed to _will_engine_execute_node but we are currently running auto"
    with pytest.raises(RuntimeError, match=text):
        torch.autograd.grad(c.sum(), b, retain_graph=True)
    handle.remove()
    handle.remove()
    seen.clear()
    with torch.autograd.graph.register_multi_grad_hook((c, d), hook):
        torch.autograd.grad(c.sum(), b, retain_graph=True)
        torch.autograd.grad(c.sum(), c, retain_graph=True)
        c.sum().backward(retain_graph=True)
    c.sum().backward()
    assert seen == [[[1.0, 1.0], None]] * 3


def test_a_hook_on_the_first_of_several_gradients(torch: Any) -> None:
    register = torch.autograd.graph.register_multi_grad_hook
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b, c = a * 2, a * 3
    seen: list[Any] = []
    handle = register((a, b, c, torch.ones(1)), lambda g: seen.append(g.tolist()), mode="any")
    (b * c).sum().backward(retain_graph=True)
    c.sum().backward(retain_graph=True)
    assert seen in ([[2.0, 4.0], [1.0, 1.0]], [[3.0, 6.0], [1.0, 1.0]])
    handle.remove()
    c.sum().backward()
    assert len(seen) == 2
    with pytest.raises(ValueError, match=r"^Expects mode to be one of \('all', 'any'\) but got x"):
        register((a,), print, mode="x")
    with pytest.raises(AssertionError, match="^Expected gradient function to be set"):
        register((torch.ones(1),), print)


def test_an_exception_in_a_hook_does_not_spoil_the_next_pass(torch: Any) -> None:
    a = torch.tensor([1.0], requires_grad=True)
    b, c = a * 2, a * 3
    seen: list[Any] = []

    def fail(g: Any) -> None:
        raise KeyError("mine")

    handle = torch.autograd.graph.register_multi_grad_hook((b, c), lambda gs: seen.append(len(gs)))
    broken = b.register_hook(fail)
    with pytest.raises(KeyError):
        (b + c).backward(retain_graph=True)
    broken.remove()
    assert task(torch) == -1
    (b + c).backward()
    assert seen[-1:] == [2]
    handle.remove()


# --- which pass is running ------------------------------------------------------------------------
def test_each_pass_has_a_number(torch: Any) -> None:
    seen: dict[str, list[int]] = {"hook": [], "function": [], "inner": [], "leaf": []}

    class Probe(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen["function"].append(task(torch))
            with torch.enable_grad():
                w = torch.ones(1, requires_grad=True) * 2
            w.register_hook(lambda g: seen["inner"].append(task(torch)))
            w.backward()
            seen["function"].append(task(torch))
            return g

    assert task(torch) == -1
    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda g: seen["leaf"].append(task(torch)))
    for _ in range(2):
        y = Probe.apply(x * 1)
        y.register_hook(lambda g: seen["hook"].append(task(torch)))
        y.sum().backward()
        assert task(torch) == -1
    first, second = seen["hook"]
    assert 0 <= first < second
    assert seen["function"] == [first, first, second, second]
    assert seen["leaf"] == [first, second]
    assert len({first, second, *seen["inner"]}) == 4


def test_unpack_hooks_know_the_pass(torch: Any) -> None:
    seen: list[int] = []

    def unpack(t: Any) -> Any:
        seen.append(task(torch))
        return t

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), unpack):
        y = x.exp().sin()
    y.sum().backward(retain_graph=True)
    y.grad_fn._saved_self
    assert seen[0] == seen[1] >= 0 and seen[2] == -1
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 1 / 0):
        y = x.exp()
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    assert task(torch) == -1
