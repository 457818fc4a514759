"""Why a gradient is None."""

from __future__ import annotations

import re
from typing import Any

from rushlight.core.grad_mode import grad_enabled
from rushlight.reasons import watching
from rushlight.reasons.answer import CUTS, ENDS, Answer, Link, link_of, where
from rushlight.reasons.facts import Facts


def answer(f: Facts) -> Answer:
    """Why there is no gradient."""
    if not f.x.requires_grad:
        return not_asked(f)
    retains = f.x._extra is not None and f.x._extra.retains
    if not f.leaf and not retains:
        return not_a_leaf(f)
    freed = f.freed()
    if freed is not None:
        return cleared(f, freed)
    if f.y is not None and f.depends(f.y):
        return not_called(f, f.y)
    if f.y is None and f.above and not cut_in_log(f):
        return not_called(f, None)
    return cut_or_unused(f)


# --- no gradient was asked for --------------------------------------------------------------------
def not_asked(f: Facts) -> Answer:
    name, x = f.name, f.x
    if not (x.dtype.is_floating_point or x.dtype.is_complex):
        return Answer(
            "integer",
            f"{name}.grad is None: {name} has the dtype {x.dtype}, and only floating point and "
            "complex tensors have gradients.",
            f.made(),
            f"make it a float tensor: `torch.tensor(..., dtype=torch.float32)`, `{name}.float()`.",
        )
    if type(x).__name__ == "Parameter" or "." in f.name:
        late = f.program.call_of("requires_grad_")
        return Answer(
            "frozen",
            f"{name}.grad is None: the parameter is frozen, its requires_grad is False.",
            [Link(late)] if name.split(".")[0] in late else [],
            f"call `{name}.requires_grad_()` before the forward pass, or on the whole module: "
            "`module.requires_grad_()`.",
        )
    if not grad_enabled():
        return Answer(
            "no_grad",
            f"{name}.grad is None: {name} does not require grad, and recording is switched off "
            "here: nothing is recorded.",
            f.made(),
            "look for `torch.no_grad()` around this line, or `torch.set_grad_enabled(False)`.",
        )
    said = f"{name}.grad is None: {name} does not require grad"
    inference = x._storage.inference
    cut = None if inference else how_it_was_cut(f)
    if cut is not None:
        kind, chain, certain = cut
        what, advice = CUTS[kind]
        return Answer(kind, f"{said}, for its history was cut: {what}.", chain, advice, certain)
    return Answer(
        "inference_mode" if inference else "not asked for",
        f"{said}" + (", for it was made in inference_mode." if inference else
                     ": nobody asked for its gradient."),
        f.made(),
        f"ask for it before computing with it: `requires_grad=True`, or `{name}.requires_grad_()`.",
    )  # fmt: skip


def how_it_was_cut(f: Facts) -> tuple[str, list[Link], bool] | None:
    """How a tensor without history lost it: kind, lines, whether that is certain."""
    log = watching.last
    if log is not None and (mine := log.number_of(f.x)):
        towards = log.leads_to(mine)
        for event in reversed(log.events):
            lost = any(event.asked) and not any(event.gives) and event.outs
            if lost and any(n in towards for n in event.outs):
                kind = watching.kind_of_cut(event)
                if kind:
                    return kind, [Link(event.place, ENDS)], True
    return f.program.cut_before(f.name)


# --- it is not a leaf -----------------------------------------------------------------------------
def not_a_leaf(f: Facts) -> Answer:
    name, node = f.name, f.node
    line = str(where(node))
    said = (
        f"{name}.grad is None: {name} is not a leaf, it was computed "
        f"({type(node).__name__}), and backward() keeps gradients of leaves only."
    )
    text = where(node).source
    leaves = [t for t in f.leaves_behind() if f.names.of_tensor(t)]
    if re.search(rf"\b{re.escape(name)}\s*=.*\b{re.escape(name)}\b", text) and leaves == []:
        return Answer(
            "no longer a leaf",
            said,
            [Link(line, f"this line gives the name {name} to a new tensor, computed from the leaf "
                        f"that had it")],
            f"write into the leaf instead: `with torch.no_grad(): {name} -= ...`, or use an "
            "optimizer.",
        )  # fmt: skip
    if not leaves and "requires_grad" in text:
        return Answer(
            "unnamed leaf",
            said,
            [Link(line, "the leaf is the tensor inside this expression, which has no name")],
            f"ask for the gradient last: `{name} = (...).requires_grad_()`.",
        )
    return Answer(
        "not a leaf", said, [Link(line)],
        f"call `{name}.retain_grad()` before backward(), or ask for it: "
        f"`torch.autograd.grad(loss, {name})`.",
    )  # fmt: skip


# --- it was there, or it did not come yet ---------------------------------------------------------
def cleared(f: Facts, freed: Any) -> Answer:
    name, text = f.name, freed.source
    if re.search(r"\bgrad\(", text):
        return Answer(
            "autograd.grad",
            f"{name}.grad is None: autograd.grad returns gradients, and stores none.",
            [*f.made(), Link(str(freed), "the pass that went through")],
            f"use what it returns, or call `backward()` to have it in `{name}.grad`.",
        )
    if "inputs=" in text:
        return Answer(
            "inputs",
            f"{name}.grad is None: backward() was told to fill other tensors only (`inputs=`).",
            [*f.made(), Link(str(freed))],
            f"name {name} among the inputs, or leave `inputs=` out.",
        )
    reset = f.program.call_of("zero_grad", freed.line)
    chain = [*f.made(), Link(str(freed), f"here the gradient came to {name}")]
    if reset:
        chain.append(Link(reset, "and here it was set to None"))
    return Answer(
        "zero_grad",
        f"{name}.grad is None: a backward pass brought the gradient, and it was cleared "
        f"since{' by zero_grad()' if reset else ' (zero_grad() or `.grad = None`)'}.",
        chain,
        "look at the gradient between backward() and zero_grad().",
    )


