"""Random chains of ops on tensors that lie in memory in random ways, beside PyTorch.

After each step the two must agree on values, shape, strides (of axes that have any length), on
whether `view(-1)` works, and on what a write through `reshape(-1)` changes. Without PyTorch a chain
is compared with itself on inputs that lie row by row: values must not depend on layout.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import rushlight

TITLE = "layouts of results"
SHORT = 500
WEIGHT = 1.0

# Each takes the library, two tensors of one shape, and a dimension; a step that a shape does not
# allow is refused by both libraries, and passed over.
STEPS = """
x + y | y * x | x - 0.5 | 1 / (x.abs() + 1) | -x | x.exp().clamp(max=5) | x.relu() | x.abs().sqrt()
m.maximum(x, y) | m.where(x > y, x, y) | m.where(y > 0, x, 0.0) | m.lerp(x, y, 0.25) | x.clamp(-1, 1)
m.addcmul(x, y, y) | m.addcmul(y, x, x) | m.atan2(x, y) | (x > y).to(x.dtype) | x.to(m.float32).to(x.dtype)
x + x.sum(d, keepdim=True) | x * y.mean(d) | x.sum(d) | x.mean(d, keepdim=True) | x.amax(d) | x.prod(d)
x.var(d, correction=0) | m.logsumexp(x, d) | x.max(d)[0] | x.amin(d) | x.any(d).to(x.dtype)
x.norm(2, d) | x.softmax(d) | x.log_softmax(d) | x.cumsum(d) | x.cummax(d)[0] | x.sort(d)[0]
x.sort(d, descending=True)[0] | (x > 0).argsort(d, stable=True).to(x.dtype) | x.topk(1, d)[0] | x.flip(d) | x.roll(1, d) if x.shape[d] > 1 else x.abs()
m.cat([x, y], d) | m.cat([x, x.flip(d)], d) | m.stack([x, y], d) | m.stack([x, y], -1) | x.tril() | x.triu(1)
x.masked_fill(y > 0, 0.5) | m.masked_scatter(x, y > 0, x) | x.index_select(d, m.tensor([0, 0]))
x[m.tensor([0, -1])] | x[..., m.tensor([0, 0])] | x[:, m.tensor([[0, -1]])] | x[m.tensor([0]), ..., m.tensor([0])]
x.gather(d, (y > 0).long() * 0) | x.scatter(d, (y > 0).long() * 0, y) | x.scatter_add(d, (y > 0).long() * 0, y)
x.index_fill(d, m.tensor([0]), 2.0) | x.index_add(d, m.tensor([0]), y.narrow(d, 0, 1)) | x.take((y > 0).long())
x.index_put((m.tensor([0]),), y[:1]) | m.select_scatter(x, y.select(d, 0), d, 0) | x.repeat_interleave(2, d)
m.nn.functional.pad(x, (1, 0)) | m.nn.functional.layer_norm(x, x.shape[-1:]) | m.nn.functional.gelu(x)
m.nn.functional.mse_loss(x, y, reduction="none") | m.nn.functional.leaky_relu(x) | m.nn.functional.softplus(x)
x.clone() | x.contiguous() | m.zeros_like(x) + 1 | m.full_like(x, 2.0) | x.transpose(0, d) | x.transpose(0, -1)
x.movedim(d, 0) | x.unsqueeze(d) | x.squeeze() | x[::2] | x[..., 1:] | x.narrow(d, 0, 1) | x[0] | x.select(d, -1)
x.expand(2, *x.shape) | x[:1].expand(x.shape) | x.reshape(-1, x.shape[-1]) | x.flatten(0, 1) | x.flatten()
x.unfold(d, 1, 1) | x.diagonal() | x.mT | x @ y.mT | x.mT @ y | m.nn.functional.linear(x, y.reshape(-1, y.shape[-1]))
m.cdist(x, y) | m.einsum("...i,...j->...ij", x, y) | m.tensordot(x, y.mT, 1) | x.rot90() | x.repeat(*[2] * x.ndim)
x.clone().add_(y) | x.clone().mul_(2) | m.add(x, y, out=m.empty(0, dtype=x.dtype)) | x.diff(dim=d) | m.kron(x[0], y[0])
m.nn.functional.normalize(x, dim=d) | x.nan_to_num() | x.unbind(d)[0] | x.chunk(2, d)[-1] | x.nonzero().to(x.dtype)
x.long().to(x.dtype) | m.polar(x.abs(), y).real | m.complex(x, y).abs() | x.renorm(2, 0, 1.0)
""".replace("\n", " | ").split(" | ")  # noqa: E501
CHAIN = [step for step in (s.strip() for s in STEPS) if step]
# Steps whose result jumps: a number that rounding alone keeps from zero, from another number or
# from a whole one may fall on either side.
JUMPS = ("> ", "any(", "nonzero", "atan2", "long()", "argsort", "normalize", "sqrt")
# Steps in which a stride of an axis of size 1, which means nothing (docs/differences.md), decides
# how longer axes lie: there it meets a longer one, or that of a result in between.
GROWING = ("x * y.mean(d)", "m.cat([x, x.flip(d)], d)")
LARGE = 3000  # elements: chains that grow beyond stop
MILD = 1e6  # values beyond it, or not finite, end a chain: rounding would tell


def layout(choose: random.Random, rank: int) -> tuple[Any, ...]:
    """A way to lie in memory: the order of axes, gaps along them, and axes that are expanded."""
    order = list(range(rank))
    kind = choose.choice(["rows", "turned", "any", "any", "channels"])
    if kind == "turned":
        order.reverse()
    elif kind == "any":
        choose.shuffle(order)
    elif kind == "channels" and rank > 2:
        order = [0, *order[2:], 1]
    gaps = [choose.choice([1, 1, 1, 2]) if choose.random() < 0.4 else 1 for _ in order]
    wide = [choose.random() < 0.12 for _ in order]
    return tuple(order), tuple(gaps), tuple(wide)


def laid(m: Any, values: Any, way: tuple[Any, ...]) -> Any:
    """A tensor with these values (the first ones, along axes that are expanded), laid out so."""
    order, gaps, wide = way
    x = m.as_tensor(values)
    seen = x[tuple(slice(0, 1) if w else slice(None) for w in wide)]
    room = m.zeros([seen.shape[d] * gaps[d] for d in order], dtype=x.dtype)
    back = sorted(range(len(order)), key=lambda d: order[d])
    room = room.permute(back)[tuple(slice(None, None, g) for g in gaps)]
    return room.copy_(seen).expand(x.shape)


def told(x: Any) -> dict[str, Any]:
    """What the two libraries must agree on, values aside."""
    found: dict[str, Any] = {"shape": list(x.shape), "dtype": str(x.dtype)}
    if 0 in x.shape:
        return found
    found["strides"] = [s for n, s in zip(x.shape, x.stride()) if n > 1]
    found["contiguous"] = x.is_contiguous()
    try:
        x.view(-1)
        found["view"] = True
    except RuntimeError:
        found["view"] = False
    found["shares"] = shares(x)
    return found


def shares(x: Any) -> bool:
    """Whether a write through `reshape(-1)` reaches a copy that lies as `x` does."""
    lies = [1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride()))]
    room = x.new_zeros(lies)
    again = room.as_strided(x.shape, x.stride())
    again.reshape(-1)[0] = 1
    return bool(again.any())


def values(x: Any) -> Any:
    return np.asarray(x.detach().contiguous().numpy(), np.float64)


def doubtful(x: Any, y: Any) -> bool:
    """Whether rounding may decide what a step that jumps makes of two operands."""
    p, q = values(x), values(y)
    if bool(((p == 0) & np.signbit(p)).any()):
        return True  # atan2 knows signs of zeros, and those of sums of products are chance
    apart = [p, q, p - q, p - np.round(p)]
    return any(bool(((a != 0) & (np.abs(a) < 1e-7)).any()) for a in apart)


def step(m: Any, text: str, x: Any, y: Any, d: int) -> Any:
    """The result of a step, or None if the library refuses it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(text, {"m": m, "x": x, "y": y, "d": d})
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
        return None


