"""What the files of views share: the parts of which adjoints are made, and views in place."""

from __future__ import annotations

from typing import Any

from rushlight.arrays import vocabulary as v
from rushlight.core.families import Linear
from rushlight.core.graph import Node, TensorBase
from rushlight.core.graph import View as ViewRecord
from rushlight.core.record import apply, make_node, recording
from rushlight.core.transforms.inplace_tangents import turn_tangent
from rushlight.core.transforms.stack import stack
from rushlight.core.views.inplace import check_writable


class Written(Linear):
    """A linear op whose forward writes into a new array: on tensors it must be applied."""

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        t = ts[0]
        return apply(self, t) if isinstance(t, TensorBase) else self.forward(t)


class Embed(Written):
    """Zeros of `shape` with the region that the view op `view` shows replaced by the input."""

    params = ("view", "shape")
    view: Any
    shape: tuple[int, ...]

    def forward(self, g: Any) -> Any:
        out = v.full(g, self.shape, 0, g.dtype)
        v.overwrite(self.view.forward(out), g)
        return out

    def adjoint(self, g: Any, shape: tuple[int, ...]) -> Any:
        return self.view.forward(g)


def embed(cls: Any, view: Any, g: Any, shape: tuple[int, ...]) -> Any:
    """`g` in the region that `view` shows of an array of `shape`, zeros elsewhere."""
    put = cls(view, shape)
    return apply(put, g) if isinstance(g, TensorBase) else put.forward(g)


def view_in_place(op_: Any, target: Any) -> Any:
    """Let a tensor look at its memory another way; no element is written, yet it is a write."""
    check_writable(target, False)
    node: Node | None = make_node(op_, (target,)) if recording() else None
    if stack.tangents != 0:
        turn_tangent(op_, target)
    target._array = op_.forward(target._array)
    target._storage.written()
    view_ = target._view
    if view_ is not None:
        version = target._storage.version if node is not None else view_.version
        target._view = ViewRecord(view_.base, (op_,), view_.how, version, view_)
    if node is not None:  # a kept gradient stays with the old shape, as in PyTorch
        target._node = node
        target._output_nr = 0
        target._requires_grad = False
    return target
