"""`torch.overrides`: what classes with a `__torch_function__` are helped by.

>>> class Counted(torch.Tensor):
...     calls = 0
...     @classmethod
...     def __torch_function__(cls, func, types, args=(), kwargs=None):
...         cls.calls += 1
...         return super().__torch_function__(func, types, args, kwargs)
>>> x = Counted([1., 2.])
>>> (x * 2).sum(), Counted.calls
(Counted(6.), 2)
"""

from __future__ import annotations

import functools
import typing as _typing
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager as _contextmanager
from importlib import import_module as _import_module
from typing import Any

from rushlight.missing import face as _face
from rushlight.ops import fill_rest as _fill_rest
from rushlight.ops import overriding as _overriding
from rushlight.ops.registry import functions as _functions
from rushlight.ops.registry import methods as _methods
from rushlight.ops.registry import namespaces as _namespaces
from rushlight.tensor import Tensor as _Tensor

__all__ = [
    "enable_reentrant_dispatch",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "wrap_torch_function",
]  # fmt: skip
_UNLISTED = [
    "TorchFunctionMode", "BaseTorchFunctionMode", "get_default_nowrap_functions",
    "has_torch_function_unary", "has_torch_function_variadic",
]  # fmt: skip


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments has a `__torch_function__` to be called, or a mode is active.

    >>> torch.overrides.has_torch_function((torch.ones(1),))
    False
    """
    state = _overriding.state
    if state.all_off:
        return False
    if state.modes:
        return True
    return not state.subclasses_off and any(map(_overriding.overrides, relevant_args))


def has_torch_function_unary(x: Any) -> bool:
    """`has_torch_function` of one argument."""
    return has_torch_function((x,))


def has_torch_function_variadic(*xs: Any) -> bool:
    """`has_torch_function` of several arguments."""
    return has_torch_function(xs)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Let the relevant arguments' `__torch_function__` answer for a function of your own."""
    return _overriding.handle(public_api, _overriding.overloaded(relevant_args), args, kwargs)


def wrap_torch_function(
    dispatcher: Callable[..., Iterable[Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function of your own one that can be taken over. `dispatcher` gets its arguments, and
    gives those that are looked at.

    >>> @torch.overrides.wrap_torch_function(lambda a: (a,))
    ... def twice(a):
    ...     return a + a
    >>> twice(torch.tensor(1.))
    tensor(2.)
    """

    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return fn(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether something is a tensor, or has a `__torch_function__`."""
    return isinstance(inp, _Tensor) or hasattr(inp, "__torch_function__")


def resolve_name(f: Any) -> str | None:
    """The name by which a function is known.

    >>> torch.overrides.resolve_name(torch.add)
    'torch.add'
    """
    return _overriding.public_name(f)


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """The functions whose results keep their class: those that read `.grad` and `._base`."""
    return _overriding.nowrap()


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """The functions that a `__torch_function__` sees, by the module or class they are in."""
    _fill_rest()
    found: dict[Any, list[Callable[..., Any]]] = {
        _import_module("rushlight"): list(_functions.values()),
        _Tensor: [x for x in _methods.values() if callable(x)],
    }
    for space, table in _namespaces.items():
        found[_import_module(f"rushlight.{space}")] = list(table.values())
    return found


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions that no `__torch_function__` sees: they take no tensors."""
    names = "arange empty eye full linspace logspace ones rand randint randn randperm zeros tensor"
    return {_functions[name] for name in names.split() if name in _functions}


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each overridable function one of the same signature that returns -1."""
    import inspect

    def stand_in(fn: Callable[..., Any]) -> Callable[..., Any]:
        def answer(*args: Any, **kwargs: Any) -> int:
            inspect.signature(fn).bind(*args, **kwargs)
            return -1

        return answer

    return {fn: stand_in(fn) for fns in get_overridable_functions().values() for fn in fns}


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function that a `__torch_function__` got is a method of Tensor, or a property's."""
    return func in _methods.values() or getattr(func, "__name__", "") in ("__get__", "__set__")


@_contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Inside a `__torch_function__`, let functions be taken over again."""
    state = _overriding.state
    before = state.subclasses_off, state.all_off
    state.subclasses_off = state.all_off = 0
    try:
        yield
    finally:
        state.subclasses_off, state.all_off = before


def redispatch_function(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function as if from outside: its arguments may take it over again."""
    with enable_reentrant_dispatch():
        return func(*args, **kwargs)


class TorchFunctionMode:
    """A `__torch_function__` for all calls in a block, whatever their arguments.

    >>> class Names(torch.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    >>> with Names():
    ...     x = torch.ones(2) * 3
    ones
    mul
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> _typing.Self:
        _overriding.push_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _overriding.pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """A mode made from these arguments, to be entered."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.overrides", globals(), unlisted=_UNLISTED)
