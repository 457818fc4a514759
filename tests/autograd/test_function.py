"""Custom functions: both context styles, saving, several outputs, errors, double backward."""

from __future__ import annotations

import gc
import pickle
import sys
import threading
import weakref
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import Function
from rushlight.autograd.function import once_differentiable
from tests.autograd import (
    cases_function_calls,
    cases_function_dirty,
    cases_function_nested,
    cases_function_outputs,
    cases_function_rules,
    cases_function_saved,
)
from tests.core.engine.helpers import ones
from tests.harness import LIVE, agree, pytorch, stored

pytestmark = pytest.mark.usefixtures("no_mode_left")


class MulConstant(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Any, constant: float) -> Any:
        ctx.constant = constant
        return tensor * constant

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output * ctx.constant, None


class Square(Function):
    @staticmethod
    def forward(x: Any) -> Any:
        return x * x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        (x,) = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


def test_context_style() -> None:
    a = torch.ones(2, 2, requires_grad=True)
    b = MulConstant.apply(a, 5)
    assert b.grad_fn.name() == "MulConstantBackward"
    assert repr(b).endswith("grad_fn=<MulConstantBackward>)")
    b.backward(torch.ones_like(a))
    assert a.grad.tolist() == [[5, 5], [5, 5]]
    assert b.grad_fn.next_functions[0][0].variable is a
    assert b.grad_fn.constant == 5


