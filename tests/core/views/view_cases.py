"""How the cases of views are written: small programs for any library with PyTorch's names.

A case is a function of the library and of `see`, which writes down what it is given: all one can
observe of a tensor; what a function returns, or the error it raises; other things as they are.
`ViewCases.run` gives the notes of one case as plain Python values.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from tests.harness import Cases

__all__ = ["ViewCases", "leaf", "numbers"]

Tensor = Any


class ViewCases(Cases):
    """Cases of the library and of `see`."""

    def run(self, lib: Any, name: str) -> list[Any]:
        notes: list[Any] = []

        def see(*things: Any) -> None:
            for thing in things:
                notes.append(seen(lib, thing))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self[name](lib, see)
        return notes


def seen(lib: Any, thing: Any) -> Any:
    if isinstance(thing, lib.Tensor):
        return observed(thing)
    if callable(thing):
        return attempt(lib, thing)
    if isinstance(thing, (list, tuple)):
        return [seen(lib, part) for part in thing]
    return thing


def observed(t: Tensor) -> list[Any]:
    """Shape, values, version, flags, node and gradient of a tensor."""
    grad = t._grad
    return [
        list(t.shape),
        numbers(t),
        quietly(lambda: t._version),
        quietly(lambda: t.requires_grad),
        quietly(lambda: t.is_leaf),
        quietly(lambda: None if t.grad_fn is None else t.grad_fn.name()),
        None if grad is None else numbers(grad),
    ]


def numbers(t: Tensor) -> list[Any]:
    flat = t.detach().reshape(-1).tolist()
    return [[x.real, x.imag] if isinstance(x, complex) else x for x in flat]


def attempt(lib: Any, fn: Callable[[], Any]) -> Any:
    """What `fn()` gives; of an error its type and first line."""
    try:
        found = fn()
    except Exception as error:
        return [type(error).__name__, first_words(error)]
    return seen(lib, found) if isinstance(found, (lib.Tensor, list, tuple)) else plain(found)


def plain(found: Any) -> Any:
    return found if isinstance(found, (bool, int, float, str)) or found is None else "object"


def first_words(error: Exception) -> str:
    """PyTorch's part of a message: its cures ("Hint: ...") are its own, and so are ours."""
    text = str(error).split("\n")[0].split(" Hint:")[0][:400]
    # the node that is named is the one that the tensor has by now, here the one it had then
    return re.sub(r", which is output \d+ of \w+,", "", text)


def quietly(fn: Callable[[], Any]) -> Any:
    try:
        return fn()
    except RuntimeError as error:
        return first_words(error)


def leaf(torch: Any, *shape: int, asks: bool = True) -> Tensor:
    n = 1
    for s in shape:
        n *= s
    values = [0.25 * (k + 1) for k in range(n)]
    t = torch.tensor(values, dtype=torch.float64).reshape(shape).clone()
    return t.requires_grad_() if asks else t
