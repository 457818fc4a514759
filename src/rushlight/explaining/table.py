"""`rushlight.explain`: the backward pass told step by step, as a table."""

from __future__ import annotations

import textwrap
from typing import Any, Final

from rushlight.autograd.steps import Step, steps
from rushlight.explaining.names import Names, names_here
from rushlight.explaining.rules import lines_of
from rushlight.explaining.values import short

_GAP: Final = "  "


class Row:
    """One step as texts; where its gradients go is known when all steps are."""

    def __init__(self, step: Step, names: Names) -> None:
        self.number = step.number
        self.line = step.where
        self.name = step.name
        self.rule = [] if step.leaf is not None else lines_of(step.node)
        self.key = id(step.leaf if step.leaf is not None else step.node)
        made = names.of_output(step.node, 0) if step.leaf is None else ""
        came = [short(g) for g in step.grads if g is not None] or ["None"]
        self.came = came if len(came) < 2 else [f"output {i}: {x}" for i, x in enumerate(came)]
        self.made = f"of {made}" if made else ""
        self.gone: list[tuple[str, int, str, str]] = []  # gradient, target's key, its name, total
        for out in step.outs:
            leaf = names.leaf(out.to) if hasattr(out.to, "requires_grad_") else ""
            total = "" if out.total is out.grad else short(out.total)
            self.gone.append((short(out.grad), id(out.to), leaf, total))
        if step.leaf is not None:
            name, g = names.leaf(step.leaf), step.grads[0]
            held = step.leaf.grad
            self.rule = [step.rule]
            if held is None:
                self.ends = [f"{name}.grad = {short(g)}"]
            else:
                total = held.detach() if g is None else held.detach() + g
                self.ends = [f"{name}.grad = {short(total)}", f"it was {short(held)}"]
        else:
            self.ends = []

    def outs(self, numbers: dict[int, int]) -> list[str]:
        """Where the gradients go, with the numbers of the steps that get them."""
        lines = list(self.ends)
        for g, key, leaf, total in self.gone:
            to = leaf or (f"step {numbers[key]}" if key in numbers else "nothing")
            lines.append(f"to {to}: {g}")
            if total:
                lines.append(f" the sum there: {total}")
        return lines or ["nothing"]


class Explanation:
    """What `explain` found out: `str()` of it is the text."""

    def __init__(self, head: str, rows: list[Row], width: int, limit: int) -> None:
        self.head = head
        self.rows = rows
        self.width = max(width, 60)
        self.limit = max(limit, 2)

    def __repr__(self) -> str:
        return f"<explanation of a backward pass of {len(self.rows)} steps>"

    def __str__(self) -> str:
        numbers = {row.key: row.number for row in self.rows}
        digits = len(str(len(self.rows)))
        room = self.width - digits - 4 * len(_GAP)
        names = min(max([4, *(len(row.name) for row in self.rows)]), max(22, room * 24 // 100))
        rules = min(max([4, *(len(x) for row in self.rows for x in row.rule)]), room * 24 // 100)
        came = min(max([11, *(len(x) for row in self.rows for x in row.came)]), room * 22 // 100)
        widths = [digits, names, rules, came, self.width - digits - names - rules - came - 8]
        head = ["#".rjust(digits), "node", "rule", "gradient in", "gradients out"]
        lines = [self.head, "", *columns(head, widths), "-" * self.width]
        before = ""
        shown = self.rows
        if len(shown) > self.limit:
            first = self.limit * 2 // 3
            shown = [*shown[:first], *shown[first - self.limit :]]
        for at, row in enumerate(shown):
            if at and row.number != shown[at - 1].number + 1:
                left = row.number - shown[at - 1].number - 1
                lines += [f"... {left} more steps ...".center(self.width).rstrip()]
                before = ""
            line = "" if row.line is None else str(row.line)
            if line and line != before:
                lines.append(line if len(line) <= self.width else line[: self.width - 4] + " ...")
            before = line or before
            name = [row.name, row.made] if row.made else [row.name]
            cells = [[str(row.number).rjust(digits)], name, row.rule, row.came, row.outs(numbers)]
            lines += rows_of(cells, widths)
        return "\n".join(lines)


def columns(cells: list[str], widths: list[int]) -> list[str]:
    return rows_of([[cell] for cell in cells], widths)


def rows_of(cells: list[list[str]], widths: list[int]) -> list[str]:
    """Cells of a row, each a list of texts, side by side; what is too long is wrapped."""
    parts = []
    for texts, width in zip(cells, widths, strict=True):
        part = []
        for text in texts:
            part += textwrap.wrap(text, width, subsequent_indent=" ") or [""]
        parts.append(part)
    high = max(map(len, parts))
    full = [part + [""] * (high - len(part)) for part in parts]
    return [
        _GAP.join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
        for line in zip(*full, strict=True)
    ]


def explain(
    y: Any, gradient: Any = None, *, names: Any = None, accumulate: bool = False,
    width: int = 100, limit: int = 60, show: bool = True,
) -> Explanation:  # fmt: skip
    """Print the backward pass of `y` as a table: each node's turn, its rule, the gradient that
    comes in, those that go out and where to, and what the leaves' `.grad` become.

    `g` in a rule is the gradient that comes in. Small gradients are written out, large ones as
    shape and norm. Tensors have the names of your variables; `names` gives others: a dict of
    tensors, or a module. Nothing is stored, and the graph stays as it is; with `accumulate=True`
    the gradients are added to `.grad`, as by `backward(retain_graph=True)`. Of more than `limit`
    steps the first and the last are shown. `str()` of what is returned is the text.

    >>> x = torch.tensor(3., requires_grad=True)
    >>> y = x * x
    >>> text = str(torch.explain(y, names={"x": x, "y": y}, show=False))
    >>> print(text.splitlines()[0])
    The backward pass of y = 9, from the gradient 1: 2 steps, the newest node first.
    """
    found = names_here(names)
    rows = [Row(step, found) for step in steps(y, gradient, accumulate=accumulate)]
    head = first_line(y, gradient, found, len(rows))
    said = Explanation(head, rows, width, limit)
    if show:
        print(said)
    return said


def first_line(y: Any, gradient: Any, names: Names, count: int) -> str:
    several = isinstance(y, (list, tuple))
    if several:
        what = f"{len(y)} tensors"
    else:
        name = names.of_tensor(y)
        what = f"{name} = {short(y)}" if name else short(y)
    start = "1" if gradient is None else "those given" if several else short(gradient)
    steps_said = "1 step" if count == 1 else f"{count} steps, the newest node first"
    return f"The backward pass of {what}, from the gradient {start}: {steps_said}."
