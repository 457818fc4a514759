"""Levels of forward mode inside one another, and beside backward: derivatives of any order, with no
two taken for one.

Laws, all in float64: every op of the table and random programs against differences of what one
level computes; the functions of cases_forward_ad.py in each nesting against backward alone.
"""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rushlight as torch
import rushlight.autograd.forward_ad as fwAD
from rushlight.autograd.forward_ad import (
    derivative_along,
    dual_at,
    enter_jvp_level,
    primal_at,
    tangent_at,
)
from rushlight.core.grad_mode import grad_enabled
from rushlight.core.graph import wrap
from rushlight.core.record import apply
from rushlight.core.transforms.forward_ad import disable_forward_ad, muted, seeing_beneath
from rushlight.core.transforms.tangents import levels_of, limit
from tests.autograd import cases_dual_programs as dual_programs
from tests.autograd.test_forward_ad import (
    SECOND,
    SMOOTH,
    close,
    matrix,
    nothing_left,
    scalar,
    smooth,
)
from tests.laws.test_laws import directions, is_float, listed, shifted

__all__ = ["nothing_left"]  # a fixture: a test leaves no level open

Fn = Callable[[Any], Any]
CHUNK = 50


def of(x: Any) -> float:
    """The number in a tensor."""
    found: float = x.item()
    return found


def number(x: float) -> Any:
    return torch.tensor(x, dtype=torch.float64)


def d(f: Fn, along: Any = None) -> Fn:
    """The derivative of `f`, forward, along a direction (by default, ones)."""
    return lambda x: derivative_along(f, (x,), (torch.ones_like(x) if along is None else along,))[1]


def grad(f: Fn, along: Any = None) -> Fn:
    """The derivative of a scalar `f`, backward; with a direction, its product with that."""

    def slope(x: Any) -> Any:
        z = x.view_as(x)
        z = z if z.requires_grad else z.requires_grad_()
        (g,) = torch.autograd.grad(f(z), z, create_graph=True)
        return g if along is None else (g * along).sum()

    return slope


# --- nestings -------------------------------------------------------------------------------------
NESTINGS: dict[str, Fn] = {
    "jj": lambda f: d(d(f)), "jg": lambda f: d(grad(f)), "gj": lambda f: grad(d(f)),
    "jjj": lambda f: d(d(d(f))), "jgj": lambda f: d(grad(d(f))), "gjg": lambda f: grad(d(grad(f))),
    "jjg": lambda f: d(d(grad(f))), "gjj": lambda f: grad(d(d(f))),
    "ggj": lambda f: grad(grad(d(f))), "jgg": lambda f: d(grad(grad(f))),
    "jgjg": lambda f: d(grad(d(grad(f)))), "gjjg": lambda f: grad(d(d(grad(f)))),
    "jjjj": lambda f: d(d(d(d(f)))),
}  # fmt: skip


@pytest.mark.parametrize("nesting", NESTINGS)
def test_powers(nesting: str) -> None:
    expected = 1.0
    for k in range(len(nesting)):
        expected *= 6 - k
    expected *= 1.1 ** (6 - len(nesting))
    assert of(NESTINGS[nesting](lambda x: x**6)(number(1.1))) == pytest.approx(expected)
    assert of(NESTINGS[nesting](lambda x: x * (x * x).square() * x)(number(1.1))) == (
        pytest.approx(expected)
    )


@pytest.mark.parametrize("both", [(d, d), (d, grad), (grad, d)])
def test_perturbations_are_not_confused(both: tuple[Any, Any]) -> None:
    """The examples with which Siskind and Pearlmutter made the trap known, and some more."""
    outer, inner = both
    one, three = number(1.0), number(3.0)
    assert of(outer(lambda x: x * inner(lambda y: x + y)(one))(one)) == 1.0
    assert of(outer(lambda x: x * inner(lambda y: x * y)(one))(three)) == 6.0
    assert of(outer(lambda x: inner(lambda y: x * y * y)(x))(three)) == 12.0
    assert of(outer(lambda x: inner(lambda y: y * y)(three) * x)(one)) == 6.0
    assert of(outer(lambda x: x * x + 0 * inner(lambda y: x * y)(x))(three)) == 6.0
    # the inner function does not depend on its own variable
    assert of(outer(lambda x: x * d(lambda y: x * x)(one))(three)) == 0.0


