"""What the engine needs besides a node's rule: gradients that were not there or have another shape,
saved values that hooks packed, and rules whose results are recorded.

The rule itself is run by `backward_of` in `core.engine.engine`. The node as users meet it is in
`core.node_api`, what it keeps in `core.saved.saved_values`; others import the names of both from
here.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.arrays.kernels import sum_over
from rushlight.core.engine.accumulate_grad import AccumulateGradBase
from rushlight.core.fp_warnings import quietly
from rushlight.core.grad_mode import state, within
from rushlight.core.graph import (
    DIFFERENTIABLE,
    Node,
    Op,
    OpSpec,
    TensorBase,
    next_number,
    requires_grad,
)
from rushlight.core.record import apply, recording
from rushlight.core.saved.packed import Packed, open_packed
from rushlight.core.saved.saved_values import unpack
from rushlight.native import i64

_ndarray: Final = np.ndarray


def anchor(node: Node, outs: Any, saved: tuple[Any, ...], mark: i64) -> Any:
    """Gradients computed from saved tensors that ask for gradients depend on them, even where the
    derivative is zero (relu): differentiating again then gives zeros, not an error.

    `mark` is the number of the last node before the rule ran: what is newer, the rule made.
    """
    asking = [
        j for j in range(len(saved)) if isinstance(saved[j], TensorBase) and requires_grad(saved[j])
    ]
    if not asking or not recording():
        return outs
    plan: OpSpec = node._op.plan
    found: list[Any] = []
    for i in range(len(outs)):
        out = outs[i]
        if isinstance(out, TensorBase):
            ends = ends_of(out, mark)
            bit: i64 = 1 << i if i < 62 else 0
            missing: list[Any] = []
            for j in asking:
                t: TensorBase = saved[j]
                reader: i64 = -1 if plan.variadic else plan.readers[j]
                end: Any = t._node if t._node is not None else t
                if isinstance(end, AccumulateGradBase):
                    end = end.variable
                if reader & bit != 0 and end not in ends:
                    missing.append(t)
            if missing:
                out = apply(Anchor(), out, *missing)
        found.append(out)
    return found


def ends_of(out: TensorBase, mark: i64) -> set[Any]:
    """Where the edges of the nodes newer than `mark` behind `out` lead."""
    ends: set[Any] = {out if out._node is None else out._node}
    stack: list[Any] = [out._node]
    while stack:
        node = stack.pop()
        if isinstance(node, Node) and node._seq_nr > mark:
            for target in node._next_edges:
                if isinstance(target, AccumulateGradBase):
                    target = target.variable
                if target is not None and target not in ends:
                    ends.add(target)
                    stack.append(target)
    return ends


class Anchor(Op):
    """Its first input as it is; the others get a gradient of zeros."""

    name = "zero_derivative"
    aten = None

    def forward(self, x: Any, *others: Any) -> Any:
        return x

    def vjp(self, node: Node, g: Any) -> Any:
        shapes = node._input_shapes
        dtypes = node._input_dtypes
        assert shapes is not None and dtypes is not None
        zeros = [v.full(g, shapes[i], 0, dtypes[i]) for i in range(1, len(shapes))]
        return [g, *zeros]

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        return y * 0 if ts[0] is None else ts[0]


def backward_of_packed(node: Node, g: Any, tensors: bool) -> Any:
    """`backward_of` a node whose saved values were packed by hooks: open them, then its rule."""
    op: Any = node._op
    values = open_values(node, tensors)
    if tensors:
        mark = next_number()
        return anchor(node, op.vjp(node, g, *values), tuple(values), mark)
    # not the cheaper silence of Note [Busy]: that may run a rule twice, and hooks only once
    return quietly(op.vjp, node, g, *values)


def open_values(node: Node, tensors: bool) -> list[Any]:
    """The saved values, each unpack hook called once, in the order in which they were packed."""
    plan: OpSpec = node._op.plan
    values: list[Any] = list(node._kept_values)
    busy = state.busy
    state.busy = False  # the hooks are the user's code: his warnings are his
    try:
        with within(tensors, False):
            for j in list(range(len(values))) if plan.variadic else plan.order:
                value = values[j]
                if tensors:
                    values[j] = unpack(node, j)
                elif isinstance(value, Packed):
                    values[j] = open_packed(value)._array
    finally:
        state.busy = busy
    return values


def materialise(gs: Any, metas: list[Any]) -> Any:
    """Zeros for the outputs that no gradient reached, None if none did. Integers among them, which
    none can reach, stay None: no rule reads those, and they may be large."""
    like: Any = None
    missing = False
    for g in gs:
        if g is None:
            missing = True
        elif like is None:
            like = g
    if not missing:
        return gs
    if like is None:
        return None
    filled: list[Any] = []
    for i in range(len(metas)):
        g = gs[i]
        if g is None:
            shape, dtype = metas[i]
            if dtype.kind in DIFFERENTIABLE:
                g = v.full(like, shape, 0, dtype)
        filled.append(g)
    return filled


def sum_of(g: Any, axes: tuple[int, ...], keep: bool) -> Any:
    """The sum over axes: by a kernel where there is one."""
    if type(g) is _ndarray:
        made = sum_over(axes, keep)(g)
        if made is not None:
            return made
    return v.reduce_sum(g, axes, keep)


def fit(g: Any, shape: Any, dtype: Any) -> Any:
    """A gradient in the shape and dtype of the input it is for: sum what was broadcast."""
    if shape is not None:
        have: tuple[int, ...] = g.shape
        if have != shape:
            lead = len(have) - len(shape)
            axes = list(range(lead))
            for d in range(len(shape)):
                if shape[d] == 1 and have[lead + d] != 1:
                    axes.append(lead + d)
            if axes and len(axes) == lead:  # a bias, most often: the axes in front
                g = sum_of(g, tuple(axes), False)
                lead = 0
            elif axes:
                g = sum_of(g, tuple(axes), True)
            if lead or g.shape != shape:
                g = v.reshape(g, shape)
    if dtype is not None:
        raw = g._array if isinstance(g, TensorBase) else g
        if raw.dtype is not dtype and raw.dtype != dtype:
            g = v.cast(g, dtype)
    return g
