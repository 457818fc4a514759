"""`torch.jit`: rushlight runs Python as it is, so that compiling hands back what it was given.

`script`, `trace` and their kin return the function or module itself, which works. Compiled programs
can be neither saved nor loaded: those calls say so.

>>> @torch.jit.script
... def double(x):
...     return 2 * x
>>> double(torch.ones(2))
tensor([2., 2.])
"""

from __future__ import annotations

import builtins
import typing as _typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module as _import_module
from types import UnionType
from typing import Any, Final, NoReturn

from rushlight.futures import Future
from rushlight.missing import face as _face
from rushlight.nn.modules.module import Module

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Future", "ScriptFunction", "ScriptModule", "annotate",
    "enable_onednn_fusion", "export", "export_opnames", "fork", "freeze", "ignore", "interface",
    "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference", "save", "script",
    "script_if_tracing", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused",
    "wait",
]  # fmt: skip
_MORE = [
    "RecursiveScriptModule", "ScriptWarning", "TopLevelTracedModule", "TracedModule",
    "TracerWarning", "is_scripting", "is_tracing", "last_executed_optimized_graph",
    "optimized_execution", "script_method",
]  # fmt: skip


class Error(RuntimeError):
    """What compiled programs raise; rushlight has none."""


class ScriptWarning(Warning):
    """PyTorch's warning about scripts; rushlight never gives it."""


