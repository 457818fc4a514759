"""Why a gradient is zero, NaN, infinite, too large, or a sum that nobody meant."""

from __future__ import annotations

from typing import Any, Final

from rushlight.explaining.values import number, short
from rushlight.reasons import watching
from rushlight.reasons.answer import Answer, Link
from rushlight.reasons.details import CHOOSING, POLES, instead_of, kept, note_zero, op_name
from rushlight.reasons.facts import Facts
from rushlight.reasons.flow import EXPLODES, Sent, Stat, Turn, rehearse, stat_of

LARGE: Final = 1e4
SMALL: Final = 1e-10
FREED: Final = (
    "The values of this pass are gone with the graph; to have the node named for certain, ask "
    "inside `with rushlight.why.watching():`, or before backward(): `rushlight.why(x, loss)`."
)


class Pass:
    """What is known of the backward pass that made the gradient."""

    def __init__(self, f: Facts) -> None:
        self.turns: list[Turn] = []
        self.leaves: dict[int, Any] = {}
        self.trouble = ""
        log = watching.last
        for seen in reversed(log.passes if log is not None else ()):
            if any(sent.to is f.end for turn in seen for sent in turn.sent):
                self.turns = seen
                return
        if f.y is not None and f.y.grad_fn is not None and f.freed() is None and f.depends(f.y):
            try:
                self.turns, self.leaves = rehearse(f.y)
            except RuntimeError as error:
                self.trouble = str(error).partition("\n")[0]

    def towards(self, f: Facts) -> list[tuple[Turn, Sent]]:
        """What was handed on towards the tensor, in the order of the pass."""
        above = f.above
        return [
            (turn, sent) for turn in self.turns for sent in turn.sent
            if sent.to is f.end or sent.to in above
        ]  # fmt: skip


def answer(f: Facts, grad: Any) -> Answer:
    """What is odd about a gradient that is there, or that nothing is."""
    stat = stat_of([grad])
    run = Pass(f)
    if stat.bad:
        return not_finite(f, stat, run)
    if stat.zero:
        return zero(f, run)
    if stat.biggest > LARGE or any(sent.odd == "large" for _, sent in run.towards(f)):
        return large(f, stat, run)
    times = sums(f, grad, run)
    if times > 1:
        return summed(f, grad, times)
    if 0 < stat.biggest < SMALL:
        return small(f, stat, run)
    return fine(f, grad, stat)


# --- NaN and infinity -----------------------------------------------------------------------------
def not_finite(f: Facts, stat: Stat, run: Pass) -> Answer:
    name = f.name
    said = f"{name}.grad is {'NaN' if stat.nan else 'infinite'}"
    said += f" in {stat.nan + stat.infinite} of {stat.count} elements" if stat.count > 1 else ""
    odd = [(turn, sent) for turn, sent in run.towards(f) if sent.odd == "bad"]
    if odd:
        return at_a_node(f, said, *odd[0])
    first = next((turn for turn in run.turns if turn.came.bad), None)
    if first is not None:
        return forward_was_bad(f, said)
    return suspects(f, said, run.trouble)


def at_a_node(f: Facts, said: str, turn: Turn, sent: Sent) -> Answer:
    node = turn.node
    below = f.path_from(node)
    above = f.way(f.y.grad_fn, node) if f.y is not None and f.y.grad_fn is not None else []
    choosing = next((n for n in above if op_name(n) in CHOOSING), None)
    notes = {id(node): sent.note}
    chain = [*f.made(), *f.lines(below, notes), *f.lines(above, notes)]
    instead = instead_of(node)
    if "0 * inf" in sent.note and choosing is not None:
        notes[id(choosing)] = (
            f"{type(choosing).__name__}: hands 0 to the branch that was not taken, and that branch "
            "is differentiated all the same"
        )
        return Answer(
            "double where",
            f"{said}: this is the double-where trap. `where` chose a safe value in the forward "
            "pass, but the branch it did not choose has an infinite derivative, and 0 * inf is NaN.",
            [*f.made(), *f.lines(below, notes), *f.lines(above, notes)],
            "make the argument safe before the function, with a `where` inside too: "
            "`safe = torch.where(mask, x, 1.0)`, then `torch.where(mask, f(safe), other)`.",
        )
    if "0 * inf" in sent.note:
        said += ": 0 * inf. A factor of 0 does not protect from an infinite derivative"
    else:
        said += ": it became so at one node"
    return Answer(
        "0 * inf" if "0 * inf" in sent.note else f"not finite at {op_name(node) or 'a node'}",
        f"{said}, {type(node).__name__}.",
        chain,
        f"keep the argument away from there: {instead}." if instead else
        "look at the values that this line was given.",
    )  # fmt: skip


