"""Find a pattern in a graph, and write something else in its place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from rushlight.fx._symbolic_trace import symbolic_trace
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, nodes_in

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]
__dir__ = __all__.copy


class Match(NamedTuple):
    """Where a pattern was found: the node that ends it, and which node stands for which."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A match, and the nodes that took its place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _graph_of(x: Any) -> Graph:
    if isinstance(x, Graph):
        return x
    return x.graph if isinstance(x, GraphModule) else symbolic_trace(x).graph


class _Search:
    """One attempt to lay a pattern over a graph."""

    def __init__(self, pattern: Graph, gm: GraphModule, free_numbers: bool) -> None:
        self.output = pattern.output_node()
        self.gm = gm
        self.free_numbers = free_numbers
        self.found: dict[Node, Any] = {}

    def same(self, want: Any, got: Any) -> bool:
        if isinstance(want, Node):
            return self.same_node(want, got)
        if isinstance(want, (list, tuple)):
            if not isinstance(got, (list, tuple)) or len(want) != len(got):
                return False
            return all(map(self.same, want, got))
        if isinstance(want, dict):
            if not isinstance(got, dict) or want.keys() != got.keys():
                return False
            return all(self.same(want[k], got[k]) for k in want)
        if isinstance(want, slice):
            return isinstance(got, slice) and all(
                self.same(getattr(want, k), getattr(got, k)) for k in ("start", "stop", "step")
            )
        if self.free_numbers and not isinstance(got, Node):
            return True
        return type(want) is type(got) and bool(want == got)

    def same_node(self, want: Node, got: Any) -> bool:
        if want in self.found:
            return self.found[want] is got
        if want.op == "placeholder":  # stands for anything
            self.found[want] = got
            return True
        if not isinstance(got, Node) or want.op != got.op or not self.same_target(want, got):
            return False
        before = dict(self.found)
        self.found[want] = got
        if self.same(want.args, got.args) and self.same(want.kwargs, got.kwargs):
            return True
        self.found = before
        return False

    def same_target(self, want: Node, got: Node) -> bool:
        if want.op == "call_module":
            owner = want.graph.owning_module
            theirs, ours = owner.get_submodule(want.target), self.gm.get_submodule(got.target)
            return type(theirs) is type(ours)
        if want.op == "get_attr":
            return True
        return bool(want.target == got.target)

    def is_closed(self) -> bool:
        """Whether nobody outside uses what would be replaced, but for the results."""
        results = {self.found[n] for n in nodes_in(self.output.args) if n in self.found}
        inner = {x for n, x in self.found.items() if n.op != "placeholder"}
        return all(user in inner for x in inner - results for user in x.users)


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace each part of a graph that computes `pattern` by `replacement`: two functions of the
    same arguments.

    >>> from rushlight import fx
    >>> traced = fx.symbolic_trace(lambda x: torch.relu(x) + torch.relu(x * 2))
    >>> found = fx.replace_pattern(traced, lambda x: torch.relu(x), lambda x: torch.tanh(x))
    >>> print(traced.code.strip())
    def forward(self, x):
        mul = x * 2
        tanh = torch.tanh(x);  x = None
        tanh_1 = torch.tanh(mul);  mul = None
        add = tanh + tanh_1;  tanh = tanh_1 = None
        return add
    """
    found = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(x.anchor, x.nodes_map) for x in found]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Any, replacement: Any = None, match_filters: Any = None,
    ignore_literals: bool = False, replacement_callback: Callable[..., Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:  # fmt: skip
    """`replace_pattern` where each of `match_filters`, called with the match, the graph and the
    pattern, agrees."""
    graph, wanted = gm.graph, _graph_of(pattern)
    matches = _matches(gm, wanted, ignore_literals)
    matches = [
        m for m in matches
        if all(f(Match(m[0], m[1]), graph, wanted) for f in match_filters or [])
    ]  # fmt: skip
    done: list[ReplacedPatterns] = []
    changed: dict[Node, Node] = {}  # what was replaced may be the input of a later match
    for anchor, nodes in matches:
        if replacement_callback is not None:
            new = replacement_callback(Match(anchor, nodes), graph, wanted)
        else:
            new = _graph_of(replacement)
        done.append(_replace(gm, wanted, new, anchor, nodes, changed))
    gm.recompile()
    if not isinstance(replacement, Graph) and hasattr(replacement, "named_modules"):
        _add_parts(gm, replacement)
    gm.graph.lint()
    return done


def _matches(
    gm: GraphModule, pattern: Graph, free_numbers: bool
) -> list[tuple[Node, dict[Node, Any]]]:
    """All that do not overlap, in order."""
    ends = list(nodes_in(pattern.output_node().args))
    taken: set[Any] = set()
    found: list[tuple[Node, dict[Node, Any]]] = []
    for node in gm.graph.nodes:
        search = _Search(pattern, gm, free_numbers)
        if not ends or not search.same_node(ends[0], node) or ends[0].op == "placeholder":
            continue
        if not all(_some(search, end, gm) for end in ends[1:]) or not search.is_closed():
            continue
        inner = {x for n, x in search.found.items() if n.op != "placeholder"}
        if not inner & taken:
            taken |= inner
            found.append((ends[0], search.found))
    return found


def _some(search: _Search, end: Node, gm: GraphModule) -> bool:
    """Whether some node fits another result of the pattern."""
    return end in search.found or any(search.same_node(end, node) for node in gm.graph.nodes)


def _replace(
    gm: GraphModule, pattern: Graph, new: Graph, anchor: Node, nodes: dict[Node, Any],
    changed: dict[Node, Node],
) -> ReplacedPatterns:  # fmt: skip
    graph = gm.graph
    inputs = [n for n in pattern.nodes if n.op == "placeholder"]
    known: dict[Node, Any] = {}
    for mine, theirs in zip((n for n in new.nodes if n.op == "placeholder"), inputs, strict=True):
        value = nodes.get(theirs)
        known[mine] = changed.get(value, value) if isinstance(value, Node) else value
    ends = list(nodes_in(pattern.output_node().args))
    first = _first_user([nodes[end] for end in ends])
    before = set(graph.nodes)
    with graph.inserting_before(first):
        result = graph.graph_copy(new, known)
    added = [n for n in graph.nodes if n not in before]
    for old, value in zip(ends, nodes_in((result,)), strict=True):
        nodes[old].replace_all_uses_with(value)
        changed[nodes[old]] = value
    for node in reversed(pattern.nodes):
        found = nodes.get(node)
        if node.op in ("placeholder", "output") or not isinstance(found, Node):
            continue
        if not found.users and not found._erased:
            graph.erase_node(found)
    return ReplacedPatterns(anchor, nodes, added)


def _first_user(results: list[Node]) -> Node:
    """The first node that uses one of the results: what is new stands before it."""
    users = {user for x in results for user in x.users}
    if not users:
        return max(results, key=lambda n: n._position()).next
    return min(users, key=lambda n: n._position())


def _add_parts(gm: GraphModule, replacement: Any) -> None:
    """Modules and parameters that the replacement has and the module lacks."""
    from rushlight.fx.graph_module import _copy_attr

    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr") and not _has(gm, node.target):
            _copy_attr(replacement, gm, node.target)


def _has(module: Any, target: str) -> bool:
    for part in target.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True
