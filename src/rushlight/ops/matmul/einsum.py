"""`einsum`: sums of products over named dimensions, made of views, sums and one `bmm` a pair.

Every operand is first brought to one layout, a dimension for each subscript: those of the output in
its order, then those that are summed. Operands are then multiplied from left to right; a subscript
is summed with the last operand that has it.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight import dtypes
from rushlight.core.graph import TensorBase
from rushlight.ops.matmul.mm import bmm_of
from rushlight.ops.registry import function

_DOTS: Final = "..."
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


# --- reading --------------------------------------------------------------------------------------
def _subscripts(text: str, start: int, what: str, nth: int) -> list[str]:
    """One operand's subscripts: letters, and `...` once at most."""
    found: list[str] = []
    place = 0
    while place < len(text):
        letter = text[place]
        if letter == " ":
            place += 1
        elif letter == ".":
            where = f"for operand {nth}" if what == "operand" else "for the output"
            if _DOTS in found:
                raise RuntimeError(
                    f"einsum(): found '.' {where} for which an ellipsis was already found"
                )
            if text[place : place + 3] != _DOTS:
                raise RuntimeError(f"einsum(): found '.' {where} that is not part of any ellipsis")
            found.append(_DOTS)
            place += 3
        elif letter in _LETTERS:
            found.append(letter)
            place += 1
        else:
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + place} in the equation "
                "string, subscripts must be in [a-zA-Z]"
            )
    return found


def _read(equation: str, count: int) -> tuple[list[list[str]], list[str] | None]:
    left, arrow, right = equation.partition("->")
    terms: list[list[str]] = []
    start = 0
    for nth, text in enumerate(left.split(",")):
        terms.append(_subscripts(text, start, "operand", nth))
        start += len(text) + 1
    if len(terms) != count:
        word = "fewer" if count < len(terms) else "more"
        raise RuntimeError(
            f"einsum(): {word} operands were provided than specified in the equation"
        )
    if not arrow:
        return terms, None
    return terms, _subscripts(right, len(left) + 2, "output", 0)


def _from_list(subscripts: Any) -> list[str]:
    """Subscripts given as numbers and `...`."""
    if isinstance(subscripts, str) or not hasattr(subscripts, "__iter__"):
        raise TypeError(
            "einsum(): the subscripts of an operand must be a list of ints, not "
            f"{dtypes.type_name(subscripts)}"
        )
    found: list[str] = []
    for s in subscripts:
        if s is Ellipsis:
            found.append(_DOTS)
        elif not hasattr(s, "__index__"):
            raise TypeError(
                f"einsum(): a subscript must be an int or `...`, not {dtypes.type_name(s)}"
            )
        elif 0 <= s < len(_LETTERS):
            found.append(_LETTERS[s])
        else:
            raise ValueError(
                "einsum(): subscript in subscript list is not within the valid range [0, 52)"
            )
    return found


def _arguments(args: tuple[Any, ...]) -> tuple[list[Any], list[list[str]], list[str] | None]:
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    if isinstance(args[0], TensorBase):
        pairs = len(args) // 2
        operands = [args[2 * i] for i in range(pairs)]
        terms = [_from_list(args[2 * i + 1]) for i in range(pairs)]
        return operands, terms, _from_list(args[-1]) if len(args) % 2 else None
    if not isinstance(args[0], str):
        raise TypeError(
            "einsum(): argument 'equation' (position 1) must be str, not "
            f"{dtypes.type_name(args[0])}"
        )
    operands = list(args[1:])
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = list(operands[0])
    for position, x in enumerate(operands):
        if not isinstance(x, TensorBase):
            raise TypeError(
                f"expected Tensor as element {position} in argument 1, but got {type(x).__name__}"
            )
    return operands, *_read(args[0], len(operands))


# --- one layout -----------------------------------------------------------------------------------
def _name_ellipsis(terms: list[list[str]], operands: list[Any]) -> tuple[list[list[str]], int]:
    """The subscripts with `...` replaced by one name a dimension: '.0' is the last of them."""
    widest = 0
    named: list[list[str]] = []
    for nth, (term, x) in enumerate(zip(terms, operands)):
        rank = x._array.ndim
        letters = len(term) - (_DOTS in term)
        if _DOTS not in term and letters != rank:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({letters}) does not match "
                f"the number of dimensions ({rank}) for operand {nth} and no ellipsis was given"
            )
        if letters > rank:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({letters}) is more than the "
                f"number of dimensions ({rank}) for operand {nth}"
            )
        widest = max(widest, rank - letters)
        out: list[str] = []
        for s in term:
            out += [f".{d}" for d in range(rank - letters - 1, -1, -1)] if s == _DOTS else [s]
        named.append(out)
    return named, widest