def attempts(seed: int, torch: Any) -> Iterator[str | None]:
    """Chains for ever, each from its own seed."""
    number = 0
    while True:
        yield chain(f"{seed}.{number}", torch)
        number += 1


def chain(name: str, torch: Any) -> str | None:
    """One chain; a text if the two part."""
    choose = random.Random(name)
    shape = [choose.choice([1, 2, 3, 4]) for _ in range(choose.choice([2, 2, 3, 3, 4]))]
    count = math.prod(shape)
    numbers = [round(choose.uniform(-2, 2), 2) for _ in range(2 * count)]
    raw = [np.array(part).reshape(shape) for part in (numbers[:count], numbers[count:])]
    ways = [layout(choose, len(shape)) for _ in raw]
    mine = [laid(rushlight, a, way) for a, way in zip(raw, ways)]
    other = torch if torch is not None else rushlight
    theirs = [laid(other, a, way) for a, way in zip(raw, ways)]
    if torch is None:
        theirs = [t.contiguous() for t in theirs]
    done: list[str] = []
    for _ in range(6):
        text = choose.choice(CHAIN)
        d = choose.randrange(-len(shape), len(shape))
        if other is rushlight and "view" in text:
            continue
        if any(word in text for word in JUMPS) and (doubtful(*mine) or doubtful(*theirs)):
            continue
        want = step(other, text, *theirs, d)
        if want is None:
            continue
        have = step(rushlight, text, *mine, d)
        done.append(f"{text} (d={d})")
        start = f"chain {name}, shape {shape}, layouts {ways}: {'; '.join(done)}"
        if have is None:
            return f"{start}: refused here"
        if torch is not None and told(have) != told(want):
            if text in GROWING and 1 in shape and tuple(have.shape) == tuple(want.shape):
                return None
            return f"{start}: {told(have)} instead of {told(want)}"
        a, b = values(have), values(want)
        # a distance of many rows is the root of a difference, of which rounding leaves 1e-16
        close = 1e-6 if "cdist" in text else 1e-8
        if a.shape != b.shape or not np.allclose(a, b, 1e-6, close, equal_nan=True):
            return f"{start}: other values, {a.ravel()[:6]} instead of {b.ravel()[:6]}"
        tame = b.size and b.size < LARGE and bool(np.isfinite(b).all()) and np.abs(b).max() < MILD
        if not tame or b.ndim < 2 or have.dtype is not rushlight.float64:
            break
        # the next operand beside it: the same numbers in another order, laid out as before or anew
        turn = choose.randrange(3)
        mine = [have, beside(have, turn)]
        theirs = [want, beside(want, turn)]
        shape = list(b.shape)
        if any(p.stride() != q.stride() for p, q in zip(mine, theirs)) and torch is not None:
            break  # of axes of size 1, where that means nothing, but later layouts go by it
    return None


def beside(x: Any, turn: int) -> Any:
    """A second operand of the same shape."""
    if turn == 0:
        return x.flip(0)
    if turn == 1:
        return (x * 0.5 + 0.1).contiguous()
    return x.flip(-1).transpose(0, -1).contiguous().transpose(0, -1)
