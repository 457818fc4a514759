"""`GraphModule`: a module whose `forward` is written from a graph."""

from __future__ import annotations

import copy
import linecache
import textwrap
from itertools import count
from typing import Any

import rushlight
from rushlight import nn
from rushlight.fx.graph import Graph, PythonCode

__all__ = ["GraphModule", "reduce_graph_module"]
__dir__ = __all__.copy

_number = count()


def _compiled(code: PythonCode) -> Any:
    """The function `forward` of generated code. Tracebacks show its lines."""
    file = f"<eval_with_key>.{next(_number)}"
    linecache.cache[file] = (len(code.src), None, code.src.splitlines(True), file)
    space = {"torch": rushlight, "__name__": "rushlight.fx.generated", **code.globals}
    exec(compile(_without_wraps(code.src), file, "exec"), space)
    return space["forward"]


def _without_wraps(source: str) -> str:
    """The lines that name wrapped functions are for tracers alone: they say so in the graph."""
    return "\n".join(
        "" if line.startswith("torch.fx._symbolic_trace.wrap(") else line
        for line in source.split("\n")
    )


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Give a module what another has under a dotted name."""
    *path, last = target.split(".")
    for part in path:
        from_module = getattr(from_module, part)
        found = getattr(to_module, part, None)
        if found is from_module:
            return  # the whole of it is there already
        if found is None:
            found = nn.Module()
            setattr(to_module, part, found)
        to_module = found
    _assign(to_module, last, getattr(from_module, last))


def _assign(module: Any, name: str, value: Any) -> None:
    if isinstance(value, rushlight.Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


class GraphModule(nn.Module):
    """A module that runs a `Graph`.

    Args:
        root: the module that has the parts the graph names, or a dict of them by name.
        graph: the graph.
        class_name: what the module says it is.

    After a change to the graph call `recompile`.

    >>> from rushlight import fx
    >>> traced = fx.symbolic_trace(lambda x: torch.relu(x))
    >>> for node in traced.graph.nodes:
    ...     if node.target is torch.relu:
    ...         node.target = torch.neg
    >>> code = traced.recompile()
    >>> traced(torch.ones(2))
    tensor([-1., -1.])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # each instance has a class of its own, for its `forward`
        for base in cls.__mro__:
            if base.__qualname__ == "GraphModule.__new__.<locals>.GraphModuleImpl":
                cls = base.__mro__[1]
                break

        class GraphModuleImpl(cls):  # type: ignore[misc,valid-type]
            pass

        GraphModuleImpl.__module__ = cls.__module__
        made: GraphModule = super().__new__(GraphModuleImpl)
        return made

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, node.target)
        elif isinstance(root, dict):
            self._take(root, graph)
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.meta: dict[str, Any] = {}
        self._graph = graph
        self.graph = graph

    def _take(self, parts: dict[str, Any], graph: Graph) -> None:
        wanted = {n.target: n for n in graph.nodes if n.op in ("get_attr", "call_module")}
        for target, node in wanted.items():
            if target not in parts:
                raise RuntimeError(
                    "Node " + str(node) + " referenced target " + target + " but that target was "
                    "not provided in ``root``!"
                )
        for target in sorted(wanted, key=lambda name: name.count(".")):
            *path, last = target.split(".")
            home: Any = self
            for part in path:
                if not hasattr(home, part):
                    setattr(home, part, nn.Module())
                home = getattr(home, part)
            _assign(home, last, parts[target])

    @property
    def graph(self) -> Graph:
        """The graph. Assign another to run that."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The generated code."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Write `forward` anew from the graph."""
        code = self._graph.python_code(root_module="self")
        self._code = code.src
        type(self).forward = _compiled(code)
        return code

    # --- submodules -----------------------------------------------------------------------------
    def add_submodule(self, target: str, m: Any) -> bool:
        """Add a module under a dotted name; False where the way leads over something else."""
        *path, last = target.split(".")
        home: Any = self
        for part in path:
            if not hasattr(home, part):
                home.add_module(part, nn.Module())
            home = getattr(home, part)
            if not isinstance(home, nn.Module):
                return False
        home.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the module under a dotted name; whether there was one."""
        *path, last = target.split(".")
        home: Any = self
        for part in path:
            if not hasattr(home, part):
                return False
            home = getattr(home, part)
            if not isinstance(home, nn.Module):
                return False
        if not isinstance(getattr(home, last, None), nn.Module):
            return False
        delattr(home, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the modules that the graph does not name."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
                if node.op == "call_module":
                    inner = self.get_submodule(node.target).named_modules()
                    used.update(f"{node.target}.{name}" for name, _ in inner if name)
        for name in [name for name, _ in self.named_modules() if name]:
            if name not in used:
                self.delete_submodule(name)

    # --- copies ---------------------------------------------------------------------------------
    def __deepcopy__(self, memo: Any) -> GraphModule:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        nn.Module.__init__(made)
        type(made).__name__ = type(self).__name__
        kept = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}
        made.__dict__.update(copy.deepcopy(kept, memo))
        made.graph = copy.deepcopy(self._graph)
        return made

    def __copy__(self) -> GraphModule:
        return GraphModule(self, copy.deepcopy(self._graph), type(self).__name__)

    def __reduce__(self) -> Any:
        kept = {k: v for k, v in self.__dict__.items() if k != "_graph"}
        return reduce_graph_module, (kept, self._code, type(self).__name__)

    # --- showing --------------------------------------------------------------------------------
    def __str__(self) -> str:
        note = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([repr(self), self._code, note])

    def print_readable(
        self, print_output: bool = True, include_stride: bool = False,
        include_device: bool = False, colored: bool = False, **kwargs: Any,
    ) -> str:  # fmt: skip
        """Print the code as a class, and give the text."""
        return _readable(self, type(self).__name__, print_output)


def _readable(module: GraphModule, name: str, print_output: bool) -> str:
    first, *lines = module._code.strip().split("\n")
    note = "    # No stacktrace found for following nodes"
    at = 0
    while at < len(lines) and _is_input(lines[at]):
        at += 1
    if at:
        lines.insert(at, "")
        at += 1
    if len(lines) > at + 1 or at:
        lines.insert(at, note)
    text = f"class {name}(torch.nn.Module):\n" + textwrap.indent("\n".join([first, *lines]), "    ")
    inner = [
        textwrap.indent(_readable(m, n, False), "    ")
        for n, m in module.named_children()
        if isinstance(m, GraphModule)
    ]
    text = "\n".join([text + "\n", *inner])
    if print_output:
        print(text)
    return text


def _is_input(line: str) -> bool:
    """Whether a line only names an input: `input_1 = input`."""
    name, sign, value = line.strip().partition(" = ")
    return bool(sign) and value.isidentifier() and name.startswith((f"{value}_", f"_{value}"))


class _CodeOnlyModule(nn.Module):
    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__.update(body)


def reduce_graph_module(body: dict[str, Any], code: str, name: str) -> GraphModule:
    """A module from its parts and its code, which is traced again."""
    from rushlight.fx._symbolic_trace import Tracer

    class KeepModules(Tracer):
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return True  # it was decided when the code was made

    import importlib
    import math
    import operator

    space = {"inf": math.inf, "nan": math.nan, "device": rushlight.device}
    names = {f"_operator_{n}": getattr(operator, n) for n in dir(operator)}
    names.update({f"math_{n}": getattr(math, n) for n in dir(math)})
    importlib.import_module("rushlight.fx._symbolic_trace")
    root = _CodeOnlyModule(body)
    type(root).forward = _compiled(PythonCode(code, {**names, **space}))
    tracer = KeepModules()
    graph = tracer.trace(root)
    return GraphModule(root, graph, name)
