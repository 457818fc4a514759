"""The order of arguments before PyTorch 1.5: `add(x, alpha, y)`, `addmm(beta, x, alpha, a, b)`.

They still work, with PyTorch's warning. A function that has such a form takes what is behind
its own arguments as `*deprecated`, and asks here what all of them mean.
"""

from __future__ import annotations

from typing import Any, Final

from rushlight.core.graph import TensorBase
from rushlight.core.observer import observer
from rushlight.ops.checks import is_number
from rushlight.ops.warned import warn_caller


class _Warned:
    """PyTorch warns of these once in a program, whichever of them comes first."""

    def __init__(self) -> None:
        self.already = False


warned: Final = _Warned()


def _warn(name: str, old: str, new: str) -> None:
    observer.keep_nothing()  # what warns is not kept: see `core.recall`
    if warned.already:
        return
    warned.already = True
    end = ", *, Tensor out = None)"
    warn_caller(
        f"This overload of {name} is deprecated:\n\t{name}({old}{end}\n"
        f"Consider using one of the following signatures instead:\n\t{name}({new}"
    )


def _too_many(name: str, wanted: int, args: tuple[Any, ...]) -> TypeError:
    return TypeError(f"{name}() takes {wanted} positional arguments but {len(args)} were given")


def _marks(args: tuple[Any, ...]) -> str:
    """One letter an argument: a tensor, a number, or neither."""
    return "".join("t" if isinstance(x, TensorBase) else "n" if is_number(x) else "?" for x in args)


def reorder_scaled(name: str, args: tuple[Any, ...], factor: str, *tensors: str) -> tuple[Any, ...]:
    """`f(input, factor, *tensors)` of old: the tensors, then the factor."""
    titles = ", ".join(f"Tensor {t}" for t in ("input", *tensors))
    new = f"{titles}, *, Number {factor} = 1, Tensor out = None)"
    if _marks(args) != "tn" + "t" * len(tensors):
        raise _too_many(name, len(tensors) + 1, args)
    input, number, *rest = args
    _warn(name, f"Tensor input, Number {factor}, {titles.partition(', ')[2]}", new)
    return input, *rest, number


def reorder_weighted(name: str, args: tuple[Any, ...], first: str, second: str) -> tuple[Any, ...]:
    """`f(beta, input, alpha, a, b)` of old, and `input.f(beta, alpha, a, b)`, where alpha may be
    left out: input, a, b, beta, alpha."""
    tail = f"Tensor {first}, Tensor {second}"
    new = f"Tensor input, {tail}, *, Number beta = 1, Number alpha = 1, Tensor out = None)"
    if _marks(args) not in ("ntntt", "tnntt", "nttt", "tntt"):
        raise _too_many(name, 3, args)
    input, a, b = (x for x in args if isinstance(x, TensorBase))
    numbers = [x for x in args if not isinstance(x, TensorBase)]
    middle = "Number alpha, " if len(numbers) == 2 else ""
    _warn(name, f"Number beta, Tensor input, {middle}{tail}", new)
    return input, a, b, numbers[0], numbers[1] if len(numbers) == 2 else 1
