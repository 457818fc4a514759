"""Cutting a batch into pieces for several devices, and putting results together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.core.graph import TensorBase
from rushlight.ops.registry import functions

__all__ = ["gather", "scatter", "scatter_kwargs"]
__dir__ = __all__.copy


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Tensors cut along `dim` into a piece for each device; what is no tensor goes to all.

    >>> torch.nn.parallel.scatter(torch.tensor([1, 2, 3]), ["cpu", "cpu"])
    [tensor([1, 2]), tensor([3])]
    """
    if isinstance(inputs, TensorBase):
        t: Any = inputs
        pieces = t.chunk(len(target_gpus), dim) if len(target_gpus) > 1 else (t,)
        return [piece.to(place) for piece, place in zip(pieces, target_gpus)]
    if isinstance(inputs, tuple) and hasattr(inputs, "_fields"):
        kind = type(inputs)
        return [kind(*parts) for parts in zip(*(scatter(x, target_gpus, dim) for x in inputs))]
    if isinstance(inputs, tuple) and inputs:
        return list(zip(*(scatter(x, target_gpus, dim) for x in inputs)))
    if isinstance(inputs, list) and inputs:
        return [list(parts) for parts in zip(*(scatter(x, target_gpus, dim) for x in inputs))]
    if isinstance(inputs, dict) and inputs:
        pairs = scatter(list(inputs.items()), target_gpus, dim)
        return [type(inputs)(part) for part in pairs]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: Any, kwargs: Any, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """`scatter` of arguments and keyword arguments, as many of the ones as of the others."""
    args = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    args += [()] * (len(named) - len(args))
    named += [{}] * (len(args) - len(named))
    return tuple(args), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The results of several devices put together along `dim`, on one device.

    >>> torch.nn.parallel.gather([torch.ones(1), torch.zeros(2)], "cpu")
    tensor([1., 0., 0.])
    """
    first = outputs[0]
    place = "cpu" if target_device == -1 else target_device
    if isinstance(first, TensorBase):
        parts = [t.reshape(1) if t.ndim == 0 else t for t in outputs]
        return functions["cat"]([t.to(place) for t in parts], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(first) == len(other) for other in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((k, gather([o[k] for o in outputs], place, dim)) for k in first)
    columns = [gather(list(column), place, dim) for column in zip(*outputs)]
    return type(first)(*columns) if hasattr(first, "_fields") else type(first)(columns)
