"""What nodes keep for the backward pass: reading it again, and what is wrong if it cannot be.

`OpNode` is the class behind the nodes of all ops: a `GraphNode` whose saved values are those of
its op's plan. Custom functions keep theirs in their own way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rushlight.core.graph import (
    Node,
    TensorBase,
    node_base,
    wrap,
    wrap_as,
)
from rushlight.core.node_api import GraphNode
from rushlight.core.record import watch
from rushlight.core.saved.errors import describe_freed
from rushlight.core.saved.output_meta import output_of
from rushlight.core.saved.overwritten import overwritten
from rushlight.core.saved.packed import Packed, pack
from rushlight.core.saved.saved_names import show
from rushlight.core.saved.saved_tensor import kept_by_op, storage_of
from rushlight.native import mypyc_attr


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
        watch(self, rest)
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
    """A saved value of an op's node: a tensor, a number or None."""
    value = node._kept_values[position]
    if value is None or isinstance(value, (int, float, complex)):
        return value
    found: TensorBase = kept_by_op(node, position).unpack(node)
    if node._kept_tangents is not None and found._tangent is None:
        found._tangent = node._kept_tangents[position]
    return found


def check_saved(node: Node) -> None:
    """Raise if the saved values were freed, or written since they were saved."""
    if node._freed_at is not None:
        raise RuntimeError(describe_freed(node))
    stamp = node._count_versions()
    if stamp != node._version_sum:
        raise RuntimeError(overwritten(node, stamp))
