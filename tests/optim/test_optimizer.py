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


OPTIONS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9}, "Adam": {"amsgrad": True}, "AdamW": {}, "Adagrad": {}, "Adadelta": {},
    "RMSprop": {"momentum": 0.9, "centered": True}, "ASGD": {"t0": 2}, "Adamax": {}, "NAdam": {},
    "RAdam": {"betas": (0.9, 0.9)}, "Rprop": {}, "Adafactor": {}, "LBFGS": {"max_iter": 3},
}  # fmt: skip


def converted(x: Any, lib: Any) -> Any:
    """A state with another library's tensors."""
    if isinstance(x, dict):
        return {key: converted(value, lib) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(converted(value, lib) for value in x)
    if hasattr(x, "detach"):
        return lib.tensor(x.detach().tolist(), dtype=getattr(lib, str(x.dtype).split(".")[-1]))
    return x


def gone_on(optimizer: Any, param: Any) -> None:
    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((param - 1) ** 2).sum() + param.sin().sum()
        loss.backward()
        return loss

    for _ in range(4):
        if type(optimizer).__name__ != "LBFGS":
            closure()
        optimizer.step(closure)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("here_first", [False, True])
def test_states_go_both_ways_between_the_libraries(name: str, here_first: bool) -> None:
    theirs = pytest.importorskip("torch")
    libs = [torch, theirs] if here_first else [theirs, torch]
    made = []
    for lib in libs:
        param = lib.tensor([[0.5, -2.0], [3.0, 0.1]], dtype=lib.float64, requires_grad=True)
        made.append((getattr(lib.optim, name)([param], lr=0.05, **OPTIONS[name]), param))
    (first, p), (second, q) = made
    gone_on(first, p)
    with libs[1].no_grad():
        q.copy_(libs[1].tensor(p.detach().tolist(), dtype=libs[1].float64))
    second.load_state_dict(converted(first.state_dict(), libs[1]))
    gone_on(first, p)
    gone_on(second, q)
    assert q.flatten().tolist() == pytest.approx(p.flatten().tolist(), rel=1e-9, abs=1e-12)


def test_an_optimiser_that_does_not_call_ours() -> None:
    class Around(torch.optim.Optimizer):
        def __init__(self, inner: Any) -> None:
            self.inner = inner
            self.param_groups = inner.param_groups
            self.defaults = inner.defaults
            self.state = inner.state

        def step(self, closure: Any = None) -> Any:
            return self.inner.step(closure)

    w = leaf(1.0)
    opt = Around(torch.optim.SGD([w], lr=0.25))
    w.sum().backward()
    opt.step()
    opt.zero_grad()
    assert w.item() == 0.75 and w.grad is None and "Around" in repr(opt)
    opt.load_state_dict(opt.state_dict())
    assert opt.param_groups[0]["lr"] == 0.25


def test_the_package_gives_all_names() -> None:
    space: dict[str, Any] = {}
    exec("from rushlight.optim import *", space)
    assert {"LBFGS", "Muon", "SparseAdam", "lr_scheduler", "swa_utils"} <= space.keys()
    assert set(torch.optim.__all__) <= set(dir(torch.optim)) & space.keys()


def test_steps_are_wrapped_once() -> None:
    class Same(torch.optim.SGD):
        step = torch.optim.SGD.step

    w, log = leaf(1.0), []
    opt = Same([w], lr=0.1)
    opt.register_step_post_hook(lambda *args: log.append(1))
    steps(opt, [w], 1)
    assert log == [1]


def test_what_copies_of_optimisers_import() -> None:
    from rushlight.optim import _functional, _multi_tensor
    from rushlight.optim.optimizer import (  # type: ignore[attr-defined]  # given by __getattr__
        ParamsT,
        _default_to_fused_or_foreach,
        _get_value,
        _to_scalar,
        _use_grad_for_differentiable,
        _view_as_real,
    )

    class Copy(torch.optim.Optimizer):
        @_use_grad_for_differentiable
        def step(self, closure: Any = None) -> Any:
            self._cuda_graph_capture_health_check()
            return torch.is_grad_enabled()

    made = [Copy([leaf(1.0)], {"differentiable": d}).step() for d in (False, True)]
    assert made == [False, True] and ParamsT is not None
    assert _get_value(torch.tensor(2.0)) == 2.0 and _to_scalar(torch.tensor([2.0])).shape == ()
    assert _default_to_fused_or_foreach([leaf(1.0)], False) == (False, False)
    pairs = [torch.ones(1, dtype=torch.complex64)]
    _view_as_real(pairs, pairs)
    assert pairs[0].shape == (1, 2)
    assert _functional.adam is torch.optim.adam.adam  # type: ignore[attr-defined]  # a module
    assert _multi_tensor.Adam([leaf(1.0)]).defaults["foreach"] is True
    with pytest.raises(ImportError):
        from rushlight.optim.optimizer import nothing_of_that_name  # type: ignore # noqa: F401
    grouped = torch.optim.Optimizer._group_tensors_by_device_and_dtype(
        [[torch.ones(1), torch.ones(1, dtype=torch.float64), torch.ones(2)]]
    )
    assert [indices for _, indices in grouped.values()] == [[0, 2], [1]]
