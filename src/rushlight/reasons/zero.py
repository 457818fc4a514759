"""Why a gradient is zero."""

from __future__ import annotations

from typing import Any, Final

from rushlight.reasons.answer import Answer, Link
from rushlight.reasons.details import note_zero, op_name
from rushlight.reasons.facts import Facts
from rushlight.reasons.passes import FREED, Pass
from rushlight.reasons.remains import Remains


def zero(f: Facts, run: Pass) -> Answer:
    name = f.name
    dead = [(turn, sent) for turn, sent in run.towards(f) if sent.odd == "zero"]
    if not dead:
        return zero_without_values(f, run)
    node = dead[-1][0].node  # what the others left went through it
    notes = {id(turn.node): sent.note for turn, sent in dead}
    shown = {id(n): n for turn, _ in dead[-3:] for n in f.path_from(turn.node)}
    shown.update({id(n): n for n in f.after(node)})
    return Answer(
        zero_kind(node),
        f"{name}.grad {f.verb} 0: the gradient came as far as {type(node).__name__}, and became 0 "
        "there.",
        [*f.made(), *f.lines(sorted(shown.values(), key=lambda n: int(n._seq_nr)), notes)],
        ADVICE.get(zero_kind(node), "look at the values that this line was given."),
    )


def zero_without_values(f: Facts, run: Pass) -> Answer:
    name = f.name
    if run.turns and len(f.users) > 1:
        return Answer(
            "cancels",
            f"{name}.grad {f.verb} 0: {len(f.users)} paths lead to {name}, and they cancel.",
            [*f.made(), *f.lines(f.users[:6])],
            "nothing, if that is meant: the result does not depend on it, as x - x does not depend "
            "on x.",
        )
    reset = f.freed() and f.program.call_of("zero_grad", f.freed().line)
    if reset:
        return Answer(
            "zero_grad",
            f"{name}.grad is 0: zero_grad() has set it to 0 after the backward pass.",
            [*f.made(), Link(str(f.freed())), Link(reset, "here it was set to 0")],
            "look at the gradient between backward() and zero_grad().",
        )
    remains = Remains()
    found = sorted((n for n in f.above if zero_kind(n) != "zero"), key=lambda n: int(n._seq_nr))
    flat = [n for n in found if remains.is_flat(n)]
    if flat:
        node = flat[0]
        way = [*f.path_from(node), *f.after(node)]
        return Answer(
            zero_kind(node),
            f"{name}.grad {f.verb} 0: the way back leads through {type(node).__name__}, which is "
            "flat for all values it was given.",
            [*f.made(), *f.lines(way, {id(n): note_zero(n, 0) for n in flat})],
            ADVICE[zero_kind(node)],
        )
    maybe = [n for n in found if remains.is_flat(n) is None]
    return Answer(
        "zero",
        f"{name}.grad {f.verb} 0 everywhere.",
        [*f.made(), *f.lines(maybe[:6], {id(n): MAYBE[zero_kind(n)] for n in maybe})],
        FREED if maybe or not run.turns else "it may be a point where the derivative is 0.",
    )


def zero_kind(node: Any) -> str:
    name = op_name(node)
    for kind, words in KINDS.items():
        if name in words.split():
            return kind
    if type(node).__name__ == "CopySlices" or name.startswith("fill"):
        return "overwritten"
    return "step function" if "Flat" in [c.__name__ for c in type(node._op).__mro__] else "zero"


KINDS: Final = {
    "dead relu": "relu threshold hardtanh_ relu6",
    "saturated": "sigmoid tanh softmax log_softmax log_sigmoid hardsigmoid gelu silu elu",
    "clamped": "clamp_numbers clamp hardtanh clamp_min clamp_max",
    "not chosen": "where masked_fill max max_dim amax maximum min min_dim amin minimum",
    "multiplied by zero": "mul mm addmm bmm",
    "overwritten": "zero copy",
    "norm at zero": "linalg_vector_norm",
}
MAYBE: Final = {
    "dead relu": "0 if all that came in was below 0",
    "saturated": "0 if all that came in was far from 0",
    "clamped": "0 if all that came in was outside the limits",
    "not chosen": "0 if the other branch or element was chosen",
    "multiplied by zero": "0 if the other factor is 0",
    "overwritten": "what is overwritten gets 0",
    "norm at zero": "0 at 0",
    "step function": "a step function: its derivative is 0",
}
ADVICE: Final = {
    "dead relu": "a smaller learning rate or other initial weights keep inputs above 0; "
    "leaky_relu, elu or gelu pass a gradient below 0 too.",
    "saturated": "smaller inputs (normalise them, smaller weights), or a loss that takes logits: "
    "`binary_cross_entropy_with_logits`, `cross_entropy`.",
    "clamped": "clamp what is shown, not what is trained; or use a soft limit (sigmoid, tanh).",
    "not chosen": "a soft choice (softmax, logsumexp) gives each element a part of the gradient.",
    "multiplied by zero": "look at the mask or weight on this line: 0 times anything is 0, and so "
    "is its derivative. Are the weights initialised with zeros?",
    "norm at zero": "start from other values, or use the square: `(x * x).sum()`.",
    "overwritten": "write to a copy, or use `torch.where` or `torch.cat` to put parts together.",
    "step function": "use a smooth function, or pass the gradient straight through: "
    "`y = x + (x.round() - x).detach()`.",
}
