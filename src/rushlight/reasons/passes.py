"""What is known of the backward pass that made a gradient: it was watched, or can be rehearsed, or
some of the values that it had are still there."""

from __future__ import annotations

from typing import Any, Final

from rushlight.core.engine.traverse import end_of
from rushlight.core.grad_mode import within
from rushlight.core.graph import Node, TensorBase
from rushlight.core.record import apply
from rushlight.ops.pointwise.family import Flat
from rushlight.reasons import watching
from rushlight.reasons.details import op_name
from rushlight.reasons.facts import Facts
from rushlight.reasons.flow import Sent, Stat, Turn, rehearse, stat_of

FREED: Final = (
    "to have the node named for certain, ask before backward(), `rushlight.why(x, loss)`, or let "
    "the program run inside `with rushlight.why.watching():`. The values of this pass are gone."
)


DEEPEST: Final = 30  # ops that are computed again, one from the other
AT_ZERO: Final = {"sqrt", "rsqrt", "reciprocal", "pow_number"}
BELOW: Final = {"log", "log2", "log10"}
AT_ONE: Final = {"acos", "asin", "atanh"}


def then(text: str) -> str:
    """A text as a sentence of its own."""
    return text[0].upper() + text[1:]


class Pass:
    """What is known of the backward pass that made the gradient."""

    def __init__(self, f: Facts) -> None:
        self.turns: list[Turn] = []
        self.leaves: dict[int, Any] = {}
        self.trouble = ""
        log = watching.last
        start = None if f.y is None else f.y.grad_fn
        for seen in reversed(log.passes if log is not None else ()):
            if start is not None and all(turn.node is not start for turn in seen):
                continue  # another loss's
            if any(sent.to is f.end for turn in seen for sent in turn.sent):
                self.turns = seen
                return
        if f.y is not None and f.y.grad_fn is not None and f.freed() is None and f.depends(f.y):
            try:
                self.turns, self.leaves = rehearse(f.y)
            except RuntimeError as error:
                self.trouble = str(error).partition("\n")[0]

    def towards(self, f: Facts) -> list[tuple[Turn, Sent]]:
        """What was handed on towards the tensor, in the order of the pass."""
        above = f.above
        return [
            (turn, sent) for turn in self.turns for sent in turn.sent
            if sent.to is f.end or sent.to in above
        ]  # fmt: skip

    def hooked(self, f: Facts) -> Any:
        """The node (or the tensor itself) whose hooks made a gradient 0, or not finite, that came
        otherwise; None if there is none."""
        came: dict[int, list[Stat]] = {}
        for _, sent in self.towards(f):
            came.setdefault(id(sent.to), []).append(sent.stat)
        for turn in self.turns:
            before = came.get(id(turn.node), [])
            if turn.node._hooks is not None and before and spoiled(before, turn.came):
                return turn.node
        extra, before = f.x._extra, came.get(id(f.end), [])
        if extra is not None and extra.hooks and f.grad is not None and before:
            return f.x if spoiled(before, stat_of([f.grad])) else None
        return None


def spoiled(before: list[Stat], after: Stat) -> bool:
    """Whether a gradient became 0, or not finite, on its way."""
    lost = after.zero and not all(stat.zero for stat in before)
    return lost or (after.bad and not any(stat.bad for stat in before))


class Remains:
    """Values of a graph that was freed: those of leaves and of tensors that are still there, and
    what can be computed again from them."""

    def __init__(self, f: Facts) -> None:
        self.tensors: dict[tuple[int, int], Any] = {}
        for t in f.names.known:
            if t._node is not None:
                self.tensors[id(t._node), int(t._output_nr)] = t

    def value(self, end: Any, nr: int, user: Any, depth: int = 0) -> Any:
        """The value of a leaf or of a node's output, as `user` was given it; None if unknown."""
        if isinstance(end, TensorBase):
            return end if end._storage.when < user._seq_nr else None
        found = self.tensors.get((id(end), nr))
        if found is not None or not isinstance(end, Node) or end._op is None or depth > DEEPEST:
            return found
        if len(end._next_edges) != 1 or len(end._op.inputs) != 1 or end._output_metas is not None:
            return None
        (x,) = self.inputs(end, depth + 1)
        if x is None:
            return None
        with within(False, False):
            return apply(end._op, x.detach())

    def inputs(self, node: Any, depth: int = 0) -> list[Any]:
        """The values that a node was given; None for those that are not known."""
        found = []
        for i, target in enumerate(node._next_edges):
            nr = 0 if node._output_nrs is None else node._output_nrs[i]
            found.append(None if target is None else self.value(end_of(target), nr, node, depth))
        return found

    def at_pole(self, node: Any) -> Any:
        """A mask of the elements at which the derivative of a node is not finite; None if its
        inputs are not known."""
        name, xs = op_name(node), self.inputs(node)
        which = 1 if name == "div" else 0
        x = xs[which] if which < len(xs) else None
        if x is None:
            return self.result_at_pole(node)
        with within(False, False):
            x = x.detach()
            if name in AT_ZERO or name == "div":
                return x == 0
            if name in BELOW:
                return x <= 0
            if name in AT_ONE:
                return x.abs() == 1
            return x.exp().isinf() if name == "exp" else None

    def result_at_pole(self, node: Any) -> Any:
        """The same, from what the node gave."""
        name, y = op_name(node), self.value(node, 0, node)
        if y is None:
            return None
        with within(False, False):
            y = y.detach()
            if name in ("sqrt", "pow_number"):
                return y == 0
            return y.isinf() if name in BELOW or name in AT_ZERO or name == "exp" else None

    def is_flat(self, node: Any) -> bool | None:
        """Whether a node's derivative is 0 everywhere; None if that is not known."""
        name = op_name(node)
        if isinstance(node._op, Flat) or name.startswith("fill") or name == "zero":
            return True
        y = self.value(node, 0, node)
        if y is None or name not in ("relu", "sigmoid", "tanh", "clamp_numbers", "hardtanh"):
            return None
        with within(False, False):
            y = y.detach()
            if name == "relu":
                flat = y <= 0
            elif name == "tanh":
                flat = y.abs() == 1
            elif name == "sigmoid":
                flat = (y == 0) | (y == 1)
            else:
                (x,) = self.inputs(node)
                if x is None:
                    return None
                flat = x.detach() != y
            return bool(flat.all().item())
