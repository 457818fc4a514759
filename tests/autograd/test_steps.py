"""`autograd.graph.steps`: the engine's order and gradients, and nothing that is left behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd.graph import steps
from rushlight.core.engine.observers import PassObserver, observe, stop_observing
from rushlight.core.graph import here


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2 + 0 * x


def chain(x: Any, w: Any) -> Any:
    return (x.sin() * w).exp().sum()


def diamond(x: Any, w: Any) -> Any:
    a, b = x * w, x + w
    return (a * b * a).sum()


def several_outputs(x: Any, w: Any) -> Any:
    values, _ = (x * w).max(0)
    one, two = torch.stack([x, w]).unbind(0)
    return values.sum() + (one * two.detach()).sum()


def written_in_place(x: Any, w: Any) -> Any:
    h = x * 2
    h[0] = w[0] * 3
    h.mul_(w)
    return h.sum()


def custom(x: Any, w: Any) -> Any:
    return (Double.apply(x) * w).sum() + Double.apply(w).sum()


def model(x: Any, w: Any) -> Any:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    return net(x * w).pow(2).mean()


def packed(x: Any, w: Any) -> Any:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        return (x * w).exp().sum()


PROGRAMS = [chain, diamond, several_outputs, written_in_place, custom, model, packed]


def leaves() -> tuple[Any, Any]:
    x = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.5]], requires_grad=True)
    w = torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0]], requires_grad=True)
    return x, w


class Order(PassObserver):
    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[Any] = []
        self.came: list[Any] = []

    def before_rule(self, node: Any, g: Any) -> None:
        self.nodes.append(node)
        self.came.append(g)


def observed(y: Any) -> Order:
    """The nodes of a real backward pass, in order."""
    order = Order()
    begin = lambda: order
    observe(begin)
    try:
        y.backward(retain_graph=True)
    finally:
        stop_observing(begin)
    return order


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_order_is_the_engines(program: Callable[..., Any]) -> None:
    y = program(*leaves())
    found = [step.node for step in steps(y) if step.leaf is None]
    assert found == observed(y).nodes


@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_are_those_of_backward(program: Callable[..., Any]) -> None:
    x, w = leaves()
    y = program(x, w)
    found = {id(step.leaf): step.grads[0] for step in steps(y) if step.leaf is not None}
    assert x.grad is None and w.grad is None
    y.backward()
    for leaf in (x, w):
        assert torch.equal(found[id(leaf)], leaf.grad)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("taken", [0, 1, 3])
def test_stopping_leaves_everything_as_it_was(program: Callable[..., Any], taken: int) -> None:
    x, w = leaves()
    y = program(x, w)
    for _, _ in zip(range(taken), steps(y), strict=False):
        pass
    assert x.grad is None and w.grad is None
    y.backward()
    x2, w2 = leaves()
    program(x2, w2).backward()
    assert torch.equal(x.grad, x2.grad) and torch.equal(w.grad, w2.grad)


def test_with_leaf_hooks_leaves_come_in_the_order_of_the_pass() -> None:
    x, w = leaves()
    seen: list[str] = []
    x.register_hook(lambda g: seen.append("x"))
    w.register_hook(lambda g: seen.append("w"))
    y = diamond(x, w) + (w * 3).sum()
    y.backward(retain_graph=True)
    real, seen[:] = list(seen), []
    names = {id(x): "x", id(w): "w"}
    found = [names[id(step.leaf)] for step in steps(y) if step.leaf is not None]
    assert found == seen == real


def test_what_goes_out_and_where_it_is_summed() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    first, second = list(steps(x * x))
    assert [(out.grad.item(), out.total.item()) for out in first.outs] == [(3.0, 3.0), (3.0, 6.0)]
    assert all(out.to is x for out in first.outs)
    assert second.leaf is x and second.grads[0].item() == 6.0 and second.name == "AccumulateGrad"
    assert second.node.variable is x and second.where is None and second.rule == ".grad + g"


def test_what_was_shown_does_not_change_later() -> None:
    x = torch.ones(3, requires_grad=True)
    y = (x * x + x * x + x.exp()).sum()
    walk = list(steps(y))
    before = [[out.grad.clone() for out in step.outs] for step in walk]
    again = [[out.grad for out in step.outs] for step in steps(y)]
    for one, two, step in zip(before, again, walk, strict=True):
        for a, b, out in zip(one, two, step.outs, strict=True):
            assert torch.equal(a, b) and torch.equal(a, out.grad)


def test_accumulate_stores_after_the_last_step_and_not_before() -> None:
    x, w = leaves()
    h = x * w
    h.retain_grad()
    calls: list[Any] = []
    x.register_post_accumulate_grad_hook(lambda t: calls.append(t.grad.clone()))
    walk = steps(h.exp().sum(), accumulate=True)
    taken = [next(walk) for _ in range(5)]
    assert taken[-1].leaf is not None and x.grad is None and h.grad is None and not calls
    assert next(walk, None) is None
    assert torch.equal(x.grad, w * h.exp()) and torch.equal(h.grad, h.exp())
    assert len(calls) == 1
    assert next(walk, None) is None and len(calls) == 1


def test_without_it_nothing_is_stored() -> None:
    x, w = leaves()
    h = x * w
    h.retain_grad()
    x.register_post_accumulate_grad_hook(lambda t: pytest.fail("nothing was stored"))
    list(steps(h.sum()))
    assert h.grad is None and x.grad is None


def test_hooks_change_what_is_shown() -> None:
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    h.register_hook(lambda g: g * 10)
    y = h.sum()
    y.grad_fn.register_hook(lambda ins, outs: (ins[0] * 3,))
    h.grad_fn.register_prehook(lambda outs: (outs[0] + 1,))
    *_, last = steps(y)
    assert last.grads[0].tolist() == [62.0, 62.0]
    y.backward()
    assert x.grad.tolist() == [62.0, 62.0]


def test_several_outputs_and_given_gradients() -> None:
    x = torch.ones(2, requires_grad=True)
    a, b = x * 2, x.exp()
    walk = list(steps([a, b], [torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])]))
    assert torch.allclose(walk[-1].grads[0], torch.tensor([2.0, 2.7182817]))
    (only,) = steps(x, torch.ones(2))
    assert only.leaf is x


def test_what_waits_can_be_looked_at() -> None:
    x = torch.tensor([1.0, 4.0], requires_grad=True)
    walk = steps((x.sqrt() * 3).sum())
    next(walk)
    ((node, g),) = walk.waiting
    assert node.name() == "MulBackward0" and g.tolist() == [1.0, 1.0]
    values, _ = torch.ones(2, 2, requires_grad=True).max(0)
    walk = steps(values.sum())
    next(walk)
    ((node, gs),) = walk.waiting
    assert isinstance(gs, tuple) and gs[0].tolist() == [1.0, 1.0] and gs[1] is None


def test_lines_rules_and_text() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y, line = x.sin(), here().line
    step = next(steps(y))
    assert step.where is not None and step.where.line == line
    assert step.rule == "dx = g · cos(x)"
    assert repr(step) == "<step 1: SinBackward0 makes -0.4161 of 1>"


def test_inside_a_pass() -> None:
    """A hook may step through a graph; the pass it is in goes on undisturbed."""
    x, w = leaves()
    other = (w * 3).sum()
    seen: list[Any] = []
    h = x * w
    h.register_hook(lambda g: seen.extend(steps(other)))
    h.sum().backward()
    assert [step.name for step in seen] == ["SumBackward0", "MulBackward0", "AccumulateGrad"]
    assert torch.equal(x.grad, w)


def test_errors_are_those_of_backward() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar"):
        steps(x * 2)
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad"):
        steps(torch.ones(1))
    y = x.exp().sum()
    y.backward()
    walk = steps(y)
    next(walk)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        next(walk)
    assert next(walk, None) is None  # it is over
    with pytest.raises(RuntimeError, match="steps"):
        torch.func.grad(lambda t: (steps(t.sum()), t.sum())[1])(x.detach())


def test_it_is_no_name_of_pytorchs() -> None:
    assert "steps" not in dir(torch.autograd.graph)
    with pytest.raises(AttributeError):
        torch.autograd.graph.no_such_name
