"""Formulas of operators: what `register_autograd` was given, as the history of each call.

Note [Lists of tensors]
    A node has one edge a tensor. So lists of tensors among the arguments and results are spread out
    for it, and put together again for the user's functions: they see lists, as the kernel does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rushlight.autograd.apply import begin, conclude
from rushlight.autograd.function import Function
from rushlight.core.grad_mode import grad_enabled
from rushlight.core.graph import TensorBase
from rushlight.core.transforms.forward_ad import disable_forward_ad
from rushlight.library.operator import OpOverload, refuse_tangents
from rushlight.library.values import tensors_among, trim_defaults

Layout = list[int | None]  # of each value: None, or how many tensors its list has

# what PyTorch says where a call is recorded; where it is not, it takes the result for a constant
_AS_PYTORCH = (
    "You must implement the jvp function for custom autograd.Function to use it with forward mode "
    "AD. "
)


class Formula:
    """The derivative of an operator: its `backward`, and the `setup_context` that saves for it."""

    def __init__(self, op: OpOverload) -> None:
        self.op = op
        self.backward: Callable[..., Any] | None = None
        self.setup_context: Callable[..., Any] | None = None
        schema = op.schema
        kinds = [a.type for a in schema.arguments] + [r.type for r in schema.returns]
        self.lists = any(kind.list_of_tensors() for kind in kinds)
        name = f"GeneratedBackwardFor_{op.namespace}_{op._opname}_{op._overloadname}"
        rules = {"backward": staticmethod(_backward), "jvp": staticmethod(_jvp)}
        self.function: Any = type(name, (Function,), rules)

    def __call__(
        self, op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], compute: Any = None
    ) -> Any:
        """Run the operator, recorded if a tensor among `args` wants a gradient. `compute` gives
        the result, where it is not the kernel that does."""
        if compute is None:
            compute = partial(op.unrecorded, args, kwargs)
        if not grad_enabled() or not any(t.requires_grad for t in tensors_among(args)):
            return refuse_tangents(op, args, kwargs, compute())
        if any(a.is_write for a in op.schema.keyword_only):
            raise RuntimeError(
                f"{op._opname}(): functions with out=... arguments don't support automatic "
                "differentiation, but one of the arguments requires grad."
            )
        # as in PyTorch, arguments that have their default value need no gradient
        given = trim_defaults(op.schema, args, kwargs)[0]
        flat, layout = flatten_lists(given) if self.lists else (given, [])
        ctx = begin(self.function, flat)
        ctx._formula, ctx._arguments = self, layout
        result = refuse_tangents(op, args, kwargs, compute(), _AS_PYTORCH)
        self.save(ctx, args, kwargs, result)
        several = isinstance(result, tuple)
        outputs, ctx._results = flatten_lists(result if several else (result,))
        made = conclude(self.function, ctx, flat, outputs)
        found = regroup(made, ctx._results)
        return found if several else found[0]

    def save(self, ctx: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Let the user save what `backward` needs."""
        if self.setup_context is None:
            return
        given: dict[str, Any] = {"ctx": ctx, "inputs": args, "output": result}
        if self.op.schema.keyword_only:
            given["keyword_only_inputs"] = kwargs
        with disable_forward_ad(False):
            self.setup_context(**given)


def _jvp(ctx: Any, *tangents: Any) -> Any:
    """Only called where no result can have a tangent: `refuse_tangents` was before."""
    return (None,) * sum(1 if n is None else n for n in ctx._results)


def _backward(ctx: Any, *grads: Any) -> Any:
    """The rule of every operator's node: the user's, with lists put together."""
    formula: Formula = ctx._formula
    if formula.backward is None:
        raise RuntimeError(
            f"Trying to backward through {formula.op} but no autograd formula was registered. "
            "Please use register_autograd to add one."
        )
    flags = ctx.needs_input_grad
    if formula.lists:
        grads = regroup(grads, ctx._results)
        ctx.needs_input_grad = regroup(flags, ctx._arguments)
    try:
        found = formula.backward(ctx, *grads)
    finally:
        ctx.needs_input_grad = flags
    if not formula.lists:
        return found
    flat, layout = flatten_lists(found if isinstance(found, tuple) else (found,), True)
    if layout != ctx._arguments:
        raise RuntimeError(
            "Expected the return from backward to be of the same structure as the inputs. Got: "
            f"{show_layout(layout)} (return from backward), {show_layout(ctx._arguments)} (inputs)"
        )
    return flat


# --- lists; see Note [Lists of tensors] -----------------------------------------------------------
def flatten_lists(values: tuple[Any, ...], gaps: bool = False) -> tuple[tuple[Any, ...], Layout]:
    """Values with the lists of tensors spread out; with `gaps`, these may hold None."""
    wanted = (TensorBase, type(None)) if gaps else TensorBase
    flat: list[Any] = []
    layout: Layout = []
    for x in values:
        if isinstance(x, list) and all(isinstance(t, wanted) for t in x):
            flat.extend(x)
            layout.append(len(x))
        else:
            flat.append(x)
            layout.append(None)
    return tuple(flat), layout


def regroup(flat: tuple[Any, ...], layout: Layout) -> tuple[Any, ...]:
    """The values again that were spread out."""
    found: list[Any] = []
    at = 0
    for n in layout:
        found.append(flat[at] if n is None else list(flat[at : at + n]))
        at += 1 if n is None else n
    return tuple(found)


def show_layout(layout: Layout) -> str:
    inside = ", ".join("*" if n is None else f"[{', '.join('*' * n)}]" for n in layout)
    return f"({inside})"
