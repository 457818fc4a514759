"""What is known of a pass whose graph was freed: the values of leaves and of tensors that are still
there, and what can be computed again from them."""

from __future__ import annotations

import gc
from typing import Any, Final

from rushlight.core.engine.traverse import end_of
from rushlight.core.grad_mode import within
from rushlight.core.graph import Node, TensorBase
from rushlight.core.record import apply
from rushlight.ops.pointwise.family import Flat
from rushlight.reasons.details import op_name

DEEPEST: Final = 30  # ops that are computed again, one from the other
AT_ZERO: Final = {"sqrt", "rsqrt", "reciprocal", "pow_number"}
BELOW: Final = {"log", "log2", "log10"}
AT_ONE: Final = {"acos", "asin", "atanh"}


class Remains:
    """Values of nodes, as far as they are known."""

    def __init__(self) -> None:
        self.tensors: dict[tuple[int, int], Any] = {}
        for each in gc.get_objects():
            if isinstance(each, TensorBase) and each._node is not None:
                self.tensors[id(each._node), int(each._output_nr)] = each

    def value(self, end: Any, nr: int, user: Any, depth: int = 0) -> Any:
        """The value of a leaf or of a node's output, as `user` was given it; None if unknown."""
        if isinstance(end, TensorBase):
            return end if end._storage.when < user._seq_nr else None
        found = self.tensors.get((id(end), nr))
        if found is not None or not isinstance(end, Node) or end._op is None or depth > DEEPEST:
            return found
        if len(end._next_edges) != 1 or len(end._op.inputs) != 1 or end._output_metas is not None:
            return None
        (x,) = self.inputs(end, depth + 1)
        if x is None:
            return None
        with within(False, False):
            return apply(end._op, x.detach())

    def inputs(self, node: Any, depth: int = 0) -> list[Any]:
        """The values that a node was given; None for those that are not known."""
        found = []
        for i, target in enumerate(node._next_edges):
            nr = 0 if node._output_nrs is None else node._output_nrs[i]
            found.append(None if target is None else self.value(end_of(target), nr, node, depth))
        return found

    def at_pole(self, node: Any) -> Any:
        """A mask of the elements at which the derivative of a node is not finite; None if its
        inputs are not known."""
        name, xs = op_name(node), self.inputs(node)
        which = 1 if name == "div" else 0
        x = xs[which] if which < len(xs) else None
        if x is None:
            return self.result_at_pole(node)
        with within(False, False):
            x = x.detach()
            if name in AT_ZERO or name == "div":
                return x == 0
            if name in BELOW:
                return x <= 0
            if name in AT_ONE:
                return x.abs() == 1
            return x.exp().isinf() if name == "exp" else None

    def result_at_pole(self, node: Any) -> Any:
        """The same, from what the node gave."""
        name, y = op_name(node), self.value(node, 0, node)
        if y is None:
            return None
        with within(False, False):
            y = y.detach()
            if name in ("sqrt", "pow_number"):
                return y == 0
            return y.isinf() if name in BELOW or name in AT_ZERO or name == "exp" else None

    def is_flat(self, node: Any) -> bool | None:
        """Whether a node's derivative is 0 everywhere; None if that is not known."""
        name = op_name(node)
        if isinstance(node._op, Flat) or name.startswith("fill") or name == "zero":
            return True
        y = self.value(node, 0, node)
        if y is None or name not in ("relu", "sigmoid", "tanh", "clamp_numbers", "hardtanh"):
            return None
        with within(False, False):
            y = y.detach()
            if name == "relu":
                flat = y <= 0
            elif name == "tanh":
                flat = y.abs() == 1
            elif name == "sigmoid":
                flat = (y == 0) | (y == 1)
            else:
                (x,) = self.inputs(node)
                if x is None:
                    return None
                flat = x.detach() != y
            return bool(flat.all().item())