def not_called(f: Facts, y: Any) -> Answer:
    name = f.name
    loss = f.names.of_tensor(y) if y is not None else ""
    path = f.path(y) if y is not None else f.path_from(f.newest_above())
    reset = f.program.call_of("zero_grad")
    called = loss and loss in f.program.backward_names()
    chain = [*f.made(), *f.lines(path)]
    if called and reset:
        return Answer(
            "zero_grad",
            f"{name}.grad is None: backward() brought the gradient, and zero_grad() cleared it.",
            [*chain, Link(reset, "here it was set to None")],
            "look at the gradient between backward() and zero_grad().",
            certain=False,
        )
    if not f.leaf:
        return Answer(
            "backward not called",
            f"{name}.grad is None: {name} keeps its gradient (retain_grad), and no backward pass "
            "has come through since.",
            chain,
            f"call `{loss or 'loss'}.backward()` after `{name}.retain_grad()`.",
        )
    return Answer(
        "backward not called",
        f"{name}.grad is None: {loss or 'what was computed from it'} depends on {name}, but no "
        "backward pass has been run.",
        chain,
        f"call `{loss or 'loss'}.backward()`.",
    )


# --- the way is cut, or there is none -------------------------------------------------------------
def cut_in_log(f: Facts) -> bool:
    log = watching.last
    return log is not None and bool(log.number_of(f.x)) and bool(log.backward_of())


def cut_or_unused(f: Facts) -> Answer:
    name = f.name
    loss = f.names.of_tensor(f.y) if f.y is not None else ""
    goal = loss or "the loss"
    found = cut_seen(f) or cut_read(f)
    if found is not None:
        kind, chain, certain = found
        what, advice = CUTS[kind]
        return Answer(
            kind, f"{name}.grad is None: the way from {goal} back to {name} is cut, for {what}.",
            chain, advice, certain,
        )  # fmt: skip
    late = f.program.asked_late(f.name)
    used = f.program.first_use(f.name)
    if late and used and used[0] < late:
        return Answer(
            "asked late",
            f"{name}.grad is None: {name} was used before its gradient was asked for, so that use "
            "was not recorded.",
            [*f.made(), Link(used[1], "used here, and not recorded"),
             Link(f.program.line(late), "asked for here")],
            "move `requires_grad_()` before the computation.",
            certain=False,
        )  # fmt: skip
    return unused(f, goal)


def unused(f: Facts, goal: str) -> Answer:
    name = f.name
    if f.above:
        node = f.newest_above()
        return Answer(
            "not in the loss",
            f"{name}.grad is None: {name} was used, but {goal} does not depend on the result.",
            [
                *f.made(),
                *f.lines(f.path_from(node), {id(node): "nothing that is left comes after"}),
            ],
            f"let {goal} depend on it, or call backward() on what does.",
        )
    owner, _, rest = name.partition(".")
    part = rest.split(".")[0]
    if rest and not part.isdigit() and not f.program.mentioned(part):
        return Answer(
            "never used",
            f"{name}.grad is None: nothing uses {owner}.{part}; forward() does not mention it.",
            [Link(place) for place in [f.program.binding("." + part)] if place],
            f"call `self.{part}` in forward(), or take the module out.",
        )
    others = (
        [n for n in (f.names.of_tensor(t) for t in f.leaves_behind(f.y)) if n]
        if f.y is not None
        else []
    )
    says = f"{name}.grad is None: nothing that is still there was computed from {name}"
    says += f", and the graph of {goal} does not lead to it." if f.y is not None else "."
    chain = f.made()
    used = f.program.first_use(name)
    if f.y is None and used is not None:
        chain.append(Link(used[1], "used here, but no result of it is left"))
    if f.y is not None and f.y.grad_fn is not None:
        chain.append(link_of(f.y.grad_fn, f"leads to {', '.join(others[:6])}" if others else ""))
    return Answer(
        "never used", says, chain,
        f"use {name} in what {goal} is computed from; a module is used by calling it in forward().",
    )  # fmt: skip


def cut_seen(f: Facts) -> tuple[str, list[Link], bool] | None:
    """The cut, by what was watched."""
    log = watching.last
    mine = 0 if log is None else log.number_of(f.x)
    if log is None or not mine:
        return None
    goal = log.number_of(f.y) if f.y is not None else 0
    if not goal and log.backward_of():
        goal = log.backward_of()[0].ins[0]
    cuts = log.cuts(mine, goal)
    if not cuts:
        return None
    kind, event = cuts[0]
    _, calls = log.flow(mine)
    before = [Link(e.place) for e in calls[: calls.index(event)] if any(e.gives)]
    towards = log.leads_to(goal) if goal else set()
    after = [
        Link(e.place) for e in calls[calls.index(event) + 1 :] if any(n in towards for n in e.outs)
    ]
    return kind, [*f.made(), *before[-3:], Link(event.place, ENDS), *after[-3:]], True


def cut_read(f: Facts) -> tuple[str, list[Link], bool] | None:
    """The cut, by what the source says."""
    loss = f.names.of_tensor(f.y) if f.y is not None else next(iter(f.program.backward_names()), "")
    cuts = f.program.cuts(f.name, loss)
    if not cuts:
        return None
    cut = cuts[0]
    chain = [*f.made(), Link(cut.place, ENDS)]
    ending = f.program.binding(loss) if loss else ""
    if ending and ending != cut.place:
        chain.append(Link(ending))
    return cut.kind, chain, False
