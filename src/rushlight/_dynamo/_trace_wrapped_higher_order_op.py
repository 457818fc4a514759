"""`torch._dynamo._trace_wrapped_higher_order_op`: for masks made by `vmap`."""

from contextlib import nullcontext

__all__: list[str] = []
__dir__ = __all__.copy


class TransformGetItemToIndex(nullcontext[None]):
    """Lets a tensor be indexed by members of a batch inside `vmap`, which works here as it is."""
