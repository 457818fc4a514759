"""What is odd about a gradient that is there: zero, too large, too small, a sum that nobody meant;
for NaN see `not_finite`."""

from __future__ import annotations

import math
from typing import Any, Final

from rushlight.explaining import number, short
from rushlight.reasons.answer import Answer, Link, where
from rushlight.reasons.details import FLAT, note_zero, zero_kind
from rushlight.reasons.facts import Facts
from rushlight.reasons.flow import EXPLODES, Stat, stat_of
from rushlight.reasons.not_finite import not_finite
from rushlight.reasons.passes import FREED, Pass, Remains

LARGE: Final = 1e4
SMALL: Final = 1e-10


def answer(f: Facts, grad: Any) -> Answer:
    """What is odd about a gradient that is there, or that nothing is."""
    stat = stat_of([grad])
    run = Pass(f)
    odd = run.hooked(f) if stat.bad or stat.zero else None
    if odd is not None:
        return hooked(f, odd, stat)
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


def hooked(f: Facts, odd: Any, stat: Stat) -> Answer:
    what = "0" if stat.zero else "NaN or infinite"
    mine = odd is f.x
    return Answer(
        "hook",
        f"{f.name}.grad {f.verb} {what}: a hook made it so; what it was given was not.",
        [*f.made("its hooks" if mine else ""),
         *([] if mine else f.lines(f.path_from(odd), {id(odd): "hooks of what this line made"}))],
        "look at what was registered there with `register_hook`, and at what it returns.",
    )  # fmt: skip


def beforehand(f: Facts) -> Answer | None:
    """What would be odd about the gradient, if the pass were run; None if nothing would."""
    if not f.leaf or not f.x.requires_grad or f.freed() is not None or not f.depends(f.y):
        return None
    run = Pass(f)
    once = run.leaves.get(id(f.x))
    if once is None:
        return None
    f.verb = "would be"
    said = answer(f, once)
    return None if said.kind == "fine" else said


# --- zero -----------------------------------------------------------------------------------------
def zero(f: Facts, run: Pass) -> Answer:
    name = f.name
    dead = [(turn, sent) for turn, sent in run.towards(f) if sent.odd == "zero"]
    if not dead:
        return zero_without_values(f, run)
    node = dead[-1][0].node  # what the others left went through it
    notes = {id(turn.node): sent.note for turn, sent in dead}
    shown = {id(n): n for turn, _ in dead[-3:] for n in f.path_from(turn.node)}
    shown.update({id(n): n for n in f.after(node)})
    kind = zero_kind(node)
    if kind == "zero":  # it only passes on the zeros that another node made
        for other in f.after(node):
            if zero_kind(other) == "not chosen":
                kind = "not chosen"
                notes[id(node)] = f"{type(node).__name__}: its part of what came was 0 already"
                notes[id(other)] = note_zero(other)
                break
    return Answer(
        kind,
        f"{name}.grad {f.verb} 0: the gradient came as far as {type(node).__name__}, and became 0 "
        "there.",
        [*f.made(), *f.lines(sorted(shown.values(), key=lambda n: int(n._seq_nr)), notes)],
        FLAT[kind].advice,
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
    remains = Remains(f)
    found = sorted((n for n in f.above if zero_kind(n) != "zero"), key=lambda n: int(n._seq_nr))
    flat = [n for n in found if remains.is_flat(n)]
    if flat:
        node = flat[0]
        way = [*f.path_from(node), *f.after(node)]
        return Answer(
            zero_kind(node),
            f"{name}.grad {f.verb} 0: the way back leads through {type(node).__name__}, which is "
            "flat for all values it was given.",
            [*f.made(), *f.lines(way, {id(n): note_zero(n) for n in flat})],
            FLAT[zero_kind(node)].advice,
        )
    maybe = [n for n in found if remains.is_flat(n) is None]
    return Answer(
        "zero",
        f"{name}.grad {f.verb} 0 everywhere.",
        [*f.made(), *f.lines(maybe[:6], {id(n): f"0 if {FLAT[zero_kind(n)].why}" for n in maybe})],
        FREED if maybe or not run.turns else "it may be a point where the derivative is 0.",
    )


# --- too large, too small, too often --------------------------------------------------------------
def large(f: Facts, stat: Stat, run: Pass) -> Answer:
    name = f.name
    steps = run.towards(f)
    jump = next(((turn, sent) for turn, sent in steps if sent.odd == "large"), None)
    said = f"{name}.grad {f.verb} large, {number(stat.biggest)} at most"
    if jump is not None:
        node = jump[0].node
        return Answer(
            "exploded",
            f"{said}: it exploded at one node, {type(node).__name__}.",
            [
                *f.made(),
                *f.lines(f.path_from(node), {id(node): jump[1].note}),
                *f.lines(f.after(node)),
            ],
            "look at the values on that line; scale them, add an eps to the denominator, or clip "
            "with `torch.nn.utils.clip_grad_norm_`.",
        )
    growth: dict[str, list[float]] = {}
    for turn, sent in steps:
        if turn.came.biggest > 0 and sent.stat.biggest > 0:
            times = sent.stat.biggest / turn.came.biggest
            growth.setdefault(str(where(turn.node)), []).append(times)
    worst = sorted(growth, key=lambda place: -math.prod(growth[place]))[:2]
    links = [
        Link(place, f"{len(growth[place])} times, each about "
                    f"{number(math.prod(growth[place]) ** (1 / len(growth[place])))} times larger")
        for place in worst if math.prod(growth[place]) > 2
    ]  # fmt: skip
    return Answer(
        "exploded" if links else "large",
        f"{said}" + (": it grew step by step." if links else
                     f": no single node makes it more than {EXPLODES:g} times larger."),
        [*f.made(), *links],
        "clip it (`torch.nn.utils.clip_grad_norm_`), take the mean in place of the sum, or make "
        "the repeated factor smaller.",
    )  # fmt: skip


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
    if once is None or not f.sure:
        return 1
    one, all_ = stat_of([once]).biggest, stat_of([grad]).biggest
    times = round(all_ / one) if one else 1
    same = bool(((grad - once * times).abs() <= 1e-4 * all_).all().item())
    return times if times > 1 and same else 1


def summed(f: Facts, grad: Any, times: int) -> Answer:
    return Answer(
        "accumulated",
        f"{f.name}.grad is the sum of {times} backward passes: {short(grad)}, {times} times what "
        "one gives. backward() adds to .grad.",
        [*f.made(), *f.lines(f.path(f.y))],
        f"call `optimizer.zero_grad()`, or set `{f.name}.grad = None`, before each pass.",
    )


def fine(f: Facts, grad: Any, stat: Stat) -> Answer:
    path = (
        f.path(f.y)
        if f.y is not None and f.y.grad_fn is not None
        else f.path_from(f.newest_above())
    )
    bad = f.y is not None and stat_of([f.y]).bad
    loss = f" But {f.names.of_tensor(f.y) or 'the loss'} itself is {short(f.y)}." if bad else ""
    part = f" ({stat.zeros} of {stat.size} elements are 0)" if stat.zeros else ""
    return Answer(
        "fine",
        f"{f.name}.grad {f.verb} {short(grad)}{part}: nothing about it is odd.{loss}",
        [*f.made(), *f.lines(path)],
    )
