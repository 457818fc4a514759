"""Collectives of a group of one process: every result is its own input. Needs no MPI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rushlight.autograd.grad_mode import no_grad
from rushlight.distributed.reduce_op import ReduceOp
from rushlight.distributed.work import Work, finished

__all__ = ["SoloTransport"]
__dir__ = __all__.copy


class SoloTransport:
    """A transport that goes nowhere."""

    name = "solo"
    rank = 0
    size = 1

    def all_reduce(self, tensor: Any, op: ReduceOp, alone: bool) -> Work:
        return finished([tensor])

    def reduce(self, tensor: Any, root: int, op: ReduceOp, alone: bool) -> Work:
        return finished([tensor])

    def reduce_scatter(self, output: Any, inputs: Sequence[Any], op: ReduceOp, alone: bool) -> Work:
        return _copy([output], inputs)

    def broadcast(self, tensor: Any, root: int, alone: bool) -> Work:
        return finished([tensor])

    def all_gather(self, outputs: Sequence[Any], tensor: Any, alone: bool) -> Work:
        return _copy(outputs, [tensor])

    def gather(self, outputs: Sequence[Any] | None, tensor: Any, root: int, alone: bool) -> Work:
        return _copy(outputs or (), [tensor])

    def scatter(self, tensor: Any, inputs: Sequence[Any] | None, root: int, alone: bool) -> Work:
        return _copy([tensor], inputs or ())

    def all_to_all(self, outputs: Sequence[Any], inputs: Sequence[Any], alone: bool) -> Work:
        return _copy(outputs, inputs)

    def barrier(self, alone: bool, seconds: float | None = None) -> Work:
        return finished([])

    def send(self, tensor: Any, to: int, tag: int, alone: bool) -> Work:
        raise RuntimeError("a group of one process has nobody to send to")

    def receive(self, tensor: Any, source: int | None, tag: int, alone: bool) -> Work:
        raise RuntimeError("a group of one process has nobody to receive from")

    def close(self) -> None:
        """There is nothing to give back."""


def _copy(outputs: Sequence[Any], inputs: Sequence[Any]) -> Work:
    with no_grad():
        for output, given in zip(outputs, inputs):
            output.detach().copy_(given.reshape(output.shape))
    return finished(list(outputs))
