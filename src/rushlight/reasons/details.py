"""What a node did to the gradient, in words: read from its op and from what it kept."""

from __future__ import annotations

from typing import Any, Final

from rushlight.core.grad_mode import within
from rushlight.core.graph import Node, TensorBase, normal, wrap
from rushlight.ops.pointwise.family import Flat

SQUASHING: Final = {
    "sigmoid",
    "tanh",
    "softmax",
    "log_softmax",
    "log_sigmoid",
    "gelu",
    "silu",
    "elu",
}
RELUS: Final = {"relu", "threshold", "relu6"}
CLAMPS: Final = {"clamp_numbers", "clamp", "hardtanh", "hardsigmoid", "clamp_min", "clamp_max"}
CHOOSING: Final = {"where", "masked_fill"}
LARGEST: Final = {
    "max",
    "max_dim",
    "amax",
    "maximum",
    "min",
    "min_dim",
    "amin",
    "minimum",
    "fmax",
    "fmin",
}
WRITING: Final = {"fill_", "zero", "copy", "fill"}
# Where the derivative is not finite, and what to write instead.
POLES: Final = {
    "sqrt": ("the derivative of sqrt is infinite at 0", "`(x + eps).sqrt()`"),
    "rsqrt": ("1 / sqrt is infinite at 0, and so is its derivative", "`(x + eps).rsqrt()`"),
    "log": ("the derivative of log is infinite at 0", "`x.clamp(min=eps).log()`"),
    "log2": ("the derivative of log2 is infinite at 0", "`x.clamp(min=eps).log2()`"),
    "log10": ("the derivative of log10 is infinite at 0", "`x.clamp(min=eps).log10()`"),
    "log1p": ("the derivative of log1p is infinite at -1", "`x.clamp(min=-1 + eps).log1p()`"),
    "div": ("there is a division by 0", "a denominator of `x + eps`"),
    "reciprocal": ("there is a division by 0", "a denominator of `x + eps`"),
    "pow_number": ("the derivative of this power is infinite at 0", "`(x + eps) ** p`"),
    "pow": ("the derivative of this power is not finite at 0", "`(x + eps) ** p`"),
    "linalg_vector_norm": ("a norm has no derivative at 0", "`(x * x).sum().add(eps).sqrt()`"),
    "std": ("the deviation of equal numbers has no derivative", "`(x.var() + eps).sqrt()`"),
    "acos": ("the derivative of acos is infinite at -1 and 1", "`x.clamp(-1 + eps, 1 - eps)`"),
    "asin": ("the derivative of asin is infinite at -1 and 1", "`x.clamp(-1 + eps, 1 - eps)`"),
    "atanh": ("the derivative of atanh is infinite at -1 and 1", "`x.clamp(-1 + eps, 1 - eps)`"),
    "atan2": ("atan2 has no derivative at the origin", "`atan2(y, x + eps)`"),
    "xlogy": ("the derivative of log is infinite at 0", "`y.clamp(min=eps)`"),
    "binary_cross_entropy": ("a probability is 0 or 1", "`binary_cross_entropy_with_logits`"),
    "exp": ("exp has overflowed", "`x.clamp(max=80).exp()`, or logsumexp"),
}  # fmt: skip


def op_name(node: Any) -> str:
    """The name of a node's op in the table; "" for custom functions and writes through views."""
    return "" if node._op is None else type(node._op).name


def kept(node: Any) -> list[Any]:
    """What a node kept, as tensors and numbers; empty once it was freed, or packed by hooks."""
    if node._has_packed or node._freed_at is not None:
        return []
    return [
        x if x is None or isinstance(x, (bool, int, float, complex)) else wrap(normal(x))
        for x in node._kept_values
    ]


def has_pole(node: Any) -> bool:
    """Whether the derivative of a node is infinite, or has none, for some finite numbers."""
    name = op_name(node)
    if name == "pow_number":
        power = node._op.exponent
        return not (isinstance(power, (int, float)) and (power >= 1 or power == 0))
    return name in POLES