def _output(out: list[str] | None, named: list[list[str]], widest: int) -> list[str]:
    """The output's names: as given, or those that occur once, in order, after the `...`."""
    dots = [f".{d}" for d in range(widest - 1, -1, -1)]
    if out is None:
        seen = [s for term in named for s in term if s in _LETTERS]
        return dots + sorted(s for s in set(seen) if seen.count(s) == 1)
    names: list[str] = []
    for s in out:
        if s == _DOTS:
            names += dots
            continue
        if s in names:
            raise RuntimeError(
                f"einsum(): output subscript {s} appears more than once in the output"
            )
        if not any(s in term for term in named):
            raise RuntimeError(
                f"einsum(): output subscript {s} does not appear in the equation for any input "
                "operand"
            )
        names.append(s)
    return names


def _laid_out(x: Any, term: list[str], nth: int, order: list[str], sizes: dict[str, int]) -> Any:
    """An operand with a dimension for each name of `order`; repeated names take the diagonal."""
    names: list[str] = []
    for s in term:
        at = len(names)
        size = x._array.shape[at]
        if s in names:
            first = names.index(s)
            have = x._array.shape[first]
            if have != size:
                raise RuntimeError(
                    f"einsum(): subscript {s} is repeated for operand {nth} but the sizes don't "
                    f"match, {size} != {have}"
                )
            x = x.diagonal(0, first, at).movedim(-1, first)
        else:
            names.append(s)
    for s, size in zip(names, x._array.shape):
        old = sizes.get(s, 1)
        if old == 1:
            sizes[s] = size
        elif size not in (1, old):
            shown = "..." if s.startswith(".") else s
            raise RuntimeError(
                f"einsum(): subscript {shown} has size {size} for operand {nth} which does not "
                f"broadcast with previously seen size {old}"
            )
    for s in order:
        if s not in names:
            names.append(s)
            x = x.unsqueeze(-1)
    return x.permute([names.index(s) for s in order])


# --- products -------------------------------------------------------------------------------------
def _pair(a: Any, b: Any, gone: list[int]) -> Any:
    """The product of two operands of one layout, summed over the dimensions `gone` (kept as 1)."""
    left, right = a._array.shape, b._array.shape
    for d in list(gone):
        # a dimension that only one of them has is summed before the product
        if left[d] == 1 or right[d] == 1:
            if left[d] != 1:
                a = a.sum(d, keepdim=True)
            elif right[d] != 1:
                b = b.sum(d, keepdim=True)
            gone.remove(d)
    if not gone:
        return a * b
    left, right = a._array.shape, b._array.shape
    both: list[int] = []
    only_a: list[int] = []
    only_b: list[int] = []
    for d in range(len(left)):
        if d not in gone:
            if left[d] != 1 and right[d] != 1:
                both.append(d)
            elif left[d] != 1:
                only_a.append(d)
            else:
                only_b.append(d)
    batch, rows, inner = _size(left, both), _size(left, only_a), _size(left, gone)
    cols = _size(right, only_b)
    tall = a.permute(both + only_a + gone + only_b).reshape(batch, rows, inner)
    wide = b.permute(both + gone + only_b + only_a).reshape(batch, inner, cols)
    order = both + only_a + gone + only_b
    shape = [
        *(left[d] for d in both + only_a), *(1 for _ in gone), *(right[d] for d in only_b)
    ]  # fmt: skip
    y = bmm_of(tall, wide).view(shape)
    return y.permute([order.index(d) for d in range(len(order))])


def _size(shape: tuple[int, ...], dims: list[int]) -> int:
    n = 1
    for d in dims:
        n *= shape[d]
    return n


@function(method=False, settles=True)
def einsum(*args: Any) -> Any:
    """The sum of products over named dimensions: 'ij,jk->ik' is a product of matrices. A name that
    the output lacks is summed; a name twice in one operand takes the diagonal; `...` stands for all
    other dimensions.

    Args:
        args: the equation, such as "ij,jk->ik", and the operands.

    >>> torch.einsum("ij,j->i", torch.tensor([[1., 2.], [3., 4.]]), torch.tensor([1., 1.]))
    tensor([3., 7.])
    >>> torch.einsum("ii->i", torch.tensor([[1., 2.], [3., 4.]]))
    tensor([1., 4.])
    """
    operands, terms, out = _arguments(args)
    named, widest = _name_ellipsis(terms, operands)
    kept = _output(out, named, widest)
    summed: list[str] = []
    last: dict[str, int] = {}
    for nth, term in enumerate(named):
        for s in term:
            last[s] = nth
            if s not in kept and s not in summed:
                summed.append(s)
    order = kept + summed
    sizes: dict[str, int] = {}
    xs = [_laid_out(x, named[n], n, order, sizes) for n, x in enumerate(operands)]
    y = xs[0]
    if len(xs) == 1:
        return y.sum(list(range(len(kept), len(order)))) if summed else y
    now = [order.index(s) for s in summed if last[s] == 0]
    if now:
        y = y.sum(now, keepdim=True)
    for nth in range(1, len(xs)):
        y = _pair(y, xs[nth], [order.index(s) for s in summed if last[s] == nth])
    return y.reshape(y._array.shape[: len(kept)]) if summed else y
