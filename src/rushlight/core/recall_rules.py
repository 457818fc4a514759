"""Derivatives of derivatives: what the rule of an op came down to on tensors, kept.

With `create_graph=True` the engine runs rules on tensors, so that what they do is recorded. A rule
is interpreted code, but what it applies depends on little: the op's own parameters, the shapes and
dtypes of its tensors, and which gradients are wanted. So a rule is asked once for each such
signature, as public functions are (`core.recall`), and the ops it applied are applied at once from
then on. This is for ops that say so (`Op.asked_once`), and that are applied again and again: an op
that is made for one call has nothing to remember.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight.core.grad_mode import quick_mode, state
from rushlight.core.graph import Node, Op, TensorBase
from rushlight.core.observer import observer
from rushlight.core.steps import Step, place_of, read_argument, run_steps, step_of
from rushlight.core.transforms.stack import stack

_MOST: Final = 64  # signatures of one op


class SettledRule:
    """The steps of a rule, and which tensor is the gradient of each input; -1: there is none."""

    def __init__(self, steps: list[Step], results: list[int]) -> None:
        self.steps = steps
        self.results = results


def backward_on_tensors(node: Node, op: Op, g: Any, saved: tuple[Any, ...]) -> Any:
    """The gradients that the rule of an op gives, all of them tensors and recorded."""
    kept = op.kept_rules
    if kept is None:  # the first time: it may be the last
        op.kept_rules = {}
        return _run_rule(node, op, g, saved)
    if (state.active != 0 and quick_mode() < 0) or stack.batches != 0 or stack.tangents != 0:
        return _run_rule(node, op, g, saved)
    tensors: list[TensorBase] = []
    signature = _signature(node, g, saved, tensors)
    if signature is None:
        return _run_rule(node, op, g, saved)
    found: SettledRule | None = kept.get(signature)
    if found is None:
        return _ask(node, op, g, saved, signature, tensors)
    run_steps(found.steps, tensors)
    outs: list[Any] = []
    for place in found.results:
        outs.append(tensors[place] if place >= 0 else None)
    return outs


def _run_rule(node: Node, op: Op, g: Any, saved: tuple[Any, ...]) -> Any:
    rule: Any = op
    return rule.vjp(node, g, *saved)


def _signature(
    node: Node, g: Any, saved: tuple[Any, ...], tensors: list[TensorBase]
) -> tuple[Any, ...] | None:
    parts: list[Any] = [node._needs_grad_mask, node._input_shapes, node._input_dtypes]
    for edge in node._next_edges:
        parts.append(edge is None)
    if not read_argument(g, parts, tensors):
        return None
    for x in saved:
        if not read_argument(x, parts, tensors):
            return None
    return tuple(parts)


def _ask(
    node: Node, op: Op, g: Any, saved: tuple[Any, ...], signature: Any, tensors: list[TensorBase]
) -> Any:
    """Run a rule, and keep what it came down to if that can be done."""
    if observer.applied is not None:
        return _run_rule(node, op, g, saved)
    applied: list[Any] = []
    observer.applied = applied
    try:
        outs = _run_rule(node, op, g, saved)
    finally:
        observer.applied = None
    settled = _settle(applied, outs, tensors)
    if settled is not None and op.kept_rules is not None:
        if len(op.kept_rules) >= _MOST:
            op.kept_rules.clear()
        op.kept_rules[signature] = settled
    return outs


def _settle(applied: list[Any], outs: Any, tensors: list[TensorBase]) -> SettledRule | None:
    """The steps, if all there is came from the gradient and the saved tensors."""
    values: list[Any] = list(tensors)
    used: set[int] = set()
    steps: list[Step] = []
    for entry in applied:
        step = None if entry is None else step_of(entry, values, used)
        if step is None:
            return None
        steps.append(step)
        result = entry[2]
        if isinstance(result, tuple):
            values.extend(result)
        else:
            values.append(result)
    results: list[int] = []
    for out in outs:
        at = -1
        if out is not None:
            at = place_of(out, values)
            if at < 0:
                return None
            used.add(id(out))
        results.append(at)
    for t in tensors:
        if id(t) not in used:
            return None  # it may have been read as a number
    return SettledRule(steps, results)
