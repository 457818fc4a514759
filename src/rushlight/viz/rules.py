"""What a node's rule says, as terms: the op's methods, run on arrays that write themselves down.

There is no second table of derivatives: `op.vjp` runs on the arrays of `arrays.terms` and the
result is its formula. Where a rule cannot be written so, its source is shown.
"""

from __future__ import annotations

import inspect
import textwrap
from dataclasses import dataclass, field
from typing import Any

from rushlight.arrays.terms import Term, Unwritten, Written, named
from rushlight.core.graph import Node
from rushlight.core.views.copy_slices import CopySlicesBase
from rushlight.viz.maths import size, tidy
from rushlight.viz.shapes import Shapes

_LONGEST = 60  # words: what is longer is better read in its source
_LETTERS = {"self": "x", "input": "x", "result": "y", "output": "y"}


@dataclass
class Rule:
    """`forward` is the op's result; `grads` has, for each input that wants one, its name and its
    gradient. `source` is what stands in their place where they cannot be written."""

    forward: Term | None = None
    grads: list[tuple[str, Term]] = field(default_factory=list)
    source: str = ""


def letter(name: str) -> str:
    """The name of an input or output in formulas: `x` for what PyTorch's formulas call self."""
    return _LETTERS.get(name, name)


def names_of_inputs(op: Any, count: int) -> list[str]:
    """The names of an op's inputs, as formulas have them.

    >>> names_of_inputs((torch.ones(2, requires_grad=True) * 2).grad_fn._op, 2)
    ['x', 'other']
    """
    if op.variadic or count > len(op.inputs):
        return [f"x{i + 1}" for i in range(count)]
    return [letter(name) for name in op.inputs[:count]]


def rule_of(node: Any, shapes: Shapes | None = None) -> Rule:
    """The rule of a node of any kind."""
    if isinstance(node, CopySlicesBase):
        grads = [("base", Term("outside", (Term("g"),)))] if node._next_edges[0] is not None else []
        inner = rule_of(node.fn, shapes)
        return Rule(None, grads + [(n, t) for n, t in inner.grads if n != "x"], inner.source)
    op = node._op
    if op is None:
        return Rule(source=_source_of_function(node))
    known = shapes or Shapes()
    try:
        forward, grads = _forward(node, op, known), _gradients(node, op, known)
        if forward is not None and _is_long(forward):
            forward = None
        if not any(_is_long(term) for _, term in grads):
            return Rule(forward, grads)
        return Rule(forward, [], _source_of(op))
    except (Unwritten, AttributeError, TypeError, ValueError, NotImplementedError, IndexError):
        # a rule that looks at numbers, or asks an array for what only arrays of numbers have
        return Rule(source=_source_of(op))


def _is_long(term: Term) -> bool:
    # counted before it is tidied: shared parts may make of a small rule an endless formula
    return size(term) > 50 * _LONGEST or size(tidy(term)) > _LONGEST


def _forward(node: Node, op: Any, shapes: Shapes) -> Term | None:
    xs: list[Any] = []
    names = names_of_inputs(op, len(node._next_edges))
    kept = _kept_inputs(node, op)
    for i, name in enumerate(names):
        like = shapes.of_input(node, i)
        if like is not None:
            xs.append(named(name, *like))
        else:
            xs.append(kept.get(i, named(name, (), "float32")))
    try:
        found = op.forward(*xs)
    except Exception:  # only the gradients are promised
        return None
    return found.term if isinstance(found, Written) else None


def _kept_inputs(node: Node, op: Any) -> dict[int, Any]:
    """Inputs that were Python numbers, where the node keeps them."""
    if op.plan.variadic:
        return {}
    pairs = zip(op.plan.sources, node._kept_values)
    return {i: value for i, value in pairs if i >= 0 and isinstance(value, (int, float, complex))}


def _gradients(node: Node, op: Any, shapes: Shapes) -> list[tuple[str, Term]]:
    outs = shapes.of_outputs(node)
    if len(outs) == 1 and node._output_metas is None:
        g: Any = named("g", *outs[0])
    else:
        titles = op.outputs if len(op.outputs) == len(outs) else range(1, len(outs) + 1)
        g = [named(f"g_{t}", *out) for t, out in zip(titles, outs)]
    found = op.vjp(node, g, *_saved(node, op, shapes, outs))
    names = names_of_inputs(op, len(node._next_edges))
    grads = []
    for i, out in enumerate(found):
        if out is None or i >= len(node._next_edges) or node._next_edges[i] is None:
            continue
        if not isinstance(out, Written):
            raise Unwritten("a gradient that is no array")
        term = out.term
        want = shapes.of_input(node, i)
        if want is not None and tuple(want[0]) != tuple(out.shape):
            term = Term("summed", (term,), tuple(want[0]))
        grads.append((names[i], term))
    return grads


def _saved(node: Node, op: Any, shapes: Shapes, outs: list[Any]) -> list[Any]:
    """The saved values as named arrays; numbers as they are."""
    values = node._kept_values
    count = len(op.plan.sources) if not op.plan.variadic else len(values)
    names = names_of_inputs(op, len(node._next_edges))
    found: list[Any] = []
    for j in range(count):
        value: Any = values[j] if j < len(values) else None
        source = j if op.plan.variadic else op.plan.sources[j]
        name = names[source] if source >= 0 else letter(op.outputs[-1 - source])
        if isinstance(value, (int, float, complex)):
            found.append(value)
        elif hasattr(value, "shape") and hasattr(value, "dtype"):
            found.append(named(name, value.shape, value.dtype))
        elif node._freed_at is None and not node._has_packed:
            found.append(None)
        else:
            like = shapes.of_input(node, source) if source >= 0 else outs[-1 - source]
            found.append(None if like is None else named(name, *like))
    return found


# --- rules as their source ------------------------------------------------------------------------
def _source_of_function(node: Any) -> str:
    """The `backward` of a custom function."""
    cls = getattr(node, "_forward_cls", None)
    if cls is None:
        return ""
    rule = cls.backward if "backward" in vars(cls) else getattr(cls, "vjp", None)
    return _text_of(rule)


def _source_of(op: Any) -> str:
    """The methods of an op that its gradient is written in."""
    for name in ("adjoint", "left", "through", "partials", "vjp"):
        method = getattr(type(op), name, None)
        text = "" if method is None else _text_of(method)
        if text:
            return text
    return ""


def _text_of(method: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(method)).rstrip()
    except (OSError, TypeError):  # compiled, or typed into a prompt
        return ""
