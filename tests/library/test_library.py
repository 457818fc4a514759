"""`torch.library`: operators of one's own behave as PyTorch's do, and better inside transforms.

What PyTorch does in the cases of cases_library.py is stored, and asked live where it is installed.
"""

import gc
import logging
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from tests.harness import LIVE, agree, pytorch, stored
from tests.library.cases_library import cases

STORED = stored("library/library")
T = torch.Tensor


def test_all_cases_are_stored() -> None:
    assert list(STORED) == list(cases)


@pytest.mark.parametrize("name", list(cases))
def test_as_pytorch(name: str) -> None:
    ours = cases.run(torch, name)
    assert agree(STORED[name], ours), f"PyTorch: {STORED[name]}\nrushlight: {ours}"


if LIVE:  # what PyTorch does is stored; this asks whether it still does

    @pytest.mark.parametrize("name", list(cases))
    def test_stored_is_what_pytorch_does(name: str) -> None:
        assert cases.run(pytorch(), name) == STORED[name]


# --- inside transforms ----------------------------------------------------------------------------
@torch.library.custom_op("tests::sine", mutates_args=())
def sine(x: T) -> T:
    return torch.from_numpy(np.asarray(np.sin(x.numpy(force=True))))


def save(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


sine.register_autograd(lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=save)


@torch.library.custom_op("tests::weigh", mutates_args=())
def weigh(xs: list[T], w: T) -> list[T]:
    return [x * w for x in xs]


@weigh.register_vmap
def _(info: Any, in_dims: Any, xs: Any, w: Any) -> Any:
    seen_dims.append((info.batch_size, in_dims))
    moved = [
        x if d is not None else x.expand(info.batch_size, *x.shape)
        for x, d in zip(xs, in_dims[0], strict=True)
    ]
    w = w if in_dims[1] is None else w.reshape(-1, *[1] * (moved[0].ndim - 1))
    return [x * w for x in moved], [0] * len(moved)


seen_dims: list[Any] = []


def test_without_a_rule_each_member_is_computed_by_itself() -> None:
    x = torch.arange(6.0).reshape(3, 2)
    with pytest.warns(UserWarning, match="batching rule for tests::sine"):
        assert torch.equal(torch.vmap(sine)(x), x.sin())


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("ruled", [False, True])
def test_transforms_go_through(ruled: bool) -> None:
    op = sine._opoverload
    op.batched = (lambda info, dims, x: (sine(x), dims[0])) if ruled else None
    x = torch.arange(6.0).reshape(3, 2)
    slope = torch.func.grad(lambda a: sine(a).sum())
    assert torch.allclose(torch.vmap(sine, 1, 1)(x), x.sin())
    assert torch.allclose(torch.vmap(torch.vmap(sine))(x), x.sin())
    assert torch.allclose(torch.vmap(slope)(x), x.cos())
    assert torch.allclose(torch.func.grad(lambda a: torch.vmap(sine)(a).sum())(x), x.cos())
    assert torch.allclose(torch.func.jacrev(sine)(x[0]), x[0].cos().diag())
    twice = torch.vmap(torch.func.grad(lambda a: slope(a).sum()))(x)
    assert torch.allclose(twice, -x.sin())
    y = x.clone().requires_grad_()
    (g,) = torch.autograd.grad(torch.vmap(sine)(y).sum(), y)
    assert torch.allclose(g, x.cos())


def test_the_warning_of_a_missing_rule_points_here() -> None:
    sine._opoverload.batched = None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.vmap(sine)(torch.ones(2))
    line = sys._getframe().f_lineno - 1
    assert [(w.filename, w.lineno) for w in said] == [(__file__, line)]


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("ruled", [False, True])
def test_forward_mode_is_refused(ruled: bool) -> None:
    op = sine._opoverload
    op.batched = (lambda info, dims, x: (sine(x), dims[0])) if ruled else None
    func, x = torch.func, torch.arange(3.0)
    asking = x.clone().requires_grad_()
    for derive in (
        lambda: func.jvp(sine, (x,), (x,)),
        lambda: func.jvp(sine, (asking,), (x,)),
        lambda: func.jvp(torch.vmap(sine), (x,), (x,)),
        lambda: torch.vmap(lambda a: func.jvp(sine, (a,), (a,)))(x),
        lambda: func.jacfwd(sine)(x),
        lambda: func.hessian(lambda a: sine(a).sum())(x),
        lambda: func.jvp(func.grad(lambda a: sine(a).sum()), (x,), (x,)),
    ):
        with pytest.raises(NotImplementedError, match="tests::sine has no forward-mode deriv"):
            derive()
    # where no tangent arrives, there is nothing to refuse
    _, t = func.jvp(lambda a: a * sine(a.detach()), (x,), (x,))
    assert torch.allclose(t, x * x.sin())
    assert torch.allclose(func.jacrev(func.jacrev(lambda a: sine(a).sum()))(x), -x.sin().diag())


def test_forward_mode_of_other_operators() -> None:
    @torch.library.custom_op("tests::order", mutates_args=())
    def order(x: T) -> T:
        return x.argsort()

    @torch.library.custom_op("tests::grow", mutates_args=("x",))
    def grow(x: T) -> None:
        x.mul_(2)

    func, x = torch.func, torch.tensor([2.0, 1.0])
    for a in (x, x.clone().requires_grad_()):  # whole numbers have no tangent
        _, t = func.jvp(lambda a: a * order(a), (a,), (torch.ones(2),))
        assert t.tolist() == [1, 0]
    with pytest.raises(NotImplementedError, match="^tests::grow has no forward-mode"):
        func.jvp(lambda a: grow(a * 1), (x,), (x,))
    lib = torch.library.Library("tests_forward", "DEF")
    lib.define("parts(Tensor x) -> Tensor")
    lib.impl("parts", lambda x: x * x, "CPU")
    lib.define("wall(Tensor x) -> Tensor")
    lib.impl("wall", lambda x: torch.from_numpy(np.sin(x.numpy(force=True))), "CPU")
    _, t = func.jvp(torch.ops.tests_forward.parts, (x,), (torch.ones(2),))
    assert t.tolist() == [4, 2]
    with pytest.raises(NotImplementedError, match="^tests_forward::wall has no forward-mode"):
        func.jvp(torch.ops.tests_forward.wall, (x,), (x,))


def test_a_profile_shows_an_operator_as_one_event() -> None:
    x = torch.ones(3, requires_grad=True)
    with torch.autograd.profiler.profile(record_shapes=True) as prof:
        weigh([x], x)
        y = sine(x)
        y.sum().backward()
    first = prof.function_events[0]
    assert (first.name, first.is_user_annotation) == ("tests::weigh", False)
    assert str(first.where).endswith("weigh([x], x)")
    names = {e.name: e for e in prof.function_events}
    assert names["tests::sine"].input_shapes == [[3]] and names["tests::sine"].count == 1
    assert prof.function_events[1].name == "aten::mul"
    assert prof.function_events[1].cpu_parent is first


def test_a_rule_sees_lists_and_dimensions() -> None:
    a, b, w = torch.ones(3, 2), torch.ones(2) * 2, torch.arange(3.0)
    seen_dims.clear()
    one, two = torch.vmap(lambda a, w: weigh([a, b], w))(a, w)
    assert seen_dims == [(3, ([0, None], 0))]
    assert one.tolist() == [[0, 0], [1, 1], [2, 2]] and two.tolist() == [[0, 0], [2, 2], [4, 4]]


def test_writes_inside_vmap() -> None:
    @torch.library.custom_op("tests::fill_up", mutates_args=("x",))
    def fill_up(x: T, by: T) -> None:
        x.add_(by)

    def filled(x: Any, by: Any) -> Any:
        fill_up(x, by)
        return x

    x = torch.zeros(3, 2)
    with pytest.warns(UserWarning, match="batching rule"):
        found = torch.vmap(filled)(x, torch.arange(3.0))
    assert found.tolist() == x.tolist() == [[0, 0], [1, 1], [2, 2]]
    with pytest.raises(RuntimeError, match="tests::fill_up writes into `x`, which is not being"):
        torch.vmap(filled, (None, 0))(torch.zeros(2), torch.arange(3.0))


def test_a_composite_operator_is_batched_by_its_parts() -> None:
    with torch.library._scoped_library("tests_parts", "FRAGMENT") as lib:
        lib.define("cube(Tensor x) -> Tensor")
        lib.impl("cube", lambda x: x * x * x)
        x = torch.arange(6.0).reshape(3, 2)
        assert torch.equal(torch.vmap(torch.ops.tests_parts.cube)(x), x**3)


# --- better than PyTorch, or unlike it ------------------------------------------------------------
def test_memory_shared_by_way_of_numpy_is_seen() -> None:
    @torch.library.custom_op("tests::same_memory", mutates_args=())
    def same_memory(x: T) -> T:
        return torch.from_numpy(x.numpy())

    with pytest.raises(RuntimeError, match="may not alias any inputs"):
        same_memory(torch.ones(2))


def test_an_autograd_kernel_may_call_its_own_operator() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return torch.ops.tests_own.f(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    with torch.library._scoped_library("tests_own", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x * 2, "CPU")
        lib.impl("f", lambda x: Twice.apply(x), "Autograd")
        x = torch.ones(2, requires_grad=True)
        y = torch.ops.tests_own.f(x)
        assert y.grad_fn.name() == "TwiceBackward"
        y.sum().backward()
        assert x.grad.tolist() == [2, 2]


def test_results_without_a_formula_are_outputs_of_their_own() -> None:
    with torch.library._scoped_library("lonely", "DEF") as lib:
        lib.define("both(Tensor x) -> (Tensor, Tensor)")
        lib.impl("both", lambda x: (x.detach().sum(0), x.detach() * 2), "CPU")
        x = torch.ones(3, 2, requires_grad=True)
        a, b = torch.ops.lonely.both(x)
        assert (a.output_nr, b.output_nr) == (0, 1)
        assert [m.shape for m in a.grad_fn._input_metadata] == [[2], [3, 2]]
        y = a[:, None].expand(2, 4).sum() + b.sum()  # shapes that cannot be added
        with pytest.warns(UserWarning, match="autograd kernel was not registered"):
            y.backward()
        assert x.grad is None


def test_keys_that_rushlight_lacks_are_named() -> None:
    with torch.library._scoped_library("tests_keys", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        with pytest.raises(NotImplementedError, match="no dispatch key FuncTorchBatched"):
            lib.impl("f", print, "FuncTorchBatched")
        with pytest.raises(NotImplementedError, match="with_keyset"):
            lib.impl("f", print, "CPU", with_keyset=True)


def test_a_library_ends_with_its_object() -> None:
    lib = torch.library.Library("tests_gone", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x * 2)
    assert torch.ops.tests_gone.f(torch.ones(1)).item() == 2
    del lib
    gc.collect()
    with pytest.raises(AttributeError, match="has no attribute 'f'"):
        _ = torch.ops.tests_gone.f
    torch.library.Library("tests_gone", "DEF")


def test_unknown_namespaces() -> None:
    with pytest.raises(AttributeError, match="no attribute 'tests_nowhere'"):
        _ = torch.ops.tests_nowhere


def test_a_kernel_switched_off_or_on_twice(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), sine.set_kernel_enabled("cpu", enabled=True):
        pass
    assert [record.getMessage() for record in caplog.records] == [
        "Attempted to enable kernel for cpu but no kernel was registered for this device type.",
        "Attempted to enable kernel for cpu but it was already enabled.",
    ]


def test_errors_name_the_users_line() -> None:
    @torch.library.custom_op("tests::lost", mutates_args=())
    def lost(x: T) -> T:
        return x * 2

    y = lost(torch.ones(2, requires_grad=True))
    assert "test_library.py" in str(y.grad_fn.where)


# --- opcheck --------------------------------------------------------------------------------------
def check(op: Any, *args: Any, **kwargs: Any) -> Any:
    return torch.library.opcheck(op, args, **kwargs)


def test_opcheck_runs_everything() -> None:
    @torch.library.custom_op("tests::cube", mutates_args=())
    def cube(x: T, n: int = 1) -> T:
        return x**3 * n

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(torch.library.OpCheckError, match="test_faketensor failed with There was"):
        check(cube, x)
    cube.register_fake(lambda x, n=1: torch.empty_like(x))
    with pytest.raises(torch.library.OpCheckError, match="test_backward failed with Trying to"):
        check(cube, x)
    cube.register_autograd(
        lambda ctx, g: (g * 3 * ctx.saved_tensors[0] ** 2, None),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    names = ["test_schema", "test_autograd_registration", "test_faketensor", "test_backward"]
    assert check(cube, x) == dict.fromkeys(names, "SUCCESS")
    with pytest.raises(torch.library.OpCheckError, match="test_gradcheck failed with Jacobian"):
        check(cube, x, 2, test_utils="ALL")
    assert check(cube, x, test_utils="ALL") == dict.fromkeys([*names, "test_gradcheck"], "SUCCESS")


def test_opcheck_finds_gradients_of_the_wrong_shape() -> None:
    @torch.library.custom_op("tests::crooked", mutates_args=())
    def crooked(x: T) -> T:
        return x * 2

    crooked.register_autograd(lambda ctx, g: torch.ones(7))
    found = check(
        crooked,
        torch.ones(2, requires_grad=True),
        test_utils="test_backward",
        raise_exception=False,
    )
    assert "invalid gradient" in str(found["test_backward"])


def test_opcheck_leaves_the_arguments_alone() -> None:
    @torch.library.custom_op("tests::writer", mutates_args=("x",))
    def writer(x: T) -> None:
        x.add_(1)

    x = torch.zeros(2)
    names = ("test_schema", "test_faketensor")
    assert check(writer, x, test_utils=names) == dict.fromkeys(names, "SUCCESS")
    assert x.tolist() == [0, 0]


def test_importing_rushlight_does_not_import_the_library() -> None:
    code = "import rushlight, sys; print('rushlight.library' in sys.modules, rushlight.Tag.core)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False Tag.core\n"
