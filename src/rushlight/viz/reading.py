"""From tensors to a `GraphModel`: a walk over nodes and edges that leaves them as they are."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Any

from rushlight import dtypes
from rushlight.autograd.graph import GradientEdge, get_gradient_edge
from rushlight.autograd.profiler_record import profiled_name
from rushlight.core.call_site import Where
from rushlight.core.engine.accumulate_grad import AccumulateGradBase
from rushlight.core.graph import Node, TensorBase, title_of
from rushlight.core.views.copy_slices import CopySlicesBase
from rushlight.viz.kept import kept_shapes
from rushlight.viz.model import Edge, GraphModel, Item, Place
from rushlight.viz.modules import assign_modules
from rushlight.viz.naming import Names
from rushlight.viz.rules import names_of_inputs
from rushlight.viz.shapes import Like, Shapes

Root = tuple[Any, int, Any]  # a node or a leaf, which of its outputs, and the tensor, if known


def roots_of(ys: Any) -> list[Root]:
    """Where the backward pass would begin: `ys` is a tensor, a node, an edge, or several."""
    several = isinstance(ys, Iterable) and not isinstance(ys, (TensorBase, GradientEdge))
    found: list[Root] = []
    for y in list(ys) if several else [ys]:
        if isinstance(y, TensorBase):
            if not y._requires_grad and y._node is None and not getattr(y, "requires_grad", False):
                raise RuntimeError(
                    "viz.graph(): a tensor does not require grad and has no grad_fn, so there is "
                    "no graph behind it. Draw something that was computed from a tensor with "
                    "requires_grad=True."
                )
            edge = get_gradient_edge(y)
            found.append((_end(edge.node), edge.output_nr, y))
        elif isinstance(y, GradientEdge):
            found.append((_end(y.node), y.output_nr, None))
        elif isinstance(y, Node):
            found.append((_end(y), 0, None))
        else:
            raise TypeError(f"viz.graph() draws tensors, nodes and edges, not {type(y).__name__}")
    if not found:
        raise ValueError("viz.graph(): nothing to draw, the list of tensors is empty")
    return found


def _end(target: Any) -> Any:
    return target.variable if isinstance(target, AccumulateGradBase) else target


def nodes_behind(roots: list[Root]) -> list[Any]:
    """All nodes that lead to the roots, each after those that it was made from."""
    seen: dict[Any, int] = {}
    stack = [root for root, _, _ in roots if isinstance(root, Node)]
    uses: dict[Any, list[Any]] = {}
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        ends = {_end(t) for t in node._next_edges if isinstance(_end(t), Node)}
        seen[node] = len(ends)
        for end in ends:
            uses.setdefault(end, []).append(node)
        stack.extend(ends)
    ready = [(int(node._seq_nr), i, node) for i, (node, n) in enumerate(seen.items()) if n == 0]
    heapify(ready)
    order: list[Any] = []
    ties = len(seen)
    while ready:
        node = heappop(ready)[2]
        order.append(node)
        for user in uses.get(node, ()):
            seen[user] -= 1
            if seen[user] == 0:
                ties += 1
                heappush(ready, (int(user._seq_nr), ties, user))
    return order


def read(
    roots: list[Root], names: Names, constants: bool = True, spans: Any = None
) -> tuple[GraphModel, Shapes]:
    """The model of the graph behind `roots`; `spans` tells which modules made which nodes."""
    model, shapes = GraphModel(classes=dict(names.classes)), Shapes()
    order = nodes_behind(roots)
    numbers = {node: i for i, node in enumerate(order)}
    for i, node in enumerate(order):
        model.items.append(_item_of(i, node, names, shapes))
    reader = _Reader(model, shapes, names, numbers)
    for i, node in enumerate(order):
        reader.read_edges(i, node, constants)
    for at, (root, nr, tensor) in enumerate(roots):
        reader.read_root(root, nr, tensor, f"output {at}" if len(roots) > 1 else "output")
    assign_modules(model, spans)
    return model, shapes


def _item_of(i: int, node: Any, names: Names, shapes: Shapes) -> Item:
    op = node._op
    kind = "op" if op is not None or isinstance(node, CopySlicesBase) else "function"
    title = title_of(node) if op is None else profiled_name(type(op)).rpartition("::")[2]
    if isinstance(node, CopySlicesBase):
        title = "write into a view"
    item = Item(i, kind, title, names.of_output(node, 0), graph_node=node)
    _set_like(item, shapes.of_output(node, 0))
    if node._code is not None:
        item.place = place_of(node)
    item.details = _details(node, op)
    item.kept = kept_shapes(node)
    if node._output_metas is not None and len(node._output_metas) > 1:
        item.details["outputs"] = f"{len(node._output_metas)}, the first of which is shown here"
    return item


_places: dict[Any, Place] = {}


def place_of(node: Any) -> Place:
    """The line that made a node; one object for each line."""
    key = (node._code, node._code_offset)
    found = _places.get(key)
    if found is None:
        if len(_places) > 10000:  # notebooks that run for days
            _places.clear()
        where = Where(node._code, node._code_offset)
        found = _places[key] = Place(where.file, where.line, where.function, where.source)
    return found


def _set_like(item: Item, like: Like | None) -> None:
    if like is not None:
        item.shape = tuple(like[0])
        try:
            item.dtype = str(dtypes.of(like[1])).removeprefix("torch.")
        except (KeyError, TypeError, ValueError):  # a dtype that no tensor has
            item.dtype = str(like[1])


def _details(node: Any, op: Any) -> dict[str, str]:
    """An op's parameters, and the numbers among its operands, as text."""
    if op is None:
        return {}
    values = {p: getattr(op, p, None) for p in op.params}
    found = {p: _short(value) for p, value in values.items() if value is not None}
    if not op.plan.variadic:
        for name, value in zip(op.saves, node._kept_values):
            if isinstance(value, (int, float, complex)):
                found[name] = _short(value)
    return found


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


