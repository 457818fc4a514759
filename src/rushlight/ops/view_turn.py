"""In-place view methods: the tensor itself gets another shape over the same memory; and a tensor as
a sequence.

`tensor` may import this.
"""

from __future__ import annotations

from typing import Any

from rushlight.core.graph import Node
from rushlight.core.graph import View as ViewRecord
from rushlight.core.inplace import check_writable
from rushlight.core.record import node_for, recording, slots
from rushlight.core.tangents import turned
from rushlight.ops.arguments import one_dim
from rushlight.ops.table import function, methods
from rushlight.ops.view import (
    AsStrided,
    SqueezeAll,
    SqueezeMany,
    SqueezeOne,
    T,
    Transpose,
    Unsqueeze,
)
from rushlight.ops.view_api import squeeze_op, t_op, unsqueeze_op
from rushlight.ops.view_parts import as_strided_op, unbind


class TInplace(T):
    node = "TBackward1"


class TransposeInplace(Transpose):
    node = "TransposeBackward1"


class UnsqueezeInplace(Unsqueeze):
    node = "UnsqueezeBackward1"


class SqueezeAllInplace(SqueezeAll):
    node = "SqueezeBackward3"


class SqueezeOneInplace(SqueezeOne):
    node = "SqueezeBackward4"


class SqueezeManyInplace(SqueezeMany):
    node = "SqueezeBackward5"


class AsStridedInplace(AsStrided):
    node = "AsStridedBackward1"


def _turn(op_: Any, target: Any) -> Any:
    """Let a tensor look at its memory another way; no element is written, yet it is a write."""
    check_writable(target, False)
    node: Node | None = node_for(op_, (target,), (target.array,)) if recording() else None
    if slots.levels != 0:
        turned(op_, target)
    target.array = op_.forward(target.array)
    target.memory.written()
    view_ = target.as_view
    if view_ is not None:
        version = target.memory.version
        target.as_view = ViewRecord(view_.base, (*view_.ops, op_), view_.how, version)
    if node is not None:
        target.node = node
        target.index = 0
        target.leaf = False
    return target


@function(free=False)
def t_(input: Any) -> Any:
    """t_() -> Tensor

    In-place version of `t`.
    """
    return _turn(t_op(TInplace, input, "t_"), input)


@function(free=False, aliases=("swapdims_", "swapaxes_"))
def transpose_(input: Any, dim0: int, dim1: int) -> Any:
    """transpose_(dim0, dim1) -> Tensor

    In-place version of `transpose`.
    """
    rank = input.array.ndim
    return _turn(TransposeInplace(one_dim(dim0, rank), one_dim(dim1, rank)), input)


@function(free=False)
def unsqueeze_(input: Any, dim: int) -> Any:
    """unsqueeze_(dim) -> Tensor

    In-place version of `unsqueeze`.
    """
    return _turn(unsqueeze_op(UnsqueezeInplace, input, dim), input)


@function(free=False)
def squeeze_(input: Any, dim: Any = None) -> Any:
    """squeeze_(dim=None) -> Tensor

    In-place version of `squeeze`.
    """
    how = (SqueezeAllInplace, SqueezeOneInplace, SqueezeManyInplace)
    return _turn(squeeze_op(input, dim, *how), input)


@function()
def as_strided_(input: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """as_strided_(size, stride, storage_offset=None) -> Tensor

    In-place version of `as_strided`.
    """
    return _turn(as_strided_op(AsStridedInplace, input, size, stride, storage_offset), input)


# --- as a sequence -------------------------------------------------------------------------------
@function(name="__len__", free=False)
def _len(input: Any) -> int:
    """The size of the first dimension."""
    shape = input.array.shape
    if not shape:
        raise TypeError("len() of a 0-d tensor")
    return int(shape[0])


@function(name="__iter__", free=False)
def _iter(input: Any) -> Any:
    """The indices of the first dimension, one after another, as views."""
    if input.array.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(input, 0))


@function(name="__reversed__", free=False)
def _reversed(input: Any) -> Any:
    """The first dimension in reverse order."""
    return input if input.array.ndim == 0 else methods["flip"](input, 0)
