"""What a derivative level does with the tensors that enter and leave it.

Note [One tape]
    Levels of `grad` share the tape of the tensors they are given. An input is inside as a leaf
    that has a node: the level's own derivatives end there, and those of the levels around go on
    through it to what the input was made from. So an outer derivative takes up where the inner one
    ended; and what depends on nothing outside leaves without a history.

Note [Lent tensors]
    A transform may write into arguments that it does not differentiate, such as the buffers of a
    module. Each is inside as a tensor of its own in the same memory: what it meets there must
    not become the history of the one outside, except where that history leads outside.
"""

from __future__ import annotations

from typing import Any

from rushlight.autograd.context import without_history
from rushlight.core.graph import Node, TensorBase, factory, new_node, requires_grad, wrap_as
from rushlight.core.record import edge
from rushlight.core.transforms.histories import Entrance, kept_outside
from rushlight.core.transforms.lift import is_tracked, seen_at
from rushlight.core.transforms.stack import TransformLevel, stack
from rushlight.core.transforms.tangents import Tangent, push_view
from rushlight.ops.view.select import ALIAS
from rushlight.trees import tree_map


class Source:
    """An input of a level: the tensor `x` given, the leaf that stands for it, and its node."""

    def __init__(self, x: Any, leaf: Any, node: Node) -> None:
        self.x = x
        self.leaf = leaf
        self.node = node


def track(x: Any, level: TransformLevel) -> Source:
    """Make a tensor an input of the level; see Note [One tape]."""
    if not isinstance(x, TensorBase):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
    if x._array.dtype.kind not in "fcVW":
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    given = x
    x = at_level(x, level)
    target = edge(x) if level.recording and requires_grad(x) else None
    op = Entrance(level)
    nr = x._output_nr if target is not None else 0
    node = new_node(op, (target,), (nr,) if nr != 0 else None, 0 if target is None else 1)
    node._input_shapes = (x._array.shape,)
    node._input_dtypes = (x._array.dtype,)
    leaf = wrap_as(x._array, x._storage)
    if stack.tangents != 0:
        push_view(ALIAS, x, leaf)
    leaf._requires_grad = True
    leaf._node = node
    level.give(given, leaf)
    level.leaves[id(x._storage)] = leaf
    return Source(given, leaf, node)


class Loans:
    """The tensors among the other arguments of a transform; see Note [Lent tensors]. Those with a
    history or a tangent stay as they are: the transform may not write into them."""

    def __init__(self, level: TransformLevel) -> None:
        self.level = level
        self.given: list[Any] = []
        self.inside: list[Any] = []

    def lend(self, tree: Any) -> Any:
        return tree_map(self.lent, tree)

    def lent(self, x: Any) -> Any:
        if type(x) is not factory.cls or is_tracked(x):
            return x
        for given, inside in zip(self.given, self.inside, strict=True):
            if given is x:
                return inside
        inside = wrap_as(x._array, x._storage)
        self.level.give(x, inside)
        self.given.append(x)
        self.inside.append(inside)
        return inside

    def returned(self, t: Any, otherwise: Any) -> Any:
        """What was lent, if `t` stood for it inside."""
        for given, inside in zip(self.given, self.inside, strict=True):
            if t is inside:
                return given
        return otherwise

    def settle(self, results: list[Any]) -> None:
        """After the level: hand on what became of those inside, as the code around sees it."""
        for x, result in zip(self.given, results, strict=True):
            if is_tracked(result):
                version = x._storage.version
                x.copy_(result)
                x._storage.version = version  # no value changed: what was saved of it stands
                if x._view is not None:
                    x._view.version = version


def at_level(x: Any, level: TransformLevel) -> Any:
    """A tensor as the `vmap` around a level sees it: derivatives taken inside are the members'."""
    around: TransformLevel | None = level.outer
    while around is not None and around.batch is None:
        around = around.outer
    return x if around is None else seen_at(x, around.batch)


def history_end(t: Any) -> Any:
    """The node or leaf where the history of a tensor begins; None if it has none."""
    return edge(t) if isinstance(t, TensorBase) and requires_grad(t) else None


def release(
    tensors: list[Any], sources: list[Source], level: TransformLevel, outside: bool
) -> list[Any]:
    """Results of a level as the code around sees them: with a history if that leads outside.
    `outside`: for some of them it may."""
    slopes: list[Any] = []
    if stack.tangents != 0:
        slopes = [r.value for t in tensors for r in records_of(t) if r.value is not None]
    reduce_all = [*tensors, *slopes]
    live = kept_outside([history_end(t) for t in reduce_all], level) if outside else set()
    results = [free(t, sources, live, outside) for t in reduce_all]
    count = len(tensors)
    instead = {id(a): b for a, b in zip(slopes, results[count:], strict=True) if a is not b}
    if instead:
        for t in results[:count]:
            if isinstance(t, TensorBase):
                t._tangent = exchange_tangents(t._tangent, instead)
    return results[:count]


def free(t: Any, sources: list[Source], live: set[Any], outside: bool) -> Any:
    """One result, without a history that is not live."""
    for source in sources:
        if t is source.leaf:
            return source.x if outside or not requires_grad(source.x) else without_history(source.x)
    end = history_end(t)
    return t if end is None or end in live else without_history(t)


def records_of(t: Any) -> list[Tangent]:
    """The tangents of a tensor, innermost level first."""
    found: list[Tangent] = []
    record = t._tangent if isinstance(t, TensorBase) else None
    while record is not None:
        found.append(record)
        record = record.outer
    return found


def exchange_tangents(record: Tangent | None, instead: dict[int, Any]) -> Tangent | None:
    """A chain of records with other values. (Nodes may hold the old one.)"""
    if record is None:
        return None
    value = None if record.value is None else instead.get(id(record.value), record.value)
    outer = exchange_tangents(record.outer, instead)
    return Tangent(record.level, value, record.root, record.ops, outer)
