"""What a program uses of torch, found by reading it: names, and methods of what must be tensors.

Nothing is run or imported. `import torch.nn as nn`, `from torch import x as y`, `F = nn.functional`
and stars are followed; a variable is taken for a tensor if it was made by a function of torch, by
arithmetic on tensors or by a method of one, or is annotated as one. A name that a program gives to
something else afterwards may be misread, for scopes are not told apart: what is found here is
looked up in `lookup`, and what exists is not reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

LIBRARIES = {"torch": "torch", "rushlight": "torch"}
CATCHING = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"}
# Functions and methods whose result is no tensor; what is not lower case (a class) is none either.
NOT_TENSORS = frozenset(
    """
    is_tensor is_storage is_floating_point is_complex is_grad_enabled manual_seed seed initial_seed
    save load compile no_grad enable_grad device get_default_dtype numel finfo iinfo size dim item
    tolist numpy backward is_contiguous data_ptr element_size storage stride storage_offset
    get_device type untyped_storage split chunk unbind tensor_split register_hook
""".split()
)


@dataclass(frozen=True)
class Use:
    """One place where a program names something of torch's."""

    name: str  # `torch.nn.Linear`, `torch.Tensor.view`
    line: int
    column: int
    guarded: bool  # the program is ready for its absence
    certain: bool = True  # False: a method of something that may be no tensor


def uses(source: str) -> list[Use]:
    """What a source uses, in its order; a SyntaxError where it cannot be read.

    >>> for use in uses("import torch.nn as nn\\nm = nn.Linear(2, 1)"):
    ...     print(use.line, use.name)
    1 torch.nn
    2 torch.nn.Linear
    """
    reader = Reader()
    tree = ast.parse(source)
    for _ in range(2):  # a function may use what is assigned further down
        reader.found.clear()
        reader.visit(tree)
    return sorted(set(reader.found), key=lambda use: (use.line, use.column, use.name))


class Reader(ast.NodeVisitor):
    """Walks through a program, remembering what its names stand for."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # what is of torch's: `nn` is torch.nn
        self.tensors: set[str] = set()
        self.found: list[Use] = []
        self.guards = 0

    def note(self, name: str, node: ast.AST, certain: bool = True) -> None:
        if name.count(".") or self.guards == 0:
            line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
            self.found.append(Use(name, line, column, self.guards > 0, certain))

    # --- imports ----------------------------------------------------------------------------------
    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top, _, rest = alias.name.partition(".")
            if top not in LIBRARIES:
                continue
            whole = LIBRARIES[top] + (f".{rest}" if rest else "")
            self.names[alias.asname or top] = whole if alias.asname else LIBRARIES[top]
            if rest:
                self.note(whole, node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        top, _, rest = (node.module or "").partition(".")
        if node.level or top not in LIBRARIES:
            return
        home = LIBRARIES[top] + (f".{rest}" if rest else "")
        for alias in node.names:
            if alias.name == "*":
                self.note(home, node)
            elif not (top == "rushlight" and alias.name in ("compat", "viz")):
                self.names[alias.asname or alias.name] = f"{home}.{alias.name}"
                self.note(f"{home}.{alias.name}", node)

    # --- names and methods ------------------------------------------------------------------------
    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self.torch_name(node)
        if name is not None:
            self.note(name, node)
            return
        if self.is_tensor(node.value):
            self.note(f"torch.Tensor.{node.attr}", node)
        elif not isinstance(node.value, ast.Name) or node.value.id not in ("self", "cls"):
            self.note(f"torch.Tensor.{node.attr}", node, certain=False)
        self.visit(node.value)

    def torch_name(self, node: ast.AST) -> str | None:
        """What an expression names in torch: `nn.Linear` is `torch.nn.Linear`."""
        if isinstance(node, ast.Name):
            return self.names.get(node.id)
        if isinstance(node, ast.Attribute):
            home = self.torch_name(node.value)
            return None if home is None else f"{home}.{node.attr}"
        return None

    def is_tensor(self, node: ast.AST | None) -> bool:
        """Whether an expression must be a tensor."""
        match node:
            case ast.Name(id=variable):
                return variable in self.tensors
            case ast.Call(func=function):
                name = self.torch_name(function)
                if name is not None:
                    last = name.rpartition(".")[2]
                    plain = name.count(".") == 1 or ".functional." in name or ".linalg." in name
                    return plain and last.islower() and last not in NOT_TENSORS
                return (
                    isinstance(function, ast.Attribute)
                    and function.attr not in NOT_TENSORS
                    and self.is_tensor(function.value)
                )
            case ast.BinOp(left=left, right=right):
                return self.is_tensor(left) or self.is_tensor(right)
            case ast.UnaryOp(operand=operand):
                return self.is_tensor(operand)
            case ast.Subscript(value=value):
                return self.is_tensor(value)
            case ast.Attribute(value=value, attr="grad" | "data" | "T" | "mT" | "real" | "imag"):
                return self.is_tensor(value)
        return False

    # --- what names stand for ---------------------------------------------------------------------
    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            self.bind(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        if self.names_tensor(node.annotation) and isinstance(node.target, ast.Name):
            self.tensors.add(node.target.id)
        elif node.value is not None:
            self.bind(node.target, node.value)

    def visit_arg(self, node: ast.arg) -> None:
        self.generic_visit(node)
        if node.annotation is not None and self.names_tensor(node.annotation):
            self.tensors.add(node.arg)
        else:
            self.names.pop(node.arg, None)  # a parameter hides what the name stood for
            self.tensors.discard(node.arg)

    def names_tensor(self, annotation: ast.AST) -> bool:
        if isinstance(annotation, ast.Constant):
            return annotation.value in ("Tensor", "torch.Tensor")
        return self.torch_name(annotation) in ("torch.Tensor", "torch.nn.Parameter")

    def bind(self, target: ast.AST, value: ast.AST) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, other in zip(target.elts, value.elts):
                self.bind(one, other)
        elif isinstance(target, ast.Tuple):
            for one in target.elts:
                self.bind(one, ast.Constant(None))
        elif isinstance(target, ast.Name):
            name = self.torch_name(value)
            self.names.pop(target.id, None)
            self.tensors.discard(target.id)
            if name is not None:
                self.names[target.id] = name
            elif self.is_tensor(value):
                self.tensors.add(target.id)

    # --- what a program is ready to do without ----------------------------------------------------
    def visit_Try(self, node: ast.Try) -> None:
        caught = {name for handler in node.handlers for name in self.caught(handler)}
        self.guarded(node.body, bool(caught & CATCHING))
        for part in (*node.handlers, *node.orelse, *node.finalbody):
            self.visit(part)

    def caught(self, handler: ast.ExceptHandler) -> Iterator[str]:
        if handler.type is None:
            yield "BaseException"
        else:
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            yield from (kind.id for kind in kinds if isinstance(kind, ast.Name))

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        asks = any(
            isinstance(inner, ast.Name) and inner.id == "hasattr" for inner in ast.walk(node.test)
        )
        self.guarded(node.body, asks)
        self.guarded(node.orelse, asks)

    def guarded(self, body: list[ast.stmt], ready: bool) -> None:
        self.guards += ready
        try:
            for statement in body:
                self.visit(statement)
        finally:
            self.guards -= ready
