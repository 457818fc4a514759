"""Why a gradient is NaN or infinite."""

from __future__ import annotations

from typing import Final

from rushlight.reasons.answer import Answer, Link
from rushlight.reasons.details import (
    CHOOSING,
    POLES,
    has_pole,
    kept,
    op_name,
    source_of_bad,
)
from rushlight.reasons.facts import Facts
from rushlight.reasons.flow import Sent, Stat, Turn, stat_of
from rushlight.reasons.passes import FREED, Pass, Remains, then

TRAP: Final = (
    "the double-where trap. `where` chose a safe value in the forward pass, but the branch it did "
    "not choose has an infinite derivative: 0 * inf is NaN."
)
HANDS_ZERO: Final = (
    "{}: hands 0 to the branch that was not taken, and that branch is differentiated all the same"
)
SAFE: Final = (
    "make the argument safe before the function, with a `where` inside too: "
    "`safe = torch.where(mask, x, 1.0)`, then `torch.where(mask, f(safe), other)`."
)


def not_finite(f: Facts, stat: Stat, run: Pass) -> Answer:
    name = f.name
    said = f"{name}.grad {f.verb} {'NaN' if stat.nan else 'infinite'}"
    said += f" in {stat.nan + stat.infinite} of {stat.size} elements" if stat.size > 1 else ""
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
    above = f.after(node)
    choosing = next((n for n in above if op_name(n) in CHOOSING), None)
    notes = {id(node): sent.note}
    chain = [*f.made(), *f.lines(below, notes), *f.lines(above, notes)]
    source = source_of_bad(node)
    if source is not None:
        notes[id(source)] = f"{type(source).__name__}: {POLES[op_name(source)][0]}"
        chain = [*f.made(), *f.lines([source, node], notes), *f.lines(above)]
        return Answer(
            f"not finite at {op_name(source)}",
            f"{said}: {type(source).__name__} gave a number that is not finite, and its product is "
            "differentiated.",
            chain,
            f"keep the argument away from there: {POLES[op_name(source)][1]}.",
        )
    instead = POLES.get(op_name(node), ("", ""))[1]
    if "0 * inf" in sent.note and choosing is not None:
        notes[id(choosing)] = HANDS_ZERO.format(type(choosing).__name__)
        return Answer(
            "double where",
            f"{said}: this is {TRAP}",
            [*f.made(), *f.lines(below, notes), *f.lines(above, notes)],
            SAFE,
        )
    if "0 * inf" in sent.note:
        said += f": 0 * inf at {type(node).__name__}. A factor of 0 does not protect from an "
        said += "infinite derivative."
    else:
        said += f": {type(node).__name__} makes it so."
    return Answer(
        "0 * inf" if "0 * inf" in sent.note else f"not finite at {op_name(node) or 'a node'}",
        said,
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
    loss = f.names.of_tensor(f.y) if f.y is not None else ""
    return Answer(
        "forward not finite",
        f"{said}: {loss or 'the loss'} itself, or the gradient given to backward(), is not finite.",
        f.lines(f.path_from(f.newest_above())),
        "look at the values of the forward pass.",
    )


def bad_data(f: Facts) -> list[Link]:
    """Tensors of the program that are not finite themselves, and may be the cause."""
    return [
        Link(f.program.binding(f.names.of_tensor(t)) or f.names.of_tensor(t), "not finite itself")
        for t in f.names.known[:1000]
        if t.grad_fn is None and t is not f.grad and stat_of([t]).bad
    ]


def suspects(f: Facts, said: str, trouble: str) -> Answer:
    """Without the values of the pass: the nodes on the way whose derivative can be infinite, and of
    those the ones that were given such values, as far as these are still known."""
    found = sorted((n for n in f.above if has_pole(n)), key=lambda n: int(n._seq_nr))
    notes = {id(n): f"{type(n).__name__}: {POLES[op_name(n)][0]}" for n in found}
    remains = Remains(f)
    masks = {id(n): remains.at_pole(n) for n in found}
    hit = [n for n in found if masks[id(n)] is not None and bool(masks[id(n)].any())]
    for n in hit:
        mask = masks[id(n)]
        notes[id(n)] += f", as in {int(mask.sum().item())} of {mask.numel()} elements here"
    sure = bool(hit)
    found = hit or [n for n in found if masks[id(n)] is None]
    more = "" if sure else f" {then(FREED)}"
    choices = [n for n in f.above if op_name(n) in CHOOSING]
    for node in found:
        way = next((way for way in (f.way(choice, node) for choice in choices) if way), [])
        if way:
            notes[id(way[-1])] = HANDS_ZERO.format(type(way[-1]).__name__)
            lines = f.lines([node, *way, *f.after(way[-1])], notes)
            return Answer(
                "double where",
                f"{said}: this {'is' if sure else 'looks like'} {TRAP}",
                [*f.made(), *lines],
                SAFE + more,
            )
    if trouble:
        return Answer("error", f"{said}. A pass now gives an error: {trouble}", f.made())
    if not found:
        return Answer("not finite", f"{said}.", [*f.made(), *bad_data(f)], FREED)
    names = ", ".join(dict.fromkeys(type(n).__name__ for n in found))
    way = f.path_from(found[0]) + f.after(found[0]) if sure else found[:6]
    return Answer(
        f"not finite at {op_name(found[0])}",
        f"{said}: {names} was given numbers at which its derivative is infinite." if sure else
        f"{said}. On the way back there is {names}, whose derivative can be infinite.",
        [*f.made(), *f.lines(way, notes)],
        f"keep the argument away from there: {POLES[op_name(found[0])][1]}.{more}",
    )  # fmt: skip
