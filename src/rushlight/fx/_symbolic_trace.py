"""Tracing: run a function on proxies, and keep what it did as a graph.

While a tracer runs, calls of modules, their parameters, and functions named by `wrap` go through
it; all of this is put back when it is done.
"""

from __future__ import annotations

import builtins
import collections
import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any, Final

import rushlight
from rushlight import nn
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import Node
from rushlight.fx.proxy import ParameterProxy, Proxy, TracerBase
from rushlight.ops import overriding
from rushlight.ops.registry import functions

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap"]
__dir__ = __all__.copy

# What `wrap` named, and the globals it is in. By identity: a name wrapped twice is recorded once.
_wrapped: Final[dict[tuple[int, str], dict[str, Any]]] = {}
_is_fx_tracing_flag = False


class PHBase:
    """A placeholder among concrete arguments."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


def is_fx_tracing() -> bool:
    """Whether a tracer is at work now."""
    return _is_fx_tracing_flag


class ProxyableClassMeta(type):
    """A metaclass: instances that are made of proxies are recorded, as calls of the class.

    >>> from rushlight import fx
    >>> class Pair(metaclass=fx.ProxyableClassMeta):
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> [n.name for n in fx.symbolic_trace(lambda x: Pair(x, x).a).graph.nodes]
    ['x', 'pair', 'getattr_1', 'output']
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found = _proxies_in((args, kwargs))
        if found:
            return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def _proxies_in(x: Any) -> list[Proxy]:
    from rushlight.fx.node import map_aggregate

    found: list[Proxy] = []

    def note(y: Any) -> Any:
        if isinstance(y, Proxy):
            found.append(y)
        return y

    map_aggregate(x, note)
    return found


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Have tracers record calls of a function of your module, and not look into it. Called at the
    top of a module, with the function or its name; or as a decorator.

    >>> from rushlight import fx
    >>> fx.wrap("len")
    'len'
    >>> graph = fx.symbolic_trace(lambda x: len(x) + 1).graph
    >>> [node.name for node in graph.nodes]
    ['x', 'len_1', 'add', 'output']
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _assert_is_none(value: Any, msg: str) -> None:
    assert value is None, msg