def test_functions_that_return_functions() -> None:
    """A closure made in a level and called after it: what it holds is the outer level's only."""
    kept: list[Any] = []

    def shift(x: Any) -> Any:
        return d(lambda y: kept.append(lambda z: x * y * z) or x * y)(number(2.0))  # type: ignore[func-returns-value]

    def f(x: Any) -> Any:
        slope = shift(x)
        (late,) = kept
        return slope * late(x)  # x * (2 x^2)

    assert of(d(f)(number(3.0))) == 54.0


def test_all_about_a_dual_of_duals() -> None:
    """x = 3 + a + 2b + 5ab, where a belongs to the outer level and b to the inner: its cube."""
    outer = enter_jvp_level()
    inner = enter_jvp_level()
    assert outer.depth < inner.depth
    x = dual_at(
        dual_at(number(3.0), outer, number(1.0)), inner, dual_at(number(2.0), outer, number(5.0))
    )
    y = x * x * x
    assert of(y) == 27.0
    assert of(tangent_at(y, outer)) == 27.0
    s = tangent_at(y, inner)
    assert of(s) == 54.0
    assert of(tangent_at(s, outer)) == 27.0 * 5 + 6 * 3 * 2
    assert tangent_at(tangent_at(y, outer), inner) is None  # a level's tangents are beneath it
    assert repr(y) == (
        "tensor(27., dtype=torch.float64, tangent=54.0)"
    )  # the innermost, as a 0-d tensor prints itself
    plain = primal_at(y, inner)
    assert tangent_at(plain, inner) is None and of(tangent_at(plain, outer)) == 27.0
    assert plain.data_ptr() == y.data_ptr() and plain._is_view()
    inner.close()
    assert tangent_at(y, inner) is None and of(tangent_at(y, outer)) == 27.0
    assert of(tangent_at(plain * y, outer)) == 2 * 27.0 * 27.0
    outer.close()
    assert y._tangent is None and plain._tangent is None and x._tangent is None


# --- every op -------------------------------------------------------------------------------------
H = 1e-5


def twice_pushed(op: Any, xs: Any, us: Any, ts: Any, ws: Any, asks: bool) -> list[Any]:
    """For each result of an op: value, tangents in two levels, and the inner one's in the outer.
    The inputs move along `us` in the outer level; along `ts`, which move along `ws`, in the inner.
    """
    outer = enter_jvp_level()
    inner = enter_jvp_level()
    try:
        given = []
        for x, u, t, w in zip(xs, us, ts, ws, strict=True):
            if not isinstance(x, np.ndarray):
                given.append(x)
                continue
            y = wrap(x.copy())
            y._requires_grad = asks and is_float(x)
            if u is not None:
                s = dual_at(wrap(t.copy()), outer, wrap(w.copy()))
                y = dual_at(dual_at(y, outer, wrap(u.copy())), inner, s)
            given.append(y)
        found = []
        for y in listed(apply(op, *given)):
            s = tangent_at(y, inner)
            ts_found = (tangent_at(y, outer), s, None if s is None else tangent_at(s, outer))
            found.append((y._array, *[None if t is None else t._array for t in ts_found]))
        return found
    finally:
        inner.close()
        outer.close()


def pushed_raw(op: Any, xs: Any, ts: Any) -> list[Any]:
    return [np.asarray(t) for t in listed(op.jvp(tuple(ts), xs, op.forward(*xs)))]


@pytest.mark.parametrize("name", SMOOTH)
def test_the_jvp_of_the_jvp_of_every_op(name: str) -> None:
    for op, xs in smooth(name):
        us, ts, ws = directions(xs, 2), directions(xs, 3), directions(xs, 4)
        up, down = (pushed_raw(op, shifted(xs, us, h), ts) for h in (H, -H))
        along_us, along_ts, along_ws = (pushed_raw(op, xs, s) for s in (us, ts, ws))
        for asks in (False, True):
            for k, (y, *found) in enumerate(twice_pushed(op, xs, us, ts, ws, asks)):
                if not is_float(y):
                    assert found == [None, None, None]
                    continue
                mixed = (up[k] - down[k]) / (2 * H) + along_ws[k]
                for have, want in zip(found, (along_us[k], along_ts[k], mixed), strict=True):
                    have = np.zeros_like(y) if have is None else have
                    assert have.shape == y.shape and have.dtype == y.dtype
                    scale = 1e-5 * (1 + np.abs(want).max(initial=0))
                    np.testing.assert_allclose(have, np.broadcast_to(want, y.shape), atol=scale)