def forward_was_bad(f: Facts, said: str) -> Answer:
    """The numbers were NaN before any derivative was taken."""
    for node in sorted(f.above, key=lambda node: int(node._seq_nr)):
        if any(hasattr(x, "isnan") and stat_of([x]).bad for x in kept(node)):
            return Answer(
                "forward not finite",
                f"{said}: the forward pass had NaN or infinity in it already, before any "
                "derivative was taken.",
                f.lines([node], {id(node): "the first line whose values are not finite"}),
                "look at the values that this line was given, and made.",
            )
    return Answer(
        "forward not finite",
        f"{said}: {f.names.of(f.y) or 'the loss'} itself, or the gradient given to backward(), is "
        "not finite.",
        f.lines(f.path(f.y)),
        "look at the values of the forward pass.",
    )


def suspects(f: Facts, said: str, trouble: str) -> Answer:
    """Without the values of the pass: the nodes on the way whose derivative can be infinite."""
    found = sorted((n for n in f.above if op_name(n) in POLES), key=lambda n: int(n._seq_nr))
    choosing = [n for n in f.above if op_name(n) in CHOOSING]
    for node in found:
        for choice in choosing:
            way = f.way(choice, node)
            if way:
                return Answer(
                    "double where",
                    f"{said}: this looks like the double-where trap. `where` chose a safe value in "
                    "the forward pass, but the branch it did not choose is differentiated too: its "
                    "derivative is infinite, and 0 * inf is NaN.",
                    [*f.made(),
                     *f.lines([node, *way], {id(node): POLES[op_name(node)][0],
                                             id(choice): "hands 0 to the branch not taken"})],
                    "make the argument safe before the function, with a `where` inside too: "
                    "`safe = torch.where(mask, x, 1.0)`, then `torch.where(mask, f(safe), other)`. "
                    + FREED,
                )  # fmt: skip
    notes = {id(n): POLES[op_name(n)][0] for n in found}
    if found:
        return Answer(
            f"not finite at {op_name(found[0])}",
            f"{said}. On the way there {'is' if len(found) == 1 else 'are'} "
            f"{', '.join(dict.fromkeys(type(n).__name__ for n in found))}, whose derivative can be "
            "infinite.",
            [*f.made(), *f.lines(found[:6], notes)],
            f"keep the argument away from there: {instead_of(found[0])}. {FREED}",
        )
    return Answer("not finite", f"{said}. {trouble}".rstrip(), f.made(), FREED)


# --- zero -----------------------------------------------------------------------------------------
def zero(f: Facts, run: Pass) -> Answer:
    name = f.name
    dead = [(turn, sent) for turn, sent in run.towards(f) if sent.odd == "zero"]
    if not dead:
        return zero_without_values(f, run)
    turn, sent = dead[0]
    node = turn.node
    chain = [*f.made()]
    for other, gone in dead[:3]:
        chain += f.lines(f.path_from(other.node), {id(other.node): gone.note})
    if f.y is not None and f.y.grad_fn is not None:
        chain += f.lines(f.way(f.y.grad_fn, node))
    return Answer(
        zero_kind(node),
        f"{name}.grad is 0: the gradient came as far as {type(node).__name__}, and became 0 there.",
        chain,
        ADVICE.get(zero_kind(node), "look at the values that this line was given."),
    )


def zero_without_values(f: Facts, run: Pass) -> Answer:
    name = f.name
    if run.turns and len(f.users) > 1:
        return Answer(
            "cancels",
            f"{name}.grad is 0: {len(f.users)} paths lead to {name}, and their gradients cancel.",
            [*f.made(), *f.lines(f.users[:6])],
            "what is computed does not depend on it, to first order: x - x, or a sum of softmax.",
        )
    found = sorted((n for n in f.above if zero_kind(n) != "zero"), key=lambda n: int(n._seq_nr))
    notes = {id(n): note_zero(n, 0).partition("; ")[2] if op_name(n) not in ("mul",) else "" for n in found}
    chain = [*f.made(), *f.lines(found[:6], {k: f"may be why: {v}" for k, v in notes.items() if v})]
    return Answer(
        "zero", f"{name}.grad is 0 everywhere.", chain,
        FREED if found or not run.turns else "it may be a point where the derivative is 0.",
    )  # fmt: skip


def zero_kind(node: Any) -> str:
    name = op_name(node)
    for kind, words in KINDS.items():
        if name in words.split():
            return kind
    if type(node).__name__ == "CopySlices":
        return "overwritten"
    return "step function" if "Flat" in [c.__name__ for c in type(node._op).__mro__] else "zero"


