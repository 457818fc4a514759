"""The backward pass: accumulation, order, hooks, freed graphs, errors, `grad` and `backward`."""

from __future__ import annotations

import contextlib
import gc
import weakref
from typing import Any

import pytest

import rushlight as torch
from rushlight.autograd import Function
from rushlight.core.engine.observers import PassObserver, begins, observe, stop_observing
from tests.core.engine.helpers import TwoOutputs


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, requires_grad=True)


def test_the_first_example() -> None:
    x = ones(2, 2)
    z = (x + 2) * (x + 2) * 3
    z.mean().backward()
    assert x.grad.tolist() == [[4.5, 4.5], [4.5, 4.5]]


def test_gradients_accumulate_in_place() -> None:
    x = ones(3)
    (x * 2).sum().backward()
    held = x.grad
    (x * 3).sum().backward()
    assert x.grad is held
    assert held.tolist() == [5, 5, 5]
    assert held._version == 1


def test_a_gradient_is_never_shared_between_leaves() -> None:
    a, b = ones(2), ones(2)
    (a + b).sum().backward()
    a.grad.mul_(10)
    assert b.grad.tolist() == [1, 1]


def test_the_given_gradient_is_not_kept() -> None:
    x = ones(2)
    v = torch.tensor([1.0, 2.0])
    (x * 1 + 0).backward(v)
    x.grad.mul_(5)
    assert v.tolist() == [1, 2]
    y = ones(2)
    y.backward(v)
    y.grad.mul_(5)
    assert v.tolist() == [1, 2]


def test_weighting_vector() -> None:
    x = torch.tensor([[2.0, 1.0]], requires_grad=True)
    y = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    torch.mm(x, y).backward(torch.Tensor([[1.0, 0]]), retain_graph=True)
    assert x.grad.tolist() == [[1, 3]]
    assert y.grad.tolist() == [[2, 0], [1, 0]]


def test_only_scalars_have_an_implicit_gradient() -> None:
    x = ones(2)
    with pytest.raises(
        RuntimeError, match="^grad can be implicitly created only for scalar outputs"
    ) as e:
        (x + 2).backward()
    assert "test_engine.py" in str(e.value) and "(x + 2).backward()" in str(e.value)


def test_wrong_gradients() -> None:
    x = ones(2)
    with pytest.raises(
        RuntimeError,
        match=r"^Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[3\]\) and "
        r"output\[0\] has a shape of torch.Size\(\[2\]\)\.",
    ):
        (x * 1).backward(torch.ones(3))
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got int"):
        (x * 1).backward([1])
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        (x * 1).backward(1)
    with pytest.raises(
        RuntimeError,
        match="^element 0 of tensors does not require grad and does not have a grad_fn",
    ):
        torch.ones(2).sum().backward()


def test_a_gradient_of_another_dtype_is_cast() -> None:
    x = ones(2)
    (x * 3).backward(torch.ones(2, dtype=torch.float64))
    assert x.grad.dtype is torch.float32


def test_a_freed_graph_says_who_freed_it() -> None:
    x = ones(2)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(
        RuntimeError, match="^Trying to backward through the graph a second time"
    ) as e:
        y.backward()
    assert "freed by test_engine.py" in str(e.value)
    assert "y.backward()" in str(e.value)


def test_ops_that_save_nothing_can_run_twice() -> None:
    x = ones(2)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [2, 2]


def test_retain_graph() -> None:
    x = ones(2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4, 4]


def test_any_order_of_derivative() -> None:
    x = torch.tensor(2.0, requires_grad=True, dtype=torch.float64)
    y = x**5
    expected = [5 * 2**4, 20 * 2**3, 60 * 2**2, 120 * 2, 120]
    for value in expected:
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        assert y.item() == value


def test_create_graph_through_backward() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x**3).sum().backward(create_graph=True)
    g = x.grad
    x.grad = None
    g.sum().backward()
    assert x.grad.tolist() == [6, 12]


def test_grad_leaves_dot_grad_alone() -> None:
    x, y = ones(2), ones(2)
    gx, gy = torch.autograd.grad((x * y * 3).sum(), (x, y))
    assert gx.tolist() == gy.tolist() == [3, 3]
    assert x.grad is None and y.grad is None


def test_grad_of_an_interior_tensor() -> None:
    x = ones(2)
    y = x * 2
    z = (y * y).sum()
    (gy,) = torch.autograd.grad(z, y)
    assert gy.tolist() == [4, 4]


def test_grad_of_a_leaf_by_itself() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    assert torch.autograd.grad(x, x)[0].item() == 1


