"""From terms to maths: which words are fractions, powers, sums, and where parentheses stand.

The result is a tree of `Box`es; `viz.formula` writes it as text or as MathML.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from rushlight.arrays.terms import Term

SUM, PRODUCT, POWER, ATOM = 1, 2, 3, 4  # how tightly what stands in a box holds together


@dataclass(frozen=True)
class Box:
    """`kind` is name, number, operator, word (upright), row, fraction, power, root, sub, matrix
    (a transposed one), bracket, or cases."""

    kind: str
    parts: tuple[Any, ...]
    binds: int = ATOM


def name(text: str) -> Box:
    return Box("name", (text,))


def operator(text: str) -> Box:
    return Box("operator", (text,))


def row(*parts: Box, binds: int = ATOM) -> Box:
    return Box("row", parts, binds)


def bracketed(box: Box, least: int) -> Box:
    """In parentheses, if it holds together less than `least`."""
    return box if box.binds >= least else Box("bracket", ("(", box, ")"))


# --- numbers --------------------------------------------------------------------------------------
_KNOWN = {
    math.pi: "π", math.pi / 2: "π/2", math.e: "e", math.log(2): "ln 2", math.log(10): "ln 10",
    math.sqrt(2): "√2", 2 / math.sqrt(math.pi): "2/√π", math.sqrt(0.5): "1/√2",
    1 / math.sqrt(2 * math.pi): "1/√(2π)", math.sqrt(math.pi) / 2: "√π/2",
    180 / math.pi: "180/π", math.pi / 180: "π/180", math.inf: "∞",
}  # fmt: skip


def number(value: Any) -> Box:
    """A number as one writes it by hand."""
    if isinstance(value, bool):
        return Box("word", (str(value),))
    if isinstance(value, complex):
        return Box("number", (f"({value:.4g})",))
    if isinstance(value, float):
        for known, text in _KNOWN.items():
            if math.isclose(value, known, rel_tol=1e-6):
                return Box("number", (text,), PRODUCT if "/" in text else ATOM)
        if math.isfinite(value) and abs(value) < 1e15 and value == int(value):
            value = int(value)
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return Box("number", (text.replace("-", "−"),), SUM if text.startswith("-") else ATOM)


# --- tidying --------------------------------------------------------------------------------------
_SAME = frozenset("positive copy contiguous laid_out settled moved matrices real_if_close".split())
_SHAPES = frozenset("reshape broadcast unsqueezed".split())  # what a reader need not be told of
_RENAMED = {
    "true_divide": "divide", "fabs": "absolute", "turned": "transpose",
    "narrow_matmul": "matmul", "expit": "σ", "gammaln": "ln Γ",
    "digamma": "ψ", "log_expit": "ln σ", "log": "ln", "reduce_max": "max", "reduce_min": "min",
    "product": "∏", "reduce_any": "any", "reduce_all": "all", "rint": "round",
}  # fmt: skip


def tidy(term: Any, outermost: bool = True) -> Any:
    """A term without what only arrays care about: casts, copies, shapes, factors of one."""
    if not isinstance(term, Term):
        return term
    word = _RENAMED.get(term.word, term.word)
    if word in _SAME and term.args:
        return tidy(term.args[0], outermost)
    if word in _SHAPES and term.args:
        inner = tidy(term.args[0], False)
        bare = isinstance(inner, Term) and not inner.args
        return Term(word, (inner,), term.shape) if outermost and bare else inner
    if word == "cast":
        inner = tidy(term.args[0], False)
        return Term("indicator", (inner,)) if _is_truth(inner) else inner
    if word in ("full", "constant") and term.args:
        value = term.args[2 if word == "full" else 1]
        return value if isinstance(value, (int, float, complex)) else Term("constant")
    if word == "special":
        word = _RENAMED.get(term.args[1], term.args[1])
        return Term(word, tuple(tidy(a, False) for a in (term.args[0], *term.args[2:])))
    if word in ("swap", "permute") and _transposes(term):
        return Term("transpose", (tidy(term.args[0], False),), term.shape)
    if word == "put":
        base, value, view = term.args
        return Term(word, (tidy(base, False), tidy(value, False), view), term.shape)
    args = tuple(tidy(a, False) for a in term.args)
    return _simpler(word, args, term.shape)


def _transposes(term: Term) -> bool:
    """Whether the last two axes change places."""
    rank = len(term.shape or ())
    if term.word == "swap":
        return rank > 1 and {a % rank for a in term.args[1:3]} == {rank - 1, rank - 2}
    axes = tuple(a % rank for a in term.args[1]) if rank else ()
    return axes == (*range(rank - 2), rank - 1, rank - 2) and rank > 1


def _is_truth(term: Any) -> bool:
    return isinstance(term, Term) and term.word in _COMPARISONS.keys() | {
        "logical_and", "logical_or", "logical_not", "isnan", "isinf", "isfinite",
    }  # fmt: skip


_ON_NUMBERS: dict[str, Any] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
}  # fmt: skip


def _simpler(word: str, args: tuple[Any, ...], shape: Any) -> Any:
    a = args[0] if args else None
    b = args[1] if len(args) > 1 else None
    if word in _ON_NUMBERS and all(isinstance(x, (int, float)) for x in args):
        return _ON_NUMBERS[word](a, b)
    if word == "multiply":
        if _is(a, 1):
            return b
        if _is(b, 1):
            return a
        if _is(b, -1):
            return _simpler("negative", (a,), shape)
        if isinstance(a, Term) and repr(a) == repr(b):
            return Term("power", (a, 2), shape)
    if (word == "divide" and _is(b, 1)) or (word in ("add", "subtract") and _is(b, 0)):
        return a
    if word == "add" and _is(a, 0):
        return b
    if word == "negative" and isinstance(a, (int, float)):
        return -a
    if word == "power" and _is(b, 1):
        return a
    if word == "power" and _is(b, 0):
        return 1
    if word == "square":
        return Term("power", (a, 2), shape)
    if word == "reciprocal" or (word == "power" and _is(b, -1)):
        return Term("divide", (1, a), shape)
    if word == "power" and _is(b, 0.5):
        return Term("sqrt", (a,), shape)
    if word == "transpose" and isinstance(a, Term) and a.word == "transpose":
        return a.args[0]
    return Term(word, args, shape)


def _is(value: Any, wanted: float) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == wanted


# --- laying out -----------------------------------------------------------------------------------
_COMPARISONS = {
    "greater": ">", "greater_equal": "≥", "less": "<", "less_equal": "≤", "equal": "=",
    "not_equal": "≠",
}  # fmt: skip
_LOGIC = {"logical_and": "∧", "logical_or": "∨", "bitwise_and": "&", "bitwise_or": "|"}
_ABOUT = {
    "reshape": "reshape", "broadcast": "expand", "unsqueezed": "unsqueeze",
    "absolute": "abs", "conjugate": "conj", "outside": "outside of the region",
}  # fmt: skip


def layout(term: Any) -> Box:
    """The boxes of a tidied term."""
    if not isinstance(term, Term):
        return number(term) if isinstance(term, (bool, int, float, complex)) else name(str(term))
    word, args = term.word, term.args
    if not args:
        return _symbol(word)
    boxes = [layout(a) for a in args if isinstance(a, (Term, bool, int, float, complex))]
    if word == "add":
        return _sum(boxes[0], "+", boxes[1])
    if word == "subtract":
        return _sum(boxes[0], "−", boxes[1])
    if word in ("multiply", "matmul"):
        sign = operator("·" if word == "multiply" else "@")
        left, right = (bracketed(b, PRODUCT) for b in boxes)
        return row(left, sign, right, binds=PRODUCT)
    if word == "divide":
        return Box("fraction", (boxes[0], boxes[1]), PRODUCT)
    if word == "negative":
        return row(operator("−"), bracketed(boxes[0], PRODUCT), binds=SUM)
    if word == "power":
        return Box("power", (bracketed(boxes[0], ATOM), boxes[1]), POWER)
    if word == "exp":
        return Box("power", (name("e"), boxes[0]), POWER)
    if word == "sqrt":
        return Box("root", (boxes[0],))
    if word == "absolute":
        return Box("bracket", ("|", boxes[0], "|"))
    if word == "transpose":
        return Box("matrix", (bracketed(boxes[0], ATOM),), POWER)
    if word in _COMPARISONS:
        return row(boxes[0], operator(_COMPARISONS[word]), boxes[1], binds=SUM)
    if word in _LOGIC:
        left, right = (bracketed(b, PRODUCT) for b in boxes)
        return row(left, operator(_LOGIC[word]), right, binds=SUM)
    if word == "logical_not":
        return row(operator("¬"), bracketed(boxes[0], ATOM), binds=PRODUCT)
    if word == "indicator":
        return row(Box("number", ("1",)), Box("bracket", ("[", boxes[0], "]")))
    if word == "where":
        return Box("cases", (boxes[0], boxes[1], boxes[2]), SUM)
    if word == "reduce_sum":
        return _over("∑", term, boxes[0])
    if word == "summed":
        head = Box("sub", (operator("∑"), Box("word", ("broadcast",))))
        return row(head, bracketed(boxes[0], PRODUCT), binds=PRODUCT)
    if word == "put" or (word == "store" and len(args) == 3):
        region = args[2] if word == "store" else args[2].args[-1]
        told = word == "store" or args[2].word == "window"
        place = f" at [{_index(region)}], elsewhere " if told else " in its region, elsewhere "
        return row(boxes[1], Box("word", (place,)), boxes[0], binds=SUM)
    if word == "∏":
        return _over("∏", term, boxes[0])
    if word in ("max", "min", "cumsum", "any", "all"):
        return row(Box("word", (word,)), Box("bracket", ("(", boxes[0], ")")))
    if word == "part":
        return Box("sub", (boxes[0], number(args[1] + 1)))
    if word == "window":
        return row(bracketed(boxes[0], ATOM), Box("word", (f"[{_index(args[1])}]",)))
    if word in ("concat", "stack") and isinstance(args[0], tuple):
        boxes = [layout(a) for a in args[0]]
    return _call(_ABOUT.get(word, word), boxes)


def _symbol(text: str) -> Box:
    stem, _, below = text.partition("_")
    if stem == "g" and below:
        return Box("sub", (name("g"), Box("word", (below,))))
    return name(text)


def _sum(left: Box, sign: str, right: Box) -> Box:
    if sign == "+" and right.kind == "row" and right.parts[0] == operator("−"):
        sign, right = "−", Box("row", right.parts[1:], PRODUCT)
    return row(left, operator(sign), bracketed(right, PRODUCT if sign == "−" else SUM), binds=SUM)


def _over(sign: str, term: Term, box: Box) -> Box:
    """A sum or product; below the sign the dimensions it goes over, where they are not all."""
    head: Box = operator(sign)
    dims = term.args[1] if len(term.args) > 1 else None
    if isinstance(dims, tuple) and dims:
        below = ", ".join(str(d).replace("-", "−") for d in dims)
        head = Box("sub", (head, Box("word", (f"dim {below}",))))
    return row(head, bracketed(box, PRODUCT), binds=PRODUCT)


def _call(word: str, boxes: list[Box]) -> Box:
    inside: list[Box] = []
    for box in boxes:
        inside += [operator(","), box] if inside else [box]
    return row(Box("word", (word.replace("_", " "),)), Box("bracket", ("(", row(*inside), ")")))


def _index(index: Any) -> str:
    parts = index if isinstance(index, tuple) else (index,)
    return ", ".join(_one_index(p) for p in parts)


def _one_index(part: Any) -> str:
    if isinstance(part, slice):
        texts = ["" if x is None else str(x) for x in (part.start, part.stop)]
        return ":".join(texts) + ("" if part.step in (None, 1) else f":{part.step}")
    return "…" if part is Ellipsis else str(part)


def size(term: Any, seen: dict[int, int] | None = None) -> int:
    """How many words the formula would have, without writing it."""
    if not isinstance(term, Term):
        return 1
    seen = {} if seen is None else seen
    found = seen.get(id(term))
    if found is None:
        found = 1 + sum(
            size(a, seen) if not isinstance(a, tuple) else sum(size(x, seen) for x in a)
            for a in term.args
        )
        seen[id(term)] = found
    return found