def test_setup_context_style_and_double_backward() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    y = Square.apply(x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.item() == 6
    (gg,) = torch.autograd.grad(g, x)
    assert gg.item() == 2


def test_needs_input_grad() -> None:
    seen: list[tuple[bool, ...]] = []

    class F(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, c: Any) -> Any:
            return a + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(ctx.needs_input_grad)
            return g, g, None

    F.apply(torch.ones(1, requires_grad=True), torch.ones(1), 3).backward()
    assert seen == [(True, False, False)]


def test_several_outputs_and_undefined_gradients() -> None:
    class Split(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, materialize: bool) -> Any:
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            got.append((None if a is None else a.tolist(), None if b is None else b.tolist()))
            total = 0
            if a is not None:
                total = total + a * 2
            if b is not None:
                total = total + b * 3
            return total, None

    got: list[Any] = []
    x = torch.ones(2, requires_grad=True)
    a, b = Split.apply(x, True)
    assert (a.output_nr, b.output_nr) == (0, 1)
    b.sum().backward()
    a, b = Split.apply(x, False)
    a.sum().backward()
    assert got == [([0, 0], [1, 1]), ([1, 1], None)]
    assert x.grad.tolist() == [5, 5]


def test_non_differentiable_outputs() -> None:
    class Sort(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            values, index = x.sort()
            ctx.mark_non_differentiable(index)
            ctx.save_for_backward(index)
            return values, index

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            (index,) = ctx.saved_tensors
            out = torch.zeros_like(g)
            out[index] = g
            return out

    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, index = Sort.apply(x)
    assert not index.requires_grad and index.is_leaf
    (values * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100, 1, 10]


def test_mark_dirty() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    leaf = torch.ones(2, requires_grad=True)
    x = leaf * 1
    y = Double.apply(x)
    assert y is x and x._version == 2 and x.grad_fn.name() == "DoubleBackward"
    y.sum().backward()
    assert leaf.grad.tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="^a leaf Variable that requires grad"):
        Double.apply(torch.ones(2, requires_grad=True))


def test_an_input_returned_as_it_is() -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 7

    x = torch.ones(2, requires_grad=True)
    y = Same.apply(x)
    assert y is not x and y.grad_fn.name() == "SameBackward" and x.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [7, 7]


def test_wrong_number_of_gradients() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a + b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return answer(g)

    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    answer = lambda g: g
    with pytest.raises(
        RuntimeError,
        match=r"^function FBackward returned an incorrect number of gradients \(expected 2, "
        r"got 1\)",
    ):
        F.apply(a, b).sum().backward()
    answer = lambda g: (g, torch.ones(5))
    with pytest.raises(
        RuntimeError,
        match=r"^Function FBackward returned an invalid gradient at index 1 - got \[5\] but "
        r"expected shape compatible with \[2\]",
    ):
        F.apply(a, b).sum().backward()
    answer = lambda g: (g, g, None, None)
    F.apply(a, b).sum().backward()
    assert a.grad.tolist() == [1, 1]


def test_a_gradient_for_a_number() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g

    with pytest.raises(
        RuntimeError,
        match="^function FBackward returned a gradient different than None at position 2, but the "
        "corresponding forward input was not a Variable",
    ):
        F.apply(torch.ones(2, requires_grad=True), 3).sum().backward()


def test_legacy_functions_are_refused() -> None:
    class Old(Function):
        def forward(self, x: Any) -> Any:
            return x

    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        f = Old()
    with pytest.raises(
        RuntimeError, match="^Legacy autograd function with non-static forward method is deprecated"
    ):
        f(torch.ones(1))


def test_missing_methods() -> None:
    class Nothing(Function):
        pass

    class Half(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

    with pytest.raises(NotImplementedError, match="^You must implement the forward function"):
        Nothing.apply(torch.ones(1))
    with pytest.raises(
        NotImplementedError, match="^You must implement either the backward or vjp method"
    ):
        Half.apply(torch.ones(1, requires_grad=True)).backward()


def test_once_differentiable() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = torch.tensor(3.0, requires_grad=True)
    F.apply(x).backward()
    assert x.grad.item() == 6
    (g,) = torch.autograd.grad(F.apply(x) * x, x, create_graph=True)
    with pytest.raises(
        RuntimeError,
        match="^trying to differentiate twice a function that was marked with @once_differentiable",
    ):
        g.backward()


def test_saved_values_are_checked_and_freed() -> None:
    x = torch.ones(2, requires_grad=True)
    h = x * 1
    y = Square.apply(h)
    h.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as e:
        y.sum().backward()
    assert "saved for SquareBackward" in str(e.value) and "overwritten at test_function.py" in str(
        e.value
    )
    y = Square.apply(x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="^Trying to backward through the graph a second time"):
        y.backward()


def test_no_cycles() -> None:
    class Exp(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (y,) = ctx.saved_tensors
            return g * y

    gc.collect()
    gc.disable()
    try:
        x = torch.zeros(2, requires_grad=True)
        y = Exp.apply(x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        (gg,) = torch.autograd.grad(g.sum(), x)
        assert gg.tolist() == [1, 1]
        refs = [weakref.ref(y), weakref.ref(y.grad_fn)]
        del y, g, gg
        assert [r() for r in refs] == [None, None]
    finally:
        gc.enable()


def test_contexts_are_not_pickled() -> None:
    y = Square.apply(torch.ones(1, requires_grad=True))
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(y.grad_fn)


def test_without_anything_to_record() -> None:
    y = Square.apply(torch.ones(2))
    assert not y.requires_grad
    with torch.no_grad():
        assert not Square.apply(torch.ones(2, requires_grad=True)).requires_grad


def test_tensors_by_keyword_have_gradients() -> None:
    class Times(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * y, g * x

    a = torch.tensor([2.0, 3.0], requires_grad=True)
    Times.apply(y=a, x=torch.ones(2)).sum().backward()
    assert a.grad.tolist() == [1.0, 1.0]
    Times.apply(a, y=a).sum().backward()
    assert a.grad.tolist() == [5.0, 7.0]
    with pytest.raises(TypeError, match=r"forward\(\) got an unexpected keyword argument 'z'"):
        Times.apply(a, z=a)
    with pytest.raises(TypeError, match=r"forward\(\) missing required argument: 'x' .position 0"):
        Times.apply(y=a)


# --- the gradient of what is written over ---------------------------------------------------------
@pytest.mark.parametrize("kind", ["node", "view of a node", "view of a leaf", "plain"])
def test_what_a_function_writes_over_loses_its_gradient(kind: str) -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2, g

    w = torch.ones(3, requires_grad=True)
    if kind == "plain":
        x = torch.ones(3)
        x.grad = torch.ones(3)
    else:
        x = w.view_as(w) if kind == "view of a leaf" else w * 1
        x = x[:] if kind == "view of a node" else x
        x.retain_grad()
        (x * x).sum().backward()
    assert x.grad is not None
    if kind == "view of a leaf":
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
            Doubled.apply(x, w)
    else:
        Doubled.apply(x, w)
    assert x._grad is None  # as in PyTorch, also where the write is refused afterwards
    x = torch.ones(3, requires_grad=True) * 1
    x.retain_grad()
    (x * x).sum().backward()
    with torch.no_grad():
        Doubled.apply(x, w)
    assert x.grad.tolist() == [2, 2, 2]  # no new history: what was is kept


PARTS = {
    "calls": cases_function_calls.cases,
    "outputs": cases_function_outputs.cases,
    "dirty": cases_function_dirty.cases,
    "saved": cases_function_saved.cases,
    "rules": cases_function_rules.cases,
    "nested": cases_function_nested.cases,
}


NAMES = [(part, name) for part, cases in PARTS.items() for name in cases]
STORED = {part: stored(f"autograd/function_{part}") for part in PARTS}


def test_all_cases_are_stored() -> None:
    assert {part: list(found) for part, found in STORED.items()} == {
        part: list(cases) for part, cases in PARTS.items()
    }


@pytest.mark.parametrize(("part", "name"), NAMES)
def test_as_pytorch(part: str, name: str) -> None:
    ours = PARTS[part].run(torch, name)
    assert agree(STORED[part][name], ours), f"PyTorch: {STORED[part][name]}\nrushlight: {ours}"


if LIVE:  # what PyTorch does is stored; this asks whether it still does

    @pytest.mark.parametrize(("part", "name"), NAMES)
    def test_stored_is_what_pytorch_does(part: str, name: str) -> None:
        assert PARTS[part].run(pytorch(), name) == STORED[part][name]


class Scaled(Function):
    """Multiplies its second argument in place by its first."""

    @staticmethod
    def forward(ctx: Any, scale: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        ctx.save_for_backward(scale, x.clone())
        return x.mul_(scale)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        scale, x = ctx.saved_tensors
        return (g * x).sum(), g * scale


def test_a_written_view_need_not_be_the_first_argument() -> None:
    scale = torch.tensor(3.0, requires_grad=True)
    x = torch.arange(4.0).reshape(2, 2).requires_grad_()
    base = x * 2
    Scaled.apply(scale, base[1])
    base.sum().backward()
    assert scale.grad.item() == 2 * (2 + 3)
    assert x.grad.tolist() == [[2, 2], [6, 6]]


def test_a_view_made_inside_and_marked_dirty() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = (x * 2)[0]
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.stack([g * 2, g * 0])

    x = torch.ones(2, 2, requires_grad=True)
    with pytest.warns(UserWarning, match="not an input"):
        y = F.apply(x)
    y.sum().backward()
    assert x.grad.tolist() == [[2, 2], [0, 0]]


def test_errors_name_the_argument() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a * b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, 3.0

    y = F.apply(torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True))
    with pytest.raises(RuntimeError, match=r"got float\), in what FBackward .* of argument 2"):
        y.sum().backward()


class Reenter(Function):
    """Its backward runs another of itself, `depth` times."""

    @staticmethod
    def forward(ctx: Any, x: Any, depth: int, seen: Any) -> Any:
        ctx.depth, ctx.seen = depth, seen
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        ctx.seen.append((threading.get_ident(), torch.is_grad_enabled()))
        if ctx.depth > 0:
            with torch.enable_grad():
                x = torch.ones(2, requires_grad=True)
                Reenter.apply(x, ctx.depth - 1, ctx.seen).sum().backward()
            g = g + x.grad
        return g, None, None


def test_backward_within_backward_goes_deeper_than_the_stack() -> None:
    depth = 2 * sys.getrecursionlimit()
    seen: list[Any] = []
    x = torch.ones(2, requires_grad=True)
    Reenter.apply(x, depth, seen).sum().backward()
    assert len(seen) == depth + 1
    assert x.grad.tolist() == [depth + 1] * 2
    assert not any(recorded for _, recorded in seen)


def test_shallow_rules_stay_on_the_callers_thread() -> None:
    seen: list[Any] = []
    Reenter.apply(torch.ones(2, requires_grad=True), 5, seen).sum().backward()
    assert {thread for thread, _ in seen} == {threading.get_ident()}


class Double(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def test_nodes_of_custom_functions_are_named_as_in_pytorch() -> None:
    x = torch.ones(3, requires_grad=True)
    seen: list[str] = []

    def f(x: Any) -> Any:
        y = Double.apply(x)
        seen.append(y.grad_fn.name())
        return y.sum()

    assert Double.apply(x).grad_fn.name() == "DoubleBackward"
    batch = torch.func.vmap(Double.apply)(x)
    assert batch.grad_fn.name() == "VmappedDoubleBackward"
    assert torch.autograd.grad(batch.sum(), x)[0].tolist() == [2, 2, 2]
    assert torch.func.grad(f)(torch.ones(3)).tolist() == [2, 2, 2]
    assert torch.func.vmap(torch.func.grad(f))(torch.ones(2, 3)).tolist() == [[2.0] * 3] * 2
    assert seen == ["DoubleGeneratedBackward"] * 2
    twice = torch.func.vmap(torch.func.vmap(Double.apply))(torch.ones(2, 3, requires_grad=True))
    assert twice.grad_fn.name() == "VmappedVmappedDoubleBackward"


def test_a_view_made_in_forward_is_still_a_view() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[:1]

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return torch.cat([g * 7, g * 0])

    o = F.apply(ones(2) * 1)
    assert o._is_view()
    try:
        o.mul_(2)
    except RuntimeError as error:
        assert "This view was created inside a custom Function" in str(error)
    else:
        raise AssertionError("the write should have been refused")


def test_one_tensor_returned_twice() -> None:
    class F(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return g * 2 + h * 3

    x = ones(2)
    a, b = F.apply(x)
    (a * 1 + b * 10).sum().backward()
    assert a is b and x.grad.tolist() == [33, 33]
