"""What nodes keep for the backward pass: reading it again, and what is wrong if it cannot be.

`OpNode` is the class behind the nodes of all ops: a `GraphNode` whose saved values are those of
its op's plan. Custom functions keep theirs in their own way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.core.call_site import Where
from rushlight.core.engine.accumulate_grad import AccumulateGradBase, accumulate_of
from rushlight.core.graph import (
    DIFFERENTIABLE,
    Node,
    OpSpec,
    Storage,
    TensorBase,
    begin_node,
    factory,
    node_base,
    spec_for,
    title_of,
    wrap,
    wrap_as,
)
from rushlight.core.node_api import GraphNode
from rushlight.core.saved.output_meta import output_of
from rushlight.core.saved.packed import Packed, open_packed, pack, rebuilt
from rushlight.core.saved.saved_names import show
from rushlight.core.views.history import AsStrided
from rushlight.errors import sentence
from rushlight.native import i64, mypyc_attr

__all__ = [
    "OpNode", "check_saved", "describe_freed", "storage_of", "unpack",
    "with_history",
]  # fmt: skip


@mypyc_attr(allow_interpreted_subclasses=True)
class OpNode(GraphNode):
    """The node of an op of the table."""

    def __init_subclass__(cls) -> None:
        show(cls)

    def _value_saved(self, position: int) -> Any:
        """Saved value number `position` as a tensor, with the history it had."""
        check_saved(self)
        value = unpack(self, position)
        # PyTorch makes tensors of the numbers that it multiplies and divides by
        return wrap(np.asarray(value)) if isinstance(value, (bool, int, float)) else value

    def _kept_value(self, position: int) -> Any:
        """What is kept there: None, a number, a detached tensor, or a `Packed`."""
        value = None if self._freed_at is not None else self._kept_values[position]
        if value is None or isinstance(value, (int, float, complex, Packed)):
            return value
        return wrap_as(value, storage_of(self, position))

    def _keep_packed(self, position: int, hook: Any, unpack_hook: Any) -> None:
        """Let hooks pack a value that was saved without any, and no longer watch its memory."""
        storage = storage_of(self, position)
        late = self._count_versions() - self._version_sum if storage.when > self._seq_nr else 0
        packed = pack(hook, unpack_hook, wrap_as(self._kept_values[position], storage))
        rest = self._watched()
        stamp = self._version_sum - (storage.version - late)
        for at in range(len(rest)):
            if rest[at] is storage:
                del rest[at]
                break
        self._watch(rest)
        self._version_sum = stamp
        values = list(self._kept_values)
        values[position] = packed
        self._kept_values = tuple(values)
        self._has_packed = True

    def _only_output(self) -> Any:
        return output_of(self)


node_base.cls = OpNode


# --- reading them ---------------------------------------------------------------------------------
def unpack(node: Node, position: int) -> Any:
    """A saved value as a tensor: a leaf itself, or the array with the edge it came by."""
    found = saved_value(node, position)
    if node._kept_tangents is not None and isinstance(found, TensorBase):
        t: TensorBase = found
        if t._tangent is None:
            t._tangent = node._kept_tangents[position]
    return found


def saved_value(node: Node, position: int) -> Any:
    """`unpack`, without the tangent."""
    value = node._kept_values[position]
    plan: OpSpec = node._op.plan
    if value is None or isinstance(value, (int, float, complex)):
        return value
    source: i64 = position if plan.variadic else plan.sources[position]
    if isinstance(value, Packed):
        data = open_packed(value)
        if source < 0:
            floating = data._array.dtype.kind in DIFFERENTIABLE
            return rebuilt(data, maker_of(node) if floating else None, -1 - source)
        end: Any = node._next_edges[source]
        if isinstance(end, TensorBase):
            end = accumulate_of(end)
        return with_history(data, end, 0 if node._output_nrs is None else node._output_nrs[source])
    if source < 0:
        t = wrap_as(value, storage_of(node, position))
        if value.dtype.kind in DIFFERENTIABLE:  # indices have no history
            t._node = maker_of(node)
            t._output_nr = -1 - source
        return t
    target = node._next_edges[source]
    if isinstance(target, AccumulateGradBase):
        target = target.variable
    if isinstance(target, TensorBase):
        return target if target._array is value else behind(target, value)
    t = wrap_as(value, storage_of(node, position))
    if target is not None:
        t._node = target
        t._output_nr = 0 if node._output_nrs is None else node._output_nrs[source]
    return t


def maker_of(node: Node) -> Node:
    """The node whose output a kept result is: that of the op, or of a view that it wrote."""
    if node._hooks is not None and node._hooks.written is not None:
        found: Node | None = node._hooks.written.node()
        if found is not None:
            return found
    return node


def with_history(data: TensorBase, maker: Node | None, index: i64) -> TensorBase:
    """What an unpack hook returned, with the history of what was packed; a leaf itself, where
    the hooks left it its array."""
    if isinstance(maker, AccumulateGradBase) and maker.variable._array is data._array:
        return maker.variable
    return rebuilt(data, maker, index)


def behind(leaf: TensorBase, value: Any) -> TensorBase:
    """The value a leaf had before its `.data` was replaced: its gradient is still the leaf's."""
    node = begin_node(spec_for(AsStrided), AsStrided((), ()))
    node._next_edges = (leaf,)
    node._needs_grad_mask = 1
    t = wrap(value)
    t._node = node
    return t


