"""One value kept for the backward pass, by an op's node or by a custom function's.

Note [Saved tensors]
    A node must not keep the tensors it made: that would be a cycle. So of each saved tensor it
    keeps the array, the storage with its version, and the edge by which the tensor's gradient
    goes; a leaf it keeps as it is; and of its own output not even the edge, which is itself. Hooks
    in force make of the tensor what they like, and that is kept in its place.

    Custom functions keep a `SavedVariable` each. Nodes of ops, of which there are many more, keep
    the same in fields of their own (Note [Kept versions] in `core.graph`): arrays, storages, and
    one sum of versions; the edges are those of the node. `kept_by_op` gives one of them as a
    `SavedVariable`, for whoever wants the tensor.
"""

from __future__ import annotations

import weakref
from typing import Any

from rushlight.core.engine.accumulate_grad import AccumulateGradBase, accumulate_of
from rushlight.core.graph import (
    DIFFERENTIABLE,
    Node,
    OpSpec,
    Storage,
    TensorBase,
    new_node,
    wrap,
    wrap_as,
)
from rushlight.core.saved.errors import describe_overwritten
from rushlight.core.saved.packed import (
    Packed,
    open_packed,
    pack,
    rebuild,
    refuse_inference,
    saving_now,
)
from rushlight.core.transforms.stack import stack
from rushlight.core.transforms.tangents import visible_record
from rushlight.core.views.history import AsStrided, edge_of_view
from rushlight.native import i64


class SavedVariable:
    """A tensor kept for backward, by PyTorch's name; see Note [Saved tensors]. Whoever keeps it is
    its `owner`: a node, or None."""

    def __init__(self, array: Any, storage: Storage | None, edge: Node | None, nr: i64) -> None:
        self.array: Any = array
        self.storage = storage
        self.version: i64 = 0 if storage is None else storage.version
        self.edge: Node | None = edge  # the node that made it, or a leaf's; None: no other
        self.nr = nr
        self.output: bool = False  # of its owner
        self.tensor: Any = None  # the tensor itself, where it can be kept
        self.seen: Any = None  # weak: the object the user saved, if it is still what it was
        self.packed: Packed | None = None
        self.tangent: Any = None

    def pack(self, pack_hook: Any, unpack_hook: Any, t: TensorBase) -> None:
        """Keep what a hook makes of the tensor, and no longer the tensor."""
        self.packed = pack(pack_hook, unpack_hook, t)
        leaf: Any = self.tensor
        if leaf is not None and leaf._requires_grad:
            self.edge = accumulate_of(leaf)
        self.tensor = self.array = self.storage = self.seen = None

    def unpack(self, owner: Node | None) -> Any:
        """The tensor again, with the history it had; raises if it was written since."""
        maker: Node | None = maker_of(owner) if self.output else self.edge
        if self.packed is not None:
            data = open_packed(self.packed)
            if self.output and data._array.dtype.kind not in DIFFERENTIABLE:
                maker = None  # indices have no history
            return with_history(data, maker, self.nr)
        storage = self.storage
        assert storage is not None
        if storage.version != self.version:
            raise RuntimeError(
                describe_overwritten(self.array, maker, self.nr, storage, self.version, owner)
            )
        if self.tensor is not None:
            return self.tensor
        if self.seen is not None:
            same: Any = self.seen()
            if same is not None and same._node is self.edge and same._array is self.array:
                return same
        t = wrap_as(self.array, storage)
        if maker is not None and self.array.dtype.kind in DIFFERENTIABLE:
            t._node = maker
            t._output_nr = self.nr
        t._tangent = self.tangent
        return t


def save_tensor(t: TensorBase, owner: Node | None) -> SavedVariable:
    """A tensor as its owner keeps it: packed, if hooks are in force."""
    if t._storage.inference:
        refuse_inference()
    edge: Any = edge_of_view(t) if t._view is not None else t._node
    saved = SavedVariable(t._array, t._storage, None, t._output_nr)
    saved.output = edge is not None and edge is owner
    if stack.tangents != 0:
        saved.tangent = visible_record(t)
    if edge is None or isinstance(edge, TensorBase):
        saved.tensor = t
    elif not saved.output:
        saved.edge = edge
        saved.seen = weakref.ref(t)
    saving = saving_now()
    if saving is not None and saving.pack is not None:
        saved.pack(saving.pack, saving.unpack, t)
    return saved


def kept_by_op(node: Node, position: int) -> SavedVariable:
    """Saved value number `position` of an op's node, which is neither None nor a number. Whether it
    was written is not known of it alone: `check_saved` looks at all of them."""
    value: Any = node._kept_values[position]
    plan: OpSpec = node._op.plan
    source: i64 = position if plan.variadic else plan.sources[position]
    end: Any = None
    nr: i64 = -1 - source
    if source >= 0:
        end = node._next_edges[source]
        nr = 0 if node._output_nrs is None else node._output_nrs[source]
    if isinstance(value, Packed):
        if isinstance(end, TensorBase):
            end = accumulate_of(end)
        saved = SavedVariable(None, None, end, nr)
        saved.packed = value
    else:
        if isinstance(end, AccumulateGradBase):
            end = end.variable
        leaf: Any = end if isinstance(end, TensorBase) else None
        saved = SavedVariable(value, storage_of(node, position), end if leaf is None else None, nr)
        if leaf is not None:
            saved.tensor = leaf if leaf._array is value else behind(leaf, value)
    saved.output = source < 0
    return saved


def maker_of(node: Node | None) -> Node | None:
    """The node whose output a kept result is: that of the op, or of a view that it wrote."""
    if node is not None and node._hooks is not None and node._hooks.written is not None:
        found: Node | None = node._hooks.written.node()
        if found is not None:
            return found
    return node


def with_history(data: TensorBase, maker: Node | None, index: i64) -> TensorBase:
    """What an unpack hook returned, with the history of what was packed; a leaf itself, where
    the hooks left it its array."""
    if isinstance(maker, AccumulateGradBase) and maker.variable._array is data._array:
        return maker.variable
    return rebuild(data, maker, index)


def behind(leaf: TensorBase, value: Any) -> TensorBase:
    """The value a leaf had before its `.data` was replaced: its gradient is still the leaf's."""
    t = wrap(value)
    t._node = new_node(AsStrided((), ()), (leaf,), None, 1)
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
