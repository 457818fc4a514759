"""The graph as an object of its own: nodes and edges."""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight.core.graph import Node as _Node
from rushlight.core.graph import TensorBase
from rushlight.core.node import GraphNode as Node
from rushlight.core.node import accumulate_of
from rushlight.core.views import edge_of_view

__all__ = ["GradientEdge", "Node", "get_gradient_edge", "increment_version"]


class GradientEdge(NamedTuple):
    """Where a tensor's gradient goes: output `output_nr` of `node`."""

    node: Any
    output_nr: int


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """The edge of a tensor that requires grad.

    >>> import rushlight as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.autograd.graph.get_gradient_edge(x * 2).node.name()
    'MulBackward0'
    """
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    edge = edge_of_view(tensor) if tensor.as_view is not None else (tensor.node or tensor)
    if isinstance(edge, TensorBase):
        edge = accumulate_of(edge)
    return GradientEdge(edge, int(tensor.index) if isinstance(edge, _Node) else 0)


def increment_version(tensor: Any) -> None:
    """Tell autograd that a tensor's memory was written by something it cannot see.

    >>> import rushlight as torch
    >>> x = torch.ones(2)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for t in [tensor] if isinstance(tensor, TensorBase) else list(tensor):
        t.memory.written()
