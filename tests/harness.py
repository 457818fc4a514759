"""Small programs that run on PyTorch and on rushlight: what one can see of each, and comparing it.

A case is a function of a library; it returns anything, or raises. `reference/make_functions.py` and
`reference/make_library.py` store what PyTorch does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

Case = Callable[[Any], Any]


class Cases(dict[str, Case]):
    """Cases by name. Use it as a decorator to enter one."""

    def __call__(self, fn: Case) -> Case:
        assert fn.__name__ not in self, fn.__name__
        self[fn.__name__] = fn
        return fn


def leaf(lib: Any, *shape: int) -> Any:
    """1, 2, 3 and so on, asking for gradients."""
    n = 1
    for s in shape:
        n *= s
    return lib.arange(1.0, n + 1).reshape(shape).clone().requires_grad_()


def look(t: Any) -> Any:
    """All one can see of a tensor."""
    return {
        "value": t.detach().tolist(),
        "requires_grad": t.requires_grad,
        "is_leaf": t.is_leaf,
        "grad_fn": None if t.grad_fn is None else type(t.grad_fn).__name__,
        "output_nr": t.output_nr,
        "version": t._version,
        "is_view": t._is_view(),
    }


def attempt(fn: Callable[[], Any]) -> Any:
    """What `fn` returns, or how it fails."""
    try:
        return fn()
    except Exception as error:  # whatever it is, both libraries must raise it
        lines = str(error).strip().splitlines()
        return f"{type(error).__name__}: {lines[0] if lines else ''}"


def grads(lib: Any, y: Any, *xs: Any, **kwargs: Any) -> Any:
    """The gradients of `y`, as lists; None for those it does not depend on."""
    kwargs.setdefault("allow_unused", True)
    return [None if g is None else g.tolist() for g in lib.autograd.grad(y, xs, **kwargs)]


def plain(lib: Any, x: Any) -> Any:
    """A result as JSON can hold it."""
    if isinstance(x, dict):
        return {str(k): plain(lib, v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [plain(lib, y) for y in x]
    if isinstance(x, lib.Tensor):
        return plain(lib, look(x))
    if isinstance(x, float):
        return round(x, 4) + 0.0
    if isinstance(x, complex):
        return [plain(lib, x.real), plain(lib, x.imag)]
    return x if x is None or isinstance(x, (bool, int, str)) else repr(x)


def outcome(lib: Any, case: Case) -> Any:
    """What a case gives, or how it fails."""
    enabled = lib.is_grad_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(lib, attempt(lambda: case(lib)))
        finally:
            lib.set_grad_enabled(enabled)


def agree(theirs: Any, ours: Any) -> bool:
    """Equal, but that an error may say more than PyTorch's first line does. PyTorch's hints about
    itself do not count."""
    if isinstance(theirs, str) and isinstance(ours, str):
        if "Error: " not in theirs:
            return theirs == ours
        said = theirs.split(" Hint: ")[0].split(".  (Could this error message")[0]
        return ours.startswith(said)
    if type(theirs) is not type(ours):
        return False
    if isinstance(theirs, list):
        return len(theirs) == len(ours) and all(map(agree, theirs, ours))
    if isinstance(theirs, dict):
        return theirs.keys() == ours.keys() and all(agree(theirs[k], ours[k]) for k in theirs)
    return bool(theirs == ours)