# --- functions: views, writes in place, everything ------------------------------------------------
def second(name: str, u: Any, w: Any, order: str) -> Any:
    """The second derivative of `scalar`, along two directions, in one of the nestings."""

    def f(x: Any) -> Any:
        return scalar(name, x)

    inner = d(f, u) if order[1] == "j" else grad(f, u)
    outer = d(inner, w) if order[0] == "j" else grad(inner, w)
    return outer(matrix(False))


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives(name: str) -> None:
    u = torch.tensor([[1.0, -0.5, 0.25], [2.0, 0.5, -1.0]], dtype=torch.float64)
    w = torch.tensor([[0.5, 1.5, -1.0], [0.1, -2.0, 1.0]], dtype=torch.float64)
    x = matrix()
    (g,) = torch.autograd.grad(scalar(name, x), x, create_graph=True)
    (h,) = torch.autograd.grad((g * u).sum(), x, allow_unused=True)
    expected = number(0.0) if h is None else (h * w).sum()
    for order in ("jj", "jg", "gj"):
        close(second(name, u, w, order), expected)


@pytest.mark.parametrize(
    "name", ["exp", "softmax", "write to a view", "mm", "chain_", "set a slice", "unbind", "solve"]
)
def test_third_derivatives_in_every_order(name: str) -> None:
    u = torch.tensor([[1.0, -0.5, 0.25], [2.0, 0.5, -1.0]], dtype=torch.float64)

    def f(x: Any) -> Any:
        return scalar(name, x)

    expected = grad(grad(grad(f, u), u), u)(matrix(False)).detach()
    for order in ("jjj", "jjg", "jgj", "gjj", "jgg", "gjg", "ggj"):
        made: Fn = f
        for kind in reversed(order):
            made = d(made, u) if kind == "j" else grad(made, u)
        close(made(matrix(False)), expected)


# --- views and writes in place --------------------------------------------------------------------
def test_a_write_of_an_inner_dual_through_a_view() -> None:
    """The base gets zeros in the inner level; a view made before finds them, in both levels."""

    def f(x: Any) -> Any:
        base = torch.zeros(3, dtype=torch.float64)
        early = base[:2]

        def g(y: Any) -> Any:
            base[0].copy_(x * y * y)
            base[1:].copy_((x * x * y).expand(2))
            return early.sum() * base[2]  # (x y^2 + x^2 y) x^2 y

        return d(g)(number(2.0))

    # d/dy = 3 x^3 y^2 + 2 x^4 y, and of that d/dx = 9 x^2 y^2 + 8 x^3 y
    assert of(d(f)(number(3.0))) == 9 * 9 * 4 + 8 * 27 * 2


def test_a_view_of_an_outer_dual_made_in_an_inner_level() -> None:
    def f(x: Any) -> Any:
        part: list[Any] = []

        def g(y: Any) -> Any:
            part.append(x[0])
            return part[0] * y * y

        slope = d(g)(number(2.0))
        return part[0] * slope  # x0 * 4 x0

    x = torch.tensor([3.0, 1.0], dtype=torch.float64)
    assert derivative_along(f, (x,), (torch.ones_like(x),))[1].item() == 24.0


def test_writing_an_outer_dual_in_an_inner_level() -> None:
    def f(x: Any) -> Any:
        z = x * 1

        def g(y: Any) -> Any:
            z.mul_(x)  # what is not the inner level's keeps no tangent of it
            return z * y

        slope = d(g)(number(2.0))
        return slope + z  # 2 x^2

    assert of(d(f)(number(3.0))) == 12.0
    assert of(d(d(f))(number(3.0))) == 4.0


def test_views_of_several_outputs_turned_and_complex() -> None:
    def f(x: Any) -> Any:
        a, b = torch.stack([x * x, x]).unbind()
        y = torch.stack([a, b, a * b])[None].t_()
        z = torch.complex(y, y * x)
        z.real.mul_(x)
        return torch.view_as_real(z * z).sum()

    x = number(0.7)
    for nesting in ("jj", "jg", "gj"):
        found = NESTINGS[nesting](f)(x)
        h = 1e-5
        expected = (d(f)(x + h) - d(f)(x - h)) / (2 * h)
        close(found, expected, 1e-7)


