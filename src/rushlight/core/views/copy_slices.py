"""`CopySlices`, the history of a tensor that was written through a view: see Note [Rebased history]
in `core.views.views`.
"""

from __future__ import annotations

from typing import Any, Final, cast

from rushlight.arrays.host import settled
from rushlight.core.call_site import Where
from rushlight.core.engine.engine import backward_of, free_saved
from rushlight.core.graph import Node, Op, TensorBase, next_number
from rushlight.core.node import fit
from rushlight.core.node_api import GraphNode, visible
from rushlight.core.saved.errors import describe_freed
from rushlight.core.views.history import replay_views
from rushlight.core.views.views import put
from rushlight.native import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class CopySlicesBase(GraphNode):
    """The history of a base that was written through a view; see Note [Rebased history].

    `fn` is the node of the in-place op, as applied to the region alone. `alone` describes the base
    where it had no history before, so that no edge leads to it: (shape, dtype, an empty array).
    """

    fn: Node
    ops: tuple[Op, ...]
    order: tuple[int, ...] | None
    alone: Any = None

    def _run(self, g: Any, tensors: bool) -> Any:
        if self._freed_at is not None:
            raise RuntimeError(describe_freed(self))
        if g is None:
            return [None] * len(self._next_edges)
        fn = self.fn
        seen = replay_views(g, self.ops)
        if not tensors:
            seen = settled(seen)
        part = list(backward_of(fn, seen, tensors))
        for i in range(len(part)):
            if part[i] is not None:
                shape = None if fn._input_shapes is None else fn._input_shapes[i]
                part[i] = fit(
                    part[i], shape, None if fn._input_dtypes is None else fn._input_dtypes[i]
                )
        first = put(g, self.ops, self.order, part[0]) if self._next_edges[0] is not None else None
        return [first, *part[1:]]

    def _only_output(self) -> Any:
        node = self
        base: Any = node._next_edges[0]
        while isinstance(base, CopySlicesBase):  # not by recursion: one write follows another
            node = base
            base = node._next_edges[0]
        if base is None:
            return node.alone
        if isinstance(base, TensorBase):
            return base._array.shape, base._array.dtype, base._array
        if isinstance(base, GraphNode):
            nr = 0 if node._output_nrs is None else node._output_nrs[0]
            return base._only_output() if base._output_metas is None else base._output_metas[nr]
        return super()._only_output()

    def _calls_user(self) -> bool:
        """Whether the write was a custom function's, or what it saved is packed by hooks."""
        return self.fn._op is None or self.fn._has_packed

    def _release(self, where: Where) -> None:
        self._freed_at = where
        free_saved(self.fn, where)


CopySlices: Final[Any] = visible(CopySlicesBase, "CopySlices")


def make_copy_slices(
    fn: Node, ops: tuple[Op, ...], order: tuple[int, ...] | None
) -> CopySlicesBase:
    """A CopySlices around the node of an in-place op; the caller sets its edges."""
    node = cast(CopySlicesBase, CopySlices())
    node.fn = fn
    node.ops = ops
    node.order = order
    node._fits_as_is = True  # it fits its gradients itself
    node._seq_nr = next_number()
    node._code = fn._code
    node._code_offset = fn._code_offset
    return node
