"""What is known of the backward pass that made a gradient: watched, or rehearsed."""

from __future__ import annotations

from typing import Any, Final

from rushlight.reasons import watching
from rushlight.reasons.facts import Facts
from rushlight.reasons.flow import Sent, Stat, Turn, rehearse, stat_of

FREED: Final = (
    "to have the node named for certain, ask before backward(), `rushlight.why(x, loss)`, or let "
    "the program run inside `with rushlight.why.watching():`. The values of this pass are gone."
)


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