def test_a_write_writes_the_direction_too() -> None:
    """As in PyTorch; but a value that is its own direction is not mixed up with it."""
    x, t = number(3.0), number(2.0)
    value, slope = derivative_along(lambda y: y.mul_(5.0), (x,), (t,))
    assert slope is t and (of(value), of(t), of(x)) == (15.0, 10.0, 15.0)
    x = number(3.0)
    value, slope = derivative_along(lambda y: y.mul_(y), (x,), (x,))
    assert (of(value), of(slope)) == (9.0, 18.0)


def test_integers_and_what_has_no_derivative() -> None:
    def f(x: Any) -> Any:
        seen: list[Any] = []

        def g(y: Any) -> Any:
            values, places = torch.stack([x, y, x * y]).sort()
            seen.extend([places, y > x, (x * y).floor(), y.long()])
            assert all(not levels_of((t,), limit()) for t in (places, seen[1], seen[3]))
            return values[2] * places[2] + seen[2] * y

        return d(g)(number(2.0))  # values[2] is x y, at place 2; floor(6) y

    assert [of(t) for t in derivative_along(f, (number(3.1),), (number(1.0),))] == [12.2, 2.0]


# --- levels ---------------------------------------------------------------------------------------
def test_a_limit_hides_the_deeper_levels() -> None:
    outer = enter_jvp_level()
    inner = enter_jvp_level()
    x = dual_at(dual_at(number(2.0), outer, number(1.0)), inner, number(1.0))
    with seeing_beneath(grad_enabled(), inner.depth):
        y = x * x
        part = x.view(1)
        assert tangent_at(y, inner) is None and of(tangent_at(y, outer)) == 4.0
        assert not muted() and not fwAD._is_fwd_grad_enabled()
    assert of(tangent_at(part, inner)) == 1.0  # a view is a view, wherever it was made
    with disable_forward_ad(grad_enabled()):
        assert levels_of((x,), limit()) == [] and muted()
        assert tangent_at(x * x, outer) is None
    inner.close()
    outer.close()


@pytest.mark.parametrize("how", ["off", "muted", "inference"])
def test_a_level_can_be_seen_where_it_was_opened(how: str) -> None:
    """Inside code that may not see the levels outside: neither may the new one's."""

    def hidden(x: Any) -> Any:
        if how == "inference":
            with torch.inference_mode():
                return d(d(lambda y: d(lambda z: x * y * y * z)(y)))(x)  # 6 x y
        if how == "off":
            with fwAD._set_fwd_grad_enabled(False):
                return d(d(lambda y: d(lambda z: x * y * y * z)(y)))(x)
        with disable_forward_ad(True):
            return d(d(lambda y: d(lambda z: x * y * y * z)(y)))(x)

    assert of(hidden(number(3.0))) == 6.0  # d2/dy2 of x y^2, at x = 3
    value, slope = derivative_along(hidden, (number(3.0),), (number(1.0),))
    assert (of(value), of(slope)) == (6.0, 0.0)


def test_deep_where_others_are_hidden() -> None:
    def chain(k: int) -> Fn:
        return (lambda x: x.exp()) if k == 0 else d(chain(k - 1))

    def f(x: Any) -> Any:
        with disable_forward_ad(True):
            return chain(6)(number(0.0)) * x

    assert [of(t) for t in derivative_along(f, (number(2.0),), (number(1.0),))] == [2.0, 0.0]


def test_levels_close_in_any_order() -> None:
    a, b, c = (enter_jvp_level() for _ in range(3))
    assert a.depth < b.depth < c.depth
    x = number(2.0)
    for level in (a, b, c):
        x = dual_at(x, level, number(1.0))
    y = x * x
    b.close()
    b.close()
    assert of(tangent_at(y, a)) == of(tangent_at(y, c)) == 4.0
    assert of(tangent_at(tangent_at(y, c), a)) == 2.0
    assert tangent_at(y, b) is None
    again = enter_jvp_level()
    assert again.depth > c.depth
    z = dual_at(y, again, number(1.0))
    assert of(tangent_at(tangent_at(z * z, again), c)) == 8.0
    a.close()
    assert of(tangent_at(y * y, c)) == 32.0
    again.close()
    c.close()
    assert y._tangent is None


