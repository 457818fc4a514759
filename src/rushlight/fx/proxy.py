"""Proxies: they stand for values while a function is traced, and record what is done to them."""

from __future__ import annotations

import dis
import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final

import rushlight
from rushlight.fx.graph import Graph
from rushlight.fx.names import IN_FUNCTIONAL, SPELLED_OUT
from rushlight.fx.node import Node, map_aggregate
from rushlight.ops import overriding
from rushlight.ops.registry import functions

__all__ = [
    "Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase",
]  # fmt: skip
__dir__ = __all__.copy


class TraceError(ValueError):
    """The program does something with a value that only a number could answer."""


_ITERATED = (
    "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as "
    "a *args or **kwargs function argument. See the torch.fx docs on pytorch.org for a more "
    "detailed explanation of what types of control flow can be traced, and check out the Proxy "
    "docstring for help troubleshooting Proxy iteration errors"
)
_PLAIN: Final = (
    str, int, float, bool, complex, rushlight.dtype, rushlight.Tensor, rushlight.device,
    rushlight.memory_format, rushlight.layout, type(None), type(...),
)  # fmt: skip


class TracerBase:
    """What a tracer must answer: how to record a call, and what to do where a number is needed."""

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a node to the graph that is recorded."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        name: str | None = None, type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Any:  # fmt: skip
        """Record an operation, and give the proxy of its result."""
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(args_, tuple) or not isinstance(kwargs_, dict):
            raise AssertionError("args must be a tuple, and kwargs a dict")
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        return proxy_factory_fn(node) if proxy_factory_fn else self.proxy(node)

    def create_arg(self, a: Any) -> Any:
        """An argument as nodes keep it."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, tuple):
            parts = [self.create_arg(x) for x in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            return {self._key(k): self.create_arg(v) for k, v in a.items()}
        if isinstance(a, slice):
            return slice(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        if isinstance(a, _PLAIN):
            return a
        if is_dataclass(a) and not isinstance(a, type):
            given = {f.name: self.create_arg(getattr(a, f.name)) for f in fields(a)}
            return self.create_node("call_function", type(a), (), given)
        import enum

        if isinstance(a, enum.Enum):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        found = self.create_arg(key)

        def refuse(x: Any) -> Any:
            if isinstance(x, Node):
                raise RuntimeError(
                    "Keys for dictionaries used as an argument cannot contain a Node. "
                    f"Got key: {found}"
                )
            return x

        map_aggregate(found, refuse)
        return found

    def to_bool(self, obj: Proxy) -> bool:
        """Called where a proxy decides an `if`."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called where a proxy is gone through."""
        raise TraceError(_ITERATED)

    def keys(self, obj: Proxy) -> Any:
        """Called by `**proxy`."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that adds to a graph that exists: `Proxy(node)` has one."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """Stands for a value while a function is traced: what is done to it becomes nodes.

    >>> from rushlight import fx
    >>> graph = fx.Graph()
    >>> x = fx.Proxy(graph.placeholder("x"))
    >>> torch.relu(x) + 1
    Proxy(add)
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node
        overriding.switch_on()

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k in ("node", "tracer"):  # asked for by `copy` before they are there
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo: Any) -> Proxy:
        made = Proxy.__new__(Proxy)
        made.__dict__.update(self.__dict__)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = sys._getframe(1)
        at = frame.f_lasti
        for step in dis.get_instructions(frame.f_code):
            if step.offset == at and step.opname == "UNPACK_SEQUENCE":
                return iter([_item(self, i) for i in range(step.argval)])
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _decides_assert(sys._getframe(1)):
            self.tracer.create_proxy("call_function", functions["_assert"], (self, ""), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Called by `**proxy`."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be "
            "recorded, please call torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        tracers: dict[TracerBase, None] = {}

        def note(x: Any) -> Any:
            if isinstance(x, Proxy):
                tracers.setdefault(x.tracer)
            return x

        map_aggregate((args, kwargs), note)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations"
                f" {orig_method}"
            )
        tracer = next(iter(tracers))
        name = overriding.public_name(orig_method)
        if name.startswith("torch.Tensor."):
            name = orig_method.__name__
            if name == "__get__":  # a property
                owner = orig_method.__self__
                return Attribute(args[0], owner.fget.__name__)
            return tracer.create_proxy("call_method", name, args, kwargs)
        if name in ("torch.nn.functional.tanh", "torch.nn.functional.sigmoid"):
            return tracer.create_proxy("call_method", name.rpartition(".")[2], args, kwargs)
        args, kwargs = _spelled(name, orig_method, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


def _spelled(name: str, fn: Any, args: Any, kwargs: Any) -> Any:
    """The arguments of functions that PyTorch spells out when they are traced: those that have
    defaults by name."""
    home, _, last = name.rpartition(".")
    if not (
        (home == "torch.nn.functional" and last in SPELLED_OUT)
        or (home == "torch" and last in IN_FUNCTIONAL)
    ):
        return args, kwargs
    signature = inspect.signature(getattr(fn, "__wrapped__", fn))
    given = signature.bind(*args, **{k: x for k, x in kwargs.items() if k != "out"})
    given.apply_defaults()
    plain: list[Any] = []
    named: dict[str, Any] = {}
    for key, value in given.arguments.items():
        about = signature.parameters[key]
        if about.kind is about.VAR_POSITIONAL:
            plain += value
        elif about.kind is about.VAR_KEYWORD:
            named.update(value)  # names of older times
        elif about.default is about.empty or key == "split_size_or_sections":  # no default there
            plain.append(value)
        else:
            named[key] = value
    if kwargs.get("out") is not None:
        named["out"] = kwargs["out"]
    return tuple(plain), named


def _decides_assert(frame: Any) -> bool:
    """Whether the next step of a frame is the jump of an `assert`."""
    steps = list(dis.get_instructions(frame.f_code))
    at = next(i for i, step in enumerate(steps) if step.offset == frame.f_lasti)
    if not steps[at].opname.startswith("POP_JUMP"):
        return False
    return steps[at + 1].opname in ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT")


class Attribute(Proxy):
    """An attribute of a proxy: a method if it is called, and otherwise a value."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:  # most are called, and need no node of their own
            made = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = made.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The proxy of a parameter, which knows its shape while the rest is traced."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self, *args: Any) -> Any:
        return self.param.size(*args)

    def dim(self) -> Any:
        return self.param.dim()

    @property
    def ndim(self) -> Any:
        return self.param.ndim

    def numel(self) -> Any:
        return self.param.numel()

    def nelement(self) -> Any:
        return self.param.nelement()


def _record(fn: Any) -> Any:
    def operate(self: Proxy, *others: Any) -> Any:
        return self.tracer.create_proxy("call_function", fn, (self, *others), {})

    return operate


_item: Final = _record(operator.getitem)

# A tensor that meets a proxy on its right calls the method that the operator stands for.
_METHODS: Final = {
    "add": "add", "sub": "sub", "mul": "mul", "matmul": "matmul", "truediv": "div", "pow": "pow",
    "floordiv": "__floordiv__", "mod": "__mod__", "and_": "__and__", "or_": "__or__",
    "xor": "__xor__", "lshift": "__lshift__", "rshift": "__rshift__",
}  # fmt: skip


def _record_reflected(fn: Any, method: str) -> Any:
    def operate(self: Proxy, other: Any) -> Any:
        if isinstance(other, rushlight.Tensor):
            return self.tracer.create_proxy("call_method", method, (other, self), {})
        return self.tracer.create_proxy("call_function", fn, (other, self), {})

    return operate


for _name in "eq ne lt gt le ge pos neg invert abs getitem".split():
    setattr(Proxy, f"__{_name}__", _record(getattr(operator, _name)))
for _name, _method in _METHODS.items():
    _fn = getattr(operator, _name)
    _short = _name.rstrip("_")
    setattr(Proxy, f"__{_short}__", _record(_fn))
    setattr(Proxy, f"__r{_short}__", _record_reflected(_fn, _method))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
