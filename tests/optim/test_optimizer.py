"""Optimisers: groups, hooks, saving, closures, tensors as options, large and complex parameters."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import rushlight as torch
from rushlight.optim.rules import BLOCK
from tests.optim.helpers import leaf, steps

EVERY = [
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.Adagrad,
    torch.optim.RMSprop,
    torch.optim.ASGD,
    torch.optim.Adadelta,
    torch.optim.Adamax,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.Rprop,
]


def test_groups() -> None:
    a, b = leaf(1.0), leaf(1.0)
    opt = torch.optim.SGD([{"params": a}, {"params": (b,), "lr": 0.5}], lr=0.1)
    assert [g["lr"] for g in opt.param_groups] == [0.1, 0.5]
    steps(opt, [a, b], 1)
    assert a.item() == pytest.approx(0.8) and b.item() == 0
    named = torch.optim.SGD([("a", a), ("b", b)], lr=0.1)
    assert named.param_groups[0]["param_names"] == ["a", "b"]
    with pytest.warns(UserWarning, match="duplicate parameters"):
        torch.optim.SGD([a, a])


def test_zero_grad() -> None:
    w = leaf(1.0)
    opt = torch.optim.SGD([w])
    w.sum().backward()
    kept = w.grad
    opt.zero_grad(set_to_none=False)
    assert w.grad is kept and kept.tolist() == [0]
    opt.zero_grad()
    assert w.grad is None


def test_a_closure_is_run_with_gradients() -> None:
    w = leaf(1.0)
    opt = torch.optim.Adam([w], lr=0.1)

    def closure() -> Any:
        opt.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert opt.step(closure).item() == 1
    assert w.item() == pytest.approx(0.9)


def test_a_step_raises_the_version() -> None:
    w = leaf(1.0)
    opt = torch.optim.SGD([w], lr=0.1)
    y = (w * w).sum()
    y.backward(retain_graph=True)
    before = w._version
    opt.step()
    assert w._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("kind", EVERY)
def test_saving_and_going_on(kind: Any) -> None:
    options = {"momentum": 0.9} if kind in (torch.optim.SGD, torch.optim.RMSprop) else {}
    a, b = leaf(1.0, 2.0), leaf(1.0, 2.0)
    first, second = kind([a], lr=0.1, **options), kind([b], lr=0.3, **options)
    steps(first, [a])
    with torch.no_grad():
        b.copy_(a)
    state = pickle.loads(pickle.dumps(first.state_dict()))
    second.load_state_dict(state)
    assert second.param_groups[0]["lr"] == 0.1
    steps(first, [a])
    steps(second, [b])
    assert torch.equal(a, b)


def test_a_loaded_state_is_in_the_parameters_dtype() -> None:
    a = leaf(1.0)
    b = torch.ones(1, dtype=torch.float64, requires_grad=True)
    first, second = torch.optim.Adam([a]), torch.optim.Adam([b])
    steps(first, [a])
    second.load_state_dict(first.state_dict())
    state = second.state[b]
    assert state["exp_avg"].dtype is torch.float64 and state["step"].dtype is torch.float32
    steps(second, [b])
    assert state["step"].item() == 6 and first.state[a]["exp_avg"].dtype is torch.float32


def test_a_loaded_state_is_shared_where_it_fits() -> None:
    a, b = leaf(1.0), leaf(1.0)
    first, second = torch.optim.Adam([a]), torch.optim.Adam([b])
    steps(first, [a])
    second.load_state_dict(first.state_dict())
    assert second.state[b]["exp_avg"] is first.state[a]["exp_avg"]
    steps(second, [b])
    assert first.state[a]["step"].item() == 6


def test_copies() -> None:
    net = torch.nn.Linear(2, 1)
    opt = torch.optim.Adam(net.parameters())
    net2, opt2 = copy.deepcopy((net, opt))
    assert opt2.param_groups[0]["params"][0] is net2.weight
    assert opt2.register_step_post_hook(lambda *args: None) is not None


def test_hooks() -> None:
    w, log = leaf(1.0), []
    opt = torch.optim.SGD([w], lr=0.1)
    opt.register_step_pre_hook(lambda o, args, kwargs: log.append("before"))
    handle = opt.register_step_post_hook(lambda o, args, kwargs: log.append("after"))
    steps(opt, [w], 1)
    handle.remove()
    steps(opt, [w], 1)
    assert log == ["before", "after", "before"]
    opt.register_state_dict_post_hook(lambda o, state: {**state, "extra": 1})
    assert opt.state_dict()["extra"] == 1
    opt.register_load_state_dict_pre_hook(lambda o, state: log.append(state["extra"]))
    opt.register_load_state_dict_post_hook(lambda o: log.append("loaded"))
    opt.load_state_dict(opt.state_dict())
    assert log[3:] == [1, "loaded"]


def test_an_optimiser_of_ones_own() -> None:
    class Signs(torch.optim.Optimizer):
        def __init__(self, params: Any, lr: float) -> None:
            super().__init__(params, {"lr": lr})

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad.sign(), alpha=-group["lr"])
                    self.state[p]["count"] = self.state[p].get("count", 0) + 1

    w, log = leaf(1.0, -1.0), []
    opt = Signs([w], 0.25)
    opt.register_step_post_hook(lambda o, args, kwargs: log.append(1))
    scheduler = torch.optim.lr_scheduler.ExponentialLR(opt, 0.5)
    steps(opt, [w], 2)
    scheduler.step()
    assert w.tolist() == [0.5, -0.5] and log == [1, 1]
    assert opt.state_dict()["state"] == {0: {"count": 2}} and opt.param_groups[0]["lr"] == 0.125


@pytest.mark.parametrize("kind", EVERY)
def test_large_parameters_go_by_blocks(kind: Any) -> None:
    options = {"momentum": 0.9} if kind in (torch.optim.SGD, torch.optim.RMSprop) else {}
    torch.manual_seed(0)
    values = torch.randn(2, BLOCK + 3)
    whole = values.clone().requires_grad_()
    turned = values.t().contiguous().t().requires_grad_()  # not contiguous: all at once
    opt = kind([whole, turned], lr=0.1, **options)
    steps(opt, [whole, turned])
    assert torch.equal(whole, turned) and not torch.equal(whole, values)


@pytest.mark.parametrize("kind", EVERY)
def test_options_as_tensors(kind: Any) -> None:
    a, b = leaf(1.0), leaf(1.0)
    rate = torch.tensor(0.125)
    steps(kind([a], lr=rate), [a])
    steps(kind([b], lr=0.125), [b])
    assert a.item() == b.item()


@pytest.mark.parametrize("kind", EVERY)
def test_complex_parameters(kind: Any) -> None:
    c = torch.tensor([1 + 2j], requires_grad=True)
    r = torch.tensor([[1.0, 2.0]], requires_grad=True)
    for param, loss in ((c, lambda: (c * c.conj()).real.sum()), (r, lambda: (r * r).sum())):
        opt = kind([param], lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            loss().backward()
            opt.step()
    pairs = torch.view_as_real(c.detach())
    assert pairs.flatten().tolist() == pytest.approx(r.flatten().tolist(), rel=1e-6, abs=1e-9)


def test_a_differentiable_step() -> None:
    w0 = leaf(1.0, 2.0)
    rate = torch.tensor(0.1, requires_grad=True)
    w = w0 * 1
    opt = torch.optim.SGD([w], lr=rate, differentiable=True)
    (w.grad,) = torch.autograd.grad((w0 * w0).sum(), w0, create_graph=True)
    opt.step()
    by_rate, by_start = torch.autograd.grad(w.sum(), [rate, w0])
    assert by_rate.item() == -6  # minus the sum of the gradient 2w
    assert by_start.tolist() == pytest.approx([0.8, 0.8])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kind", EVERY)
def test_low_precision(kind: Any, dtype: Any) -> None:
    a = torch.ones(3, dtype=dtype, requires_grad=True)
    b = torch.ones(3, requires_grad=True)
    for p in (a, b):
        steps(kind([p], lr=0.1, **({"eps": 1e-3} if "eps" in kind([p]).defaults else {})), [p])
    assert a.dtype is dtype and a.tolist() == pytest.approx(b.tolist(), rel=0.05, abs=0.02)
