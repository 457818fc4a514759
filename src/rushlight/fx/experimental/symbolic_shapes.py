"""`torch.fx.experimental.symbolic_shapes`: questions about sizes. Here every size is known."""

from __future__ import annotations

from typing import Any

__all__ = [
    "free_symbols", "guard_or_false", "guard_or_true", "guard_scalar", "guard_size_oblivious",
    "is_concrete_bool", "is_concrete_int", "statically_known_true", "sym_eq",
]  # fmt: skip
__dir__ = __all__.copy


class GuardOnDataDependentSymNode(RuntimeError):
    """A question about a size that is not known; nothing raises it."""


def _truth(expr: Any) -> bool:
    return bool(expr)


guard_or_false = guard_or_true = guard_size_oblivious = statically_known_true = _truth


def guard_scalar(a: Any) -> Any:
    """The number itself."""
    return a


def hint_int(a: Any, fallback: int | None = None) -> int:
    """The number itself."""
    return int(a)


def is_concrete_int(a: Any) -> bool:
    """Whether a number is known: always."""
    return True


def is_concrete_bool(a: Any) -> bool:
    """Whether a truth value is known: always."""
    return True


def free_symbols(val: Any) -> set[Any]:
    """The unknown sizes in something: none."""
    return set()


def free_unbacked_symbols(x: Any) -> set[Any]:
    """The unknown sizes in something: none."""
    return set()


def sym_eq(x: Any, y: Any) -> bool:
    """Whether sizes are equal."""
    return bool(x == y)
