"""Switching recording on and off: `no_grad`, `enable_grad`, `set_grad_enabled`, `inference_mode`.

Each is a context manager and a decorator. The current mode belongs to the running thread or task;
see Note [Modes are per context] in `core.grad_mode`.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import ContextVar
from threading import get_ident
from typing import Any, ClassVar, Final, Self, TypeVar, cast, overload

from rushlight.core.engine.accumulate_grad import layout
from rushlight.core.grad_mode import (
    GradSwitch,
    Mode,
    ModeBlock,
    Undo,
    current,
    grad_asked,
    inference_enabled,
)

__all__ = [
    "enable_grad", "enforce_grad_layout_policy", "inference_mode", "no_grad", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip
__dir__ = __all__.copy

F = TypeVar("F", bound=Callable[..., Any])


class Decorator:
    """A context manager as decorator of functions, generators, coroutines, classes."""

    def clone(self) -> Self:
        """A fresh one with the same settings: each decorated call enters its own."""
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        raise NotImplementedError

    def __call__(self, fn: F) -> F:
        if inspect.isclass(fn):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You "
                "should only decorate functions or methods. To preserve the current behavior of "
                "class decoration, you can directly decorate the `__init__` method and nothing "
                "else.",
                FutureWarning,
                stacklevel=2,
            )
            setattr(fn, "__init__", self(fn.__init__))  # noqa: B010  # mypy: not a method here
            return fn
        if inspect.isgeneratorfunction(fn):
            return cast(F, self._wrap_generator(fn))
        if inspect.iscoroutinefunction(fn):
            return cast(F, self._wrap_coroutine(fn))
        if inspect.isasyncgenfunction(fn):
            return cast(F, self._wrap_async_generator(fn))

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return fn(*args, **kwargs)

        return cast(F, call)

    def _wrap_coroutine(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        async def call(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return await fn(*args, **kwargs)

        return call

    def _wrap_generator(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Enter the mode for each step of the generator, and leave it while it is suspended."""

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            steps = fn(*args, **kwargs)
            step = functools.partial(steps.send, None)
            while True:
                try:
                    with self.clone():
                        value = step()
                except StopIteration as stop:
                    return stop.value
                try:
                    received = yield value
                except GeneratorExit:
                    with self.clone():
                        steps.close()
                    raise
                except BaseException as trouble:
                    step = functools.partial(steps.throw, trouble)
                else:
                    step = functools.partial(steps.send, received)

        return call

    def _wrap_async_generator(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """The same for an asynchronous generator; while it awaits, the mode stays, in its task."""

        @functools.wraps(fn)
        async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            steps = fn(*args, **kwargs)
            step = functools.partial(steps.asend, None)
            while True:
                try:
                    with self.clone():
                        value = await step()
                except StopAsyncIteration:
                    return
                try:
                    received = yield value
                except GeneratorExit:
                    with self.clone():
                        await steps.aclose()
                    raise
                except BaseException as trouble:
                    step = functools.partial(steps.athrow, trouble)
                else:
                    step = functools.partial(steps.asend, received)

        return call


class Setting(Decorator):
    """A decorator with one argument, kept as `mode`."""

    mode: bool

    def clone(self) -> Self:
        make: Any = type(self)
        return cast(Self, make(self.mode))


class Recording(ModeBlock, Decorator):
    """Recording on or off, as `_on` says; without parentheses it decorates at once."""

    _on: ClassVar[bool]

    @overload
    def __new__(cls, orig_func: None = None) -> Self: ...

    @overload
    def __new__(cls, orig_func: F) -> F: ...  # type: ignore[misc]

    def __new__(cls, orig_func: Any = None) -> Any:
        return ModeBlock.__new__(cls) if orig_func is None else cls()(orig_func)

    def __init__(self, orig_func: Any = None) -> None:
        super().__init__(self._on, None)


class no_grad(Recording):
    """Record nothing: results do not require grad, whatever their inputs do.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    _on = False


class enable_grad(Recording):
    """Record again, inside `no_grad`.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     with torch.enable_grad():
    ...         y = x * 2
    >>> y.requires_grad
    True
    """

    _on = True


def _check_bool(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(
            f"{name}(): argument 'enabled' (position 1) must be bool, not {type(value).__name__}"
        )


class set_grad_enabled(GradSwitch, Setting):
    """Set recording on or off: at once as a function, for a block as a context manager.

    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.set_grad_enabled(False):
    ...     y = x * 2
    >>> y.requires_grad
    False
    """

    def __init__(self, mode: bool) -> None:
        _check_bool("set_grad_enabled", mode)
        self.mode = mode
        super().__init__(mode)

    def __call__(self, fn: F) -> F:
        self.take_back()
        return super().__call__(fn)

    def __str__(self) -> str:
        return f"{type(self).__module__}.{type(self).__qualname__}(mode={self.mode})"

    __repr__ = __str__


class inference_mode(ModeBlock, Setting):
    """Like `no_grad`, and further: results keep no record of views and versions at all.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.inference_mode():
    ...     y = x * 2
    >>> y.requires_grad, y.is_inference()
    (False, True)
    """

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...

    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return super().__new__(cls)
        return cls(True)(mode)  # `@inference_mode` without parentheses

    def __init__(self, mode: bool = True) -> None:
        # `inference_mode(False)` records, whatever is outside
        super().__init__(not mode, mode)
        self.mode = mode

    def fill(self, mode: Mode) -> Any:
        mode.threads = not self.mode


class set_multithreading_enabled(ModeBlock, Setting):
    """Whether backward passes may use several threads: at once, and until the block ends if it is
    used as a context manager.

    Passes of rushlight run in the thread that wants them, either way; the setting is kept for
    programs that ask for it back.

    >>> from rushlight.autograd import grad_mode
    >>> with grad_mode.set_multithreading_enabled(False):
    ...     grad_mode.is_multithreading_enabled()
    False
    >>> grad_mode.is_multithreading_enabled()
    True
    """

    def __init__(self, mode: bool) -> None:
        _check_bool("set_multithreading_enabled", mode)
        self.prev = is_multithreading_enabled()
        self.mode = mode
        super().__init__(None, None)
        _set_multithreading(mode)

    def fill(self, mode: Mode) -> Any:
        mode.closes = Undo(_set_multithreading, self.prev)


class enforce_grad_layout_policy(ModeBlock, Setting):
    """Whether the first gradient of a leaf must have the leaf's strides: at once, and until the
    block ends if it is used as a context manager. Without it, a gradient that is nobody else's is
    kept as it came, and a copy is saved.

    >>> p = torch.ones(2, 3).t().requires_grad_()
    >>> with torch.autograd.enforce_grad_layout_policy(False):
    ...     (p * torch.ones(3, 2)).sum().backward()
    >>> p.stride(), p.grad.stride()
    ((1, 3), (2, 1))
    """

    def __init__(self, enable: bool = True) -> None:
        _check_bool("enforce_grad_layout_policy", enable)
        self.prev = not getattr(layout, "relaxed", False)
        self.mode = enable
        super().__init__(None, None)
        layout.relaxed = not enable

    def __call__(self, fn: F) -> F:
        layout.relaxed = not self.prev
        return super().__call__(fn)

    def fill(self, mode: Mode) -> Any:
        mode.closes = Undo(setattr, layout, "relaxed", not self.prev)


# the thread it was set in, and the setting: a copied context does not carry it to another thread
_multithreading: Final[ContextVar[tuple[int, bool]]] = ContextVar("rushlight_multithreading")


def _inferring() -> Mode | None:
    """The innermost block of `inference_mode`, which has a setting of its own."""
    mode = current()
    while mode is not None and not (mode.alive and mode.threads is not None):
        mode = mode.outer
    return mode


def _set_multithreading(enabled: bool) -> None:
    mode = _inferring()
    if mode is not None:
        mode.threads = enabled
    else:
        _multithreading.set((get_ident(), enabled))


def is_multithreading_enabled() -> bool:
    """Whether backward passes may use several threads here; see `set_multithreading_enabled`."""
    mode = _inferring()
    if mode is not None:
        return bool(mode.threads)
    thread, enabled = _multithreading.get((0, True))
    return enabled or thread != get_ident()


def is_grad_enabled() -> bool:
    """Whether operations on tensors that require grad are recorded now."""
    return grad_asked()


def is_inference_mode_enabled() -> bool:
    """Whether this code runs inside `inference_mode`."""
    return inference_enabled()
