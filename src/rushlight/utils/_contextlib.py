"""`torch.utils._contextlib`: blocks that are decorators too."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Self

__all__: list[str] = []
__dir__ = __all__.copy


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """The function, each call inside a block: `ctx` is the block, or makes one."""
    new = ctx if callable(ctx) else (lambda: ctx)
    if inspect.isgeneratorfunction(func):
        return _around_steps(new, func)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with new():
            return func(*args, **kwargs)

    return wrapped


def _around_steps(new: Callable[[], Any], func: Callable[..., Any]) -> Callable[..., Any]:
    """Each step of a generator inside a block of its own, and what stands between them outside."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        steps = func(*args, **kwargs)
        try:
            with new():
                value = next(steps)
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    with new():
                        steps.close()
                    raise
                except BaseException as error:
                    with new():
                        value = steps.throw(error)
                else:
                    with new():
                        value = steps.send(sent)
        except StopIteration as end:
            return end.value

    return wrapped


class _DecoratorContextManager:
    """A block that is a decorator too: each call of the function enters a copy of it."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        return context_decorator(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Self:
        """Another one of the kind, made without arguments."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without arguments: `@block` is enough."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)
