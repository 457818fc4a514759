"""Forward mode: tangents are derivatives, and behave as PyTorch's do.

Laws need no reference: every op of the table, the functions of cases_forward_ad.py against double
backward, random programs against differences. What PyTorch does is stored, and asked live where it
is installed.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import rushlight as torch
import rushlight.autograd.forward_ad as fwAD
from rushlight.core.grad_mode import state
from rushlight.core.graph import wrap
from rushlight.core.record import apply
from rushlight.core.transforms.stack import stack
from rushlight.ops.registry import table
from rushlight.ops.sample_inputs import Draw, samples_of
from tests.autograd import cases_dual_programs as dual_programs
from tests.autograd import cases_forward_ad as written
from tests.harness import LIVE, as_stored, rounded, stored
from tests.laws.test_laws import directions, forward, is_float, listed

STORED = stored("autograd/forward_ad")
PROGRAMS = stored("autograd/dual_programs")
CHUNK = 50


def oracle() -> Any:
    """PyTorch, past the warnings it gives when its first level is entered."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = importlib.import_module("torch")
        with library.autograd.forward_ad.dual_level():
            return library


@pytest.fixture(autouse=True)
def nothing_left() -> Any:
    """A test leaves no level open, and with it no slow path."""
    before = state.active
    yield
    assert stack.tangents == 0 and state.active == before


def tangent(t: Any) -> Any:
    return fwAD.unpack_dual(t).tangent


# --- every op -------------------------------------------------------------------------------------
def smooth(name: str) -> list[Any]:
    samples = samples_of(table[name], Draw(7))
    return [(op, tuple(xs)) for op, *xs in samples if op.plan.differentiable]


SMOOTH = [name for name in sorted(table) if smooth(name)]


def pushed(op: Any, xs: tuple[Any, ...], ts: list[Any], asks: bool) -> list[Any]:
    """(result, tangent) of each result of an op on duals."""
    with fwAD.dual_level():
        given = []
        for x, t in zip(xs, ts, strict=True):
            if not isinstance(x, np.ndarray):
                given.append(x)
                continue
            w = wrap(x.copy())
            w._requires_grad = asks and is_float(x)
            given.append(w if t is None else fwAD.make_dual(w, wrap(t)))
        results = listed(apply(op, *given))
        return [(r._array, None if (t := tangent(r)) is None else t._array) for r in results]


@pytest.mark.parametrize("name", SMOOTH)
def test_every_op_pushes_tangents(name: str) -> None:
    """By its own jvp, on arrays and recorded; and linearly in the tangents, None being zero."""
    for op, xs in smooth(name):
        ts = directions(xs, 2)
        y = op.forward(*xs)
        expected = [np.asarray(t) for t in listed(op.jvp(tuple(ts), xs, y))]
        for asks in (False, True):
            found = pushed(op, xs, ts, asks)
            parts = [
                pushed(op, xs, [t if k == j else None for k, t in enumerate(ts)], asks)
                for j in range(len(ts))
                if ts[j] is not None
            ]
            for i, (value, t) in enumerate(found):
                if not is_float(value):
                    assert t is None
                    continue
                assert t.shape == value.shape and t.dtype == value.dtype
                assert t.flags.writeable
                np.testing.assert_allclose(t, expected[i], rtol=1e-8, atol=1e-9)
                total = sum(part[i][1] for part in parts)
                np.testing.assert_allclose(total, expected[i], rtol=1e-7, atol=1e-8)


def test_results_are_what_they_are_without_tangents() -> None:
    for name in SMOOTH:
        for op, xs in smooth(name):
            for (value, _), y in zip(
                pushed(op, xs, directions(xs, 2), False), forward(op, xs), strict=True
            ):
                if op.forward_kernel is None or y.dtype.kind != "f":
                    np.testing.assert_array_equal(value, y)
                else:  # functions that are not NumPy's, but as exact
                    np.testing.assert_array_almost_equal_nulp(value, y, 4)


# --- functions ------------------------------------------------------------------------------------
def matrix(asks: bool = True) -> Any:
    return torch.tensor(written.X, dtype=torch.float64, requires_grad=asks)


