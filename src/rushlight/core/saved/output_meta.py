"""What a node's one output looked like, worked out again from what the node knows.

Nodes of ops with one output do not keep its shape: nothing in a backward pass wants it, and an
op should not pay for what hardly anyone reads (`grad_fn._input_metadata`). It follows from the
shapes of the inputs, which stand in the node, in the leaves, or behind the edges.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.core.families import Elementwise
from rushlight.core.fp_warnings import quietly
from rushlight.core.graph import Node, OpSpec, TensorBase, normal
from rushlight.core.node_api import GraphNode
from rushlight.core.saved.packed import Packed

_HERE: Final = np.zeros(())


def output_of(node: Node) -> tuple[Any, Any, Any]:
    """(shape, dtype, an array on its device) of the output of an op's node."""
    known: dict[Any, Any] = {}
    stack: list[Node] = [node]
    while stack:  # not by recursion: graphs are deep
        top = stack[-1]
        open_ends = [] if top in known else unknown_inputs(top, known)
        if open_ends:
            stack.extend(open_ends)
            continue
        stack.pop()
        if top not in known:
            known[top] = work_out(top, known)
    like = known[node]
    return like.shape, like.dtype, like


def shape_of_input(node: Node, i: int) -> tuple[int, ...]:
    """The shape of input `i`, a tensor, of an op's node; (0,) if none was given, as PyTorch says
    of a bias that is not there."""
    if node._input_shapes is not None and node._input_shapes[i] is not None:
        return tuple(node._input_shapes[i])
    known: dict[Any, Any] = {}
    target: Any = node._next_edges[i]
    if isinstance(target, Node) and target._op is not None and target._output_metas is None:
        known[target] = output_of(target)[2]
    like = input_of(node, i, known)
    return (0,) if like is None else tuple(like.shape)


def unknown_inputs(node: Node, known: dict[Any, Any]) -> list[Node]:
    """The nodes behind the edges whose output must be known first."""
    found: list[Node] = []
    if node._op is None or node._output_metas is not None:
        return found
    for i in range(len(node._next_edges)):
        target = node._next_edges[i]
        if (
            isinstance(target, Node)
            and node._input_shapes is None
            and target._op is not None
            and target._output_metas is None
            and target not in known
        ):
            found.append(target)
            if node._fits_as_is:
                break
    return found


def work_out(node: Node, known: dict[Any, Any]) -> Any:
    """An array like the output: repeat the op on arrays like its inputs."""
    op: Any = node._op
    inputs = [input_of(node, i, known) for i in range(len(node._next_edges))]
    if node._fits_as_is or (len(inputs) == 1 and node._input_shapes is None):
        for x in inputs:
            if x is not None:
                return x
    elementwise = isinstance(op, Elementwise)
    xs = [1 if x is None and elementwise else x for x in inputs]
    try:
        return normal(quietly(op.forward, *xs))
    except Exception as error:
        raise AttributeError(
            f"the shape of the output of {type(node).__name__} is not known any more: {error}"
        ) from error


def input_of(node: Node, i: int, known: dict[Any, Any]) -> Any:
    """An array like input `i`: the input itself where it is saved. None if it was no tensor."""
    plan: OpSpec = node._op.plan
    for j in range(len(node._kept_values)):
        source = j if plan.variadic else plan.sources[j]
        value = node._kept_values[j]
        if source == i and value is not None and not isinstance(value, Packed):
            return value
    target: Any = node._next_edges[i]
    like: Any = None
    if isinstance(target, TensorBase):
        like = target._array
    elif target in known:
        like = known[target]
    elif isinstance(target, Node):
        nr = 0 if node._output_nrs is None else node._output_nrs[i]
        outs = target._output_metas
        out: Any = outs[nr] if outs is not None else _others_output(target)
        if out is not None:
            like = blank(out[2] if len(out) > 2 else None, out[0], out[1])
    shape: Any = None if node._input_shapes is None else node._input_shapes[i]
    if shape is None:
        return like
    dtype: Any = None if node._input_dtypes is None else node._input_dtypes[i]
    return blank(like, shape, dtype if dtype is not None or like is None else like.dtype)


def _others_output(target: Any) -> Any:
    """The output of a node that is not of the op table, or is seen through `shapes` anyway."""
    found: GraphNode = target
    return None if target._op is not None else found._only_output()


def blank(like: Any, shape: Any, dtype: Any) -> Any:
    """Zeros that take the memory of one."""
    return v.broadcast(v.full(_HERE if like is None else like, (), 0, dtype), tuple(shape))
