"""Where gradients end: `.grad` of leaves, and of interior tensors that keep theirs.

Note [In place or not]
    As in PyTorch. The first gradient is kept as it is where nobody else holds it and its strides
    are the leaf's (or need not be: `layout.relaxed`), else copied. A later one is added in place,
    so that whoever holds `.grad` sees it; but out of place when gradients are recorded
    (`create_graph`), for they are part of a graph.

Called by the engine, and by a leaf's `AccumulateGrad` node when it is called by hand.
"""

from __future__ import annotations

import _thread
from threading import Lock, local
from typing import Any, Final

import numpy as np

from rushlight.arrays import vocabulary as v
from rushlight.core.graph import TensorBase, asks, wrap
from rushlight.core.modes import within
from rushlight.core.record import normal
from rushlight.core.running import Pass
from rushlight.dtypes import contiguous_format

__all__ = ["accumulate", "keep_grad", "layout", "own_copy", "store"]

layout: Final[Any] = local()  # `relaxed` is set by `autograd.enforce_grad_layout_policy`
_lock: Final = Lock()
_threads: Final = _thread._count
_ndarray: Final = np.ndarray


def store(run: Pass, leaf: TensorBase, g: Any, mine: bool) -> None:
    """Add a gradient to `.grad`; `mine`: nobody else holds the array, so the leaf may keep it."""
    if not asks(leaf):
        return  # it did when the graph was made
    if leaf.node is not None:  # it stopped asking, and was then written with what asks
        raise RuntimeError("leaf variable has been moved into the graph interior")
    if _threads() > 0:
        with _lock:
            _store(run, leaf, g, mine)
    else:
        _store(run, leaf, g, mine)


def _store(run: Pass, leaf: TensorBase, g: Any, mine: bool) -> None:
    if run.tensors:
        accumulate(leaf, g, run.record)
        return
    g = normal(g)
    held: Any = leaf.held
    if held is None:
        like = leaf.array
        if (
            not mine
            or g.base is not None
            or (g.strides != like.strides and not getattr(layout, "relaxed", False))
        ):
            g = own_copy(g, like)
        leaf.held = wrap(g)
    else:
        old: TensorBase = held
        old.array = _added(old.array, g)
        old.memory.written()


def accumulate(leaf: TensorBase, g: TensorBase, record: bool) -> None:
    """`store` of a gradient that is a tensor: part of a graph with `record`, else one that may have
    a tangent, which is added where there is a gradient already, and dropped where there is none."""
    held: Any = leaf.held
    if held is None:
        copied = recorded_copy(g, leaf) if record else wrap(own_copy(g.array, leaf.array))
        leaf.held = copied
    elif record:
        leaf.held = held + g
    else:
        with within(False, False):
            held.add_(g)


def _added(old: Any, g: Any) -> Any:
    if old.base is not None and _overlaps(old):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )
    if not getattr(old.flags, "writeable", True):  # CuPy's arrays do not say
        return old + g
    old += g
    return old


def _overlaps(x: Any) -> bool:
    """Whether an array was expanded: an axis longer than 1 with stride 0."""
    for stride, n in zip(x.strides, x.shape, strict=True):
        if stride == 0 and n > 1:
            return True
    return False


def own_copy(g: Any, like: Any) -> Any:
    """A copy of a gradient in the layout of the leaf it belongs to."""
    if type(g) is _ndarray and like.flags.c_contiguous:
        return g.copy()
    if _overlaps(like):
        return v.laid_out(g, None)
    out = v.empty_as(like, g.dtype)
    if out.shape != g.shape:
        return v.copy(g)
    v.overwrite(out, g)
    return out


def recorded_copy(g: Any, leaf: TensorBase) -> Any:
    """`own_copy` of a gradient that is part of a graph."""
    if _overlaps(leaf.array) or g.array.shape != leaf.array.shape:
        return g.clone(memory_format=contiguous_format)
    copy: Any = wrap(v.empty_as(leaf.array, g.array.dtype))
    return copy.copy_(g)


def keep_grad(t: TensorBase, g: Any, tensors: bool) -> None:
    """`retain_grad`: an interior tensor keeps a copy, and the sum of that and later gradients."""
    held: Any = t.held
    if tensors:
        t.held = g.clone(memory_format=contiguous_format) if held is None else held + g
    elif held is None:
        t.held = wrap(v.laid_out(g.array, None))
    else:
        t.held = wrap(normal(held.array + g.array))