def direction() -> Any:
    return torch.tensor(written.T, dtype=torch.float64)


def value_of(name: str, x: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return written.FUNCTIONS[name](torch, torch.nn.functional, x)


def close(a: Any, b: Any, tolerance: float = 1e-6) -> None:
    assert tuple(a.shape) == tuple(b.shape)
    np.testing.assert_allclose(
        a.detach().tolist(), b.detach().tolist(), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("name", written.FUNCTIONS)
@pytest.mark.parametrize("asks", [False, True])
def test_tangent_as_pytorchs(name: str, asks: bool) -> None:
    primal, found = written.tangent_of(torch, written.FUNCTIONS[name], asks)
    expected = STORED["functions"][name]
    tolerance = 1e-5 if primal.dtype is torch.float32 else 1e-9
    for t, want in zip((primal, found), expected, strict=True):
        np.testing.assert_allclose(t.detach().tolist(), want, rtol=tolerance, atol=tolerance)
    if LIVE:
        live = written.tangent_of(oracle(), written.FUNCTIONS[name], asks)
        for t, other in zip((primal, found), live, strict=True):
            assert str(t.dtype) == str(other.dtype)
            np.testing.assert_allclose(
                t.detach().tolist(), other.detach().tolist(), rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize("name", written.FUNCTIONS)
def test_tangent_is_jvp_by_double_backward(name: str) -> None:
    found = written.tangent_of(torch, written.FUNCTIONS[name]).tangent
    x = matrix()
    y = value_of(name, x)
    if not y.requires_grad or name == "zero_":
        assert not found.any()
        return
    v = torch.zeros_like(y, requires_grad=True)
    (g,) = torch.autograd.grad(y, x, v, create_graph=True)
    (expected,) = torch.autograd.grad(g, v, direction())
    close(found, expected)


def scalar(name: str, x: Any) -> Any:
    """A scalar that is linear in nothing, so that its second derivatives say something."""
    return (value_of(name, x) * 0.7 + 0.2).sin().sum()


def hessian_times_direction(name: str) -> Any:
    """By reverse over reverse."""
    x = matrix()
    (g,) = torch.autograd.grad(scalar(name, x), x, create_graph=True)
    (found,) = torch.autograd.grad(g, x, direction(), allow_unused=True)
    return torch.zeros_like(x) if found is None else found


SECOND = [name for name in written.FUNCTIONS if name not in ("to float", "zero_")]


@pytest.mark.parametrize("name", SECOND)
def test_forward_over_reverse(name: str) -> None:
    with fwAD.dual_level():
        x = matrix()
        y = scalar(name, fwAD.make_dual(x, direction()))
        (g,) = torch.autograd.grad(y, x)
        found = tangent(g)
        assert not g.requires_grad and not found.requires_grad
    close(found, hessian_times_direction(name))


@pytest.mark.parametrize("name", SECOND)
def test_reverse_over_forward(name: str) -> None:
    x = matrix()
    with fwAD.dual_level():
        along = tangent(scalar(name, fwAD.make_dual(x, direction())))
    (found,) = torch.autograd.grad(along, x)
    close(found, hessian_times_direction(name))


@pytest.mark.parametrize(
    "name", ["exp", "softmax", "write to a view", "mm", "chain_", "cross_entropy"]
)
def test_third_derivatives(name: str) -> None:
    """Forward over reverse over reverse."""
    x = matrix()
    (g,) = torch.autograd.grad(scalar(name, x), x, create_graph=True)
    (h,) = torch.autograd.grad((g * direction()).sum(), x, create_graph=True)
    (expected,) = torch.autograd.grad((h * direction()).sum(), x)
    with fwAD.dual_level():
        y = scalar(name, fwAD.make_dual(x, direction()))
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        (h,) = torch.autograd.grad((tangent(g) * direction()).sum(), x)
    close(h, expected)


# --- situations, as PyTorch has them --------------------------------------------------------------
@pytest.mark.parametrize("name", written.cases)
def test_as_pytorch(name: str) -> None:
    found = written.cases.run(torch, name)
    assert as_stored(found) == STORED["cases"][name]
    if LIVE:
        assert found == written.cases.run(oracle(), name)


def test_levels() -> None:
    with pytest.raises(RuntimeError, match="no level exists"):
        fwAD.make_dual(torch.ones(1), torch.ones(1))
    with pytest.raises(RuntimeError, match=r"Dual level must be a positive number\."):
        fwAD.exit_dual_level()
    x = torch.ones(1)
    assert fwAD.unpack_dual(x) == (x, None)
    assert fwAD.enter_dual_level() == 0
    with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        fwAD.enter_dual_level()
    assert fwAD.exit_dual_level(level=0) is None
    with fwAD.dual_level() as level:
        assert level == 0


def test_tangents_end_with_their_level() -> None:
    with fwAD.dual_level():
        d = fwAD.make_dual(torch.ones(2), torch.ones(2))
        y = d * 2
        assert "tangent" in repr(y)
    assert repr(y) == "tensor([2., 2.])" and tangent(y) is None
    with fwAD.dual_level():
        assert tangent(d) is None and tangent(d * 2) is None
        again = fwAD.make_dual(d, torch.ones(2))
        assert tangent(again * y).tolist() == [2.0, 2.0]


def test_a_level_ends_when_its_block_raises() -> None:
    with pytest.raises(ZeroDivisionError), fwAD.dual_level():
        raise ZeroDivisionError
    assert stack.tangents == 0


def test_levels_cross_other_modes() -> None:
    """A level may begin inside a mode and end outside it."""
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        fwAD.enter_dual_level()
    d = fwAD.make_dual(x, torch.ones(2))
    assert torch.is_grad_enabled() and (d * 2).requires_grad
    with torch.no_grad():
        fwAD.exit_dual_level()
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_decorators() -> None:
    @fwAD.dual_level()
    def slope(x: float) -> float:
        d = fwAD.make_dual(torch.tensor(x), torch.tensor(1.0))
        return float(tangent(d * d))

    assert [slope(3.0), slope(4.0)] == [6.0, 8.0]

    @fwAD.dual_level()
    async def later() -> float:
        await asyncio.sleep(0)
        return float(tangent(fwAD.make_dual(torch.tensor(2.0), torch.tensor(1.0)) ** 3))

    assert asyncio.run(later()) == 12.0


def test_switched_off() -> None:
    with fwAD.dual_level():
        d = fwAD.make_dual(torch.ones(2), torch.ones(2))
        with fwAD._set_fwd_grad_enabled(False):
            assert not fwAD._is_fwd_grad_enabled()
            assert tangent(d) is None and tangent(d * 2) is None
            with fwAD._set_fwd_grad_enabled(True):
                assert tangent(d * 2).tolist() == [2.0, 2.0]
        assert fwAD._is_fwd_grad_enabled()


def test_threads_have_levels_of_their_own() -> None:
    wait = threading.Barrier(4)
    found: list[float] = []

    def work(k: int) -> None:
        with fwAD.dual_level():
            d = fwAD.make_dual(torch.tensor(float(k)), torch.tensor(1.0))
            wait.wait()
            found.append(float(tangent(d * d)))
            wait.wait()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0.0, 2.0, 4.0, 6.0]


def test_threads_may_share_a_level() -> None:
    found: list[Any] = []
    with fwAD.dual_level():
        d = fwAD.make_dual(torch.ones(2), torch.ones(2))

        def work() -> None:
            other = fwAD.make_dual(torch.ones(2), torch.ones(2))
            found.append(tangent(d * other).tolist())

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found == [[2.0, 2.0]]


def test_nothing_is_kept() -> None:
    """Tangents die with their tensors, and with their level, without the collector."""
    gc.disable()
    try:
        x = torch.ones(2, requires_grad=True)
        with fwAD.dual_level():
            d = fwAD.make_dual(x, torch.ones(2))
            y = (d.exp() * d)[0]
            gone = weakref.ref(tangent(y * 2))
            assert gone() is None
            kept = weakref.ref(tangent(y))
            assert kept() is not None
            level = d._tangent.level
            for _ in range(100):
                y = y + 1
            assert len(level.owners) < 100
        assert kept() is None
    finally:
        gc.enable()


def test_operations_without_duals_are_as_ever() -> None:
    with fwAD.dual_level():
        x = torch.ones(2, requires_grad=True)
        y = (x * 3 + x[0]).sum()
        assert tangent(y) is None and y.grad_fn.name() == "SumBackward0"
        y.backward()
    assert x.grad.tolist() == [5.0, 3.0]


def test_helper() -> None:
    def f(a: Any, b: Any) -> Any:
        return a * b, torch.ones(2)

    a, b = torch.tensor([2.0, 3.0]), torch.tensor([4.0, 5.0])
    values, found = fwAD.derivative_along(f, (a, b), (torch.ones(2), torch.zeros(2)))
    assert [v.tolist() for v in values] == [[8.0, 15.0], [1.0, 1.0]]
    assert [t.tolist() for t in found] == [[4.0, 5.0], [0.0, 0.0]]


def test_saved_tensor_hooks_keep_tangents() -> None:
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), torch.tensor)
    with fwAD.dual_level(), hooks:
        d = fwAD.make_dual(x, torch.ones(2))
        (g,) = torch.autograd.grad((d * d * d).sum(), x)
        assert g.tolist() == [12.0, 27.0]


