"""A node's rule in one line: what its op does with the gradient `g`."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from typing import Any


def rule_of(node: Any) -> str:
    """The rule of a node as a line of text: a formula where its op's `vjp` returns one, otherwise
    what the op is."""
    op = node._op
    if op is None:
        return "the backward you wrote" if hasattr(node, "_calls_user") else ""
    return formula_in(type(op)) or said_of(type(op))


@functools.cache
def formula_in(cls: Any) -> str:
    """What the `vjp` of an op returns, as its source has it; "" if that is not one expression."""
    for name in ("vjp", "through", "partials"):
        method = getattr(cls, name, None)
        if method is None or name not in vars(cls):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(method)))
        except (OSError, TypeError, SyntaxError):
            return ""
        found = [x.value for x in ast.walk(tree) if isinstance(x, ast.Return) and x.value]
        if len(found) != 1:
            return ""
        parts = found[0].elts if isinstance(found[0], (ast.Tuple, ast.List)) else [found[0]]
        texts = [ast.unparse(x.body if isinstance(x, ast.IfExp) else x) for x in parts]
        text = ", ".join(f"g * {x}" if name == "partials" else x for x in texts)
        return text.replace("v.", "").replace("self.", "")
    return ""


def said_of(cls: Any) -> str:
    """The first sentence of an op's documentation, or its name."""
    text = (cls.doc or cls.__doc__ or cls.name).strip().split("\n")[0].rstrip(".")
    return f"of: {text}"