def storage_of(node: Node, position: int) -> Storage:
    """The storage kept for saved value `position` (values that were numbers have none)."""
    at = 0
    for j in range(position):
        value = node._kept_values[j]
        if value is not None and not isinstance(value, (int, float, complex, Packed)):
            at += 1
    kept = node._watched()
    return kept[at] if at < len(kept) else Storage()


def check_saved(node: Node) -> None:
    """Raise if the saved values were freed, or written since they were saved."""
    if node._freed_at is not None:
        raise RuntimeError(describe_freed(node))
    stamp = node._count_versions()
    if stamp != node._version_sum:
        raise RuntimeError(describe_overwritten(node, stamp))


def describe_freed(node: Node) -> str:
    """Whose saved values are gone, and which call freed them."""
    return sentence(
        "Trying to backward through the graph a second time (or directly access saved tensors "
        "after they have already been freed). Saved intermediate values of the graph are freed "
        "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
        "backward through the graph a second time or if you need to access saved tensors after "
        "calling backward.",
        f"{type(node).__name__} was made at {Where(node._code, node._code_offset)}\n"
        f"its values were freed by {node._freed_at}",
        "Pass `retain_graph=True` to that first call, or run the forward line again. Between the "
        "steps of a loop, cut the history: `h = h.detach()`.",
    )


def describe_overwritten(node: Node, stamp: i64) -> str:
    """Which saved value was overwritten, where it was saved and where it was written."""
    position = first_overwritten(node)
    value = node._kept_values[position]
    culprit = storage_of(node, position)
    plan: OpSpec = node._op.plan
    source: i64 = position if plan.variadic else plan.sources[position]
    maker = ""
    if source < 0:
        maker = f", which is output {-1 - source} of {title_of(node)},"
    else:
        target = node._next_edges[source]
        if isinstance(target, Node) and not isinstance(target, AccumulateGradBase):
            nr = 0 if node._output_nrs is None else node._output_nrs[source]
            maker = f", which is output {nr} of {title_of(target)},"
    version = culprit.version
    kind = factory.cls.type(wrap(value))
    return sentence(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{kind} {list(value.shape)}]{maker} is at version {version}; expected version "
        f"{version - writes_to(node, culprit, stamp - node._version_sum)} instead.",
        f"saved for {type(node).__name__} at {Where(node._code, node._code_offset)}\n"
        f"overwritten at {Where(culprit.code, culprit.offset)}",
        "Write the second line out of place (`x = x + 1`, not `x += 1`), or give the first one a "
        "copy: `x.clone()`. If it updates a parameter, call backward() before.",
    )


def first_overwritten(node: Node) -> int:
    """The position of the first saved value that was written, in the order they are read."""
    plan: OpSpec = node._op.plan
    values = node._kept_values
    first = -1
    for j in list(range(len(values))) if plan.variadic else plan.order:
        value = values[j]
        if value is None or isinstance(value, (int, float, complex, Packed)):
            continue
        if storage_of(node, j).when > node._seq_nr:
            return j
        if first < 0:
            first = j
    return first


def writes_to(node: Node, culprit: Storage, writes: i64) -> i64:
    """How many of the writes since the node was made were to `culprit`. Only their sum is known:
    with several storages written, at least one write is each of the others'."""
    mine: i64 = 0
    others: i64 = 0
    for storage in node._watched():
        if storage is culprit:
            mine += 1
        elif storage.when > node._seq_nr:
            others += 1
    found = (writes - others) // mine if mine > 0 else writes
    return min(max(found, 1), culprit.version)
