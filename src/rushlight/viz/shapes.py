"""The shapes and dtypes of what nodes made, worked out without computing anything.

Nodes of ops with one output do not keep its shape. It follows from what they keep, or from running
the op on arrays that have no numbers (`arrays.meta`), oldest node first.
"""

from __future__ import annotations

from typing import Any

from rushlight.arrays.meta import Meta
from rushlight.core.engine.accumulate_grad import AccumulateGradBase
from rushlight.core.families import Elementwise
from rushlight.core.graph import Node, TensorBase
from rushlight.core.node_api import GraphNode

Like = tuple[tuple[int, ...], Any]  # a shape, and a raw dtype


class Shapes:
    """What is known of the outputs of nodes; filled as it is asked."""

    def __init__(self) -> None:
        self._known: dict[Node, list[Like | None]] = {}

    def of_outputs(self, node: Node) -> list[Any]:
        """(shape, dtype) of each output; raises AttributeError where it cannot be told."""
        found = self._all(node)
        if any(like is None for like in found):
            raise AttributeError(f"the shape of the output of {type(node).__name__} is not known")
        return found

    def of_output(self, node: Node, nr: int) -> Like | None:
        """(shape, dtype) of one output, or None."""
        found = self._all(node)
        return found[nr] if nr < len(found) else None

    def of_input(self, node: Node, i: int) -> Like | None:
        """(shape, dtype) of input `i`; None if it was no tensor, or nothing tells."""
        target: Any = node._next_edges[i] if i < len(node._next_edges) else None
        like: Like | None = None
        if isinstance(target, AccumulateGradBase):
            target = target.variable
        if isinstance(target, TensorBase):
            like = (tuple(target._array.shape), target._array.dtype)
        elif isinstance(target, Node):
            nrs = node._output_nrs
            like = self.of_output(target, 0 if nrs is None else nrs[i])
        if like is None:
            like = _kept(node, i)
        shape = None if node._input_shapes is None else node._input_shapes[i]
        dtype = None if node._input_dtypes is None else node._input_dtypes[i]
        if shape is None or (dtype is None and like is None):
            return like
        return tuple(shape), dtype if dtype is not None else like[1]  # type: ignore[index]

    def _all(self, node: Node) -> list[Like | None]:
        stack = [node]
        while stack:  # not by recursion: graphs are deep
            top = stack[-1]
            if top in self._known:
                stack.pop()
                continue
            if top._output_metas is not None:
                self._known[top] = [_of_meta(out) for out in top._output_metas]
                continue
            ends = [t for t in top._next_edges if isinstance(t, Node)]
            waiting = [t for t in ends if t not in self._known and not _is_leaf(t)]
            if waiting:
                stack.extend(waiting)
                continue
            self._known[top] = [self._work_out(top)]
        return self._known[node]

    def _work_out(self, node: Any) -> Like | None:
        op: Any = node._op
        if op is None:
            return _own_output(node)
        result = _kept(node, -1)
        if result is not None:
            return result
        inputs = [self.of_input(node, i) for i in range(len(node._next_edges))]
        if node._fits_as_is and any(inputs):
            return next(like for like in inputs if like is not None)
        blank: Any = 1 if isinstance(op, Elementwise) else None
        xs = [blank if like is None else Meta(*like) for like in inputs]
        try:
            made = op.forward(*xs)
        except Exception:  # an op that looks at numbers: `core` runs it on what the node keeps
            return _own_output(node)
        if isinstance(made, (tuple, list)) and len(made) == 1:
            made = made[0]
        told = hasattr(made, "shape") and hasattr(made, "dtype")
        return (tuple(made.shape), made.dtype) if told else None


def _is_leaf(target: Any) -> bool:
    return isinstance(target, AccumulateGradBase)


def _of_meta(out: Any) -> Like | None:
    return None if out is None else (tuple(out[0]), out[1])


def _own_output(node: GraphNode) -> Like | None:
    """What the node itself says: of those that are not of the op table, and as the last resort."""
    try:
        return _of_meta(node._only_output())
    except AttributeError:
        return None


def _kept(node: Any, source: int) -> Like | None:
    """The shape of input `source`, or of the result (-1), where the node keeps it."""
    op: Any = node._op
    if op is None:
        return None
    for j, value in enumerate(node._kept_values):
        at = j if op.plan.variadic else op.plan.sources[j]
        if at == source and hasattr(value, "shape") and hasattr(value, "dtype"):
            return tuple(value.shape), value.dtype
    return None
