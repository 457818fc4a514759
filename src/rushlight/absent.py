"""Functions of devices that rushlight does not compute on: they say so when they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def lacking(
    name: str, message: str, kind: type[Exception] = RuntimeError
) -> Callable[..., NoReturn]:
    """A function called `name` that raises `kind(message)`."""

    def call(*args: Any, **kwargs: Any) -> NoReturn:
        raise kind(message)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{name}(...): raises {kind.__name__}: there is no such device."
    return call
