"""A node's rule in one line: what it does with the gradient `g`."""

from __future__ import annotations

from typing import Any, Final

from rushlight.viz.formula import as_text, boxes_of
from rushlight.viz.rules import rule_of as terms_of

LONGEST: Final = 90  # letters: what is longer is easier to say in words


def rule_of(node: Any) -> str:
    """The rule of a node as a formula, otherwise what its op is.

    >>> rule_of(torch.ones(2, requires_grad=True).sin().grad_fn)
    'dx = g · cos(x)'
    """
    return ", ".join(lines_of(node))


def lines_of(node: Any) -> list[str]:
    """The same, a line for each gradient."""
    lines = [as_text(box) for box in boxes_of(terms_of(node))]
    if lines and max(map(len, lines)) <= LONGEST:
        return lines
    op = node._op
    if op is None:
        return [f"backward() of {type(node).__name__.removesuffix('Backward')}"]
    said: str = (op.doc or type(op).__doc__ or op.name).strip().split("\n")[0].rstrip(".")
    return [f"the derivative of: {said}"]