def test_a_level_ends_when_its_function_raises() -> None:
    def wrong(x: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        d(d(wrong))(number(1.0))


def test_the_public_levels_among_the_nested() -> None:
    level = enter_jvp_level()
    with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
        fwAD.enter_dual_level()
    x = dual_at(number(3.0), level, number(1.0))
    with pytest.raises(RuntimeError, match="already has a forward gradient at the same level 0"):
        fwAD.make_dual(x, number(1.0))
    assert of(fwAD.unpack_dual(x * x).tangent) == 6.0
    inner = enter_jvp_level()
    y = fwAD.make_dual(x, number(2.0))
    primal, t = fwAD.unpack_dual(y * y)
    assert of(t) == 12.0 and of(tangent_at(t, level)) == 4.0
    assert of(tangent_at(primal, level)) == 6.0
    inner.close()
    level.close()
    with fwAD.dual_level():
        x = fwAD.make_dual(number(3.0), number(1.0))
        slope = d(lambda y: x * y * y)(x)
        assert of(fwAD.unpack_dual(slope).tangent) == 12.0
        assert of(fwAD.unpack_dual(x).tangent) == 1.0


def test_threads_nest_for_themselves() -> None:
    wait = threading.Barrier(3)
    found: list[float] = []

    def work(k: int) -> None:
        def cube(x: Any) -> Any:
            wait.wait()
            return x * x * x * k

        found.append(of(d(d(cube))(number(2.0))))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0.0, 12.0, 24.0]


def test_a_thread_inside_a_level() -> None:
    """It sees the level, may open one inside, and closes that without ending the other."""
    found: list[Any] = []

    def f(x: Any) -> Any:
        def work() -> None:
            found.append(d(lambda y: x * y * y)(x))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return found[0] * x  # 2 x^2 x

    assert of(d(f)(number(2.0))) == 24.0


def test_nothing_is_kept() -> None:
    gc.disable()
    try:
        refs: list[Any] = []
        x = torch.ones(2, dtype=torch.float64, requires_grad=True)

        def f(y: Any) -> Any:
            def g(z: Any) -> Any:
                made = (z * y).sin()[0]
                refs.append(weakref.ref(tangent_at(made, made._tangent.level)))
                refs.append(weakref.ref(made))
                return made

            return derivative_along(g, (y,), (y,))[1]

        value, slope = derivative_along(f, (x,), (torch.ones_like(x),))
        slope.backward()
        assert x.grad is not None
        del value, slope
        assert [r() for r in refs] == [None] * len(refs)
    finally:
        gc.enable()


# --- gradients ------------------------------------------------------------------------------------
def test_gradients_in_two_levels() -> None:
    """A graph made in both levels is run in both: saved values keep all their tangents."""
    outer = enter_jvp_level()
    inner = enter_jvp_level()
    x = number(2.0).requires_grad_()
    y = dual_at(dual_at(x, outer, number(1.0)), inner, number(1.0))
    z = y.exp() * y
    z = z.mul_(y)  # x^2 e^x
    (g,) = torch.autograd.grad(z, x)
    s = tangent_at(g, inner)
    e = of(number(2.0).exp())
    assert of(g) == pytest.approx(8 * e)
    assert of(tangent_at(g, outer)) == of(s) == pytest.approx(14 * e)
    assert of(tangent_at(s, outer)) == pytest.approx(22 * e)
    inner.close()
    (h,) = torch.autograd.grad(y * y * y, x)
    assert of(tangent_at(h, outer)) == 12.0
    outer.close()


def test_tangents_stay_differentiable_when_their_level_is_gone() -> None:
    x = number(2.0).requires_grad_()
    slope = d(d(lambda y: y**4))(x)
    (g,) = torch.autograd.grad(slope, x, create_graph=True)
    (h,) = torch.autograd.grad(g, x)
    assert (of(slope), of(g), of(h)) == (48.0, 48.0, 24.0)


def test_without_grad() -> None:
    x = number(2.0).requires_grad_()
    with torch.no_grad():
        slope = d(d(lambda y: y**4))(x)
    assert of(slope) == 48.0 and not slope.requires_grad


