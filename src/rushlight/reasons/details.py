"""What a node did to a gradient, in words: read from its op and from what it kept."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from rushlight.core.grad_mode import within
from rushlight.core.graph import Node, normal, wrap
from rushlight.ops.pointwise.family import Flat

CHOOSING: Final = {"where", "masked_fill"}
# Where derivatives are not finite, and what to write instead.
POLES: Final[dict[str, tuple[str, str]]] = {}
for _names, _place, _cure in (
    ("sqrt rsqrt pow_number pow", "the derivative is infinite at 0", "`x + eps`"),
    ("log log2 log10 xlogy", "the derivative is infinite at 0", "`x.clamp(min=eps)`"),
    ("log1p", "the derivative is infinite at -1", "`x.clamp(min=-1 + eps)`"),
    ("div reciprocal", "there is a division by 0", "`x + eps` below the line"),
    ("acos asin atanh", "the derivative is infinite at -1 and 1", "`x.clamp(-1 + eps, 1 - eps)`"),
    ("linalg_vector_norm std", "there is no derivative at 0", "`(x * x).sum().add(eps).sqrt()`"),
    ("binary_cross_entropy", "a probability is 0 or 1", "`binary_cross_entropy_with_logits`"),
    ("exp", "exp has overflowed", "`x.clamp(max=80)`, or logsumexp"),
):
    POLES.update((name, (_place, _cure)) for name in _names.split())


class Flatness(NamedTuple):
    """How a gradient becomes 0: at which ops, why, and what to do."""

    ops: str
    why: str
    advice: str


FLAT: Final = {
    "dead relu": Flatness(
        "relu threshold relu6",
        "where its input is below 0, the derivative of relu is 0",
        "a smaller learning rate or other initial weights keep inputs above 0; leaky_relu, elu or "
        "gelu pass a gradient below 0 too.",
    ),
    "saturated": Flatness(
        "sigmoid tanh softmax log_softmax log_sigmoid hardsigmoid gelu silu elu",
        "what came in is so far out that it is flat there",
        "smaller inputs (normalise them, smaller weights), or a loss that takes logits: "
        "`binary_cross_entropy_with_logits`, `cross_entropy`.",
    ),
    "clamped": Flatness(
        "clamp_numbers clamp hardtanh clamp_min clamp_max",
        "what came in lies outside the limits, where it is flat",
        "clamp what is shown, not what is trained; or use a soft limit (sigmoid, tanh).",
    ),
    "not chosen": Flatness(
        "where masked_fill max max_dim amax maximum min min_dim amin minimum "
        "select slice index gather index_select topk",
        "another branch, element or operand was chosen, and it alone gets the gradient",
        "a soft choice (softmax, logsumexp) gives each element a part of the gradient.",
    ),
    "multiplied by zero": Flatness(
        "mul mm addmm bmm",
        "it is multiplied by 0",
        "look at the mask or weight on this line. Are the weights initialised with zeros?",
    ),
    "norm at zero": Flatness(
        "linalg_vector_norm",
        "a norm has a corner at 0, where 0 is taken for its derivative",
        "start from other values, or use the square: `(x * x).sum()`.",
    ),
    "overwritten": Flatness(
        "zero copy",
        "what was there is overwritten in place, so nothing depends on it any more",
        "write to a copy, or use `torch.where` or `torch.cat` to put parts together.",
    ),
    "step function": Flatness(
        "",
        "it is a step function: its derivative is 0",
        "use a smooth function, or pass the gradient straight through: "
        "`y = x + (x.round() - x).detach()`.",
    ),
    "zero": Flatness(
        "",
        "its rule gives 0 for these values",
        "look at the values that this line was given.",
    ),
}


def op_name(node: Any) -> str:
    """The name of a node's op in the table; "" for custom functions and writes through views."""
    return "" if node._op is None else type(node._op).name


def kept(node: Any) -> list[Any]:
    """The tensors that a node kept; none once it was freed, or if hooks packed them."""
    if node._has_packed or node._freed_at is not None:
        return []
    return [wrap(normal(x)) for x in node._kept_values if hasattr(x, "dtype")]


def has_pole(node: Any) -> bool:
    """Whether the derivative of a node is infinite, or has none, for some finite numbers."""
    name = op_name(node)
    if name == "pow_number":
        power = node._op.exponent
        return not (isinstance(power, (int, float)) and (power >= 1 or power == 0))
    return name in POLES


def source_of_bad(node: Any) -> Any:
    """The node that gave a product an operand that was not finite in the forward pass already."""
    if op_name(node) not in ("mul", "mm", "bmm") or node._has_packed or len(kept(node)) < 2:
        return None
    for target, value in zip(node._next_edges, node._kept_values, strict=True):
        if isinstance(target, Node) and has_pole(target) and hasattr(value, "dtype"):
            t: Any = wrap(normal(value))
            if not bool(t.isfinite().all()):
                return target
    return None


def note_bad(node: Any, g: Any, out: Any) -> str:
    """Why a gradient that was finite is not so any more."""
    said = POLES.get(op_name(node), ("its rule gives that for these values", ""))[0]
    with within(False, False):
        if not all(bool(x.isfinite().all()) for x in kept(node)):
            said = "what it was given was not finite in the forward pass already"
        bad = ~out.isfinite()
        count = f"{int(bad.sum().item())} of {out.numel()} gradients"
        if g is not None and g.shape == out.shape and bool(((g == 0) | ~bad).all().item()):
            said += ", and 0 came in there: 0 * inf = NaN"
    return f"{type(node).__name__}: {count} became NaN or infinite; {said}"


def zero_kind(node: Any) -> str:
    """How a gradient becomes 0 at a node: a key of `FLAT`."""
    name = op_name(node)
    if type(node).__name__ == "CopySlices" or name.startswith("fill"):
        return "overwritten"
    if isinstance(node._op, Flat):
        return "step function"
    return next((kind for kind, flat in FLAT.items() if name in flat.ops.split()), "zero")


def note_zero(node: Any) -> str:
    """Why a gradient that was not zero is zero now."""
    return f"{type(node).__name__}: the gradient becomes 0; {FLAT[zero_kind(node)].why}"
