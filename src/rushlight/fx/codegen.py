"""From a graph to Python code: what `GraphModule.code` shows and runs."""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import rushlight
from rushlight.fx.names import Namespace, annotation_name, qualified_name
from rushlight.fx.node import Node, nodes_in

__all__ = ["CodeGen", "PythonCode"]

_BINARY: Final = {
    "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=", "add": "+", "sub": "-",
    "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip
_FORMATS: Final = {
    **{getattr(operator, name): f"{{}} {sign} {{}}" for name, sign in _BINARY.items()},
    operator.pos: "+{}", operator.neg: "-{}", operator.invert: "~{}", operator.getitem: "{}[{}]",
}  # fmt: skip
_IN_PLACE: Final = {
    getattr(operator, f"i{name.rstrip('_')}"): f"{{}} {sign}= {{}}"
    for name, sign in _BINARY.items()
    if sign[-1] != "=" and sign not in "<>"
}


_OF_TORCH: Final = (rushlight.dtype, rushlight.layout, rushlight.memory_format, rushlight.Size)


@dataclass
class PythonCode:
    """The code of a graph, and what the names in it mean."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None
    _prologue_start: int = 0


@dataclass
class _Writing:
    """A piece of code while it is written."""

    space: Namespace
    globals: dict[str, Any] = field(default_factory=dict)
    wrapped: dict[str, None] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    returns: str = ""

    def name_for(self, hint: str, value: Any) -> str:
        """A global name for a value: `torch.relu`, or `math_sqrt`."""
        if hint == "torch" or hint.startswith("torch."):
            self.globals["torch"] = rushlight
            return hint
        name = hint.replace(".", "_")
        if self.globals.get(name, value) is not value:
            name = self.space.create_name(name, None)
        self.globals[name] = value
        return name


class CodeGen:
    """Writes the `forward` of a graph. A subclass may change how it begins (`gen_fn_def`) and ends
    (`generate_output`)."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The first line."""
        names = free_vars if free_vars and free_vars[0] == "self" else ["self", *free_vars]
        return f"def forward({', '.join(names)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, **kwargs: Any) -> str:
        """The line that returns."""
        return f"return {self._repr(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """What the graph's placeholders are given, from the arguments of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What a call returns, from what the graph's output gives."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """More names that the code uses."""
        return []

    _repr: Any = repr

    def _gen_python_code(self, nodes: Iterable[Node], root_module: str, space: Namespace) -> Any:
        nodes = list(nodes)
        code = _Writing(space)
        code.globals.update(self.additional_globals())
        self._repr = lambda x: spell(code, x)
        last_uses = _last_uses(nodes)
        for node in nodes:
            self._write(code, node, root_module)
            if node.op == "placeholder":
                continue
            gone = list(last_uses.get(node, ()))
            if not node.users and node.op != "output":
                gone.append(node)
            if gone:
                code.lines[-1] += f";  {' = '.join([*map(repr, gone), 'None'])}"
        if not code.lines:
            code.lines.append("pass")
        wrapped = "\n".join(f'torch.fx._symbolic_trace.wrap("{n}")' for n in code.wrapped)
        if wrapped:
            code.globals["torch"] = rushlight
        first = self.gen_fn_def(code.inputs, code.returns)
        body = "".join(f"    {line}\n" for text in code.lines for line in text.split("\n"))
        return PythonCode(f"\n{wrapped}\n\n{first}\n{body}    ", code.globals)

    def _write(self, code: _Writing, node: Node, root: str) -> None:
        kind = "" if node.type is None else f" : {spell_type(code, node.type)}"
        if node.op == "placeholder":
            default = f" = {spell(code, node.args[0])}" if node.args else ""
            code.inputs.append(f"{node.target}{kind}{default}")
            plain = node.target.replace("*", "")
            if plain != repr(node):
                code.lines.append(f"{node!r} = {plain}")
        elif node.op == "output":
            if node.type is not None:
                code.returns = f" -> {spell_type(code, node.type)}"
            code.lines.append(self.generate_output(node.args[0]))
        else:
            code.lines.append(_statement(code, node, kind, root))


def _statement(code: _Writing, node: Node, kind: str, root: str) -> str:
    head = f"{node!r}{kind} = "
    if node.op == "get_attr":
        return head + _path(root, node.target)
    if node.op == "call_module":
        return f"{head}{_path(root, node.target)}({_arguments(code, node.args, node.kwargs)})"
    if node.op == "call_method":
        what = _path(spell(code, node.args[0]), node.target)
        return f"{head}{what}({_arguments(code, node.args[1:], node.kwargs)})"
    fn = node.target
    if fn in _FORMATS and not node.kwargs:
        return head + _FORMATS[fn].format(*(spell(code, x) for x in node.args))
    if fn in _IN_PLACE:
        changed = _IN_PLACE[fn].format(*(spell(code, x) for x in node.args))
        return f"{changed};  {head}{spell(code, node.args[0])}"
    if (
        fn is getattr and len(node.args) == 2 and isinstance(node.args[1], str)
        and node.args[1].isidentifier()
    ):  # fmt: skip
        return f"{head}{_path(spell(code, node.args[0]), node.args[1])}"
    hint = qualified_name(fn)
    name = code.name_for(f"_{hint}" if hint.startswith("operator.") else hint, fn)
    if getattr(node.graph, "_wrapped", {}).get(fn) or node.meta.get("is_wrapped"):
        code.wrapped.setdefault(name)
    return f"{head}{name}({_arguments(code, node.args, node.kwargs)})"


def _last_uses(nodes: list[Node]) -> dict[Node, list[Node]]:
    """Whom each node is the last to use: these names are forgotten behind it."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for node in reversed(nodes):
        if node.op == "output":
            seen.update(nodes_in(node.args))
            continue
        for x in (*nodes_in(node.args), *nodes_in(node.kwargs)):
            if x not in seen:
                seen.add(x)
                found.setdefault(node, []).append(x)
    return found


def _path(base: str, target: str) -> str:
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


def _arguments(code: _Writing, args: Any, kwargs: Any) -> str:
    named = (f"{k} = {spell(code, x)}" for k, x in kwargs.items())
    return ", ".join([*(spell(code, x) for x in args), *named])


def spell(code: _Writing, x: Any) -> str:
    """An argument as code."""
    if isinstance(x, Node):
        return repr(x)
    if type(x) is tuple:
        return f"({', '.join(spell(code, y) for y in x)}{',' if len(x) == 1 else ''})"
    if isinstance(x, list):
        return f"[{', '.join(spell(code, y) for y in x)}]"
    if isinstance(x, dict):
        return f"{{{', '.join(f'{k!r}: {spell(code, y)}' for k, y in x.items())}}}"
    if isinstance(x, slice):
        return f"slice({', '.join(spell(code, y) for y in (x.start, x.stop, x.step))})"
    if isinstance(x, enum.Enum):
        return f"{code.name_for(qualified_name(type(x)), type(x))}.{x.name}"
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        name = code.name_for(qualified_name(type(x)), type(x))
        return f"{name}({', '.join(spell(code, y) for y in x)})"
    if isinstance(x, float) and not math.isfinite(x):
        code.globals.update(inf=math.inf, nan=math.nan)
    elif isinstance(x, rushlight.device):
        code.globals["device"] = rushlight.device
    elif isinstance(x, _OF_TORCH):
        code.globals["torch"] = rushlight
    elif callable(x) and not isinstance(x, rushlight.Tensor):
        return code.name_for(qualified_name(x), x)
    return repr(x)


def spell_type(code: _Writing, kind: Any) -> str:
    """An annotation as code."""
    if isinstance(kind, str):
        return code.name_for(f"_{kind}_".replace(".", "_"), kind)
    if isinstance(kind, type) and not hasattr(kind, "__origin__"):
        name = annotation_name(kind)
        return name if "." not in name else code.name_for(name, kind)
    origin, inner = getattr(kind, "__origin__", None), getattr(kind, "__args__", None)
    if isinstance(origin, type) and inner and origin.__module__ == "builtins":
        parts = ",".join(spell_type(code, x) for x in inner)
        return f"{origin.__name__}[{parts}]"
    return code.name_for(annotation_name(kind).replace("[", "_").replace("]", "_"), kind)