KINDS: Final = {
    "dead relu": "relu threshold hardtanh_ relu6",
    "saturated": "sigmoid tanh softmax log_softmax log_sigmoid hardsigmoid gelu silu elu",
    "clamped": "clamp_numbers clamp hardtanh clamp_min clamp_max",
    "not chosen": "where masked_fill max max_dim amax maximum min min_dim amin minimum",
    "multiplied by zero": "mul mm addmm bmm",
    "overwritten": "fill_ zero copy fill",
}
ADVICE: Final = {
    "dead relu": "a smaller learning rate or other initial weights keep inputs above 0; leaky_relu, "
    "elu or gelu pass a gradient below 0 too.",
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


# --- too large, too small, too often --------------------------------------------------------------
def large(f: Facts, stat: Stat, run: Pass) -> Answer:
    name = f.name
    steps = run.towards(f)
    jump = next(((turn, sent) for turn, sent in steps if sent.odd == "large"), None)
    said = f"{name}.grad is large, {number(stat.biggest)} at most"
    if jump is not None:
        node = jump[0].node
        above = f.way(f.y.grad_fn, node) if f.y is not None and f.y.grad_fn is not None else []
        return Answer(
            "exploded",
            f"{said}: it exploded at one node, {type(node).__name__}.",
            [*f.made(), *f.lines(f.path_from(node), {id(node): jump[1].note}), *f.lines(above)],
            "look at the values on that line; scale them, add an eps to the denominator, or clip "
            "with `torch.nn.utils.clip_grad_norm_`.",
        )
    growth: dict[str, list[float]] = {}
    for turn, sent in steps:
        if turn.came.biggest > 0 and sent.stat.biggest > 0:
            times = sent.stat.biggest / turn.came.biggest
            growth.setdefault(str(turn.node.where), []).append(times)
    worst = sorted(growth, key=lambda place: -product(growth[place]))[:2]
    links = [
        Link(place, f"{len(growth[place])} times, each about "
                    f"{number(product(growth[place]) ** (1 / len(growth[place])))} times larger")
        for place in worst if product(growth[place]) > 2
    ]  # fmt: skip
    return Answer(
        "exploded" if links else "large",
        f"{said}" + (": it grew step by step." if links else
                     f": so is the derivative, no node makes it more than {EXPLODES:g} times larger."),
        [*f.made(), *links],
        "clip it (`torch.nn.utils.clip_grad_norm_`), take the mean in place of the sum, or make "
        "the repeated factor smaller.",
    )  # fmt: skip


def product(values: list[float]) -> float:
    total = 1.0
    for value in values:
        total *= value
    return total


def small(f: Facts, stat: Stat, run: Pass) -> Answer:
    steps = [
        (sent.stat.biggest / turn.came.biggest, turn)
        for turn, sent in run.towards(f)
        if turn.came.biggest > 0 and sent.stat.biggest > 0
    ]
    steps.sort(key=lambda pair: pair[0])
    notes = {id(turn.node): f"{type(turn.node).__name__}: times {number(t)}" for t, turn in steps}
    worst = sorted((turn.node for _, turn in steps[:3]), key=lambda node: int(node._seq_nr))
    return Answer(
        "vanished",
        f"{f.name}.grad has almost vanished, {number(stat.biggest)} at most.",
        [*f.made(), *f.lines(worst, notes)],
        "shorter ways for the gradient (residual connections), normalisation, or activations that "
        "do not saturate.",
    )


def sums(f: Facts, grad: Any, run: Pass) -> int:
    """Of how many equal passes a gradient is the sum; 1 if that cannot be told."""
    once = run.leaves.get(id(f.x))
    if once is None:
        return 1
    one, all_ = stat_of([once]).biggest, stat_of([grad]).biggest
    times = round(all_ / one) if one else 1
    same = bool(((grad - once * times).abs() <= 1e-4 * all_).all().item())
    return times if times > 1 and same else 1


def summed(f: Facts, grad: Any, times: int) -> Answer:
    return Answer(
        "accumulated",
        f"{f.name}.grad is the sum of {times} backward passes: {short(grad)}, {times} times what one "
        "gives. backward() adds to .grad.",
        [*f.made(), *f.lines(f.path(f.y))],
        f"call `optimizer.zero_grad()`, or set `{f.name}.grad = None`, before each pass.",
    )


def fine(f: Facts, grad: Any, stat: Stat) -> Answer:
    path = f.path(f.y) if f.y is not None and f.y.grad_fn is not None else f.path_from(f.newest_above())
    part = f" ({stat.zeros} of {stat.count} elements are 0)" if stat.zeros else ""
    return Answer(
        "fine",
        f"{f.name}.grad is {short(grad)}{part}: nothing about it is odd.",
        [*f.made(), *f.lines(path)],
    )
