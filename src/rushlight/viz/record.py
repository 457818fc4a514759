"""Watching backward passes for a picture: what flowed through each edge, and what nodes kept.

Nothing here is reached while no recording is on. A pass frees what nodes keep, so kept values are
noted on the way too.
"""

from __future__ import annotations

from typing import Any

from rushlight import dtypes
from rushlight.autograd.api import grad
from rushlight.autograd.graph import GradientEdge
from rushlight.core.engine.accumulate_grad import AccumulateGradBase
from rushlight.core.engine.observers import PassObserver, observe, stop_observing
from rushlight.core.graph import Node, TensorBase, next_number
from rushlight.viz.kept import kept_values
from rushlight.viz.modules import Span
from rushlight.viz.naming import Names
from rushlight.viz.reading import Root, nodes_behind
from rushlight.viz.shapes import Shapes
from rushlight.viz.values import describe

_MOST_CALLS = 50000  # of modules that are remembered


class Recording:
    """What `viz.record()` saw: of backward passes the last one, and calls of modules.

    >>> w = torch.tensor([1., 2.], requires_grad=True)
    >>> loss = (w * w).sum()
    >>> with torch.viz.record() as seen:
    ...     loss.backward()
    >>> [node.name() for node in seen.order]
    ['SumBackward0', 'MulBackward0']
    >>> print(seen.graph())
    graph of loss: 2 nodes, 1 leaf
    """

    def __init__(self, values: bool = True) -> None:
        self.values = values
        self.order: list[Any] = []  # the nodes of the last pass, as they ran
        self.received: dict[Any, list[Any]] = {}  # node -> its outputs' gradients, described
        self.sent: dict[tuple[Any, int], Any] = {}  # node and input -> the gradient, described
        self.kept: dict[Any, Any] = {}  # node -> what it kept, described
        self._calls: list[tuple[int, int, Any]] = []
        self._open: list[tuple[int, Any]] = []
        self._handles: list[Any] = []
        self._running = 0  # passes that go on now, one inside the other

    # --- on and off -------------------------------------------------------------------------------
    def __enter__(self) -> Recording:
        from rushlight.nn.modules import everywhere  # modules may not be in use at all

        observe(self._begin)
        self._handles = [
            everywhere.register_module_forward_pre_hook(self._enter_module),
            everywhere.register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        stop_observing(self._begin)
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._open.clear()

    def _begin(self) -> PassObserver:
        if self._running == 0:  # else it is one that a custom function runs inside another
            self.order = []
            self.received, self.sent, self.kept = {}, {}, {}
        self._running += 1
        return _Watcher(self)

    def _enter_module(self, module: Any, args: Any) -> None:
        self._open.append((int(next_number()), module))

    def _leave_module(self, module: Any, args: Any, output: Any) -> None:
        while self._open:
            first, opened = self._open.pop()
            if opened is module:
                self._calls.append((first, int(next_number()), module))
                break
        if len(self._calls) > _MOST_CALLS:
            del self._calls[: _MOST_CALLS // 2]

    def _spans(self, names: Names) -> list[Span]:
        """The calls of modules, by the names that these have."""
        found: list[Span] = []
        for first, last, module in self._calls:
            path = names.paths.get(id(module), (type(module).__name__,))
            found.append((first, last, path))
        return found

    # --- what it saw ------------------------------------------------------------------------------
    @property
    def roots(self) -> list[Any]:
        """The nodes that the last pass began with."""
        reached = {t for node in self.order for t in node._next_edges if isinstance(t, Node)}
        return [node for node in self.order if node not in reached]

    def graph(self, params: Any = None) -> Any:
        """The picture of the last pass: see `viz.graph`."""
        from rushlight.viz.graph import graph

        if not self.order:
            raise RuntimeError("no backward pass ran inside viz.record(), so there is none to draw")
        return graph(self.roots, params, recorded=self)


class _Watcher(PassObserver):
    """Notes one pass."""

    def __init__(self, into: Recording) -> None:
        self.into = into

    def before_rule(self, node: Node, g: Any) -> None:
        self.into.order.append(node)
        if self.into.values:
            several = g if isinstance(g, list) else [g]
            self.into.received[node] = [describe(x) for x in several]
            self.into.kept[node] = kept_values(node)

    def after_node(self, node: Node, outs: Any) -> None:
        if self.into.values:
            for i, out in enumerate(outs):
                if out is not None:
                    self.into.sent[node, i] = describe(out)

    def finish(self) -> None:
        self.into._running -= 1


def record(values: bool = True) -> Recording:
    """Watch the backward passes of a `with` block: `with viz.record() as seen: loss.backward()`.

    Give the recording to `viz.graph(loss, recorded=seen)`, or ask it for `seen.graph()`: the page
    then shows the gradient on every edge. Modules that are called inside the block are known to the
    picture by name. `values=False` notes the order of nodes alone, for programs with many passes.
    """
    return Recording(values)


def record_pass(roots: list[Root], gradients: Any = None) -> Recording:
    """A pass from `roots`, made to be looked at: it touches no `.grad` and frees nothing."""
    seen = Recording()
    leaves: dict[int, Any] = {}
    outputs: list[Any] = []
    for root, nr, tensor in roots:
        if isinstance(root, TensorBase):
            leaves[id(root)] = root
        outputs.append(tensor if tensor is not None else GradientEdge(root, nr))
    for node in nodes_behind(roots):
        for target in node._next_edges:
            leaf = target.variable if isinstance(target, AccumulateGradBase) else target
            if isinstance(leaf, TensorBase):
                leaves[id(leaf)] = leaf
    if gradients is None:
        like = next(iter(leaves.values()))  # a tensor on the device of all of them
        gradients = [_ones(root, nr, tensor, like) for root, nr, tensor in roots]
    observe(seen._begin)  # without the calls of modules: they are over
    try:
        grad(
            tuple(outputs), tuple(leaves.values()),
            tuple(gradients) if isinstance(gradients, (list, tuple)) else (gradients,),
            retain_graph=True, allow_unused=True,
        )  # fmt: skip
    finally:
        stop_observing(seen._begin)
    return seen


def _ones(root: Any, nr: int, tensor: Any, like: Any) -> Any:
    """A gradient of ones for one output."""
    if tensor is not None:
        return tensor.detach().new_ones(tensor.shape)
    shape, dtype = Shapes().of_outputs(root)[nr]
    return like.detach().new_ones(shape, dtype=dtypes.of(dtype))
