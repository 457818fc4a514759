"""`Interpreter`: runs a graph node by node. `Transformer`: makes another graph of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rushlight import nn
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node, map_aggregate, map_arg
from rushlight.fx.proxy import Proxy, TracerBase

__all__ = ["Interpreter", "Transformer"]
__dir__ = __all__.copy


class Interpreter:
    """Runs a graph node by node. Subclass it to do more at each: there is a method for each kind.

    Args:
        module: the module that has the parts, usually a `GraphModule`.
        garbage_collect_values: drop each value after its last use.
        graph: another graph than the module's.

    >>> from rushlight import fx
    >>> class Loud(fx.Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         print(target.__name__)
    ...         return super().call_function(target, args, kwargs)
    >>> Loud(fx.symbolic_trace(lambda x: torch.relu(x) + 1)).run(torch.tensor(-1.))
    relu
    add
    tensor(1.)
    """

    def __init__(
        self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            last: dict[Node, Node] = {}
            for node in reversed(self.graph.nodes):
                for x in node.all_input_nodes:
                    if x not in last:
                        last[x] = node
                        self.user_to_last_uses.setdefault(node, []).append(x)

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:  # fmt: skip
        """Run the graph on arguments. `initial_env` gives nodes values that are not computed."""
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    error.add_note(f"While executing {node.format_node()}")
                raise
            if self.garbage_collect_values:
                for x in self.user_to_last_uses.get(node, []):
                    del self.env[x]
            if node.op == "output":
                found = self.env[node]
                return self.graph.process_outputs(found) if enable_io_processing else found
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """`run` on the arguments of a list, which is emptied."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """Run one node: calls the method for its kind."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An input."""
        if target.startswith("**"):
            return {}
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A part of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a method of the first argument."""
        me, *rest = args
        return getattr(me, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What is returned."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """A part of the module by its dotted name."""
        found = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: i + 1])}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values of a node's arguments."""
        args = self.map_nodes_to_values(n.args, n)
        kwargs = self.map_nodes_to_values(n.kwargs, n)
        return args, kwargs

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """An argument with each node replaced by its value."""

        def value(x: Node) -> Any:
            if x not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {x}! Run Graph.lint() to diagnose such "
                    "issues"
                )
            return self.env[x]

        return _plain(map_arg(args, value))


def _plain(x: Any) -> Any:
    """Lists and dicts that can be changed again, for who is called with them."""
    if isinstance(x, tuple):
        parts = [_plain(y) for y in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if isinstance(x, list):
        return [_plain(y) for y in x]
    if isinstance(x, dict):
        return {k: _plain(y) for k, y in x.items()}
    return x


class Transformer(Interpreter):
    """An interpreter whose values are proxies: what its methods do becomes a new graph.

    >>> from rushlight import fx
    >>> class Smooth(fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(
    ...             torch.tanh if target is torch.relu else target, args, kwargs)
    >>> Smooth(fx.symbolic_trace(lambda x: torch.relu(x))).transform()(torch.zeros(1))
    tensor([0.])
    """

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        from rushlight.fx._symbolic_trace import Tracer

        graph = Graph(tracer_cls=getattr(self.graph, "_tracer_cls", None))
        graph._wrapped = self.graph._wrapped

        class TransformerTracer(Tracer):
            def __init__(self) -> None:
                super().__init__()
                self.graph = graph
                self.root = module
                self.tensor_attrs = {}

            def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
                return True

        self.new_graph = graph
        self.tracer: TracerBase = TransformerTracer()

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        found = super().run(enable_io_processing=False)
        if found is not None:
            last = self.graph.output_node()
            value = map_aggregate(found, lambda x: x.node if isinstance(x, Proxy) else x)
            self.new_graph.output(value, last.type)
        name = type(self.module).__name__ if isinstance(self.module, nn.Module) else "GraphModule"
        return GraphModule(self.module, self.new_graph, name)
