"""`autograd.graph.steps`: the backward pass one node at a time, to be looked at and stopped.

Note [A rehearsal]
    The nodes run as in `backward()`, by the engine's own parts and in the engine's order, but the
    pass belongs to whoever steps through it: no `.grad` is written, no saved value is freed, and
    nothing needs tidying up when it is left in the middle. Hooks that may change gradients are
    called, for what is shown would not be true otherwise. With `accumulate=True` the last step
    hands over all that `backward()` would have stored, in one piece; before it, nothing.

Leaves take their turn as soon as their gradient is complete, as in PyTorch.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from rushlight.arrays.host import settled
from rushlight.autograd.api import as_tuple, first_gradients, root_edge
from rushlight.core.call_site import Where
from rushlight.core.engine.accumulate_grad import accumulate_locked, accumulate_of
from rushlight.core.engine.engine import with_tangents
from rushlight.core.engine.hooks import (
    call_post_accumulate,
    call_post_hooks,
    call_pre_hooks,
    call_tensor_hooks,
    given_to,
    retain,
)
from rushlight.core.engine.ordered import OrderedGraphTask, ReadyQueue
from rushlight.core.engine.traverse import dependencies, end_of
from rushlight.core.grad_mode import state, within
from rushlight.core.graph import Extra, Node, TensorBase
from rushlight.core.node import fit
from rushlight.core.transforms.stack import refuse_inside
from rushlight.errors import hide_insides

__all__ = ["Outgoing", "Step", "Steps", "steps"]
__dir__ = __all__.copy


class Outgoing(NamedTuple):
    """A gradient that a node hands on."""

    grad: Any  # a tensor; None where the rule gives none
    to: Any  # the node it goes to, or the leaf tensor
    output_nr: int  # of that node
    total: Any  # what has arrived there so far, this included


class Step:
    """One node's turn: `grads` come in, its `rule` runs, and `outs` go on. The turn of a leaf has
    `leaf` set, and hands nothing on: there `grads` are what `.grad` is to grow by."""

    def __init__(
        self, number: int, node: Any, grads: tuple[Any, ...], outs: tuple[Outgoing, ...],
        leaf: Any = None,
    ) -> None:  # fmt: skip
        self.number = number  # from 1
        self._node = node
        self.grads = grads
        self.outs = outs
        self.leaf = leaf

    @property
    def node(self) -> Any:
        """The node: a leaf's is its AccumulateGrad."""
        return self._node if self.leaf is None else accumulate_of(self.leaf)

    @property
    def name(self) -> str:
        """The node's name, such as 'MulBackward0'."""
        return "AccumulateGrad" if self.leaf is not None else type(self._node).__name__

    @property
    def where(self) -> Where | None:
        """The line of your program that made the node; None for a leaf's."""
        return None if self.leaf is not None else Where(self._node._code, self._node._code_offset)

    @property
    def rule(self) -> str:
        """What the node does with the gradient g, as a formula where there is one."""
        if self.leaf is not None:
            return ".grad + g"
        # by its name: words for people stand above this layer
        text: str = importlib.import_module("rushlight.explaining").rule_of(self._node)
        return text

    def __repr__(self) -> str:
        words = importlib.import_module("rushlight.explaining")
        came = ", ".join(words.short(g) for g in self.grads)
        if self.leaf is not None:
            return f"<step {self.number}: AccumulateGrad adds {came}>"
        gone = ", ".join(words.short(out.grad) for out in self.outs)
        return f"<step {self.number}: {self.name} makes {gone or 'nothing'} of {came}>"


