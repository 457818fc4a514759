"""`Graph`: a program as a list of nodes, to be read and rewritten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rushlight.fx.codegen import CodeGen as CodeGen
from rushlight.fx.codegen import PythonCode as PythonCode
from rushlight.fx.names import Namespace, qualified_name, snake_case
from rushlight.fx.node import Node, map_arg, nodes_in

__all__ = ["CodeGen", "Graph", "PythonCode"]
__dir__ = __all__.copy


class _InsertPoint:
    def __init__(self, graph: Graph, new: Callable[[Node], None]) -> None:
        self.graph = graph
        self.before, graph._insert = graph._insert, new

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: object) -> None:
        self.graph._insert = self.before


class _node_list:
    """The nodes of a graph, in order. Nodes may come and go while one goes through them."""

    def __init__(self, graph: Graph, backwards: bool = False) -> None:
        self.graph = graph
        self.backwards = backwards

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = root._prev if self.backwards else root._next
        while node is not root:
            if not node._erased:
                yield node
            node = node._prev if self.backwards else node._next

    def __reversed__(self) -> _node_list:
        return _node_list(self.graph, not self.backwards)


class Graph:
    """A program as a list of `Node`s: inputs first, then operations, then what is returned.

    `owning_module` is the module whose parts it names, `tracer_cls` who recorded it.

    >>> from rushlight import fx
    >>> graph = fx.Graph()
    >>> x = graph.placeholder("x")
    >>> y = graph.call_function(torch.relu, (x,))
    >>> node = graph.output(y)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    """

    def __init__(
        self, owning_module: Any = None, tracer_cls: Any = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._wrapped: dict[Any, bool] = {}  # functions that tracers must not look into

    @property
    def owning_module(self) -> Any:
        """The module whose parts the graph names."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """All nodes, in order; also `reversed`."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The node that returns."""
        found = next(iter(reversed(self.nodes)))
        if found.op != "output":
            raise AssertionError("Could not find output node")
        return found

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """All nodes of one kind, and of one target if that is given."""
        return [
            n for n in self.nodes if n.op == op and (target is None or n.target == target)
        ]  # fmt: skip

    # --- making nodes ---------------------------------------------------------------------------
    def create_node(
        self, op: str, target: Any, args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None, name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a node where nodes are inserted now: at the end, unless `inserting_before` says."""
        args = () if args is None else args
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError("args must be a tuple")
        if not isinstance(kwargs, dict):
            raise AssertionError("kwargs must be a dict")
        candidate = name if name is not None else self._target_to_str(target)
        made = Node(self, "", op, target, args, kwargs, type_expr)
        made.name = self._graph_namespace.create_name(candidate, made)
        self._insert(made)
        self._len += 1
        return made

    def _target_to_str(self, target: Any) -> str:
        if callable(target):
            text = qualified_name(target).rpartition(".")[2]
        else:
            text = target.replace("*", "") if "*" in target else target
            if text.startswith("__") and text.endswith("__"):
                text = text[2:-2]
        return snake_case(text)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an input."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add the reading of a parameter, a buffer or another part of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a call of a submodule."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None, type_expr: Any = None, name: str | None = None,
    ) -> Node:  # fmt: skip
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """Add what is returned."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """Add a copy of a node, maybe of another graph; `arg_transform` says which node of this
        graph stands for each node it uses."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False
    ) -> Any:
        """Add copies of all nodes of another graph; returns what its output node returns."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                found = map_arg(node.args[0], lambda n: val_map[n])
                return (found, node) if return_output_node else found
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        made._codegen, made._wrapped = self._codegen, dict(self._wrapped)
        known: dict[Node, Node] = {}
        found = made.graph_copy(self, known, return_output_node=True)
        if found is not None:
            value, old = found
            made.output(value, old.type).meta = dict(old.meta)
        if memo is not None:
            memo[id(self)] = made
        return made

    # --- places ---------------------------------------------------------------------------------
    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Within `with`, add nodes before `n` (or at the start)."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Within `with`, add nodes behind `n` (or at the end)."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        last = n  # so that several stay in order

        def insert(new: Node) -> None:
            nonlocal last
            last.append(new)
            last = new

        return _InsertPoint(self, insert)

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nobody uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in "
                f"the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update_args_kwargs((), {})

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove what nobody uses; returns whether there was any.

        >>> from rushlight import fx
        >>> traced = fx.symbolic_trace(lambda x: (x * 2, x + 1)[0])
        >>> traced.graph.eliminate_dead_code()
        True
        >>> len(traced.graph.nodes)
        3
        """
        self.lint()
        impure = is_impure_node or (lambda node: node.is_impure())
        before = self._len
        for node in list(reversed(self.nodes)):
            if not node.users and not impure(node):
                self.erase_node(node)
        return self._len < before

    def lint(self) -> None:
        """Check that names differ, that nodes use earlier nodes, and that what they name is there.

        >>> from rushlight import fx
        >>> fx.symbolic_trace(lambda x: x + 1).graph.lint()
        """
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for x in (*nodes_in(node.args), *nodes_in(node.kwargs)):
                self._check_use(node, x, seen)
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self.owning_module is not None:
            for node in self.nodes:
                if node.op in ("get_attr", "call_module"):
                    self._check_target(node)

    def _check_use(self, node: Node, x: Node, seen: set[Node]) -> None:
        if x.graph is not self:
            raise RuntimeError(
                f"Argument '{x}' of Node '{node}' does not belong to this Graph, but was used as "
                f"an argument! If you are copying nodes from another graph, make sure to use "
                f"``arg_transform`` on node_copy() to remap values\n{self}"
            )
        if x not in seen:
            raise RuntimeError(
                f"Argument '{x}' of Node '{node}' was used before it has been defined! Please "
                f"check that Nodes in the graph are topologically ordered\n{self}"
            )

    def _check_target(self, node: Node) -> None:
        found = self.owning_module
        for i, part in enumerate(node.target.split(".")):
            if not hasattr(found, part):
                at = ".".join(node.target.split(".")[:i])
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part} of "
                    f"{at}"
                )
            found = getattr(found, part)

    # --- showing --------------------------------------------------------------------------------
    def __str__(self) -> str:
        returns = [""]
        lines = [node.format_node(None, returns) for node in self.nodes]
        return f"graph():{''.join(f'{chr(10)}    {line}' for line in lines if line)}"

    def print_tabular(self) -> None:
        """Print the nodes as a table: needs the package `tabulate`."""
        try:
            from tabulate import tabulate  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            print(
                "`print_tabular` relies on the library `tabulate`, which could not be found on "
                "this machine. Run `pip install tabulate` to install the library."
            )
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def python_code(self, root_module: str, *, verbose: bool = False, **kwargs: Any) -> PythonCode:
        """The graph as Python code; `root_module` is how it names the module, usually "self"."""
        space = Namespace()
        space.used.update(n.name for n in self.nodes)
        made: PythonCode = self._codegen._gen_python_code(self.nodes, root_module, space)
        return made

    def set_codegen(self, codegen: CodeGen) -> None:
        """Have another `CodeGen` write the code."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """What the placeholders are given, from the arguments of a call."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What a call returns, from what the output node gives."""
        return self._codegen.process_outputs(out)