def test_unused_inputs() -> None:
    x, y = ones(2), ones(2)
    with pytest.raises(
        RuntimeError,
        match="^The differentiated Tensor at index 1 appears to not have been used in the graph",
    ):
        torch.autograd.grad((x * 2).sum(), (x, y))
    assert torch.autograd.grad((x * 2).sum(), (x, y), allow_unused=True)[1] is None
    zero = torch.autograd.grad((x * 2).sum(), (x, y), materialize_grads=True)[1]
    assert zero.tolist() == [0, 0]
    with pytest.raises(
        ValueError,
        match="^Expected allow_unused to be True or not passed when materialize_grads=True",
    ):
        torch.autograd.grad((x * 2).sum(), (x, y), allow_unused=False, materialize_grads=True)
    with pytest.raises(
        RuntimeError, match="^One of the differentiated Tensors does not require grad"
    ):
        torch.autograd.grad((x * 2).sum(), torch.ones(2))


def test_batched_gradients() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (jacobian,) = torch.autograd.grad(x**2, x, torch.eye(2), is_grads_batched=True)
    assert jacobian.tolist() == [[2, 0], [0, 4]]


def test_backward_with_inputs() -> None:
    x, y = ones(2), ones(2)
    (x * y).sum().backward(inputs=[x])
    assert x.grad.tolist() == [1, 1] and y.grad is None
    mid = x * 2
    (mid * 3).sum().backward(inputs=[mid])
    assert mid.grad.tolist() == [3, 3]
    with pytest.raises(
        RuntimeError, match=r"^`inputs` argument to `backward\(\)` cannot be empty."
    ):
        (x * y).sum().backward(inputs=[])


def test_several_roots() -> None:
    x = ones(2)
    torch.autograd.backward([x * 2, x * 3], [torch.ones(2), torch.tensor([1.0, 10.0])])
    assert x.grad.tolist() == [5, 32]
    with pytest.warns(FutureWarning, match="grad_variables"):
        torch.autograd.backward([x * 2], grad_variables=[torch.ones(2)])


def test_hooks_on_leaves_run_once_with_the_whole_gradient() -> None:
    x = ones(2)
    seen: list[list[float]] = []
    handle = x.register_hook(lambda g: seen.append(g.tolist()))
    (x * 2 + x * 3).sum().backward()
    assert seen == [[5, 5]]
    handle.remove()
    (x * 2).sum().backward()
    assert len(seen) == 1


def test_hooks_replace_gradients_in_order() -> None:
    x = ones(2)
    y = x * 1
    y.register_hook(lambda g: g + 1)
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert x.grad.tolist() == [20, 20]
    with pytest.raises(
        RuntimeError, match="^cannot register a hook on a tensor that doesn't require gradient"
    ):
        torch.ones(1).register_hook(lambda g: g)


def test_node_hooks() -> None:
    x = ones(2)
    y = x * 3
    calls: list[object] = []
    y.grad_fn.register_prehook(lambda gs: calls.append(("pre", gs[0].tolist())))
    y.grad_fn.register_hook(lambda gi, go: calls.append((gi[0].tolist(), gi[1], go[0].tolist())))
    y.sum().backward()
    assert calls == [("pre", [1, 1]), ([3, 3], None, [1, 1])]


def test_retain_grad() -> None:
    x = ones(2)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    (y * y).sum().backward()
    assert y.grad.tolist() == [4, 4]
    with pytest.raises(
        RuntimeError, match="^can't retain_grad on Tensor that has requires_grad=False"
    ):
        torch.ones(1).retain_grad()


def test_post_accumulate_hooks() -> None:
    x = ones(2)
    seen: list[list[float]] = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    (x * 2 + x * 4).sum().backward()
    assert seen == [[6, 6]]


def test_an_exception_in_backward_leaves_everything_usable() -> None:
    class Broken(Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 1

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            raise KeyboardInterrupt if stop else ValueError("broken")

    x = ones(2)
    y = x * 2
    z = Broken.apply(y)
    stop = False
    with pytest.raises(ValueError, match="broken") as e:
        z.sum().backward(retain_graph=True)
    assert any("BrokenBackward" in note and "test_engine.py" in note for note in e.value.__notes__)
    stop = True
    with pytest.raises(KeyboardInterrupt):
        z.sum().backward(retain_graph=True)
    assert torch.is_grad_enabled()
    assert x.grad is None
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]

    def raising(g: object) -> None:
        raise ValueError("hook")

    w = x * 3
    w.register_hook(raising)
    with pytest.raises(ValueError, match="hook"):
        w.sum().backward()
    assert torch.is_grad_enabled()
    x.grad = None
    (x * 5).sum().backward()
    assert x.grad.tolist() == [5, 5]