# --- custom functions -----------------------------------------------------------------------------
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_forward(x)
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * t

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Exp(torch.autograd.Function):
    """Its `jvp` reads the output, and calls for a derivative of its own."""

    @staticmethod
    def forward(x: Any) -> Any:
        return d(lambda z: z.exp())(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_forward(output, inputs[0])

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        y, x = ctx.saved_tensors
        return d(lambda z: z.exp())(x) * t * y / y


@pytest.mark.parametrize("nesting", ["jj", "jg", "gj", "jjj", "jgj", "gjj", "jjg"])
def test_a_custom_function_in_levels(nesting: str) -> None:
    found = NESTINGS[nesting](lambda x: Cube.apply(x) * x * x * x)(number(1.1))
    expected = NESTINGS[nesting](lambda x: x**6)(number(1.1))
    assert of(found) == pytest.approx(of(expected))


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_a_custom_function_that_differentiates(depth: int) -> None:
    f: Fn = lambda x: Exp.apply(x) * 2
    for _ in range(depth):
        f = d(f)
    assert of(f(number(0.5))) == pytest.approx(2 * of(number(0.5).exp()))


class Powers(torch.autograd.Function):
    """What `setup_context` computes has the tangents of the levels beneath too."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x * x, x * x * x, x.long()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[2])
        ctx.slopes = 2 * inputs[0], 3 * output[0]

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return ctx.slopes[0] * t, ctx.slopes[1] * t, None


@pytest.mark.parametrize("nesting", ["jj", "jjj", "jjjj"])
def test_a_custom_function_with_a_context_of_its_own(nesting: str) -> None:
    def f(x: Any) -> Any:
        square, cube, whole = Powers.apply(x)
        return square * cube * whole * x

    found = NESTINGS[nesting](f)(number(2.5))
    assert of(found) == pytest.approx(of(NESTINGS[nesting](lambda x: 2 * x**6)(number(2.5))))


def test_a_custom_function_written_in_place() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t.mul_(2)

    def f(x: Any) -> Any:
        y = x * x
        Double.apply(y)
        return y * x  # 2 x^3

    assert of(d(f)(number(3.0))) == 54.0
    assert of(d(d(f))(number(3.0))) == 36.0


def test_a_custom_view() -> None:
    class Flat(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view(-1)

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t.view(-1)

    def f(x: Any) -> Any:
        y = (x * x).expand(2, 2).clone()
        flat = Flat.apply(y)
        flat[1:3].mul_(x)
        return y.sum()  # 2 x^2 + 2 x^3

    assert of(d(d(f))(number(3.0))) == 4.0 + 36.0


# --- random programs ------------------------------------------------------------------------------
def zeros_or(x: Any, count: int) -> Any:
    return np.zeros(count) if x is None else np.array(x)


def check_program(seed: int, recorded: bool) -> None:
    """Tangents in the inner level have for tangents their differences along the outer."""
    h = 1e-5
    ups, downs = (dual_programs.shifted(torch, seed, s, True, recorded) for s in (h, -h))
    for up, down, seen in zip(ups, downs, dual_programs.nested(torch, seed, recorded), strict=True):
        if seen == "backward failed" or (seen and isinstance(seen[0], str)):
            assert up == seen, f"program {seed}"
            continue
        if len(seen) == 6 and isinstance(seen[2], int):
            found = seen[3:]
            pairs = [(up[1], down[1], found[0]), (up[3], down[3], found[2])]
        else:  # gradients, whose values are not told
            pairs = [(a[0], b[0], c[2]) for a, b, c in zip(up, down, seen, strict=True) if c]
        for a, b, have in pairs:
            count = next((len(s) for s in (a, b, have) if s is not None), 0)
            slope = (zeros_or(a, count) - zeros_or(b, count)) / (2 * h)
            scale = 1e-4 * (1 + np.abs(slope).max(initial=0))
            np.testing.assert_allclose(
                zeros_or(have, count), slope, atol=scale, err_msg=f"program {seed}"
            )


@pytest.mark.parametrize("first", range(7000, 7200, CHUNK))
@pytest.mark.parametrize("recorded", [False, True])
def test_programs_in_two_levels(first: int, recorded: bool) -> None:
    for seed in range(first, first + CHUNK):
        check_program(seed, recorded)
