"""`Node`: one operation of a graph, with its arguments and those who use its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from rushlight.fx.immutable_collections import immutable_dict, immutable_list
from rushlight.fx.names import annotation_name, qualified_name

if TYPE_CHECKING:
    from rushlight.fx.graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]
__dir__ = __all__.copy

Argument = Any
Target = Callable[..., Any] | str

_LEGAL: Final = (
    "placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root",
)  # fmt: skip
_side_effectful_functions: Final[set[Any]] = set()


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Keep calls of a function in graphs even where nobody uses their results.

    >>> from rushlight import fx
    >>> fx.has_side_effect(print) is print
    True
    """
    _side_effectful_functions.add(fn)
    return fn


_get_qualified_name = qualified_name


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Apply a function to each leaf of nested tuples, lists, dicts and slices.

    >>> from rushlight.fx.node import map_aggregate
    >>> map_aggregate((1, [2, {"a": 3}]), lambda x: x * 10)
    (10, [20, {'a': 30}])
    """
    if isinstance(a, tuple):
        parts = [map_aggregate(x, fn) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list(map_aggregate(x, fn) for x in a)
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(v, fn)) for k, v in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Apply a function to each node in an argument.

    >>> from rushlight import fx
    >>> x = fx.Graph().placeholder("x")
    >>> fx.map_arg((x, [1, x]), lambda node: node.name)
    ('x', [1, 'x'])
    """
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


class Node:
    """One operation of a `Graph`.

    `op` says which kind: "placeholder" (an input), "get_attr" (a parameter), "call_function",
    "call_method", "call_module" or "output"; `target` is what is called or read; `args` and
    `kwargs` may hold other nodes. `users` are the nodes that use this one, `meta` is yours.

    >>> from rushlight import fx
    >>> graph = fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
    >>> for node in graph.nodes:
    ...     print(node.op, node.name, node.args)
    placeholder x ()
    call_function relu (x,)
    call_function add (relu, 1)
    output output (add,)
    """

    def __init__(
        self, graph: Graph, name: str, op: str, target: Any, args: tuple[Any, ...],
        kwargs: dict[str, Any], return_type: Any = None,
    ) -> None:  # fmt: skip
        if op not in _LEGAL:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                    f"{type(target).__name__} but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target).__name__} but a str is expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self._prev: Node = self
        self._next: Node = self
        self._update_args_kwargs(args, kwargs)

    # --- place in the graph ---------------------------------------------------------------------
    @property
    def next(self) -> Node:
        """The node behind this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move `x` to stand right before this node."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move `x` to stand right behind this node."""
        self._next.prepend(x)

    def _remove_from_list(self) -> None:
        before, after = self._prev, self._next
        before._next, after._prev = after, before

    def __lt__(self, other: Node) -> bool:
        """Whether this node stands before another."""
        return self._position() < other._position()

    def __gt__(self, other: Node) -> bool:
        return self._position() > other._position()

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    def _position(self) -> int:
        for i, node in enumerate(self.graph.nodes):
            if node is self:
                return i
        return -1

    # --- arguments ------------------------------------------------------------------------------
    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments. Assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, args: tuple[Any, ...]) -> None:
        self._update_args_kwargs(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by name. Assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._update_args_kwargs(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def _update_args_kwargs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        found: dict[Node, None] = {}

        def note(x: Any) -> Any:
            if isinstance(x, Node):
                found.setdefault(x)
            return x

        self._args = map_aggregate(tuple(args), note)
        self._kwargs = map_aggregate(dict(kwargs), note)
        self._input_nodes = found
        for node in found:
            node.users.setdefault(self)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace one positional argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Put a positional argument before the one at `idx`."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Replace, or add, one argument by name."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Any) -> None:
        """Use `new_input` wherever this node used `old_input`."""

        def other(x: Node) -> Any:
            return new_input if x is old_input else x

        self._update_args_kwargs(map_arg(self._args, other), map_arg(self._kwargs, other))

    _replace_input_with = replace_input_with

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *,
        propagate_meta: bool = False,
    ) -> list[Node]:  # fmt: skip
        """Have all users of this node use `replace_with`; returns those that changed.

        >>> from rushlight import fx
        >>> traced = fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        >>> x, relu, add, out = traced.graph.nodes
        >>> relu.replace_all_uses_with(x)
        [add]
        >>> traced.graph.eliminate_dead_code()
        True
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but "
                    "replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = []
        for user in list(self.users):
            if delete_user_cb is None or delete_user_cb(user):
                user.replace_input_with(self, replace_with)
                changed.append(user)
        return changed

    # --- what it is -----------------------------------------------------------------------------
    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it must stay though nobody uses its result."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effectful_functions
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return bool(getattr(owner.get_submodule(str(self.target)), "_is_impure", False))
        return False

    @property
    def stack_trace(self) -> str | None:
        """Where the node was recorded, if the tracer kept that."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace.rename(self, self.name)

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    def _pretty_print_target(self, target: Any) -> str:
        if isinstance(target, str):
            return target
        name = qualified_name(target)
        return f"builtins.{name}" if getattr(target, "__module__", "") == "builtins" else name

    def format_node(
        self, placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None, *, include_tensor_metadata: bool = False,
    ) -> str | None:  # fmt: skip
        """The node in one line, as graphs print it."""
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {annotation_name(self.type)}"
            return f"return {self.args[0]}"
        kind = f"{annotation_name(self.type)} " if self.type else ""
        line = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        line += f"[target={self._pretty_print_target(self.target)}]"
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(self.target + (f": {kind.strip()}" if kind else ""))
            return f"{line}(default={self.args[0]})" if self.args else line
        if self.op == "get_attr":
            return line
        return f"{line}(args = {_show(self.args)}, kwargs = {_show(self.kwargs)})"


def _show(x: Any) -> str:
    if isinstance(x, Node):
        return f"%{x}"
    if isinstance(x, list):
        return f"[{', '.join(map(_show, x))}]"
    if isinstance(x, tuple) and not hasattr(x, "_fields"):
        return f"({', '.join(map(_show, x))}{',' if len(x) == 1 else ''})"
    if isinstance(x, dict):
        return f"{{{', '.join(f'{k}: {_show(v)}' for k, v in x.items())}}}"
    return str(x)


def nodes_in(x: Any) -> Iterable[Node]:
    """All nodes in an argument, in order."""
    found: list[Node] = []
    map_arg(x, found.append)
    return found