class Steps(Iterator[Step]):
    """A backward pass that goes on by one node with each `next`; see Note [A rehearsal]."""

    def __init__(self, outputs: Any, gradients: Any, accumulate: bool) -> None:
        if state.level != 0:
            refuse_inside("steps")
        outs = as_tuple(outputs)
        given = (None,) * len(outs) if gradients is None else as_tuple(gradients)
        start = first_gradients(outs, given, False)
        roots = [root_edge(out, i) for i, out in enumerate(outs)]
        tensors = with_tangents()
        task = OrderedGraphTask(True, tensors, None, False)
        task.record = False
        task.queue = ReadyQueue()  # its own, also inside another pass
        task.level = 0
        task.roots = [root for root, _ in roots]
        task.uses = dependencies(task.roots, None, None)
        self._task = task
        self._accumulate = accumulate
        self._stored: list[tuple[Any, Any]] = []
        self._kept: list[tuple[Any, Any]] = []
        self._number = 0
        self._over = False
        for (root, nr), g in zip(roots, start, strict=True):
            self._deliver(root, nr, g if g is None or tensors else settled(g._array))

    def __iter__(self) -> Steps:
        return self

    def __next__(self) -> Step:
        queue = self._task.queue
        if self._over or queue.depth() < 0:
            self._finish()
            raise StopIteration
        end = queue.pop()
        self._number += 1
        try:
            with within(False, False):
                return self._leaf(end) if isinstance(end, TensorBase) else self._run(end)
        except Exception as error:
            self._over, self._accumulate = True, False
            hide_insides(error)
            raise

    def _run(self, node: Any) -> Step:
        """One turn of `GraphTask.run`, with the parts that store left out."""
        task = self._task
        g = task.pending.pop(node)
        hooks = node._hooks
        if hooks is not None:
            for nr, table in list((hooks.tensor_pre or {}).items()):
                if node._output_metas is None:
                    g = call_tensor_hooks(task, table, g)
                else:
                    g[nr] = call_tensor_hooks(task, table, g[nr])
            for nr, reference in (hooks.retain or {}).items():
                self._kept.append((reference, g if node._output_metas is None else g[nr]))
            if hooks.pre:
                g = call_pre_hooks(task, node, hooks.pre, g)
        came = given_to(task, node, g)
        outs = task.as_delivered(node, g, task.evaluate(node, g))
        if hooks is not None and hooks.post:
            shown = node._shown_edges()
            found = tuple(task.as_tensor(outs[i]) for i in shown)
            for i, out in zip(shown, call_post_hooks(task, hooks.post, found, came), strict=True):
                outs[i] = task.as_gradient(out)
        gone = []
        for i, target in enumerate(node._next_edges):
            if target is not None:
                nr = 0 if node._output_nrs is None else node._output_nrs[i]
                gone.append(self._hand_on(node, target, nr, outs[i]))
        return Step(self._number, node, came, tuple(gone))

    def _hand_on(self, node: Any, target: Any, nr: int, out: Any) -> Outgoing:
        task, end = self._task, end_of(target)
        is_node = isinstance(end, Node)
        if not is_node and end._extra is not None and end._extra.swapped > node._seq_nr:
            task.refuse_swapped(end, node)
        before = self._held(end, nr)
        self._deliver(end, nr if is_node else 0, out)
        grad = task.as_tensor(out)
        total = grad if before is None else task.as_tensor(self._held(end, nr))
        return Outgoing(grad, end, nr, total)

    def _held(self, end: Any, nr: int) -> Any:
        """What has arrived at a node's output, or at a leaf; None if nothing has."""
        if not isinstance(end, Node):
            return self._task.leaves.get(end)
        held = self._task.pending.get(end)
        return held[nr] if isinstance(held, list) else held

    def _deliver(self, target: Any, nr: int, g: Any) -> None:
        end = end_of(target)
        if isinstance(end, Node):
            self._task.deliver(end, nr, g)
        else:
            self._task.deliver_leaf(end, g, False)
        self._task.owned.clear()  # what was shown must not be added into

    def _leaf(self, leaf: Any) -> Step:
        task = self._task
        g = task.leaves.pop(leaf)
        extra: Extra | None = leaf._extra
        if extra is not None:
            if extra.grad_dtype is not None and g is not None:
                g = fit(g, None, extra.grad_dtype)
            if extra.hooks:
                g = call_tensor_hooks(task, extra.hooks, g)
            node: Any = None if extra.accumulate is None else extra.accumulate()
            if node is not None and node._hooks is not None and node._hooks.pre:
                g = call_pre_hooks(task, None, node._hooks.pre, g)
        self._stored.append((leaf, g))
        return Step(self._number, None, (task.as_tensor(g),), (), leaf)

    def _finish(self) -> None:
        """The pass is over: store what it found, if that was asked for."""
        self._over = True
        if not self._accumulate:
            return
        self._accumulate = False
        task = self._task
        for reference, g in self._kept:
            t = reference()
            if t is not None and g is not None:
                retain(t, task.as_tensor(g), task.tensors)
        for leaf, g in self._stored:
            if g is not None:
                accumulate_locked(leaf, g, False, task.tensors, False)
            extra = leaf._extra
            if extra is not None and extra.post_accumulate:
                call_post_accumulate(task, extra.post_accumulate, leaf)

    # --- looking around in the middle -------------------------------------------------------------
    @property
    def waiting(self) -> list[tuple[Any, Any]]:
        """What holds gradients and has not had its turn: (node or leaf, gradient so far), newest
        node first. A node with several outputs has a tuple of gradients."""
        task = self._task
        found: list[tuple[Any, Any]] = []
        for node in sorted(task.pending, key=lambda node: -node._seq_nr):
            g = task.pending[node]
            several = isinstance(g, list)
            found.append((node, tuple(map(task.as_tensor, g)) if several else task.as_tensor(g)))
        return found + [(leaf, task.as_tensor(g)) for leaf, g in task.leaves.items()]


def steps(outputs: Any, gradient: Any = None, *, accumulate: bool = False) -> Steps:
    """The backward pass of a tensor (or of several) as an iterator, one `Step` a node.

    Each step has the `node`, its `rule`, the gradients that come in (`grads`), those that go on
    (`outs`: each with `grad`, the node or leaf it goes `to`, and the `total` that has arrived
    there), and the line it is from (`where`). The order is the engine's. You may stop anywhere:
    nothing is written to any `.grad`, and the graph can still be used, as after
    `backward(retain_graph=True)`. With `accumulate=True` the gradients are added to `.grad` when
    the last step was taken, and not before. Hooks are called as in `backward()`.

    `gradient` is what `backward` takes: needed where an output is not a scalar.

    >>> x = torch.tensor(3., requires_grad=True)
    >>> y = (x * 2).sin()
    >>> for step in torch.autograd.graph.steps(y):
    ...     print(step.name, [g.item() for g in step.grads])
    SinBackward0 [1.0]
    MulBackward0 [0.9601702690124512]
    AccumulateGrad [1.9203405380249023]
    >>> x.grad is None
    True
    """
    return Steps(outputs, gradient, accumulate)