class _Reader:
    """Adds leaves, constants and outputs to a model, and the edges between all of them."""

    def __init__(
        self, model: GraphModel, shapes: Shapes, names: Names, numbers: dict[Any, int]
    ) -> None:
        self.model = model
        self.shapes = shapes
        self.names = names
        self.numbers = numbers
        self.others: dict[int, int] = {}  # id of a tensor or array -> its item

    def read_edges(self, i: int, node: Any, constants: bool) -> None:
        """The inputs of one node."""
        op = node._op
        count = len(node._next_edges)
        titles = [""] * count if op is None else names_of_inputs(op, count)
        nrs = node._output_nrs
        for at in range(count):
            end = _end(node._next_edges[at])
            if end is None:
                continue
            nr = 0 if nrs is None else int(nrs[at])
            self.model.edges.append(Edge(self.number_of(end), i, at, titles[at], nr))
        if constants and op is not None and not op.plan.variadic:
            for source, value in zip(op.plan.sources, node._kept_values):
                if 0 <= source < count and node._next_edges[source] is None:
                    self.read_constant(i, source, titles[source], value)

    def read_constant(self, i: int, at: int, title: str, value: Any) -> None:
        """A tensor of the user's that wants no gradient, which a node keeps for others' ones."""
        name = self.names.of_array(value)  # what has no name was made on the way: a mask, zeros
        if not name:
            return
        number = self.others.get(id(value))
        if number is None:
            number = self.add("constant", name, value)
            _set_like(self.model.items[number], (tuple(value.shape), value.dtype))
            self.others[id(value)] = number
        self.model.edges.append(Edge(number, i, at, title))

    def read_root(self, root: Any, nr: int, tensor: Any, title: str) -> None:
        """An output: what the user holds."""
        name = self.names.of_tensor(tensor) if tensor is not None else ""
        if not name and isinstance(root, Node):
            name = self.names.of_output(root, nr)
        number = self.add("output", name or title, tensor)
        source = self.number_of(root)
        like = None
        if tensor is not None:
            like = (tuple(tensor._array.shape), tensor._array.dtype)
        elif isinstance(root, Node):
            like = self.shapes.of_output(root, nr)
        _set_like(self.model.items[number], like)
        self.model.edges.append(Edge(source, number, 0, "", nr))

    def number_of(self, end: Any) -> int:
        """The item of a node or leaf."""
        if isinstance(end, Node):
            return self.numbers[end]
        number = self.others.get(id(end))
        if number is None:
            number = self.add_leaf(end)
            self.others[id(end)] = number
        return number

    def add_leaf(self, leaf: Any) -> int:
        from rushlight.nn.parameter import Parameter

        kind = "parameter" if isinstance(leaf, Parameter) else "leaf"
        number = self.add(kind, self.names.of_tensor(leaf) or kind, leaf)
        item = self.model.items[number]
        item.module = self.names.module_of(leaf)
        _set_like(item, (tuple(leaf._array.shape), leaf._array.dtype))
        return number

    def add(self, kind: str, title: str, thing: Any) -> int:
        number = len(self.model.items)
        self.model.items.append(Item(number, kind, title, graph_node=thing))
        return number
