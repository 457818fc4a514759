"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rushlight.core.graph import TensorBase
from rushlight.ops.registry import functions
from rushlight.tensor_types import typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]
__dir__ = __all__.copy


def _same_device(param: Any, seen: Any) -> Any:
    where = param.device
    if seen is not None and where != seen:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported."
        )
    return where


def parameters_to_vector(parameters: Iterable[Any]) -> Any:
    """All parameters flattened, one behind the other.

    >>> torch.nn.utils.parameters_to_vector([torch.ones(2), torch.zeros(1, 1)])
    tensor([1., 1., 0.])
    """
    where = None
    parts = []
    for param in parameters:
        where = _same_device(param, where)
        parts.append(param.view(-1))
    return functions["cat"](parts)


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Let the parameters look at consecutive parts of a vector."""
    if not isinstance(vec, TensorBase):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    where = None
    vector: Any = vec
    at = 0
    for param in parameters:
        where = _same_device(param, where)
        size = param.numel()
        param.data = vector[at : at + size].view_as(param).data
        at += size