def numbers(x: Any) -> str:
    """How many numbers a tensor has, for a sentence."""
    if not isinstance(x, TensorBase):
        return "the values"
    n = int(x._array.size)
    return f"all {n} values" if n != 1 else "the value"


def note_bad(node: Any, i: int, g: Any, out: Any) -> str:
    """Why a gradient that was finite is not so any more."""
    name = op_name(node)
    title = type(node).__name__
    bad = out.abs() == float("inf") if not bool(out.isnan().any()) else out.isnan() | out.isinf()
    count = int(bad.sum().item())
    where = f"{count} of {out.numel()}" if out.numel() > 1 else "the"
    said = POLES.get(name, ("", ""))[0]
    if source_of_bad(node) is not None:
        said = "a number it was multiplied by, or divided by, was not finite in the forward pass"
    # where exactly: 0 * inf is NaN although nothing was to pass there
    if g is not None and tuple(g.shape) == tuple(out.shape):
        with within(False, False):
            if bool(((g == 0) | ~bad).all().item()):
                said = (said + ", and " if said else "") + "0 came in there: 0 * inf = NaN"
    return f"{title}: {where} gradient{'s' if out.numel() > 1 else ''} became " + (
        "NaN or infinite" + (f"; {said}" if said else ": its rule gives that for these values")
    )


def source_of_bad(node: Any) -> Any:
    """The node that gave a product an operand that was not finite in the forward pass already."""
    if op_name(node) not in ("mul", "mm", "addmm", "bmm"):
        return None
    for target in node._next_edges:
        if isinstance(target, Node) and has_pole(target):
            return target
    return None


def note_zero(node: Any, i: int) -> str:
    """Why a gradient that was not zero is zero now."""
    name, title = op_name(node), type(node).__name__
    values = kept(node)
    first = values[0] if values else None
    said = "its rule gives 0 for these values"
    if title == "CopySlices" or name in WRITING or name.startswith("fill"):
        said = "what was there is overwritten in place, so nothing depends on it any more"
    elif isinstance(node._op, Flat):
        said = "it is a step function, flat nearly everywhere: its derivative is 0"
    elif name in RELUS:
        said = f"relu made 0 of {numbers(first)}: where its input is below 0, its derivative is 0"
    elif name in SQUASHING:
        said = f"saturated: {numbers(first)} lie at an end of {name}, where it is flat"
    elif name in CLAMPS:
        said = f"{numbers(first)} lie outside the limits, where clamping is flat"
    elif name in CHOOSING:
        said = "the other branch was taken everywhere"
    elif name in LARGEST:
        said = "another element or operand was chosen: what is not chosen gets 0"
    elif name == "linalg_vector_norm":
        said = "a norm has a corner at 0, where 0 is taken for its derivative"
    elif name == "mul" and len(values) == 2:
        said = f"it is multiplied by {factor(values[1 - i] if i < 2 else None)}"
    elif name in ("mm", "addmm", "bmm", "matmul"):
        said = "it is multiplied by a matrix of zeros"
    return f"{title}: the gradient becomes 0; {said}"


def factor(x: Any) -> str:
    if isinstance(x, TensorBase):
        t: Any = x
        if bool((t != 0).any()):
            return "numbers that are 0 where the gradient is not"
    return "0"


def note_large(node: Any, times: float) -> str:
    """What made a gradient so much larger."""
    name = op_name(node)
    said = {
        "exp": "exp of a large number",
        "reciprocal": "1 / x is steep close to 0",
        "div": "divided by a small number",
        "pow_number": "a power with a steep derivative here",
        "log": "log close to 0 is steep",
        "sqrt": "sqrt close to 0 is steep",
        "mul": "multiplied by large numbers",
    }.get(name, "")
    return f"{type(node).__name__}: the gradient becomes {times:.3g} times larger" + (
        f"; {said}" if said else ""
    )


def instead_of(node: Any) -> str:
    """What to write in place of an op whose derivative is not finite."""
    return POLES.get(op_name(node), ("", ""))[1]
