"""Random programs of nested transforms: as PyTorch runs them, and what they taught us.

What PyTorch made of 400 programs is stored, and where it is installed others are run on both.
"""

from __future__ import annotations

from typing import Any

import pytest

import rushlight as torch
from rushlight.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from tests.func import cases_nested_programs as nested_programs
from tests.func.cases_transforms import alike
from tests.harness import LIVE, pytorch, stored

STORED = stored("func/nested_programs")

CHUNK = 40


def differ(ours: Any, theirs: Any) -> bool:
    """Whether two outcomes differ; of errors the kind counts."""
    if theirs[0] == "error":
        return bool(ours[:2] != theirs[:2])
    return not alike(ours, theirs)


@pytest.mark.parametrize("first", range(0, 400, CHUNK))
def test_stored_programs(first: int) -> None:
    for seed in range(first, first + CHUNK):
        theirs = STORED.get(str(seed))
        if theirs is not None:
            ours = nested_programs.run(torch, seed)
            said = f"{seed}\n{nested_programs.text(seed)}\n{ours}\n{theirs}"
            assert not differ(ours, theirs), said


@pytest.mark.parametrize("first", range(1000, 1200, CHUNK))
def test_live_programs(first: int) -> None:
    if not LIVE:
        return
    for seed in range(first, first + CHUNK):
        theirs = nested_programs.run(pytorch(), seed)
        if nested_programs.sound(theirs):
            ours = nested_programs.run(torch, seed)
            said = f"{seed}\n{nested_programs.text(seed)}\n{ours}\n{theirs}"
            assert not differ(ours, theirs), said


# --- what they taught -----------------------------------------------------------------------------
def number(x: float, asks: bool = False) -> Any:
    return torch.tensor(x, dtype=torch.float64, requires_grad=asks)


def vector(*xs: float, asks: bool = False) -> Any:
    return torch.tensor(xs, dtype=torch.float64, requires_grad=asks)


def test_a_tangent_shared_by_the_batch_gets_a_place_for_each() -> None:
    def f(x: Any) -> Any:
        y = x.sin()
        y[0] = 2.0
        return (y * x).sum()

    x = vector(0.5, -1.2, 0.7)
    assert torch.allclose(jacfwd(jacfwd(f))(x), jacrev(jacrev(f))(x))


def test_views_see_that_their_base_became_batched_elsewhere() -> None:
    """A weight with a history is written into a batch; a view of that was made before."""
    w = vector(0.5, -2.0, asks=True)

    def f(x: Any) -> Any:
        y = x.clone()
        head = y[:1]
        y[0] = w[0]
        return (head * 3).sum() + y.sum()

    vmap(f)(torch.zeros(3, 2, dtype=torch.float64)).sum().backward()
    assert torch.equal(w.grad, vector(12.0, 0.0))


def test_a_target_that_joins_a_level_keeps_its_history() -> None:
    """Made from what is outside of `vmap`, then written with what `grad` inside it tracks."""
    w = number(0.3, True)

    def f(x: Any) -> Any:
        y = torch.stack([w, w * 2])
        y.add_(x[:2])
        return (y * y).sum()

    x = vector(1.0, 2.0)
    found = vmap(lambda _: grad(f)(x))(torch.ones(2, 1))
    found.sum().backward()
    assert torch.allclose(found, torch.stack([2 * (x + vector(0.3, 0.6))] * 2))
    assert torch.allclose(w.grad, number(2 * (2 + 4.0)))


def test_a_view_of_a_target_that_joins_a_level() -> None:
    m = torch.arange(9.0, dtype=torch.float64).reshape(3, 3).requires_grad_()

    def f(x: Any) -> Any:
        y = m * 2
        y[1].mul_(x)
        return y.sum()

    x = vector(1.0, 2.0, 3.0)
    found = vmap(lambda _: grad(f)(x))(torch.ones(2, 1))
    assert torch.equal(found, (m[1] * 2).detach().expand(2, 3))
    found.sum().backward()
    assert torch.equal(m.grad[1], vector(4.0, 4.0, 4.0))


