"""Which nodes a backward pass reaches, which of them it needs, and how often each is delivered to.

These walk over graphs; the engine calls them only where it must: for `inputs=`, and where the
user's code can see in which order gradients arrive. `executes` and `needed` are those of a
`GraphTask`: what anything is delivered to, and whose rule runs; None: all.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.engine.accumulate_grad import AccumulateGradBase
from rushlight.core.graph import Node, TensorBase


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


def _sequence_nr(node: Node) -> int:
    return node._seq_nr


def paths_to(ends: list[Any], roots: list[Any], with_ends: bool) -> tuple[set[Any], set[Any]]:
    """The ways from `roots` that lead to `ends`, as (executes, needed): nodes next to them do not
    run. With `with_ends` these run too: `backward` runs its inputs for the hooks they have, `grad`
    goes no further than it must.
    """
    executes: set[Any] = set(ends)
    needed: set[Any] = set(ends) if with_ends else set()
    order = reachable(roots, None)
    order.sort(key=_sequence_nr)
    for node in order:  # oldest first: the ends of all edges are decided already
        for target_of in node._next_edges:
            end = end_of(target_of)
            if end is not None and end in executes:
                needed.add(node)
                executes.add(node)
                break
    return executes, needed


def leaf_uses(
    starts: list[Any], executes: set[Any] | None, needed: set[Any] | None
) -> dict[Any, int]:
    """How many gradients each leaf will receive from `starts` and the nodes behind them."""
    uses: dict[Any, int] = {}
    for node in reachable(starts, needed):
        for target in node._next_edges:
            end = end_of(target)
            if isinstance(end, TensorBase) and (executes is None or end in executes):
                uses[end] = uses.get(end, 0) + 1
    return uses


def dependencies(
    roots: list[Any], executes: set[Any] | None, needed: set[Any] | None
) -> dict[Any, int]:
    """How many gradients each node and leaf will receive, counting those the roots start with."""
    uses: dict[Any, int] = {}
    for root in roots:
        end = end_of(root)
        uses[end] = uses.get(end, 0) + 1
    for node in reachable(roots, needed):
        for target in node._next_edges:
            end = end_of(target)
            if end is not None and (executes is None or end in executes):
                uses[end] = uses.get(end, 0) + 1
    return uses


def is_reached(
    end: Any, roots: list[Any], executes: set[Any] | None, needed: set[Any] | None
) -> bool:
    """Whether a pass from `roots` reaches `end`, a node or a leaf."""
    if executes is not None and end not in executes:
        return False
    for root in roots:
        if end_of(root) is end:
            return True
    for node in reachable(roots, needed):
        for target in node._next_edges:
            if end_of(target) is end:
                return True
    return False
