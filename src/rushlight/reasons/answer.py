"""What `why` answers: what is the case, the lines of your program that lead there, what to do."""

from __future__ import annotations

import textwrap
from typing import Any, Final

from rushlight.core.call_site import Where

WIDTH: Final = 96
INDENT: Final = " " * 6
ENDS: Final = "here the history ends"

# What a cut is, and what to do about it.
CUTS: Final = {
    "detach": (
        "`detach()` gives the value without its history",
        "leave `detach()` out where the gradient is wanted; keep it for what is only looked at.",
    ),
    "no_grad": (
        "`no_grad()` was in force: nothing was recorded",
        "compute what the loss depends on outside `torch.no_grad()`.",
    ),
    "inference_mode": (
        "`inference_mode()` was in force: nothing was recorded",
        "compute what the loss depends on outside `torch.inference_mode()`.",
    ),
    "integer": (
        "what comes out are integers or bools, and those have no gradients",
        "stay with floats; for a choice that can be learned use a soft one (softmax, sigmoid, "
        "gumbel_softmax) in place of argmax, rounding or a comparison.",
    ),
    "data": (
        "`.data` gives the value without its history",
        "leave `.data` out; to write to a leaf without recording that, use `torch.no_grad()`.",
    ),
    "item": (
        "the value becomes a Python number, which has no history",
        "keep the tensor: use `item()` or `float()` only for printing and logging.",
    ),
    "numpy": (
        "the value becomes a NumPy array, which has no history",
        "do the computation with tensors (torch has most of NumPy's functions), or write a "
        "`torch.autograd.Function` around it.",
    ),
    "copied": (
        "`torch.tensor(...)` copies the value, and not its history",
        "use the tensor itself; join several with `torch.stack` or `torch.cat`.",
    ),
    "parameter": (
        "`Parameter(...)` makes a new leaf of the value, without its history",
        "make the parameter first and compute from it, or ask for the gradient of the new one.",
    ),
    "other": (
        "what comes out has no derivative",
        "compute the loss by operations that have derivatives.",
    ),
}  # fmt: skip


class Link:
    """A line of the user's program, and what happens to the gradient there."""

    def __init__(self, place: str, note: str = "") -> None:
        self.place = place  # 'train.py:12     h = x.detach()'
        self.note = note


class Answer:
    """An answer of `why`; `str()` of it is the text.

    `kind` is a word for programs ('detach', 'not a leaf', 'dead relu'); `says` the first sentence,
    `chain` the lines of the program, in its order, and `advice` what can be done. `certain` is
    False where it was concluded from the source alone.
    """

    def __init__(
        self, kind: str, says: str, chain: list[Link], advice: str = "", certain: bool = True
    ) -> None:
        self.kind = kind
        self.says = says
        self.chain = joined(chain)
        self.advice = advice
        self.certain = certain

    def __repr__(self) -> str:
        return f"<why: {self.kind}>"

    def __str__(self) -> str:
        lines = textwrap.wrap(self.says, WIDTH)
        for link in self.chain:
            lines.append(f"  {link.place}")
            for note in filter(None, link.note.split("\n")):
                lines += textwrap.wrap(note, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
        if not self.certain:
            lines += textwrap.wrap(
                "This is read from the source; `with rushlight.why.watching():` around the program "
                "makes it certain.",
                WIDTH,
            )
        if self.advice:
            lines += textwrap.wrap(f"What to do: {self.advice}", WIDTH)
        return "\n".join(lines)


def joined(chain: list[Link]) -> list[Link]:
    """The chain, with what follows on one line together."""
    found: list[Link] = []
    for link in chain:
        if found and found[-1].place == link.place:
            notes = [x for x in (found[-1].note, link.note) if x]
            found[-1] = Link(link.place, "\n".join(dict.fromkeys(notes)))
        else:
            found.append(link)
    return found


def where(node: Any) -> Where:
    """The line that made a node, also where a custom function has an attribute `where` itself."""
    return Where(node._code, node._code_offset)


def link_of(node: Any, note: str = "") -> Link:
    """The same as a link of a chain."""
    return Link(str(where(node)), note)
