"""Wording of errors: PyTorch's type and first words, then where, then the cure."""

from __future__ import annotations

from collections.abc import Sequence


def sentence(message: str, where: str = "", cure: str = "") -> str:
    """Join an error's three parts: what happened, which line did it, what to do.

    >>> print(sentence("it broke", "at train.py:3  y = x", "Write `y = x.clone()`."))
    it broke
      at train.py:3  y = x
    Write `y = x.clone()`.
    """
    parts = [message]
    if where:
        parts.append("\n".join("  " + line for line in where.splitlines()))
    if cure:
        parts.append(cure)
    return "\n".join(parts)


def advise(error: BaseException, note: str) -> BaseException:
    """Attach a line to an exception that is passing through, once.

    The exception keeps its type and text, so code that catches it sees no difference.
    """
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return error


def broadcast_mismatch(a: Sequence[int], b: Sequence[int]) -> str:
    """PyTorch's text for two shapes that do not broadcast together.

    >>> broadcast_mismatch((2, 3), (4,))
    'The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1'
    """
    rank = max(len(a), len(b))
    for back in range(1, rank + 1):
        m = a[-back] if back <= len(a) else 1
        n = b[-back] if back <= len(b) else 1
        if m != n and m != 1 and n != 1:
            return (
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) "
                f"at non-singleton dimension {rank - back}"
            )
    return f"The shapes {tuple(a)} and {tuple(b)} do not broadcast together"


def dim_out_of_range(dim: int, rank: int) -> str:
    """PyTorch's text for a dimension that a tensor of `rank` dimensions does not have.

    >>> dim_out_of_range(2, 2)
    'Dimension out of range (expected to be in range of [-2, 1], but got 2)'
    """
    top = max(rank, 1)
    return f"Dimension out of range (expected to be in range of [{-top}, {top - 1}], but got {dim})"
