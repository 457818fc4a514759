"""Pieces of the user's source: names and whose they are, statements, and what cuts a history."""

from __future__ import annotations

import ast
import inspect
import linecache
import os
from collections.abc import Iterator
from typing import Final, NamedTuple

# Methods that leave the graph, by what they are.
CUTTING: Final = {
    "detach": "detach", "detach_": "detach", "item": "item", "tolist": "item", "numpy": "numpy",
    "__array__": "numpy", "long": "integer", "int": "integer", "short": "integer",
    "bool": "integer", "byte": "integer", "char": "integer", "argmax": "integer",
    "argmin": "integer", "argsort": "integer", "bincount": "integer",
}  # fmt: skip
CASTS: Final = {"int64", "int32", "int16", "int8", "uint8", "long", "int", "short", "bool"}
MAKERS: Final = {"tensor", "as_tensor", "array", "asarray"}
OFF: Final = ("no_grad", "inference_mode")
Key = tuple[str, str]  # (function, name), or (".", attribute)


class Scope(NamedTuple):
    """A function, or the file, and the names that are its own."""

    function: str
    own: frozenset[str]

    def key(self, name: str) -> Key:
        """Which name is meant."""
        return (self.function if name in self.own else "", name)


TOP: Final = Scope("", frozenset())


class Cut(NamedTuple):
    """A place where a value goes on without its history."""

    kind: str
    line: int
    place: str
    targets: tuple[Key, ...]
    returns: bool


class Statement(NamedTuple):
    """One statement: where it stands, what it reads and what it binds."""

    line: int
    scope: Scope
    values: tuple[ast.expr, ...]
    targets: tuple[Key, ...]  # what it writes to
    bound: tuple[Key, ...]  # of these, the names that it gives to something new
    off: str  # 'no_grad' or 'inference_mode', if it stands in such a block
    returns: bool
    file: str


def source_file(cls: type) -> str:
    """The file of a class of the user's; "" for others."""
    if cls.__module__.split(".")[0] == "rushlight":
        return ""
    try:
        return inspect.getsourcefile(cls) or ""
    except (TypeError, OSError):
        return ""


def shown(file: str, line: int) -> str:
    """A line as nodes show theirs: 'train.py:3     x = torch.ones(2)'."""
    name = file if file.startswith("<") else os.path.basename(file)
    text = linecache.getline(file, line).strip()
    return f"{name}:{line}" + (f"     {text}" if text else "")


def switches_off(expr: ast.expr) -> str:
    """How a `with` or a decorator switches recording off; "" if it does not."""
    on = expr.func if isinstance(expr, ast.Call) else expr
    name = getattr(on, "attr", getattr(on, "id", ""))
    if name == "set_grad_enabled" and isinstance(expr, ast.Call) and expr.args:
        off = isinstance(expr.args[0], ast.Constant) and expr.args[0].value is False
        return "no_grad" if off else ""
    return name if name in OFF else ""


def binds(name: ast.Name) -> bool:
    """Whether a name is bound where it stands."""
    return isinstance(name.ctx, ast.Store)


def bound_by(expr: ast.expr, scope: Scope) -> Iterator[Key]:
    """The names that an expression to the left of `=` gives to something new."""
    if isinstance(expr, ast.Name):
        yield scope.key(expr.id)
    elif isinstance(expr, ast.Attribute):
        yield ".", expr.attr
    elif isinstance(expr, (ast.Tuple, ast.List)):
        for part in expr.elts:
            yield from bound_by(part, scope)


def keys_of(expr: ast.expr, scope: Scope) -> Iterator[Key]:
    """What an expression to the left of `=` binds, or a call is made on."""
    if isinstance(expr, ast.Name):
        yield scope.key(expr.id)
    elif isinstance(expr, ast.Attribute):
        yield ".", expr.attr
        if not (isinstance(expr.value, ast.Name) and expr.value.id == "self"):
            yield from keys_of(expr.value, scope)
    elif isinstance(expr, (ast.Subscript, ast.Starred)):
        yield from keys_of(expr.value, scope)
    elif isinstance(expr, (ast.Tuple, ast.List)):
        for part in expr.elts:
            yield from keys_of(part, scope)


def mentions(expr: ast.AST, names: set[Key], scope: Scope) -> bool:
    """Whether an expression mentions one of the names."""
    for each in ast.walk(expr):
        if isinstance(each, ast.Name) and scope.key(each.id) in names:
            return True
        if isinstance(each, ast.Attribute) and (".", each.attr) in names:
            return True
    return False


def cuts_in(expr: ast.expr, names: set[Key], scope: Scope) -> Iterator[str]:
    """The kinds of cuts of a value that has one of the names, in an expression."""
    for each in ast.walk(expr):
        if isinstance(each, ast.Attribute):
            yield from ["data"] if each.attr == "data" and mentions(each, names, scope) else []
        if not isinstance(each, ast.Call):
            continue
        on = each.func
        given = [a for a in each.args if mentions(a, names, scope)]
        if isinstance(on, ast.Attribute):
            if on.attr in CUTTING and (mentions(on.value, names, scope) or given):
                yield CUTTING[on.attr]
            elif on.attr in ("to", "type") and mentions(on.value, names, scope):
                kinds = {getattr(a, "attr", "") for a in each.args}
                kinds |= {getattr(k.value, "attr", "") for k in each.keywords}
                if kinds & CASTS:
                    yield "integer"
            elif on.attr in MAKERS and given:
                yield "copied"
            elif on.attr == "Parameter" and given:
                yield "parameter"
        elif isinstance(on, ast.Name) and on.id in ("float", "int") and given:
            yield "item"
