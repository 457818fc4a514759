"""Who looks at backward passes from outside: anomaly mode, profilers, and hooks on leaves.

The engine knows nobody by name. Whoever wants to be told of passes gives `observe` a function that
is asked at the start of each one for a `PassObserver`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rushlight.core.graph import Node
from rushlight.native import i64, mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class PassObserver:
    """Is told of one backward pass as it goes on. These methods do nothing: override some."""

    def before_node(self, node: Node) -> None:
        """The pass turns to a node."""

    def before_rule(self, node: Node, g: Any) -> None:
        """The node's hooks have run; its rule is about to, on the gradient `g`."""

    def after_rule(self, node: Node, outs: Any) -> None:
        """It has run, and gave `outs`."""

    def after_node(self, node: Node, outs: Any) -> None:
        """Its post-hooks have run too: `outs` go on to the inputs as they are."""

    def before_leaf(self, g: Any, stores: bool) -> None:
        """A leaf is given its gradient `g`; with `stores` it is added to `.grad`."""

    def sees_leaves(self) -> bool:
        """Whether leaves must get their gradients one after the other, for `before_leaf`."""
        return False

    def failed(self, node: Any) -> None:
        """The node's rule, or one of its hooks, has raised."""

    def finish(self) -> None:
        """The pass is over, one way or the other."""


class Observers(PassObserver):
    """Several of them as one."""

    def __init__(self, several: list[PassObserver]) -> None:
        self.several = several

    def before_node(self, node: Node) -> None:
        for each in self.several:
            each.before_node(node)

    def before_rule(self, node: Node, g: Any) -> None:
        for each in self.several:
            each.before_rule(node, g)

    def after_rule(self, node: Node, outs: Any) -> None:
        for each in self.several:
            each.after_rule(node, outs)

    def after_node(self, node: Node, outs: Any) -> None:
        for each in self.several:
            each.after_node(node, outs)

    def before_leaf(self, g: Any, stores: bool) -> None:
        for each in self.several:
            each.before_leaf(g, stores)

    def sees_leaves(self) -> bool:
        for each in self.several:
            if each.sees_leaves():
                return True
        return False

    def failed(self, node: Any) -> None:
        for each in self.several:
            each.failed(node)

    def finish(self) -> None:
        for each in self.several:
            each.finish()


Begin = Callable[[], PassObserver | None]
begins: Final[list[Any]] = []  # who is asked; empty nearly always


def observe(begin: Begin) -> None:
    """From now on ask `begin()`, on the thread of each pass, who observes it, if anyone does."""
    if begin not in begins:
        begins.append(begin)


def stop_observing(begin: Begin) -> None:
    """Ask it no longer."""
    if begin in begins:
        begins.remove(begin)


def observer_of_pass() -> PassObserver | None:
    """Who observes the pass that begins now."""
    found: list[PassObserver] = []
    for begin in list(begins):
        observer: PassObserver | None = begin()
        if observer is not None:
            found.append(observer)
    if len(found) > 1:
        return Observers(found)
    return found[0] if found else None


class LeafHooks:
    """How many hooks there are on leaves: while none, no pass need care for the leaves' order."""

    def __init__(self) -> None:
        self.count: i64 = 0


leaf_hooks: Final = LeafHooks()