class TracerWarning(Warning):
    """PyTorch's warning about traces; rushlight never gives it. Programs filter it."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """There is nothing to ignore."""


class ScriptModule(Module):
    """A module whose methods PyTorch would compile: here a `Module`."""


class RecursiveScriptModule(ScriptModule):
    """What PyTorch makes of a module by `script`. Nothing is one here."""


class TracedModule(ScriptModule):
    """What PyTorch makes of a module by `trace`. Nothing is one here."""


class TopLevelTracedModule(TracedModule):
    """Likewise."""


class ScriptFunction:
    """What PyTorch makes of a function by `script`. Nothing is one here."""


class CompilationUnit:
    """CompilationUnit(source): the functions of a text in Python.

    >>> unit = torch.jit.CompilationUnit("def f(x): return x + 1")
    >>> unit.f(1)
    2
    """

    def __init__(self, lang: str | None = None, _frames_up: int = 0) -> None:
        if lang is not None:
            self.define(lang)

    def define(self, lang: str, rcb: Any = None, _frames_up: int = 0) -> None:
        """Add the functions of another text."""
        import ast
        import importlib

        if not isinstance(lang, str):
            raise TypeError(f"the source of functions is a str, not {type(lang).__name__}")
        try:
            found = ast.parse(lang).body
        except SyntaxError as error:
            raise RuntimeError(f"expected functions in Python: {error}") from None
        for statement in found:
            if not isinstance(statement, ast.FunctionDef):
                line = lang.splitlines()[statement.lineno - 1]
                raise RuntimeError(f"expected def but found {line.strip()!r} here:\n{line}")
        space: dict[str, Any] = {"torch": importlib.import_module("rushlight")}
        exec(lang, space)
        vars(self).update({k: x for k, x in space.items() if callable(x) and k != "torch"})


class Attribute(_typing.NamedTuple):
    """Attribute(value, type): a value of a module, and the type it is declared to have."""

    value: Any
    type: Any


# --- what hands back its argument -----------------------------------------------------------------
def script(
    obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:  # fmt: skip
    """script(obj): the function, class or module itself.

    >>> torch.jit.script(torch.nn.ReLU())(torch.tensor([-1., 1.]))
    tensor([0., 1.])
    """
    return obj


def trace(
    func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True,
    check_inputs: Any = None, check_tolerance: float = 1e-5, strict: bool = True,
    _force_outplace: bool = False, _module_class: Any = None, _compilation_unit: Any = None,
    example_kwarg_inputs: Any = None, _store_inputs: bool = True,
) -> Any:  # fmt: skip
    """trace(func, example_inputs=None): the function or module itself, after one call with the
    example: what is wrong with it shows here, as with PyTorch.

    >>> torch.jit.trace(lambda x: x + 1, torch.zeros(1))(torch.ones(2))
    tensor([2., 2.])
    """
    if example_kwarg_inputs is not None:
        func(**example_kwarg_inputs)
    elif example_inputs is not None:
        several = builtins.isinstance(example_inputs, tuple | list)
        func(*(example_inputs if several else (example_inputs,)))
    return func


def trace_module(mod: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """trace_module(mod, inputs): the module itself, after one call of each method named."""
    for name, given in inputs.items():
        trace(getattr(mod, name), given)
    return mod


def script_method(fn: Any) -> Any:
    """script_method(fn): the method itself."""
    return fn


def script_if_tracing(fn: Any) -> Any:
    """script_if_tracing(fn): the function itself."""
    return fn


def export(fn: Any) -> Any:
    """export(fn): the method itself."""
    return fn


def unused(fn: Any) -> Any:
    """unused(fn): the method itself."""
    return fn


def interface(obj: Any) -> Any:
    """interface(obj): the class itself."""
    return obj


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """ignore(drop=False): a decorator that hands back the function; so is `@torch.jit.ignore`.

    >>> @torch.jit.ignore
    ... def f(x): return x
    >>> f(3)
    3
    """
    return drop if callable(drop) else lambda fn: fn


def freeze(
    mod: Any, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True
) -> Any:
    """freeze(mod): the module itself."""
    return mod


def optimize_for_inference(mod: Any, other_methods: list[str] | None = None) -> Any:
    """optimize_for_inference(mod): the module itself."""
    return mod


def annotate(the_type: Any, the_value: Any) -> Any:
    """annotate(the_type, the_value): the value.

    >>> torch.jit.annotate(list[int], [])
    []
    """
    return the_value


_script_if_tracing = script_if_tracing


def _overload(func: Any) -> Any:
    return func


def _overload_method(func: Any) -> Any:
    return func


def _unwrap_optional(x: Any) -> Any:
    if x is None:
        raise AssertionError("Unwrapping null optional")
    return x


def isinstance(obj: Any, target_type: Any) -> bool:
    """isinstance(obj, target_type) -> bool: for containers too, `list[int]` and their kin.

    >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance(["a"], list[int])
    (True, False)
    """
    if builtins.isinstance(target_type, tuple):
        return any(isinstance(obj, one) for one in target_type)
    origin = _typing.get_origin(target_type)
    if origin is None:
        return obj is None if target_type is None else builtins.isinstance(obj, target_type)
    inner = _typing.get_args(target_type)
    if origin in (_typing.Union, UnionType):
        return any(isinstance(obj, one) for one in inner)
    return builtins.isinstance(obj, origin) and _holds(obj, origin, inner)


def _holds(held: Any, origin: type, inner: tuple[Any, ...]) -> bool:
    """Whether what a container holds is of the types that stand in brackets."""
    if origin is dict:
        return all(isinstance(k, inner[0]) and isinstance(x, inner[1]) for k, x in held.items())
    if origin is tuple:
        return len(held) == len(inner) and all(map(isinstance, held, inner))
    return all(isinstance(x, inner[0]) for x in held)


# --- calls that run at once -----------------------------------------------------------------------
def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """fork(func, *args, **kwargs) -> Future: of a call that is made at once.

    >>> torch.jit.wait(torch.jit.fork(torch.add, torch.ones(1), 1))
    tensor([2.])
    """
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """wait(future): the result of `fork`."""
    return future.wait()


_fork, _wait = fork, wait


# --- what is going on -----------------------------------------------------------------------------
def is_scripting() -> bool:
    """is_scripting() -> bool: never."""
    return False


def is_tracing() -> bool:
    """is_tracing() -> bool: never."""
    return False


def onednn_fusion_enabled() -> bool:
    """onednn_fusion_enabled() -> bool: never."""
    return False


def enable_onednn_fusion(enabled: bool) -> None:
    """enable_onednn_fusion(enabled): changes nothing."""


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """set_fusion_strategy(strategy): changes nothing."""
    return strategy


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """optimized_execution(should_optimize): a `with` block that changes nothing."""
    yield


@contextmanager
def strict_fusion() -> Iterator[None]:
    """strict_fusion(): a `with` block that changes nothing."""
    yield


# --- what cannot work -----------------------------------------------------------------------------
_NO_PROGRAM: Final = (
    "rushlight compiles nothing, so that there is no TorchScript program to {}; use torch.{} with "
    "the state_dict of the module."
)


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """save(m, f): raises: there is no compiled program. Save `m.state_dict()`."""
    raise RuntimeError(_NO_PROGRAM.format("save", "save"))


def load(
    f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False
) -> NoReturn:
    """load(f): raises: a TorchScript archive holds a program in a language of its own."""
    raise RuntimeError(_NO_PROGRAM.format("load", "load"))


def export_opnames(m: Any) -> NoReturn:
    """export_opnames(m): raises: there is no compiled program."""
    raise RuntimeError(_NO_PROGRAM.format("list the operators of", "save"))


def last_executed_optimized_graph() -> NoReturn:
    """last_executed_optimized_graph(): raises: there is no compiled program."""
    raise RuntimeError(_NO_PROGRAM.format("show", "save"))


# The module takes the place of the name that `from __future__ import annotations` left.
_import_module("rushlight.jit.annotations")

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.jit", globals(), unlisted=_MORE)
