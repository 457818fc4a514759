"""Custom functions to make cases of."""

from __future__ import annotations

from typing import Any


def function(
    lib: Any, forward: Any = None, backward: Any = None, name: str = "F", base: Any = None,
    **members: Any,
) -> Any:  # fmt: skip
    """A custom function; callables among `members` become static methods."""
    members |= {"forward": forward, "backward": backward}
    made = {
        key: staticmethod(x) if callable(x) and not isinstance(x, type) else x
        for key, x in members.items()
        if x is not None
    }
    return type(name, (base or lib.autograd.Function,), made)


def twice(ctx: Any, x: Any, *others: Any) -> Any:
    return x * 2


def written(ctx: Any, x: Any, *others: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


def several_written(ctx: Any, *xs: Any) -> Any:
    ctx.mark_dirty(*xs)
    return tuple([x.mul_(i + 2) for i, x in enumerate(xs)])


def several_back(ctx: Any, *gs: Any) -> Any:
    return tuple([g * (i + 2) for i, g in enumerate(gs)])


def square(lib: Any, once: bool) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g

    wrapped = lib.autograd.function.once_differentiable(backward) if once else backward
    return function(lib, forward, wrapped, name="Square")
