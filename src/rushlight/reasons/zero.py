"""Why a gradient is zero."""

from __future__ import annotations

from typing import Any, Final

from rushlight.reasons.answer import Answer
from rushlight.reasons.details import note_zero, op_name
from rushlight.reasons.facts import Facts
from rushlight.reasons.passes import FREED, Pass


def zero(f: Facts, run: Pass) -> Answer:
    name = f.name
    dead = [(turn, sent) for turn, sent in run.towards(f) if sent.odd == "zero"]
    if not dead:
        return zero_without_values(f, run)
    node = dead[-1][0].node  # what the others left went through it
    notes = {id(turn.node): sent.note for turn, sent in dead}
    shown = {id(n): n for turn, _ in dead[-3:] for n in f.path_from(turn.node)}
    if f.y is not None and f.y.grad_fn is not None:
        shown.update({id(n): n for n in f.way(f.y.grad_fn, node)})
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
            "what is computed does not depend on it, to first order: x - x, or a sum of softmax.",
        )
    found = sorted((n for n in f.above if zero_kind(n) != "zero"), key=lambda n: int(n._seq_nr))
    notes = {
        id(n): note_zero(n, 0).partition("; ")[2] if op_name(n) not in ("mul",) else ""
        for n in found
    }
    chain = [*f.made(), *f.lines(found[:6], {k: f"may be why: {v}" for k, v in notes.items() if v})]
    return Answer(
        "zero", f"{name}.grad {f.verb} 0 everywhere.", chain,
        FREED if found or not run.turns else "it may be a point where the derivative is 0.",
    )  # fmt: skip


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
    "overwritten": "write to a copy, or use `torch.where` or `torch.cat` to put parts together.",
    "step function": "use a smooth function, or pass the gradient straight through: "
    "`y = x + (x.round() - x).detach()`.",
}