class Tracer(TracerBase):
    """Records what a module or a function does as a `Graph`.

    Subclass it to say which modules are kept whole (`is_leaf_module`), or what calls and parameters
    become (`call_module`, `create_proxy`, `getattr`).

    >>> from rushlight import fx
    >>> graph = fx.Tracer().trace(torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU()))
    >>> [node.op for node in graph.nodes]
    ['placeholder', 'call_module', 'call_module', 'output']
    """

    def __init__(
        self, autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:  # fmt: skip
        self._autowrap: set[Any] = {
            fn for module in autowrap_modules for name, fn in vars(module).items()
            if not name.startswith("_") and callable(fn)
        } | set(autowrap_functions)  # fmt: skip
        self._autowrap_search: list[ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.root: Any = None
        self.submodule_paths: dict[Any, str] | None = None
        self.module_stack: dict[str, tuple[str, Any]] = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.tensor_attrs: dict[int, str] = {}
        self._constants: dict[int, str] = {}
        self._is_ours = False  # is it a module of rushlight's that is traced?

    # --- what subclasses change -------------------------------------------------------------------
    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        """Whether a module is kept whole: those of `torch.nn` are, but for Sequential."""
        home = type(m).__module__
        return home.startswith(("rushlight.nn", "torch.nn")) and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: Any) -> str:
        """The name of a submodule within the root."""
        if self.submodule_paths is not None and mod in self.submodule_paths:
            return self.submodule_paths[mod]
        for name, found in self.root.named_modules():
            if found is mod:
                return str(name)
        raise NameError("module is not installed as a submodule")

    def call_module(
        self, m: Any, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Called in place of each module: record it, or look into it by `forward`."""
        path = self.path_of_module(m)
        calls = self.num_calls.get(path, 0)
        self.num_calls[path] = calls + 1
        key = path if calls == 0 else f"{path}@{calls}"
        self.module_stack[key] = (path, type(m))
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            del self.module_stack[key]

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Called when a parameter, buffer or module is read from a module."""
        if isinstance(attr_val, nn.Parameter):
            return self._proxy_of(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, rushlight.Tensor):
            return self._proxy_of(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _proxy_of(self, value: Any, named: Iterator[Any], cache: dict[str, Any]) -> Any:
        for name, found in named:
            if found is value:
                if name not in cache:
                    make = self._parameter_maker(name, value)
                    cache[name] = self.create_proxy("get_attr", name, (), {}, proxy_factory_fn=make)
                return cache[name]
        return value

    def _parameter_maker(self, name: str, value: Any) -> Callable[[Node], Proxy] | None:
        if not self.param_shapes_constant:
            return None
        return lambda node: ParameterProxy(self, node, name, value)

    def create_node(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            node.meta["nn_module_stack"] = collections.OrderedDict(self.module_stack)
        if self.record_stack_traces:
            node.meta["stack_trace"] = _user_stack()
        return node

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, nn.Parameter):
            for name, found in self.root.named_parameters():
                if found is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, rushlight.Tensor):
            for name, found in self.root.named_buffers():
                if found is a:
                    return self.create_node("get_attr", name, (), {})
            return self.create_node("get_attr", self._constant(a, "_tensor_constant"), (), {})
        if isinstance(a, nn.Module):
            for name, found in self.root.named_modules():
                if found is a:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            args = tuple(self.create_arg(x) for x in a)
            return self.create_node("call_function", type(a), args, {})
        if type(type(a)) is ProxyableClassMeta:
            name = self._constant(a, f"_{type(a).__name__}_constant_")
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _constant(self, a: Any, prefix: str) -> str:
        """The name of a tensor that is no parameter: its own, or a new one of the root."""
        name = self.tensor_attrs.get(id(a)) or self._constants.get(id(a))
        if name is None:
            name = self.get_fresh_qualname(prefix)
            self._constants[id(a)] = name
            setattr(self.root, name, a)
        return name

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that the root does not have yet."""
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    # --- inputs -----------------------------------------------------------------------------------
    def create_args_for_root(
        self, root_fn: Callable[..., Any], is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Callable[..., Any], list[Any]]:  # fmt: skip
        """The proxies that the function is called with."""
        unwrapped = inspect.unwrap(root_fn)
        about = inspect.signature(unwrapped)
        parameters = list(about.parameters.values())
        args: list[Any] = []
        if is_module:
            if not parameters:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            parameters = parameters[1:]
            args.append(self.root)
        if isinstance(concrete_args, tuple):
            names = [p.name for p in parameters]
            if len(names) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(names)} arguments but got {len(concrete_args)} "
                    "concrete arguments"
                )
            concrete_args = dict(zip(names, concrete_args, strict=True))
        concrete = concrete_args or {}
        fixed: dict[str, Any] = {}
        for p in parameters:
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                star = "*" if p.kind is p.VAR_POSITIONAL else "**"
                made = self.create_proxy("placeholder", star + p.name, (), {}, name=f"_{p.name}")
            else:
                made = self._input(p, concrete)
            if p.kind is p.KEYWORD_ONLY:
                fixed[p.name] = made
            elif p.kind is p.VAR_KEYWORD:
                fixed["**"] = made
            elif p.kind is p.VAR_POSITIONAL:
                fixed["*"] = made
            else:
                args.append(made)
        if "*" in fixed or "**" in fixed:
            return _with_stars(root_fn, fixed.pop("*", ()), fixed.pop("**", {}), fixed), args
        return (functools.partial(root_fn, **fixed) if fixed else root_fn), args

    def _input(self, p: inspect.Parameter, concrete: dict[str, Any]) -> Any:
        default = () if p.default is p.empty else (p.default,)
        kind = self._annotation(None if p.annotation is p.empty else p.annotation)
        if p.name in concrete and concrete[p.name] is not PH:
            value = concrete[p.name]
            if isinstance(value, (tuple, list, dict)):
                raise NotImplementedError(
                    f"concrete_args: {p.name!r} is a container; rushlight takes numbers, booleans, "
                    "strings and None there"
                )
            made = self.create_proxy("placeholder", f"{p.name}_1", default, {})
            said = f"{p.name} has been specialized to have value {value} but got another value"
            if isinstance(value, (int, float, bool, str)):
                functions["_assert"](made == value, said)
            elif value is None:
                self.create_proxy("call_function", _assert_is_none, (made, said), {})
            return value
        return self.create_proxy("placeholder", p.name, default, {}, type_expr=kind)

    def _annotation(self, kind: Any) -> Any:
        """What an input or the result is said to be. Our own modules say it as texts."""
        if isinstance(kind, str) and self._is_ours:
            return rushlight.Tensor if kind == "Tensor" else None
        return kind

    # --- tracing ----------------------------------------------------------------------------------
    def trace(
        self, root: Any, concrete_args: dict[str, Any] | tuple[Any, ...] | None = None
    ) -> Graph:
        """The graph of a module or a function."""
        global _is_fx_tracing_flag
        overriding.switch_on()
        if isinstance(root, nn.Module):
            self.root = root
            self._is_ours = type(root).__module__.startswith(("rushlight.", "torch."))
            fn = getattr(type(root), self.traced_func_name)
            self.submodule_paths = {m: name for name, m in root.named_modules()}
        else:
            self.root = nn.Module()
            self._is_ours = False
            fn = root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = _tensors_of(self.root)
        self._constants = {}
        self.num_calls = {}
        before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
        try:
            fn, args = self.create_args_for_root(fn, isinstance(root, nn.Module), concrete_args)
            with self._watching(fn):
                found = fn(*args)
                kind = getattr(inspect.unwrap(_inner(fn)), "__annotations__", {}).get("return")
                kind = self._annotation(kind)
                self.create_node("output", "output", (self.create_arg(found),), {}, type_expr=kind)
        finally:
            _is_fx_tracing_flag = before
            self.submodule_paths = None
        return self.graph

    @contextmanager
    def _watching(self, fn: Any) -> Iterator[None]:
        """Meanwhile calls and parameters of modules, and wrapped functions, go through here."""
        module: Any = nn.Module
        call, read = module.__call__, module.__getattr__
        cache: dict[str, Any] = {}

        def watched_call(mod: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(mod, *args, **kwargs)

            return self.call_module(mod, forward, args, kwargs)

        def watched_read(mod: Any, name: str) -> Any:
            return self.getattr(name, read(mod, name), cache)

        undo = _Patches()
        undo.attribute(module, "__call__", watched_call)
        undo.attribute(module, "__getattr__", watched_read)
        try:
            self._wrap_functions(undo, _inner(fn))
            yield
        finally:
            undo.revert()

    def _wrap_functions(self, undo: _Patches, fn: Any) -> None:
        for (_, name), space in _wrapped.items():
            original = space[name] if name in space else vars(builtins)[name]
            self.graph._wrapped[original] = True
            undo.item(space, name, _recording(original))
        spaces = [vars(module) for module in self._autowrap_search]
        if isinstance(inspect.unwrap(fn), FunctionType):
            spaces.append(inspect.unwrap(fn).__globals__)
        for space in spaces:
            for name, value in list(space.items()):
                if not name.startswith("_") and callable(value) and _in(value, self._autowrap):
                    self.graph._wrapped[value] = True
                    undo.item(space, name, _recording(value))


def _in(value: Any, known: set[Any]) -> bool:
    try:
        return value in known
    except TypeError:  # not hashable
        return False


def _inner(fn: Any) -> Any:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return fn


def _with_stars(fn: Any, star: Any, stars: Any, named: dict[str, Any]) -> Any:
    """A function of `*args` and `**kwargs`, as one that gets proxies for these two themselves."""
    plain = inspect.unwrap(fn)
    old = plain.__code__
    count = old.co_argcount + old.co_kwonlyargcount
    count += bool(old.co_flags & inspect.CO_VARARGS) + bool(old.co_flags & inspect.CO_VARKEYWORDS)
    code = old.replace(
        co_argcount=count, co_kwonlyargcount=0, co_posonlyargcount=0,
        co_flags=old.co_flags & ~inspect.CO_VARARGS & ~inspect.CO_VARKEYWORDS,
    )  # fmt: skip
    flat = FunctionType(code, plain.__globals__, plain.__name__, None, plain.__closure__)
    flat.__annotations__ = plain.__annotations__
    only = old.co_varnames[old.co_argcount : old.co_argcount + old.co_kwonlyargcount]
    rest = [named[name] for name in only]
    rest += [star] if old.co_flags & inspect.CO_VARARGS else []
    rest += [stars] if old.co_flags & inspect.CO_VARKEYWORDS else []

    @functools.wraps(flat)
    def call(*args: Any) -> Any:
        return flat(*args, *rest)

    return call


def _recording(original: Any) -> Any:
    """A function that records its call if a proxy is among its arguments."""

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = _proxies_in((args, kwargs))
        if found:
            made = found[0].tracer.create_proxy("call_function", original, args, kwargs)
            made.node.meta["is_wrapped"] = True
            return made
        return original(*args, **kwargs)

    return wrapped


class _Patches:
    """What was exchanged, and how to put it back."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], Any]] = []

    def attribute(self, owner: Any, name: str, new: Any) -> None:
        had, old = name in vars(owner), vars(owner).get(name)
        setattr(owner, name, new)
        self.undo.append(lambda: setattr(owner, name, old) if had else delattr(owner, name))

    def item(self, space: dict[str, Any], name: str, new: Any) -> None:
        had, old = name in space, space.get(name)
        space[name] = new
        self.undo.append(lambda: space.update({name: old}) if had else space.pop(name))

    def revert(self) -> None:
        for undo in reversed(self.undo):
            undo()


def _tensors_of(root: Any) -> dict[int, str]:
    """Tensors that are plain attributes of modules, by identity."""
    found: dict[int, str] = {}
    for path, module in root.named_modules():
        for name, value in vars(module).items():
            if isinstance(value, rushlight.Tensor):
                found[id(value)] = f"{path}.{name}" if path else name
    return found


def _user_stack() -> str:
    import traceback

    frames = traceback.extract_stack()
    kept = [f for f in frames if "/rushlight/" not in f.filename.replace("\\", "/")]
    return "".join(traceback.StackSummary.from_list(kept).format()).strip()


def symbolic_trace(
    root: Any, concrete_args: dict[str, Any] | tuple[Any, ...] | None = None
) -> GraphModule:
    """A module's or function's program as a `GraphModule`: the same results, and a graph that can
    be read and rewritten.

    Args:
        root: the module or function.
        concrete_args: arguments that are fixed, by name: an `if` on them can then be traced.

    >>> from rushlight import fx
    >>> traced = fx.symbolic_trace(lambda x, y: torch.relu(x @ y))
    >>> print(traced.code.strip())
    def forward(self, x, y):
        matmul = x @ y;  x = y = None
        relu = torch.relu(matmul);  matmul = None
        return relu
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
