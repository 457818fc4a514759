"""What is said of an error that passes through a backward pass: whose it is, in PyTorch's words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rushlight.core.call_site import Where
from rushlight.core.engine.accumulate_grad import accumulate_of
from rushlight.core.graph import Node, TensorBase
from rushlight.errors import advise, broadcast_mismatch

if TYPE_CHECKING:
    from rushlight.core.engine.engine import GraphTask


def blame(task: GraphTask, node: Node, error: BaseException) -> None:
    """Say which forward line an error belongs to that is passing through."""
    if isinstance(error, Exception):
        made = str(Where(node._code, node._code_offset))
        if made not in str(error):  # else the error itself says whose it is
            advise(error, f"in the backward of {type(node).__name__}, made at {made}")
        if task.observer is not None:
            task.observer.failed(node)


def blame_leaf(task: GraphTask, leaf: TensorBase, error: BaseException) -> None:
    """Say whose hooks they were."""
    if isinstance(error, Exception):
        shape = list(leaf._array.shape)
        advise(error, f"in giving a leaf of shape {shape} its gradient, or in its hooks")
        if task.observer is not None:
            task.observer.failed(accumulate_of(leaf))


def broadcast_error(error: BaseException) -> RuntimeError | None:
    """PyTorch's error for NumPy's about shapes that do not fit: a hook unpacked a wrong one."""
    shapes = re.findall(r"\(([\d,]*)\)", str(error)) if isinstance(error, ValueError) else []
    if len(shapes) < 2 or "could not be broadcast" not in str(error):
        return None
    a, b = [[int(n) for n in shape.split(",") if n] for shape in shapes[:2]]
    return RuntimeError(broadcast_mismatch(a, b))


def describe_swapped() -> RuntimeError:
    """An edge leads to a leaf that has become another tensor since the edge was made."""
    return RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can "
        "happen when you try to run backward on a tensor that was swapped. For a module m with "
        "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change "
        "the device or dtype of the module (e.g. `m.cpu()` or `m.half()`) between running "
        "forward and backward. To resolve this, please only change the device/dtype before "
        "running forward (or after both forward and backward)."
    )