def test_writing_a_value_into_itself() -> None:
    """PyTorch's tangent of `x.mul_(x)` reads what it has just written."""
    with fwAD.dual_level():
        d = fwAD.make_dual(torch.tensor([2.0, 3.0]), torch.tensor([1.0, 10.0]))
        d.mul_(d)
        assert tangent(d).tolist() == [4.0, 60.0]


def test_jvp_of_none_is_refused() -> None:
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return None

    with fwAD.dual_level():
        d = fwAD.make_dual(torch.ones(1), torch.ones(1))
        with pytest.raises(RuntimeError, match="Expected both tensor and its forward grad"):
            Nothing.apply(d)


def test_a_module_along_its_parameters() -> None:
    """The way of PyTorch's tutorial: duals in place of a module's parameters."""
    torch.manual_seed(0)
    model = torch.nn.Linear(5, 5)
    x = torch.randn(16, 5)
    params = dict(model.named_parameters())
    along = {name: torch.rand_like(p) for name, p in params.items()}
    with fwAD.dual_level():
        for name, p in params.items():
            delattr(model, name)
            setattr(model, name, fwAD.make_dual(p, along[name]))
        found = tangent(model(x))
    close(found, x @ along["weight"].t() + along["bias"], 1e-5)


# --- random programs ------------------------------------------------------------------------------
@pytest.mark.parametrize("first", range(0, len(PROGRAMS), CHUNK))
def test_stored_programs(first: int) -> None:
    for seed in range(first, min(first + CHUNK, len(PROGRAMS))):
        ours = as_stored(rounded(dual_programs.run(torch, seed)))
        assert ours == PROGRAMS[seed], f"program {seed}"


@pytest.mark.parametrize("first", range(5000, 5200, CHUNK))
def test_tangents_of_programs_are_differences(first: int) -> None:
    h = 1e-6
    for seed in range(first, first + CHUNK):
        ups, downs, here = (dual_programs.shifted(torch, seed, s) for s in (h, -h, 0.0))
        for up, down, seen in zip(ups, downs, here, strict=True):
            if isinstance(seen[0], str):  # an error
                continue
            _, value, _, t = seen
            slope = (np.array(up[1]) - np.array(down[1])) / (2 * h)
            found = np.zeros(len(value)) if t is None else np.array(t)
            scale = 1e-5 * (1 + np.abs(slope).max(initial=0))
            np.testing.assert_allclose(found, slope, atol=scale, err_msg=f"program {seed}")


if LIVE:

    @pytest.mark.parametrize("first", range(20_000, 20_200, CHUNK))
    @pytest.mark.parametrize("recorded", [False, True])
    def test_live_programs(first: int, recorded: bool) -> None:
        library = oracle()
        for seed in range(first, first + CHUNK):
            ours = rounded(dual_programs.run(torch, seed, recorded))
            assert ours == rounded(dual_programs.run(library, seed, recorded)), seed
