"""A backward pass as numbers: what came to each node and what went on, and where that is odd.

Filled by a rehearsal (`autograd.graph.steps`), or by whoever watched the pass itself.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from rushlight.arrays.host import is_sparse
from rushlight.autograd.steps import steps
from rushlight.core.engine.traverse import end_of
from rushlight.core.grad_mode import within
from rushlight.core.graph import TensorBase, normal, wrap
from rushlight.reasons.details import note_bad, note_zero

EXPLODES: Final = 1e3  # times larger than what came in


class Stat(NamedTuple):
    """Numbers about a gradient."""

    biggest: float  # of the finite elements
    nan: int
    infinite: int
    zeros: int
    size: int

    @property
    def bad(self) -> bool:
        return self.nan + self.infinite > 0

    @property
    def zero(self) -> bool:
        return self.zeros == self.size > 0


class Sent(NamedTuple):
    """A gradient that a node handed on."""

    to: Any  # node or leaf
    stat: Stat
    odd: str  # 'bad', 'zero', 'large' or ''
    note: str


class Turn(NamedTuple):
    """One node's turn."""

    node: Any
    came: Stat
    sent: list[Sent]


def as_tensor(g: Any) -> Any:
    """A gradient of the engine as a dense tensor; None stays None."""
    if g is None:
        return None
    t: Any = g if isinstance(g, TensorBase) else wrap(normal(g))
    return t.to_dense() if is_sparse(t._array) else t


def stat_of(gs: list[Any]) -> Stat:
    """The numbers of some gradients together."""
    biggest, nan, infinite, zeros, count = 0.0, 0, 0, 0, 0
    with within(False, False):
        for g in gs:
            t = as_tensor(g)
            if t is None or t.numel() == 0 or t.device.type == "meta":
                continue
            x = t.detach().abs().double()
            odd = x.isnan()
            over = x.isinf()
            n, i = int(odd.sum().item()), int(over.sum().item())
            count += x.numel()
            zeros += int((x == 0).sum().item())
            nan, infinite = nan + n, infinite + i
            if n + i < x.numel():
                biggest = max(biggest, float(x.masked_fill(odd | over, 0.0).max().item()))
    return Stat(biggest, nan, infinite, zeros, count)


def turn_of(node: Any, gs: list[Any], outs: list[tuple[Any, Any]]) -> Turn:
    """One turn: `gs` came, and (target, gradient) went on."""
    came = stat_of(gs)
    sent = []
    g = as_tensor(next((g for g in gs if g is not None), None))
    for to, out in outs:
        if to is None or out is None:
            continue
        stat = stat_of([out])
        odd = note = ""
        if stat.bad and not came.bad:
            odd, note = "bad", note_bad(node, g, as_tensor(out))
        elif stat.zero and not came.zero and came.size:
            odd, note = "zero", note_zero(node)
        elif not came.bad and stat.biggest > EXPLODES * came.biggest > 0:
            times = stat.biggest / came.biggest
            odd, note = "large", f"{type(node).__name__}: it becomes {times:.3g} times larger"
        sent.append(Sent(to, stat, odd, note))
    return Turn(node, came, sent)


def rehearse(y: Any) -> tuple[list[Turn], dict[int, Any]]:
    """The pass from `y` as it would be, and the gradients that leaves would get."""
    gradient = None if y.numel() == 1 and not y.dtype.is_complex else y.detach() * 0 + 1
    turns, leaves = [], {}
    for step in steps(y, gradient):
        if step.leaf is not None:
            leaves[id(step.leaf)] = step.grads[0]
        else:
            outs = [(out.to, out.grad) for out in step.outs]
            turns.append(turn_of(step.node, list(step.grads), outs))
    return turns, leaves


def edges(node: Any, outs: Any) -> list[tuple[Any, Any]]:
    """Where the gradients go that a node's rule gave."""
    return [(end_of(target), outs[i]) for i, target in enumerate(node._next_edges)]
