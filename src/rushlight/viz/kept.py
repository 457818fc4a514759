"""What a node keeps for the backward pass, described; no hook of the user's is called for it."""

from __future__ import annotations

from typing import Any

from rushlight.core.views.copy_slices import CopySlicesBase
from rushlight.viz.rules import letter, names_of_inputs
from rushlight.viz.values import describe

Kept = list[tuple[str, dict[str, Any]]]


def kept_shapes(node: Any) -> dict[str, tuple[int, ...]]:
    """The name and the shape of each array that a node keeps."""
    return {name: tuple(x.shape) for name, x in _values(node) if hasattr(x, "shape")}


def kept_values(node: Any) -> Kept:
    """The name and the description of each value that a node keeps."""
    found: Kept = []
    for name, value in _values(node):
        told = describe(value)
        if told is not None:
            found.append((name, told))
    return found


def _values(node: Any) -> list[tuple[str, Any]]:
    if isinstance(node, CopySlicesBase):
        return _values(node.fn)
    if node._freed_at is not None:
        return []
    return _of_op(node) if node._op is not None else _of_function(node)


def _of_op(node: Any) -> list[tuple[str, Any]]:
    op = node._op
    if op.plan.variadic:
        names = names_of_inputs(op, len(node._next_edges))
        names += [letter(name) for name in op.outputs]
    else:
        names = [letter(name) for name in op.saves]
    return list(zip(names, node._kept_values))


def _of_function(node: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for i, saved in enumerate(getattr(node, "_records", ())):
        if saved is not None:
            value = saved.packed if saved.packed is not None else saved.array
            found.append((f"saved {i}", value))
    return found
