"""`torch.func`: situations and nestings as PyTorch has them, and laws that hold between transforms.

What PyTorch does is stored; where it is installed it is asked again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch
from rushlight.func import (
    debug_unwrap,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)
from tests.func import cases_nestings as nestings
from tests.func.cases_transforms import X, alike, attempt, cases, row
from tests.harness import LIVE, pytorch, stored

Fn = Callable[..., Any]
STORED = stored("func/transforms")
NESTINGS = stored("func/nestings")


# --- as PyTorch -----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", cases)
def test_as_pytorch(name: str) -> None:
    found = cases.run(torch, name)
    assert alike(found, STORED[name]), f"{found}\n{STORED[name]}"
    if LIVE:
        assert alike(found, cases.run(pytorch(), name))


@pytest.mark.parametrize("function", nestings.FUNCTIONS)
def test_nestings(function: str) -> None:
    for nesting in nestings.NESTINGS:
        if not nestings.is_wrong(function, nesting):
            found = nestings.run(torch, function, nesting)
            want = NESTINGS[f"{function} | {nesting}"]
            assert alike(found, want), f"{nesting}: {found}\n{want}"


@pytest.mark.parametrize("function", nestings.FUNCTIONS)
def test_nestings_with_pytorch_itself(function: str) -> None:
    """The same, where the stored answers could be out of date."""
    if not LIVE:
        return
    for nesting in list(nestings.NESTINGS)[::5]:
        if not nestings.is_wrong(function, nesting):
            found = nestings.run(torch, function, nesting)
            assert alike(found, nestings.run(pytorch(), function, nesting)), nesting


def test_signatures_are_pytorchs() -> None:
    if not LIVE:
        return
    import inspect

    for name in torch.func.__all__:
        ours = inspect.signature(getattr(torch.func, name))
        theirs = inspect.signature(getattr(pytorch().func, name))
        assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
            (p.name, p.kind, p.default) for p in theirs.parameters.values()
        ], name


# --- laws -----------------------------------------------------------------------------------------
SMOOTH = [f for f in nestings.FUNCTIONS if f != "quiet part"]


@pytest.mark.parametrize("function", SMOOTH)
def test_every_way_to_second_derivatives_gives_the_same(function: str) -> None:
    x = torch.tensor(nestings.ROWS[0], dtype=torch.float64)
    f = nestings.scalar(torch, nestings.FUNCTIONS[function](torch))
    want = jacrev(jacrev(f))(x)
    for way in (hessian, lambda f: jacfwd(jacfwd(f)), lambda f: jacrev(jacfwd(f)),
                lambda f: jacfwd(grad(f)), lambda f: jacrev(grad(f))):  # fmt: skip
        assert torch.allclose(way(f)(x), want, 1e-6, 1e-8)
    assert torch.allclose(want, want.T, 1e-6, 1e-8)


@pytest.mark.parametrize("function", SMOOTH)
def test_jvp_and_linearize_and_jacobians_agree(function: str) -> None:
    x = torch.tensor(nestings.ROWS[0], dtype=torch.float64)
    along = torch.tensor([0.3, -0.7, 1.1], dtype=torch.float64)
    f = nestings.scalar(torch, nestings.FUNCTIONS[function](torch))
    slope = jvp(f, (x,), (along,))[1]
    for other in (linearize(f, x)[1](along), jacrev(f)(x) @ along, jacfwd(f)(x) @ along,
                  grad(f)(x) @ along):  # fmt: skip
        assert torch.allclose(other, slope, 1e-6, 1e-8)


@pytest.mark.parametrize("function", nestings.FUNCTIONS)
@pytest.mark.parametrize("way", [grad, hessian, jacfwd, jacrev])
def test_vmap_is_a_loop(function: str, way: Any) -> None:
    x = torch.tensor(nestings.ROWS, dtype=torch.float64)
    f = way(nestings.scalar(torch, nestings.FUNCTIONS[function](torch)))
    want = torch.stack([f(r) for r in x])
    assert torch.allclose(vmap(f)(x), want, 1e-6, 1e-8)


# --- better than PyTorch, without breaking what works ---------------------------------------------
def test_keyword_arguments_of_jacobians() -> None:
    x = row(torch)
    assert torch.equal(jacrev(lambda x, k: x * k)(x, k=3), torch.eye(3) * 3)
    assert torch.equal(jacfwd(lambda x, k: x * k)(x, k=3), torch.eye(3) * 3)
    assert torch.equal(hessian(lambda x, k: (x * x).sum() * k)(x, k=2), torch.eye(3) * 4)


def test_jacfwd_counts_arguments_from_the_end() -> None:
    x = row(torch)
    assert torch.equal(jacfwd(lambda a, b: a * b, -1)(x, x), torch.diag(x))


def test_linearize_can_be_differentiated() -> None:
    x = X(torch)
    found = grad(lambda v: (linearize(lambda y: y**2, x)[1](v) ** 2).sum())(x)
    assert torch.allclose(found, 8 * x**3)


def test_a_saved_output_that_is_overwritten_is_noticed() -> None:
    y, pull = vjp(torch.exp, X(torch))
    y.mul_(0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        pull(X(torch))


def test_what_all_members_share_goes_where_out_dims_says() -> None:
    shared = torch.arange(3.0)
    found = vmap(lambda x: shared, out_dims=1)(torch.ones(3, 2))
    assert torch.equal(found, shared[:, None].expand(3, 3))


def test_a_number_beside_chunks() -> None:
    found = vmap(lambda x: (x, 7), out_dims=(0, None), chunk_size=2)(X(torch))
    assert torch.equal(found[0], X(torch))
    assert found[1] == 7


def test_a_batch_that_escaped_is_refused_inside_another() -> None:
    kept: list[Any] = []
    vmap(lambda x: (kept.append(x), x)[1])(X(torch))
    with pytest.raises(RuntimeError, match="may have escaped"):
        vmap(lambda x: x + kept[0])(X(torch))
    for use in (lambda t: t * 2, lambda t: t.sum(), lambda t: t @ t, torch.sin):
        with pytest.raises(RuntimeError, match="may have escaped"):
            use(kept[0])


def test_an_old_style_function_may_be_used() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 5

    assert torch.equal(grad(lambda x: Twice.apply(x).sum())(X(torch)), torch.full((3, 2), 5.0))


# --- memory and threads ---------------------------------------------------------------------------
def test_levels_belong_to_threads() -> None:
    """A transform in one thread is none in another: `backward` may be called there."""
    inside, done = threading.Event(), threading.Event()
    found: list[Any] = []

    def other() -> None:
        inside.wait(10)
        x = torch.ones(2, requires_grad=True)
        (x * 3).sum().backward()
        found.append(x.grad)
        found.append(vmap(lambda r: r.sum())(torch.ones(3, 2)))
        done.set()

    thread = threading.Thread(target=other)
    thread.start()

    def f(x: Any) -> Any:
        inside.set()
        assert done.wait(10)
        return (x * x).sum()

    g = grad(f)(torch.ones(2))
    thread.join()
    assert torch.equal(g, torch.full((2,), 2.0))
    assert torch.equal(found[0], torch.full((2,), 3.0))
    assert torch.equal(found[1], torch.full((3,), 2.0))


def test_the_graph_of_a_gradient_is_freed() -> None:
    import gc
    import weakref

    alive: list[Any] = []

    def f(x: Any) -> Any:
        y = x * 2
        alive.append(weakref.ref(y))
        return (y * y).sum()

    gc.disable()
    try:
        for way in (grad(f), jacrev(f), vmap(grad(f)), hessian(f)):
            way(torch.ones(3, 2))
        assert not any(ref() is not None for ref in alive)
    finally:
        gc.enable()


def test_debug_unwrap() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append((debug_unwrap(x), debug_unwrap(x, recurse=False)))
        return x.sum()

    x = X(torch)
    vmap(f)(x)
    assert torch.equal(seen[0][0], x)
    vmap(vmap(f))(x[None])
    assert seen[1][0].shape == (1, 3, 2)
    assert seen[1][1].shape == (3, 2)
    assert debug_unwrap(x) is x


def test_errors_say_what_to_do() -> None:
    said = [
        attempt(torch, lambda: vmap(lambda x: x if x.sum() > 0 else -x)(X(torch))),
        attempt(torch, lambda: vmap(lambda x: x[x > 1])(X(torch))),
    ]
    assert [s[1] for s in said] == ["RuntimeError", "RuntimeError"]
    with pytest.raises(RuntimeError, match="torch.where"):
        vmap(lambda x: x if x.sum() > 0 else -x)(X(torch))
    with pytest.raises(RuntimeError, match="new_zeros"):
        vmap(lambda x: torch.zeros(2).copy_(x))(X(torch))
