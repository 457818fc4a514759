"""The memory of tensors, as transports read and write it: flat, on the host, nothing put off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rushlight.arrays.host import in_memory, put_off
from rushlight.autograd.grad_mode import no_grad
from rushlight.autograd.graph import increment_version
from rushlight.ops.registry import functions

__all__ = ["bytes_of", "flat", "host_copy", "landing", "write_back"]
__dir__ = __all__.copy


def is_plain(tensor: Any) -> bool:
    """Whether a tensor's own memory will do: on the host, row by row, nothing put off."""
    return (
        tensor.device.type == "cpu"
        and not put_off(tensor._array)
        and not tensor.is_sparse
        and tensor.is_contiguous()
    )


def host_copy(tensor: Any) -> Any:
    """A tensor that can be read as it lies: itself, or a copy."""
    if is_plain(tensor):
        return tensor.detach()
    return tensor.detach().to("cpu").resolve_conj().resolve_neg().contiguous()


def landing(tensor: Any, load: bool = True) -> Any:
    """A tensor that a transport may write: itself, or one to be given to `write_back`."""
    if is_plain(tensor):
        return tensor.detach()
    if load:
        return host_copy(tensor).clone()
    return functions["empty"](tuple(tensor.shape), dtype=tensor.dtype)


def write_back(tensor: Any, landed: Any) -> None:
    """The numbers that landed, in the tensor they are for; autograd is told of the write."""
    if in_memory(tensor._array) is in_memory(landed._array) or is_plain(tensor):
        increment_version(tensor)
        return
    with no_grad():
        tensor.detach().copy_(landed)


def flat(tensor: Any) -> Any:
    """The raw array of a plain tensor, as a row."""
    return in_memory(tensor._array).reshape(-1)


def bytes_of(tensor: Any) -> Any:
    """The bytes of a plain tensor, as a row."""
    return flat(tensor).view("u1")


def row_of(tensors: Sequence[Any], load: bool = True) -> tuple[Any, Callable[[], None]]:
    """Memory for several tensors one behind the other, and how to bring it back to them."""
    sizes = [t.numel() for t in tensors]
    row = functions["empty"]((sum(sizes),), dtype=tensors[0].dtype)
    parts = row.split(sizes)
    if load:
        for part, t in zip(parts, tensors):
            part.copy_(t.detach().reshape(-1))

    def bring_back() -> None:
        with no_grad():
            for part, t in zip(parts, tensors):
                t.detach().copy_(part.reshape(t.shape))

    return row, bring_back
