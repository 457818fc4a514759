"""`autograd.grad` of plain tensors, as nearly every call is: without a graph of the gradients,
without hooks on leaves, modes or batches. `autograd.api` checks all other calls, and tells of
mistakes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rushlight.core.engine.engine import Capture, backward
from rushlight.core.engine.observers import begins, leaf_hooks
from rushlight.core.grad_mode import state
from rushlight.core.graph import Node, TensorBase, normal, requires_grad, shape_of, wrap
from rushlight.core.transforms.stack import stack
from rushlight.core.views.history import edge_of_view

_ndarray: Final = np.ndarray
_array: Final[Any] = np.array
_F32: Final = np.dtype(np.float32)
_F64: Final = np.dtype(np.float64)


def grad_of_plain(outputs: Any, inputs: Any, grad_outputs: Any, keep: bool) -> Any:
    """The gradients of float32 and float64 outputs as a tuple, None for inputs that they do not
    depend on; or None, if anything is unusual, and nothing has happened yet."""
    if state.active != 0 or leaf_hooks.count != 0 or begins or stack.tangents != 0:
        return None
    outs = _several(outputs)
    ins = _several(inputs)
    if outs is None or ins is None or len(ins) == 0:
        return None
    n = len(outs)
    given: Any = [None] * n if grad_outputs is None else _several(grad_outputs)
    if given is None or len(given) != n:
        return None
    roots: list[Any] = []
    nrs: list[int] = []
    starts: list[Any] = []
    for i in range(n):
        root, start = _start(outs[i], given[i])
        if root is None or start is None:
            return None
        roots.append(root)
        nrs.append(outs[i]._output_nr)
        starts.append(start)
    captures: list[Capture] = []
    for t in ins:
        target = _target(t)
        if target is None:
            return None
        captures.append(target)
    backward(roots, nrs, starts, keep, False, captures, False)
    return _results(captures, starts, given)


def _several(x: Any) -> list[Any] | None:
    """One tensor or a tuple or list of them, as a list."""
    if isinstance(x, TensorBase):
        return [x]
    if type(x) is tuple or type(x) is list:
        return list(x)
    return None


def _start(out: Any, g: Any) -> tuple[Any, Any]:
    """Where a pass begins and with which raw gradient; None for either: this call is unusual."""
    if not isinstance(out, TensorBase):
        return None, None
    t: TensorBase = out
    x = t._array
    if type(x) is not _ndarray:
        return None, None
    dtype = x.dtype
    if not (dtype is _F32 or dtype is _F64):
        return None, None
    root: Any = t._node
    if t._view is not None:
        root = edge_of_view(t)
    elif root is None and t._requires_grad:
        root = t
    if g is None:
        return root, (_array(1, dtype) if x.ndim == 0 else None)
    if not isinstance(g, TensorBase):
        return None, None
    given: TensorBase = g
    start = given._array
    if type(start) is not _ndarray or start.dtype is not dtype:
        return None, None
    return root, (start if shape_of(given, start) == shape_of(t, x) else None)


def _target(t: Any) -> Capture | None:
    """An input whose gradient is wanted; None if it wants none."""
    if not isinstance(t, TensorBase):
        return None
    x: TensorBase = t
    if not requires_grad(x):
        return None
    edge: Any = x._node
    if x._view is not None:
        edge = edge_of_view(x)
    if edge is None:
        edge = x
    return Capture(edge, x._output_nr if isinstance(edge, Node) else 0)


def _results(captures: list[Capture], starts: list[Any], given: list[Any]) -> tuple[Any, ...]:
    """The gradients as tensors. An array must not be two, which would not know of writes to one
    another."""
    found: list[Any] = []
    for at in range(len(captures)):
        g = captures[at].grad
        t: Any = None
        if g is not None:
            for i in range(len(starts)):
                if starts[i] is g:
                    t = given[i]
            for i in range(at):
                if captures[i].grad is g:
                    t = found[i]
            if t is None:
                t = wrap(g if type(g) is _ndarray else normal(g))
        found.append(t)
    return tuple(found)
