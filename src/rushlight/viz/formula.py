"""A node's rule as a formula: `formula` gives text, `mathml` what browsers show as maths."""

from __future__ import annotations

from html import escape
from typing import Any

from rushlight.arrays.terms import Term
from rushlight.viz.maths import Box, bracketed, layout, name, operator, row, tidy
from rushlight.viz.rules import Rule, rule_of
from rushlight.viz.shapes import Shapes


def formula(node: Any, shapes: Shapes | None = None) -> str:
    """The gradients of a node's inputs, from `g`, the gradient of its output.

    "" where the rule is a custom function's, or too long for a formula.

    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> formula(x.sin().grad_fn)
    'dx = g · cos(x)'
    >>> formula((x * 3).grad_fn)
    'dx = g · 3'
    """
    return ", ".join(as_text(box) for box in boxes_of(rule_of(node, shapes)))


def mathml(box: Box) -> str:
    """A formula as a MathML element."""
    return f'<math displaystyle="true">{_element(box)}</math>'


def boxes_of(rule: Rule) -> list[Box]:
    """A line for each gradient; none if the rule is to be read in its source."""
    gap = {1: ""}
    return [_equation(f"d{gap.get(len(n), ' ')}{n}", term) for n, term in rule.grads]


def forward_box(rule: Rule) -> Box | None:
    """`y = …`, or None."""
    return None if rule.forward is None else _equation("y", rule.forward)


def _equation(left: str, term: Term) -> Box:
    return row(name(left), operator("="), layout(tidy(term)))


# --- as text --------------------------------------------------------------------------------------
_UPPER = dict(zip("0123456789−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻"))


def as_text(box: Box) -> str:
    """A formula on one line."""
    kind, parts = box.kind, box.parts
    if kind == "operator":
        text = str(parts[0])
        return text if text in "−∑∏¬" else f" {text} " if text != "," else ", "
    if kind == "row":
        return _row_text(parts)
    if kind == "fraction":
        return " / ".join(as_text(bracketed(p, 3)) for p in parts)
    if kind == "power":
        base, exponent = as_text(parts[0]), as_text(parts[1])
        if all(c in _UPPER for c in exponent):
            return base + "".join(_UPPER[c] for c in exponent)
        return f"{base}^{exponent}" if parts[1].binds >= 4 else f"{base}^({exponent})"
    if kind == "root":
        return f"√{as_text(parts[0])}" if parts[0].kind == "name" else f"√({as_text(parts[0])})"
    if kind == "sub":
        return f"{as_text(parts[0])}_{as_text(parts[1])}".replace("_dim ", "_dim")
    if kind == "matrix":
        return as_text(parts[0]) + "ᵀ"
    if kind == "bracket":
        return f"{parts[0]}{as_text(parts[1])}{parts[2]}"
    if kind == "cases":
        test, yes, no = (as_text(p) for p in parts)
        return f"{yes} if {test} else {no}"
    return str(parts[0])


def _row_text(parts: tuple[Box, ...]) -> str:
    text = ""
    for i, part in enumerate(parts):
        one = as_text(part)
        if part.kind == "operator" and part.parts[0] == "−" and i > 0:
            one = " − "
        elif part.kind == "cases" and len(parts) > 1 and i > 1:
            one = f"({one})" if parts[i - 1].parts[0] != "=" else one
        elif text.endswith(("∑", "∏")) or (part.kind != "bracket" and "∑_" in text[-12:]):
            one = f" {one}" if not one.startswith(("(", " ")) else one
        text += one
    return text


# --- as MathML ------------------------------------------------------------------------------------
def _element(box: Box) -> str:
    kind, parts = box.kind, box.parts
    if kind == "name":
        return _name_element(str(parts[0]))
    if kind == "number":
        return f"<mn>{escape(str(parts[0]))}</mn>"
    if kind == "word":
        return f"<mtext>{escape(str(parts[0]))}</mtext>"
    if kind == "operator":
        if parts[0] == "@":  # a product of matrices: they stand side by side
            return '<mspace width="0.25em"/>'
        return f"<mo>{escape(str(parts[0]))}</mo>"
    if kind == "row":
        return f"<mrow>{''.join(map(_element, parts))}</mrow>"
    if kind == "fraction":
        return f"<mfrac>{_grouped(parts[0])}{_grouped(parts[1])}</mfrac>"
    if kind == "power":
        return f"<msup>{_grouped(parts[0])}{_grouped(parts[1])}</msup>"
    if kind == "root":
        return f"<msqrt>{_element(parts[0])}</msqrt>"
    if kind == "sub":
        tag = "munder" if parts[0].kind == "operator" else "msub"
        return f"<{tag}>{_grouped(parts[0])}{_grouped(parts[1])}</{tag}>"
    if kind == "matrix":
        return f"<msup>{_grouped(parts[0])}<mi>T</mi></msup>"
    if kind == "bracket":
        return f"<mrow><mo>{parts[0]}</mo>{_element(parts[1])}<mo>{parts[2]}</mo></mrow>"
    test, yes, no = map(_element, parts)
    rows = (
        f"<mtr><mtd>{yes}</mtd><mtd><mtext>if </mtext>{test}</mtd></mtr>"
        f"<mtr><mtd>{no}</mtd><mtd><mtext>otherwise</mtext></mtd></mtr>"
    )
    return f'<mrow><mo>{{</mo><mtable columnalign="left">{rows}</mtable></mrow>'


def _grouped(box: Box) -> str:
    inside = _element(box)
    return inside if inside.startswith("<mrow>") else f"<mrow>{inside}</mrow>"


def _name_element(text: str) -> str:
    if text.startswith("d ") or (len(text) == 2 and text[0] == "d"):  # a gradient: d, and whose
        whose = _name_element(text[1:].strip())
        gap = '<mspace width="0.15em"/>' if text[1] == " " else ""
        return f'<mrow><mi mathvariant="normal">d</mi>{gap}{whose}</mrow>'
    if len(text) > 1 and text[0] == "x" and text[1:].isdigit():
        return f"<msub><mi>x</mi><mn>{text[1:]}</mn></msub>"
    return f"<mi>{escape(text)}</mi>"
