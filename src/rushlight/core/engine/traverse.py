"""Which nodes a backward pass reaches, which of them it needs, and how often each is delivered to.

These walk over graphs; the engine calls them only where it must: for `inputs=`, and where the
user's code can see in which order gradients arrive.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.engine.task import Pass, Target
from rushlight.core.graph import Node, TensorBase
from rushlight.core.node_api import AccumulateGradBase

__all__ = ["dependencies", "end_of", "leaf_uses", "plan", "reachable", "will_execute"]


def end_of(target: Any) -> Any:
    """What an edge leads to: a node, a leaf, or None."""
    if isinstance(target, AccumulateGradBase):
        return target.variable
    return target


def reachable(roots: list[Any], among: set[Any] | None) -> list[Node]:
    """The nodes that the roots lead to, in no order; with `among`, only those, by them alone."""
    seen: set[Any] = set()
    stack: list[Any] = []
    found: list[Node] = []
    for root in roots:
        if isinstance(root, Node) and root not in seen and (among is None or root in among):
            seen.add(root)
            stack.append(root)
    while stack:
        node: Node = stack.pop()
        if isinstance(node, AccumulateGradBase):
            continue
        found.append(node)
        for target in node._next_edges:
            if (
                isinstance(target, Node)
                and target not in seen
                and (among is None or target in among)
            ):
                seen.add(target)
                stack.append(target)
    return found


def _number(node: Node) -> int:
    return node._seq_nr


def plan(run: Pass, roots: list[Any], targets: list[Target]) -> None:
    """Find the ways that lead to the targets: nodes beside them do not run.

    `backward` runs its inputs too, for the hooks they have; `grad` goes no further than it must.
    """
    executes: set[Any] = set()
    needed: set[Any] = set()
    captures: dict[Any, list[Target]] = {}
    for target in targets:
        executes.add(target.node)
        if run.store:
            needed.add(target.node)
        else:
            captures.setdefault(target.node, []).append(target)
    order = reachable(roots, None)
    order.sort(key=_number)
    for node in order:  # oldest first: the ends of all edges are decided already
        for target_of in node._next_edges:
            end = end_of(target_of)
            if end is not None and end in executes:
                needed.add(node)
                executes.add(node)
                break
    run.executes = executes
    run.needed = needed
    run.captures = captures


def leaf_uses(run: Pass, starts: list[Any]) -> dict[Any, int]:
    """How many gradients each leaf will receive from `starts` and the nodes behind them."""
    uses: dict[Any, int] = {}
    executes = run.executes
    for node in reachable(starts, run.needed):
        for target in node._next_edges:
            end = end_of(target)
            if isinstance(end, TensorBase) and (executes is None or end in executes):
                uses[end] = uses.get(end, 0) + 1
    return uses


def dependencies(run: Pass, roots: list[Any]) -> dict[Any, int]:
    """How many gradients each node and leaf will receive, counting those the roots start with."""
    uses: dict[Any, int] = {}
    for root in roots:
        end = end_of(root)
        uses[end] = uses.get(end, 0) + 1
    executes = run.executes
    for node in reachable(roots, run.needed):
        for target in node._next_edges:
            end = end_of(target)
            if end is not None and (executes is None or end in executes):
                uses[end] = uses.get(end, 0) + 1
    return uses


def will_execute(run: Pass, end: Any) -> bool:
    """Whether a pass reaches `end`, a node or a leaf, or has reached it."""
    if run.executes is not None and end not in run.executes:
        return False
    roots: list[Any] = run.roots if isinstance(run.roots, list) else [run.roots]
    for root in roots:
        if end_of(root) is end:
            return True
    for node in reachable(roots, run.needed):
        for target in node._next_edges:
            if end_of(target) is end:
                return True
    return False
