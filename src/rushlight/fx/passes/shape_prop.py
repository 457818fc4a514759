"""`ShapeProp`: run a graph once, and note the shape and dtype that each node gave."""

from __future__ import annotations

from typing import Any, NamedTuple

import rushlight
from rushlight.fx.interpreter import Interpreter
from rushlight.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]
__dir__ = __all__.copy


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its numbers."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    """The metadata of a tensor."""
    form = None
    if include_contiguity:
        for known in (
            rushlight.contiguous_format, rushlight.channels_last, rushlight.channels_last_3d
        ):  # fmt: skip
            fits = result.ndim == _DIMS.get(str(known), result.ndim)
            if fits and result.is_contiguous(memory_format=known):
                form = known
                break
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), form, False, {}
    )


_DIMS = {"torch.channels_last": 4, "torch.channels_last_3d": 5}


class ShapeProp(Interpreter):
    """Runs a graph, and keeps in `node.meta["tensor_meta"]` what each node gave.

    >>> from rushlight import fx
    >>> from rushlight.fx.passes.shape_prop import ShapeProp
    >>> traced = fx.symbolic_trace(lambda x: x.sum(0))
    >>> y = ShapeProp(traced).propagate(torch.ones(3, 2))
    >>> [node.meta["tensor_meta"].shape for node in traced.graph.nodes]
    [torch.Size([3, 2]), torch.Size([2]), torch.Size([2])]
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        seen = False

        def describe(x: Any) -> Any:
            nonlocal seen
            if isinstance(x, rushlight.Tensor):
                seen = True
                return _extract_tensor_metadata(x)
            return x

        about = map_aggregate(result, describe)
        if seen:
            n.meta["tensor_meta"] = about
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on arguments."""
        return super().run(*args)
