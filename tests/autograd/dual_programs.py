"""Random programs of duals: views, in-place writes, ops and detaching in a level of forward mode.

`run(lib, seed)` is like that of `programs`, and tells the tangents too: of all values, and of the
gradients of the sum of their squares.
"""

from __future__ import annotations

import importlib
import random
from typing import Any

import programs

__all__ = ["run"]

KINDS = ("leaf", "view", "view", "view", "op", "op", "write", "write", "write", "detach", "look")


def run(lib: Any, seed: int, recorded: bool = True) -> list[Any]:
    """What the program of `seed` does: a list of plain Python values."""
    fw = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
    with fw.dual_level():
        return program(lib, fw, random.Random(seed), recorded)


def shifted(lib: Any, seed: int, h: float) -> list[Any]:
    """The values of the program of `seed`, less what it detaches, `h` along the tangents."""
    fw = importlib.import_module(f"{lib.__name__}.autograd.forward_ad")
    with fw.dual_level():
        return program(lib, fw, random.Random(seed), False, h)


def program(
    lib: Any, fw: Any, rng: random.Random, recorded: bool, h: float | None = None
) -> list[Any]:
    pool: list[Any] = []
    leaves: list[Any] = []
    seen: list[Any] = []

    def drawn(shape: tuple[int, ...]) -> Any:
        n = 1
        for s in shape:
            n *= s
        values = [round(rng.uniform(-2, 2), 3) for _ in range(n)]
        return lib.tensor(values, dtype=lib.float64).reshape(shape).clone()

    def leaf() -> None:
        shape = rng.choice(programs.SHAPES)
        t, s = drawn(shape), drawn(shape)
        asks, dual, moved = rng.random() < 0.4, rng.random() < 0.6, rng.random() < 0.5
        if asks and recorded:
            leaves.append(t.requires_grad_())
        if moved:
            t = t * 1
        if h is not None:
            t = t + h * s if dual else t
        pool.append(fw.make_dual(t, s) if dual else t)

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
                seen.append(observe(fw, a))
                continue
            if kind == "detach" and h is not None:
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
        seen.append(observe(fw, t))
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
        seen.append([None if g is None else observe(fw, g)[3:] for g in found])
    return seen


def observe(fw: Any, t: Any) -> list[Any]:
    try:
        tangent = fw.unpack_dual(t).tangent
    except RuntimeError as error:  # a view that may not be used any more
        return ["error", str(error)[:40]]
    return [list(t.shape), numbers(t), t._version, None if tangent is None else numbers(tangent)]


def numbers(t: Any) -> list[float]:
    found: list[float] = t.detach().reshape(-1).tolist()
    return found
