"""Why a gradient is NaN or infinite."""

from __future__ import annotations

from rushlight.reasons.answer import Answer
from rushlight.reasons.details import (
    CHOOSING,
    POLES,
    instead_of,
    kept,
    op_name,
    source_of_bad,
)
from rushlight.reasons.facts import Facts
from rushlight.reasons.flow import Sent, Stat, Turn, stat_of
from rushlight.reasons.passes import FREED, Pass, then


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
    above = f.way(f.y.grad_fn, node) if f.y is not None and f.y.grad_fn is not None else []
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
            f"keep the argument away from there: {instead_of(source)}.",
        )
    instead = instead_of(node)
    if "0 * inf" in sent.note and choosing is not None:
        notes[id(choosing)] = (
            f"{type(choosing).__name__}: hands 0 to the branch that was not taken, and that branch "
            "is differentiated all the same"
        )
        return Answer(
            "double where",
            f"{said}: this is the double-where trap. `where` chose a safe value in the forward "
            "pass, but the branch it did not choose has an infinite derivative: 0 * inf is NaN.",
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
        f"{said}: {f.names.of_tensor(f.y) or 'the loss'} itself, or the gradient given to backward(), is "
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
                    + then(FREED),
                )  # fmt: skip
    notes = {id(n): POLES[op_name(n)][0] for n in found}
    if found:
        return Answer(
            f"not finite at {op_name(found[0])}",
            f"{said}. On the way there {'is' if len(found) == 1 else 'are'} "
            f"{', '.join(dict.fromkeys(type(n).__name__ for n in found))}, whose derivative can be "
            "infinite.",
            [*f.made(), *f.lines(found[:6], notes)],
            f"keep the argument away from there: {instead_of(found[0])}. {then(FREED)}",
        )
    return Answer("not finite", f"{said}. {trouble}".rstrip(), f.made(), FREED)