def test_recording_is_off_beneath_a_batch_too() -> None:
    """`grad` inside `no_grad` inside `vmap`: nothing outside is told of it."""
    w = vector(0.4, -0.8, 0.3, asks=True)

    def f(x: Any) -> Any:
        with torch.no_grad():
            g = grad(lambda v: v.prod())(w)
        return (g * x).sum()

    assert not vmap(f)(torch.ones(2, 3, dtype=torch.float64)).requires_grad


def test_what_all_members_share_can_be_read() -> None:
    w = vector(0.4, 0.8, 0.3)

    def f(v: Any, x: Any) -> Any:
        return x[v.argmax()] * v.sum() * v.max().item() if v.sum() > 0 else x.sum()

    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    found = vmap(grad(f), (None, 0))(w, x)
    assert torch.equal(found, torch.stack([grad(f)(w, r) for r in x]))


def test_zeros_like_what_all_share_are_shared() -> None:
    def f(w: Any, x: Any) -> Any:
        b = torch.zeros(2, dtype=torch.float64)
        b += torch.zeros_like(w).sum() + w.sum()
        return (b * x).sum()

    x = torch.ones(3, 2, dtype=torch.float64)
    assert torch.equal(
        vmap(grad(f), (None, 0))(vector(1.0, 2.0), x), torch.full((3, 2), 2.0).double()
    )


def test_an_input_of_jvp_may_be_written_with_its_outer_tangent() -> None:
    def f(x: Any) -> Any:
        y = x * x

        def inner(z: Any) -> Any:
            z[1:].sin_()
            return z.sum()

        return (jvp(inner, (y,), (torch.ones_like(y),))[1] * y).sum()

    def g(x: Any) -> Any:  # without writing
        y = x * x
        z = torch.cat([y[:1], y[1:].sin()])
        slope = 1 + y[1:].cos().sum()
        return (slope * z).sum()

    x = vector(0.5, -1.2, 0.7)
    for way in (grad, hessian, jacfwd, jacrev):
        assert torch.allclose(way(f)(x), way(g)(x))


def test_a_captured_tensor_that_is_also_an_input_may_not_be_written() -> None:
    c = vector(1.0, 2.0)
    for way in (
        lambda: grad(lambda x: (c.mul_(2), x.sum())[1])(c),
        lambda: jvp(lambda x: (c.mul_(2), x.sum())[1], (c,), (c,)),
        lambda: jacfwd(lambda x: (c.mul_(2), x.sum())[1])(c),
        lambda: hessian(lambda x: (c.mul_(2), x.sum())[1])(c),
        lambda: grad(lambda x: grad(lambda y: (x.detach(), c.mul_(2), y.sum())[2])(x).sum())(c),
        lambda: grad(lambda x: (vmap(lambda r: r.mul_(2))(c), x.sum())[1])(c * 1),
    ):
        with pytest.raises(RuntimeError, match=r"in-place operation \(aten::mul_.Tensor\)"):
            way()
    assert torch.equal(c, vector(1.0, 2.0))


def test_a_vjp_made_outside_is_differentiated_inside() -> None:
    pull = vjp(lambda x: x**2, vector(1.0, 3.0))[1]
    found = grad(lambda c: (pull(c)[0] ** 2).sum())(vector(1.0, 1.0))
    assert torch.equal(found, vector(8.0, 72.0))
    assert not found.requires_grad


def test_a_write_through_overlapping_views_inside_a_batch() -> None:
    def f(x: Any) -> Any:
        y = x.clone()
        y[1:].fill_(y[2])
        return (y * x).sum()

    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)
    assert torch.equal(vmap(grad(f))(x), torch.stack([grad(f)(r) for r in x]))
