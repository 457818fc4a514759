"""Random programs of views, in-place writes, ops, detaching and modes.

`run(lib, seed)` writes the program of that seed for a library with PyTorch's names, runs it, and
returns everything one can observe: values, versions, flags, node names, gradients and errors. The
same seed gives the same program for every library, whatever happens in it.
"""

from __future__ import annotations

import random
from typing import Any

__all__ = ["run"]

SHAPES = [(2, 3), (3, 2), (6,), (2, 1, 3), (1, 4), (4,)]


def run(lib: Any, seed: int, steps: int = 12) -> list[Any]:
    """What the program of `seed` does: a list of plain Python values."""
    rng = random.Random(seed)
    pool: list[Any] = []
    seen: list[Any] = []

    def leaf() -> None:
        shape = rng.choice(SHAPES)
        n = 1
        for s in shape:
            n *= s
        values = [round(rng.uniform(-2, 2), 3) for _ in range(n)]
        t = lib.tensor(values, dtype=lib.float64).reshape(shape).clone()
        if rng.random() < 0.6:
            t.requires_grad_()
        pool.append(t)

    leaf()
    leaf()
    for _ in range(steps):
        kind = rng.choice(
            [
                "leaf",
                "view",
                "view",
                "view",
                "op",
                "op",
                "write",
                "write",
                "write",
                "detach",
                "look",
            ]
        )
        a, b = rng.choice(pool), rng.choice(pool)
        dice = [rng.random() for _ in range(4)]
        quiet = dice[0] < 0.15
        try:
            if kind == "leaf":
                leaf()
                continue
            if kind == "look":
                seen.append(observe(a))
                continue
            if quiet:
                with lib.no_grad():
                    made = step(lib, kind, a, b, dice[1:])
            else:
                made = step(lib, kind, a, b, dice[1:])
        except (RuntimeError, IndexError) as error:
            seen.append(["error", type(error).__name__, str(error)[:40]])
            continue
        if made is not None:
            pool.extend(made)
    leaves = [
        t for t in pool
        if safe(lambda t=t: t.is_leaf and t.requires_grad) is True and t._base is None
    ]  # fmt: skip
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
            total.backward()
        except RuntimeError:
            # which of two faults is met first, and what was added before, is not compared
            return [*seen, "backward failed"]
    seen.append([None if t.grad is None else numbers(t.grad) for t in leaves])
    return seen


def step(lib: Any, kind: str, a: Any, b: Any, dice: list[float]) -> list[Any] | None:
    if kind == "view":
        return view(a, dice)
    if kind == "op":
        return [op(lib, a, b, dice)]
    if kind == "detach":
        return [a.detach()]
    write(lib, a, b, dice)
    return None


def view(a: Any, dice: list[float]) -> list[Any]:
    which = int(dice[0] * 9)
    last = a.dim() - 1
    if which == 0:
        return [a.view(-1)]
    if which == 1:
        return [a.transpose(0, last)]
    if which == 2:
        return [a[0]] if a.dim() > 0 else [a.unsqueeze(0)]
    if which == 3:
        return [a.unsqueeze(1 if a.dim() else 0)]
    if which == 4:
        return [a.narrow(last, 0, max(1, a.shape[last] - 1))] if a.dim() else [a.view(1)]
    if which == 5:
        return [a[..., ::2]] if a.dim() else [a.unsqueeze(0)]
    if which == 6:
        return list(a.unbind(0))[:2] if a.dim() else [a.view(1)]
    if which == 7:
        return list(a.split(1, 0))[:2] if a.dim() else [a.view(1)]
    return [a.squeeze()]


def op(lib: Any, a: Any, b: Any, dice: list[float]) -> Any:
    which = int(dice[0] * 5)
    if which == 0:
        return a * 2
    if which == 1 and tuple(a.shape) == tuple(b.shape):
        return a * b
    if which == 2:
        return lib.sin(a)
    if which == 3:
        return a.clone()
    return a + 1


def write(lib: Any, a: Any, b: Any, dice: list[float]) -> None:
    # PyTorch takes a stale view for a leaf, and refuses the write, until someone asks for its node
    safe(lambda: a.grad_fn)
    which = int(dice[0] * 9)
    if which == 0:
        a.mul_(2)
    elif which == 1 and tuple(a.shape) == tuple(b.shape):
        a.mul_(b)
    elif which == 2 and tuple(a.shape) == tuple(b.shape):
        a.add_(b)
    elif which == 3 and a.dim():
        a[0] = 0.5
    elif which == 4 and a.dim():
        a[..., :1] = b.sum() if dice[1] < 0.5 else 1.5
    elif which == 5:
        a.zero_()
    elif which == 6 and tuple(a.shape) == tuple(b.shape):
        a.copy_(b)
    elif which == 7:
        a.sin_()
    else:
        a.add_(1)


def safe(f: Any) -> Any:
    try:
        return f()
    except RuntimeError as error:
        return "error " + str(error)[:40]


def numbers(t: Any) -> Any:
    return [round(x, 6) for x in t.detach().reshape(-1).tolist()]


def observe(t: Any) -> list[Any]:
    name = safe(lambda: t.grad_fn.name() if t.grad_fn is not None else None)
    return [
        list(t.shape),
        numbers(t),
        t._version,
        safe(lambda: t.requires_grad),
        safe(lambda: t.is_leaf),
        name,
    ]
