"""`rushlight.explain`: the backward pass told step by step, as a table."""

from __future__ import annotations

import math
import textwrap
from types import FrameType
from typing import Any, Final

from rushlight.autograd.api import as_tuple
from rushlight.autograd.steps import Step, steps
from rushlight.core.grad_mode import within
from rushlight.core.graph import TensorBase, caller
from rushlight.viz import naming
from rushlight.viz.formula import as_text, boxes_of
from rushlight.viz.rules import rule_of as terms_of

_GAP: Final = "  "
SMALL: Final = 6  # elements that are written out
LONGEST: Final = 90  # letters: what is longer is easier to say in words


# --- tensors, rules and names in words ------------------------------------------------------------
def number(x: Any) -> str:
    """A number with four digits: '0.25', '1.5e-07', '3'.

    >>> number(0.25), number(3.0), number(-1234567.0)
    ('0.25', '3', '-1.235e+06')
    """
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        return str(x)
    if isinstance(x, float) and not math.isfinite(x):
        return {math.inf: "inf", -math.inf: "-inf"}.get(x, "nan")
    return f"{x:.4g}"


def nested(values: Any) -> str:
    """Lists of numbers, as `number` writes them."""
    if isinstance(values, list):
        return "[" + ", ".join(map(nested, values)) + "]"
    if isinstance(values, complex):
        return f"{number(values.real)}{'+' if values.imag >= 0 else ''}{number(values.imag)}j"
    return number(values)


def size_of(t: Any) -> float | None:
    """The Euclidean norm of a tensor; None where there is none (integers, no numbers)."""
    if not (t.dtype.is_floating_point or t.dtype.is_complex) or t.device.type == "meta":
        return None
    with within(False, False):
        x = t.detach()
        x = x if str(x.layout) == "torch.strided" else x.to_dense()
        return float((x.abs() if x.dtype.is_complex else x).double().flatten().norm().item())


def counted(t: Any) -> str:
    """How many elements are NaN or infinite, if some are: ', 3 NaN'."""
    if not t.dtype.is_floating_point:
        return ""
    with within(False, False):
        x = t.detach().double()
        bad = int(x.isnan().sum().item())
        infinite = int(x.isinf().sum().item())
    said = (f", {bad} NaN" if bad else "") + (f", {infinite} infinite" if infinite else "")
    return f"{said} of {t.numel()}" if said else ""


def short(t: Any) -> str:
    """A tensor in a few words.

    >>> short(torch.tensor([1., 2.]))
    '[1, 2]'
    >>> short(torch.ones(2, 2))
    '2x2, all 1'
    >>> short(torch.ones(8, 8))
    '8x8, norm 8'
    """
    if t is None:
        return "None"
    if not isinstance(t, TensorBase):
        return str(t)
    x: Any = t
    shape = "x".join(map(str, x.shape)) or "scalar"
    if x.device.type == "meta" or str(x.layout) != "torch.strided":
        return f"{shape}, {x.dtype}".replace("torch.", "")
    values = x.detach().flatten().tolist() if x.numel() <= SMALL else []
    if len(values) > 2 and all(value == values[0] for value in values):
        return f"{shape}, all {nested(values[0])}"
    if x.numel() <= SMALL:
        return nested(x.detach().tolist())
    norm = size_of(x)
    return shape + ("" if norm is None else f", norm {number(norm)}") + counted(x)


def rule_of(node: Any) -> str:
    """The rule of a node as a formula, otherwise what its op is.

    >>> rule_of(torch.ones(2, requires_grad=True).sin().grad_fn)
    'dx = g · cos(x)'
    """
    return ", ".join(lines_of(node))


def lines_of(node: Any) -> list[str]:
    """The same, a line for each gradient."""
    lines = [as_text(box) for box in boxes_of(terms_of(node))]
    if lines and max(map(len, lines)) <= LONGEST:
        return lines
    op = node._op
    if op is None:
        return [f"backward() of {type(node).__name__.removesuffix('Backward')}"]
    whole = " ".join((op.doc or type(op).__doc__ or op.name).split())
    said = textwrap.shorten(whole.partition(". ")[0].rstrip("."), LONGEST, placeholder=" ...")
    return [f"the derivative of: {said}"]


class Names(naming.Names):
    """The names that were given, then those of the caller's variables, nearest first."""

    def __init__(self, given: Any = None, frame: FrameType | None = None) -> None:
        super().__init__()
        if given is not None:
            self.add_params(given)
        self.add_frames(frame)

    @property
    def known(self) -> list[Any]:
        """All tensors that have a name."""
        return [t for t in self._alive if isinstance(t, TensorBase)]

    def leaf(self, t: Any) -> str:
        """A leaf's name, or what it looks like."""
        return self.of_tensor(t) or f"a leaf {list(t.shape)}"


def names_here(given: Any = None) -> Names:
    """The names in the program that called rushlight."""
    return Names(given, caller())


# --- the table ------------------------------------------------------------------------------------
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
    outs = as_tuple(y)
    if len(outs) > 1:
        what = f"{len(outs)} tensors"
    elif isinstance(outs[0], TensorBase):
        name = names.of_tensor(outs[0])
        what = (f"{name} = " if name else "") + short(outs[0])
    else:
        what = type(outs[0].node).__name__  # an edge
    start = "1" if gradient is None else ", ".join(map(short, as_tuple(gradient)))
    steps_said = "1 step" if count == 1 else f"{count} steps, the newest node first"
    return f"The backward pass of {what}, from the gradient {start}: {steps_said}."
