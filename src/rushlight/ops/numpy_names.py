"""NumPy's names for parameters, which PyTorch's functions take too: `axis` for `dim`.

Asked where a call has failed, so that those which use PyTorch's own names pay nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

OURS: Final = {
    "axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other",
}  # fmt: skip


def with_our_names(fn: Callable[..., Any], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """Arguments by the names that `fn` has for them; None if they have these already, or others.

    >>> with_our_names(lambda input, dim: 0, {"axis": 1})
    {'dim': 1}
    """
    known = inspect.signature(fn).parameters
    found: dict[str, Any] = {}
    changed = False
    for name, value in kwargs.items():
        ours = OURS.get(name)
        if ours is not None and name not in known and ours in known and ours not in kwargs:
            name, changed = ours, True
        found[name] = value
    return found if changed else None
