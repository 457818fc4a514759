"""The table of ops and of the public functions made from them.

    @op            registers an op class under its name
    @public        a function that returns `(op, inputs)`: becomes `rushlight.f`, `Tensor.f`, and,
                   if asked, `f_` (in place) and `f(..., out=...)`
    @function      a function made of other functions: becomes `rushlight.f` and `Tensor.f`
    @implements      says which op answers to a word of the vocabulary when rules run on tensors

What is exported takes whatever users pass as numbers (`ops.numbers`) and tells of arguments of the
wrong type (`ops.mistakes`). `rushlight/__init__.py` and `tensor.py` export what stands here;
nothing lists ops a second time.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Final, TypeVar

from rushlight.arrays.kinds import Kind, register
from rushlight.core.graph import Op, TensorBase
from rushlight.ops.apply import run, run_inplace, run_out
from rushlight.ops.mistakes import BLAMED, blame
from rushlight.ops.numbers import numbers_of

__all__ = [
    "function",
    "functions",
    "implements",
    "methods",
    "namespaces",
    "op",
    "public",
    "signature_of",
    "table",
    "tensor_impls",
]  # fmt: skip

C = TypeVar("C", bound=type[Op])
F = TypeVar("F", bound=Callable[..., Any])

table: Final[dict[str, type[Op]]] = {}
functions: Final[dict[str, Callable[..., Any]]] = {}
methods: Final[dict[str, Callable[..., Any]]] = {}
namespaces: Final[dict[str, dict[str, Callable[..., Any]]]] = {
    "nn.functional": {}, "special": {}, "linalg": {},
}  # fmt: skip
# which parameters are numbers is read at the first call: for all functions it takes 2 ms
UNREAD: Final = object()
takes_out: Final[set[Callable[..., Any]]] = set()
tensor_impls: Final[dict[str, Callable[..., Any]]] = {}


def op(cls: C) -> C:
    """Register an op class in the table."""
    if cls.name in table:
        raise ValueError(f"two ops are called {cls.name!r}")
    table[cls.name] = cls
    return cls


def _export(
    fn: Callable[..., Any], names: tuple[str, ...], method: bool, free: bool, namespace: str
) -> None:
    for name in names:
        if free:
            functions[name] = fn
        if method:
            methods[name] = fn
        if namespace:
            namespaces[namespace][name] = fn


def function(
    *, name: str = "", aliases: tuple[str, ...] = (), method: bool = True, free: bool = True,
    namespace: str = "", bare: bool = False,
) -> Callable[[F], F]:  # fmt: skip
    """Export a function that is made of other functions.

    With `bare` it is exported as it is, which saves a call (180 ns): for hot functions that take no
    numbers and look at their arguments themselves.

    It is handed back as it was, for others to be made of: those pass it what they have settled.
    """

    def register_it(fn: F) -> F:
        title = name or fn.__name__
        if bare:
            _export(fn, (title, *aliases), method, free, namespace)
            return fn
        taking: Any = UNREAD
        first = -1

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal taking, first
            try:
                if taking is not None and (kwargs or len(args) > first):
                    if taking is UNREAD:
                        taking, first = numbers_of(fn, title)
                    if taking is not None:
                        args, kwargs = taking.settle(args, kwargs)
                return fn(*args, **kwargs)
            except BLAMED as error:
                if (better := blame(title, fn, args, kwargs, error)) is not None:
                    raise better from None
                raise

        _export(call, (title, *aliases), method, free, namespace)
        return fn

    return register_it


def public(
    *, name: str = "", aliases: tuple[str, ...] = (), method: bool = True, free: bool = True,
    inplace: bool = False, out: bool = True, namespace: str = "",
) -> Callable[[Callable[..., tuple[Any, tuple[Any, ...]]]], Callable[..., Any]]:  # fmt: skip
    """Export a function that says which op to apply to which inputs.

    It becomes the function itself, with `out=` if `out`, and `name_` in place if `inplace`
    (the first input is then the one that is written).
    """

    def register_it(fn: Callable[..., tuple[Any, tuple[Any, ...]]]) -> Callable[..., Any]:
        title = name or fn.__name__
        taking: Any = UNREAD
        first = -1
        if out:

            @functools.wraps(fn)
            def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
                nonlocal taking, first
                try:
                    if taking is not None and (kwargs or len(args) > first):
                        if taking is UNREAD:
                            taking, first = numbers_of(fn, title)
                        if taking is not None:
                            args, kwargs = taking.settle(args, kwargs)
                    what, xs = fn(*args, **kwargs)
                    return run(what, xs) if out is None else run_out(title, what, xs, out)
                except BLAMED as error:
                    if (better := blame(title, fn, args, kwargs, error)) is not None:
                        raise better from None
                    raise

            takes_out.add(call)
        else:

            @functools.wraps(fn)
            def call(*args: Any, **kwargs: Any) -> Any:
                nonlocal taking, first
                try:
                    if taking is not None and (kwargs or len(args) > first):
                        if taking is UNREAD:
                            taking, first = numbers_of(fn, title)
                        if taking is not None:
                            args, kwargs = taking.settle(args, kwargs)
                    what, xs = fn(*args, **kwargs)
                    return run(what, xs)
                except BLAMED as error:
                    if (better := blame(title, fn, args, kwargs, error)) is not None:
                        raise better from None
                    raise

        call.__annotations__ = {**fn.__annotations__, "return": "Tensor"}
        _export(call, (title, *aliases), method, free, namespace)
        if inplace:

            @functools.wraps(fn)
            def write(*args: Any, **kwargs: Any) -> Any:
                nonlocal taking, first
                try:
                    if taking is not None and (kwargs or len(args) > first):
                        if taking is UNREAD:
                            taking, first = numbers_of(fn, title)
                        if taking is not None:
                            args, kwargs = taking.settle(args, kwargs)
                    what, xs = fn(*args, **kwargs)
                    return run_inplace(what, xs)
                except BLAMED as error:
                    if (better := blame(title, fn, args, kwargs, error)) is not None:
                        raise better from None
                    raise

            write.__name__ = title + "_"
            write.__qualname__ = title + "_"
            write.__doc__ = f"{title}_(...) -> Tensor\n\nIn-place version of `{title}`."
            write.__annotations__ = {**fn.__annotations__, "return": "Tensor"}
            _export(write, tuple(n + "_" for n in (title, *aliases)), method, free, "")
        return call

    return register_it


def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    """A public function's signature, with the `out=` that `public` gave it; see `described`."""
    return inspect.signature(fn)


def implements(*names: str) -> Callable[[F], F]:
    """Let a function on tensors answer to words (or ufuncs) of the vocabulary."""

    def register_it(fn: F) -> F:
        for n in names:
            tensor_impls[n] = fn
        return fn

    return register_it


def _answer(name: str, fn: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    answer = tensor_impls.get(name)
    if answer is None:
        raise NotImplementedError(f"no op answers to the word {name!r} on tensors")
    return answer(*args)


register(TensorBase, Kind(10, _answer))
