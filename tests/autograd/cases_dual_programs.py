"""Random programs of duals: views, in-place writes, ops and detaching in a level of forward mode.

`run(lib, seed)` is like that of `programs`, and tells the tangents too: of all values, and of the
gradients of the sum of their squares. `shifted` and `nested` run the same program on values moved
along a direction, and inside a second level: the one's difference is the other's tangent.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable
from typing import Any

from tests.harness import rounded
from tests.laws import cases_programs as programs

__all__ = ["nested", "results", "run", "shifted"]

SEEDS = range(250)

KINDS = ("leaf", "view", "view", "view", "op", "op", "write", "write", "write", "detach", "look")


def run(lib: Any, seed: int, recorded: bool = True) -> list[Any]:
    """What the program of `seed` does: a list of plain Python values."""
    fw = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
    with fw.dual_level():
        return program(lib, fw, random.Random(seed), recorded, fw.make_dual, observer(fw), True)


def shifted(
    lib: Any, seed: int, h: float, second: bool = False, recorded: bool = False
) -> list[Any]:
    """The program of `seed`, less what it detaches, on duals moved by `h` along their tangents;
    for `second` derivatives, along another direction, on which the tangents depend too."""
    fw = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
    other = random.Random(-seed - 1)

    def moved(t: Any, s: Any) -> Any:
        if not second:
            return fw.make_dual(t + h * s, s)
        u, w = drawn(lib, other, tuple(t.shape)), drawn(lib, other, tuple(t.shape))
        with lib.no_grad():  # in place: a leaf stays a leaf
            t.add_(u, alpha=h)
        return fw.make_dual(t, s + h * w)

    with fw.dual_level():
        return program(lib, fw, random.Random(seed), recorded, moved, observer(fw), False)


def nested(lib: Any, seed: int, recorded: bool) -> list[Any]:
    """The same program in two levels: [shape, value, version, tangent in the outer level, tangent
    in the inner, and that one's tangent in the outer] of each value."""
    fw = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
    other = random.Random(-seed - 1)
    outer = fw.enter_jvp_level()
    inner = fw.enter_jvp_level()

    def dressed(t: Any, s: Any) -> Any:
        u, w = drawn(lib, other, tuple(t.shape)), drawn(lib, other, tuple(t.shape))
        return fw.dual_at(fw.dual_at(t, outer, u), inner, fw.dual_at(s, outer, w))

    def tangents(t: Any) -> list[Any]:
        fw.primal_at(t, inner)  # it may be a view that may not be used any more
        s = fw.tangent_at(t, inner)
        found = (fw.tangent_at(t, outer), s, None if s is None else fw.tangent_at(s, outer))
        return [None if r is None else numbers(r) for r in found]

    try:
        return program(lib, fw, random.Random(seed), recorded, dressed, tangents, False)
    finally:
        inner.close()
        outer.close()


def drawn(lib: Any, rng: random.Random, shape: tuple[int, ...]) -> Any:
    n = 1
    for s in shape:
        n *= s
    values = [round(rng.uniform(-2, 2), 3) for _ in range(n)]
    return lib.tensor(values, dtype=lib.float64).reshape(shape).clone()


def program(
    lib: Any, fw: Any, rng: random.Random, recorded: bool, dress: Callable[[Any, Any], Any],
    tangents: Callable[[Any], list[Any]], detaching: bool,
) -> list[Any]:  # fmt: skip
    """Draw and run a program. `dress` makes a dual of a value and a direction, `tangents` tells
    what there is to see of one."""
    pool: list[Any] = []
    leaves: list[Any] = []
    seen: list[Any] = []

    def observe(t: Any) -> list[Any]:
        try:
            found = tangents(t)
        except RuntimeError as error:  # a view that may not be used any more
            return ["error", str(error)[:40]]
        return [list(t.shape), numbers(t), t._version, *found]

    def leaf() -> None:
        shape = rng.choice(programs.SHAPES)
        t, s = drawn(lib, rng, shape), drawn(lib, rng, shape)
        asks, dual, moved = rng.random() < 0.4, rng.random() < 0.6, rng.random() < 0.5
        if asks and recorded:
            leaves.append(t.requires_grad_())
        if moved:
            t = t * 1
        pool.append(dress(t, s) if dual else t)

    leaf()
    leaf()
    for _ in range(12):
        kind = rng.choice(KINDS)
        a, b = rng.choice(pool), rng.choice(pool)
        dice = [rng.random() for _ in range(4)]
        try:
            if kind == "leaf":
                leaf()
                continue
            if kind == "look":
                seen.append(observe(a))
                continue
            if kind == "detach" and not detaching:
                continue
            if kind == "write":
                b = b.clone()  # PyTorch's tangent of `a.mul_(a)` is wrong
            if dice[0] < 0.1:
                with lib.no_grad():
                    made = programs.step(lib, kind, a, b, dice[1:])
            else:
                made = programs.step(lib, kind, a, b, dice[1:])
        except (RuntimeError, IndexError) as error:
            seen.append(["error", type(error).__name__, str(error)[:40]])
            continue
        if made is not None:
            pool.extend(made)
    for t in pool:
        seen.append(observe(t))
    total = None
    for t in pool:
        try:
            part = (t * t).sum()
        except RuntimeError as error:
            seen.append(["use", str(error)[:40]])
            continue
        total = part if total is None else total + part
    if total is not None and total.requires_grad:
        try:
            found = lib.autograd.grad(total, leaves, allow_unused=True)
        except RuntimeError:
            # which of two faults is met first is not compared
            return [*seen, "backward failed"]
        seen.append([None if g is None else observe(g)[3:] for g in found])
    return seen


def observer(fw: Any) -> Callable[[Any], list[Any]]:
    """What a level shows of a value: its tangent."""

    def tangents(t: Any) -> list[Any]:
        tangent = fw.unpack_dual(t).tangent
        return [None if tangent is None else numbers(tangent)]

    return tangents


def numbers(t: Any) -> list[float]:
    found: list[float] = t.detach().reshape(-1).tolist()
    return found


def results(lib: Any) -> Any:
    return [rounded(run(lib, seed)) for seed in SEEDS]