def test_backward_inside_backward() -> None:
    class Inner(Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                copy = x.detach().requires_grad_()
                (copy * copy).sum().backward()
            return copy.grad * g

    x = torch.tensor([3.0], requires_grad=True)
    Inner.apply(x).sum().backward()
    assert x.grad.tolist() == [6]


def test_memory_goes_without_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        x = ones(3)
        y = (x * x + 1) * x
        inner = y.grad_fn.next_functions[0][0]
        refs = [weakref.ref(y), weakref.ref(y.grad_fn), weakref.ref(inner)]
        y.retain_grad()
        z = y.sum()
        z.backward(retain_graph=True)
        del y, z, inner
        assert [r() for r in refs] == [None] * 3
    finally:
        gc.enable()


def failing(how: str, refs: list[Any]) -> None:
    x = torch.ones(3, requires_grad=True)
    refs.append(weakref.ref(x))
    y = x.exp()
    refs.append(weakref.ref(y))
    z = (y * 2).sum()
    if how == "freed":
        z.backward()
    if how == "overwritten":
        y.add_(1)
    if how == "hook":
        y.register_hook(lambda g: 1 / 0)
    if how == "function":

        class Fails(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 1

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                raise ValueError

        z = Fails.apply(y).sum()
    if how == "transform":
        torch.func.grad(lambda t: t * 2)(x)
    if how == "op":
        torch.ones(2) @ y
    z.backward()


@pytest.mark.parametrize(
    "how", ["freed", "overwritten", "hook", "function", "transform", "op", "none"]
)
def test_memory_goes_without_the_collector_after_an_error(how: str) -> None:
    refs: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        with contextlib.suppress(RuntimeError, ValueError, ZeroDivisionError):
            failing(how, refs)
        assert [ref() is None for ref in refs] == [True, True]
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["grad", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "vmap"])
def test_memory_goes_without_the_collector_after_a_transform(name: str) -> None:
    func = torch.func
    calls = {
        "grad": func.grad(lambda t: t.sin().sum()),
        "vjp": lambda t: func.vjp(torch.sin, t)[1](torch.ones(3)),
        "jvp": lambda t: func.jvp(torch.sin, (t,), (torch.ones(3),)),
        "jacrev": func.jacrev(torch.sin), "jacfwd": func.jacfwd(torch.sin),
        "hessian": func.hessian(lambda t: t.sin().sum()),
        "vmap": func.vmap(func.grad(torch.sin)),
    }  # fmt: skip
    gc.collect()
    gc.disable()
    try:
        x = torch.ones(3)
        ref = weakref.ref(x)
        calls[name](x)
        del x
        assert ref() is None
    finally:
        gc.enable()


def test_the_graph_keeps_its_leaves() -> None:
    def make() -> torch.Tensor:
        w = ones(2)
        return (w * 3).sum()

    y = make()
    leaf = y.grad_fn.next_functions[0][0].next_functions[0][0].variable
    y.backward()
    assert leaf.grad.tolist() == [3, 3]


def test_a_zero_derivative_can_be_differentiated_again() -> None:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    (g,) = torch.autograd.grad(x.relu().sum(), x, create_graph=True)
    assert g.requires_grad
    g.sum().backward()
    assert x.grad.tolist() == [0, 0]


def test_sorting_twice_differentiated_asks_for_nothing() -> None:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    (g,) = torch.autograd.grad(x.sort()[0].sum(), x, create_graph=True)
    assert not g.requires_grad


def test_a_leaf_whose_data_was_replaced_keeps_its_second_derivative() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x * x
    x.data = torch.tensor(5.0)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.item() == 27
    assert torch.autograd.grad(g, x)[0].item() == 18


def test_a_zero_derivative_behind_a_gradient_that_asks() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    v = torch.tensor([3.0, 4.0], requires_grad=True)
    (g,) = torch.autograd.grad((torch.relu(x) * v).sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [0, 0]
    y = x**3
    for expected in ([3, 12], [6, 12], [6, 6], [0, 0]):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        assert y.tolist() == expected


# --- who looks on ---------------------------------------------------------------------------------
class Witness(PassObserver):
    """Notes what it is told of a pass."""

    def __init__(self, told: list[str]) -> None:
        self.told = told

    def before_node(self, node: Any) -> None:
        self.told.append(f"node {node.name()}")

    def before_rule(self, node: Any, g: Any) -> None:
        self.told.append(f"rule of {len(g.shape)}-d")

    def after_rule(self, node: Any, outs: Any) -> None:
        self.told.append(f"gave {len(outs)}")

    def after_node(self, node: Any, outs: Any) -> None:
        self.told.append(f"hands on {[None if g is None else g.tolist() for g in outs]}")

    def before_leaf(self, g: Any, stores: bool) -> None:
        self.told.append(f"leaf {g.tolist()} {stores}")

    def sees_leaves(self) -> bool:
        return True

    def failed(self, node: Any) -> None:
        self.told.append(f"failed {node.name()}")

    def finish(self) -> None:
        self.told.append("over")


@contextlib.contextmanager
def observed(*begins: Any) -> Any:
    for begin in begins:
        observe(begin)
    try:
        yield
    finally:
        for begin in begins:
            stop_observing(begin)


def test_an_observer_is_told_of_a_pass() -> None:
    told: list[str] = []

    def begin() -> PassObserver:
        return Witness(told)

    x = ones(2)
    y = (x * 3).sum()
    with observed(begin, begin):  # twice is once
        y.backward()
    assert told == [
        "node SumBackward0", "rule of 0-d", "gave 1", "hands on [[1.0, 1.0]]",
        "node MulBackward0", "rule of 1-d", "gave 2", "hands on [[3.0, 3.0], None]",
        "leaf [3.0, 3.0] True", "over",
    ]  # fmt: skip
    (x * 3).sum().backward()
    assert len(told) == 10 and not begins and x.grad.tolist() == [6, 6]


def test_several_observers_and_none() -> None:
    first: list[str] = []
    second: list[str] = []
    x = ones(2)
    with observed(lambda: Witness(first), lambda: None, lambda: Witness(second)):
        (g,) = torch.autograd.grad((x * x).sum(), x)
    assert g.tolist() == [2, 2] and first == second
    assert first[-2:] == ["leaf [2.0, 2.0] False", "over"]


def test_an_observer_hears_of_errors_and_of_the_end() -> None:
    told: list[str] = []
    x = ones(2)
    y = x * 3

    def refuse(g: Any) -> None:
        raise ValueError("no")

    y.register_hook(refuse)
    with observed(lambda: Witness(told)), pytest.raises(ValueError, match="^no"):
        y.sum().backward()
    assert told[-3:] == ["node MulBackward0", "failed MulBackward0", "over"]


def test_anomaly_mode_and_a_profiler_look_together() -> None:
    x = torch.tensor([-1.0, 4.0], requires_grad=True)
    with torch.autograd.profiler.profile() as prof, torch.autograd.set_detect_anomaly(True):
        (x * 2).sum().backward()
        y = x.sqrt().sum()
        with (
            pytest.warns(UserWarning, match="^Error detected in SqrtBackward0"),
            pytest.raises(RuntimeError, match="^Function 'SqrtBackward0' returned nan values"),
        ):
            y.backward()
    names = {event.name for event in prof.function_events}
    assert {"MulBackward0", "SqrtBackward0", "torch::autograd::AccumulateGrad"} <= names
    assert x.grad.tolist() == [2, 2] and not begins


def test_inputs_that_are_interior_retain_their_gradient() -> None:
    x = ones(2)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward(inputs=[y])
    assert y.grad.tolist() == [3, 3]
    y = x * 2
    z = (y * 3).sum()
    z.backward(inputs=[y, y], retain_graph=True)
    assert y.grad.tolist() == [3, 3] and y.retains_grad
    z.backward()
    assert y.grad.tolist() == [6, 6]


def test_retain_grad_follows_values() -> None:
    x = ones(4)
    a, b = TwoOutputs.apply(x)
    a.retain_grad()
    b.retain_grad()
    a.mul_(2)
    (a + b).sum().backward()
    assert b.grad.tolist() == [1] * 4 and a.grad.tolist() == [1] * 4
    y = x * 1
    v = y[:2]
    v.retain_grad()
    v.mul_(3)
    (v * 2).sum().backward()
    assert v.grad.tolist() == [2, 2]
    y = x * 1
    v = y[:2]
    v.retain_grad()
    y.mul_(3)
    (v * 2).sum().backward()
    assert v.grad.tolist() == [2, 2]
    y = x * 1
    y.retain_grad()
    y[:2].mul_(3)
    (y * 2).sum().backward()
    assert y.grad.tolist() == [2] * 4


def test_a_batch_of_gradients_is_summed() -> None:
    """Three gradients meet, each a batch: what the second sum gives is what the leaf gets."""
    each = torch.func.vmap(torch.func.grad(lambda x: x * x + x * 3 + x * x * x))
    assert each(torch.tensor([1.0, 2.0])).tolist() == [8, 19]
    x = ones(2)
    y = (x * x + x * 3 + x * x * x) * torch.ones(2)
    rows = torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True)
    assert rows[0].tolist() == [[8, 0], [0, 8]]
