"""Hooks on saved tensors: what they are given and when, what they may return, how they nest.

Each test runs on rushlight, and on PyTorch too where it is installed: what is asserted is true of
both, unless the test says that it is rushlight's own.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest

import rushlight
from tests.core.saved.helpers import identity, noting


def name(t: Any) -> str | None:
    return None if t.grad_fn is None else t.grad_fn.name()


# --- what hooks are given -------------------------------------------------------------------------
def test_pack_gets_the_tensor_with_its_history_and_in_no_grad(torch: Any) -> None:
    seen: list[Any] = []

    def pack(t: Any) -> Any:
        seen.append((t.tolist(), name(t), t.is_leaf, t.requires_grad, torch.is_grad_enabled()))
        return t.detach()

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    z = x * 1
    with torch.autograd.graph.saved_tensors_hooks(pack, identity):
        a = x * z
        b = z.exp()
        z * 2  # saves a number, which is no tensor
        z + x  # saves nothing
    assert seen[:2] == [
        ([1.0, 2.0], "MulBackward0", False, True, False),
        ([1.0, 2.0], None, True, True, False),
    ]
    assert [row[1:] for row in seen[2:]] == [("ExpBackward0", False, True, False)]
    (a.sum() + b.sum()).backward()
    assert x.grad.tolist() == pytest.approx([2 + 2.7182817, 4 + 7.389056])


def test_hooks_apply_to_custom_functions(torch: Any) -> None:
    events: list[Any] = []

    class Product(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            r = x * y
            ctx.save_for_backward(x, y, r, None)
            return r

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y, r, none = ctx.saved_tensors
            events.append((x.is_leaf, x.requires_grad, name(y), r.grad_fn is ctx, none))
            return g * y, g * x

    def pack(t: Any) -> Any:
        events.append(("pack", t.tolist()))
        return t.detach()

    def unpack(t: Any) -> Any:
        events.append(("unpack", t.tolist()))
        return t

    x = torch.tensor([3.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        out = Product.apply(x, x + 1)
    out.sum().backward()
    assert events == [
        *[("pack", [v]) for v in (3.0, 4.0, 12.0)],
        *[("unpack", [v]) for v in (3.0, 4.0, 12.0)],
        (True, True, "AddBackward0", True, None),
    ]
    assert x.grad.tolist() == [7.0]


# --- when they are in force -----------------------------------------------------------------------
def test_the_innermost_pair_wins_and_earlier_values_stay_as_they_were(torch: Any) -> None:
    events: list[str] = []

    def hooks(mark: str) -> Any:
        def pack(t: Any) -> Any:
            events.append("pack " + mark)
            return t.detach()

        def unpack(t: Any) -> Any:
            events.append("unpack " + mark)
            return t

        return torch.autograd.graph.saved_tensors_hooks(pack, unpack)

    x = torch.ones(2, requires_grad=True)
    before = x.exp()
    outer = hooks("outer")
    with outer:
        a = x.exp()
        with hooks("inner"):
            b = x.exp()
        c = x.exp()
    after = x.exp()
    with outer:  # it may be entered again
        pass
    assert events == ["pack outer", "pack inner", "pack outer"]
    events.clear()
    before.sum().backward()
    after.sum().backward()
    assert events == []
    for y in (a, b, c):
        y.sum().backward()
    assert events == ["unpack outer", "unpack inner", "unpack outer"]
    assert x.grad.tolist() == pytest.approx([5 * 2.7182817] * 2)


def test_leaving_in_another_order_than_modes(torch: Any) -> None:
    packed: list[Any] = []
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(noting(packed), identity):
        mode = torch.set_grad_enabled(True)  # a call, in force beyond the block
    x.exp()
    assert packed == []
    assert torch.is_grad_enabled()
    del mode


def test_hooks_belong_to_one_thread(torch: Any) -> None:
    packed: list[Any] = []
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(noting(packed), identity):
        thread = threading.Thread(target=x.exp)
        thread.start()
        thread.join()
    assert packed == []


def test_a_recorded_backward_pass_packs_too(torch: Any) -> None:
    packed: list[Any] = []
    x = torch.tensor([2.0], requires_grad=True)
    y = x.exp()
    with torch.autograd.graph.saved_tensors_hooks(noting(packed), identity):
        torch.autograd.grad(y, x, create_graph=True)
    assert len(packed) == 1  # the product g * y: g asks for no gradient


def test_unpack_runs_in_the_mode_of_the_pass(torch: Any) -> None:
    modes: list[bool] = []

    def unpack(t: Any) -> Any:
        modes.append(torch.is_grad_enabled())
        return t

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), unpack):
        y = x.exp()
    y.sum().backward(retain_graph=True)
    torch.autograd.grad(y.sum(), x, create_graph=True)
    with torch.no_grad():
        y.grad_fn._saved_result
    assert modes == [False, True, False]


def test_derivatives_of_derivatives(torch: Any) -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    hooks = torch.autograd.graph.saved_tensors_hooks
    with hooks(lambda t: t.detach().clone(), lambda t: t.clone()):
        y = (x * x * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    (k,) = torch.autograd.grad(h.sum(), x)
    assert [g.tolist(), h.tolist(), k.tolist()] == [[12.0, 27.0], [12.0, 18.0], [6.0, 6.0]]


# --- what hooks return, and what goes wrong -------------------------------------------------------
def test_a_leaf_comes_back_as_a_leaf(torch: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), identity):
        y = x * x
    back = y.grad_fn._saved_self
    assert back.is_leaf and back.requires_grad and back.grad_fn is None


def test_packed_may_be_anything(torch: Any) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: str(t.tolist()), lambda text: torch.tensor(eval(text), dtype=torch.float64)
    ):
        y = x * x * 1
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0] and x.grad.dtype == torch.float32


def test_errors(torch: Any) -> None:
    graph = torch.autograd.graph
    x = torch.ones(2, requires_grad=True)
    for result, kind in ((3, "int"), (None, "NoneType")):
        with graph.saved_tensors_hooks(identity, lambda p, result=result: result):
            y = x.exp()
        text = (
            "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
            + kind
        )
        with pytest.raises(TypeError, match=text):
            y.sum().backward()
    with pytest.raises(ZeroDivisionError), graph.saved_tensors_hooks(lambda t: 1 / 0, identity):
        x.exp()
    with graph.saved_tensors_hooks(identity, lambda t: 1 / 0):
        y = x.exp()
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    with (
        pytest.raises(RuntimeError, match="^A saved tensor pack hook is modifying its input in pl"),
        graph.saved_tensors_hooks(lambda t: t.add_(1), identity),
    ):
        x.exp()
    with (
        pytest.raises(TypeError, match=r"^_push_saved_tensors_default_hooks\(\): incompatible fun"),
        graph.saved_tensors_hooks(1, identity),
    ):
        pass
    x.exp()  # nothing of all that is in force any more
    with torch.inference_mode():
        i = torch.ones(2)
    with (
        pytest.raises(RuntimeError, match="^Inference tensors cannot be saved for backward"),
        graph.saved_tensors_hooks(identity, identity),
    ):
        x * i


# --- disabling, saving on the CPU -----------------------------------------------------------------
def test_disabled_hooks(torch: Any) -> None:
    graph = torch.autograd.graph
    pair = graph.saved_tensors_hooks(identity, identity)
    with graph.disable_saved_tensors_hooks("outer"):
        x = torch.ones(2, requires_grad=True)
        x.exp().sum().backward()
        with graph.disable_saved_tensors_hooks("inner"), pytest.raises(RuntimeError, match="inner"):
            pair.__enter__()
        with pytest.raises(RuntimeError, match="outer"), graph.save_on_cpu():
            pass
        with pytest.raises(RuntimeError, match="outer"), graph.allow_mutation_on_saved_tensors():
            pass
    with pair:
        pass
    with (
        pytest.raises(RuntimeError, match="inside"),
        pair,
        graph.disable_saved_tensors_hooks("inside"),
    ):
        pass
    with pair:
        pass


@pytest.mark.parametrize("pin", [False, True])
def test_save_on_cpu(torch: Any, pin: bool) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=pin, device_type="cuda"):
        y = x.exp() * x
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([2 * 2.7182817, 3 * 7.389056])


# --- writing to saved tensors ---------------------------------------------------------------------
def test_allow_mutation(torch: Any) -> None:
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as ctx:
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        y = x.clone()
        out = (y**2).sum() + (y * y).sum()
        assert (len(ctx.original), len(ctx.cloned)) == (1, 0)
        y.sin_()
        assert len(ctx.cloned) == 1
        y.mul_(2)
        assert len(ctx.cloned) == 1  # sin_ had kept a copy of its own
        (out + y.sum()).backward()
        assert x.grad.tolist() == pytest.approx(
            [8 + 2 * -0.41614684, 12 + 2 * -0.9899925], rel=1e-5
        )


def test_allow_mutation_under_no_grad_and_through_views(torch: Any) -> None:
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        x = torch.tensor([2.0, 3.0], requires_grad=True)
        y = x * 1
        z = (y * y).sum()
        with torch.no_grad():
            y[:1].zero_()
            x.fill_(7.0)
        z.backward()
        assert x.grad.tolist() == [4.0, 6.0]


def test_rushlight_notices_a_write_that_it_was_not_told_of() -> None:
    torch: Any = rushlight
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        x = torch.ones(2, requires_grad=True)
        y = x.exp() * 1
        z = (y * y).sum()
        torch.autograd.graph.increment_version(y)
        with pytest.raises(RuntimeError, match="allow_mutation_on_saved_tensors' cannot see"):
            z.backward()


def test_allow_mutation_errors(torch: Any) -> None:
    allow = torch.autograd.graph.allow_mutation_on_saved_tensors
    with allow(), pytest.raises(RuntimeError, match="contexts cannot be nested"), allow():
        pass
    with allow():
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
    with pytest.raises(AssertionError, match="^Trying to backward outside of the 'allow_mutation_"):
        y.sum().backward()
    z = x.exp() * 1
    kept = x.exp()
    kept.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        kept.sum().backward()
    z.sum().backward()


def test_allow_mutation_holds_no_more_than_the_graph(torch: Any) -> None:
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as ctx:
        x = torch.ones(2, requires_grad=True)
        y = (x * x).sum()
        y.backward()
        assert (len(ctx.original), len(ctx.cloned)) == (0, 0)


# --- second derivatives ---------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["relu", "max", "cumsum", "exp", "clamp"])
def test_a_zero_derivative_can_be_differentiated_again(torch: Any, name: str) -> None:
    parts = {
        "relu": lambda x: x.relu(), "max": lambda x: x.max(),
        "cumsum": lambda x: x.cumsum(0), "exp": lambda x: x.exp(), "clamp": lambda x: x.clamp(0, 1),
    }  # fmt: skip
    found = []
    for hooked in (False, True):
        x = torch.tensor([0.5, -2.0], requires_grad=True)
        if hooked:
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), identity):
                y = parts[name](x)
        else:
            y = parts[name](x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        again = torch.autograd.grad(g.sum(), x) if g.requires_grad else None
        found.append((g.requires_grad, None if again is None else again[0].tolist()))
    assert found[0] == found[1]
    if name in ("relu", "exp"):
        assert found[0][0]
