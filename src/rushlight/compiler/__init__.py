"""`torch.compiler`: rushlight runs Python as it is, so that compiling hands back what it was given.

>>> @torch.compile
... def f(x):
...     return x.sin() + 1
>>> f(torch.zeros(2))
tensor([1., 1.])
"""

from __future__ import annotations

import typing as _typing
from collections.abc import Callable
from typing import Any, NoReturn

from rushlight.compiler import config
from rushlight.missing import face as _face

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "config", "cudagraph_mark_step_begin",
    "disable", "get_default_backend", "is_compiling", "is_dynamo_compiling", "is_exporting",
    "list_backends", "load_cache_artifacts", "load_compiled_function", "nested_compile_region",
    "reset", "save_cache_artifacts", "set_default_backend", "set_enable_guard_collectives",
    "set_stance", "substitute_in_graph", "wrap_numpy",
]  # fmt: skip


def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = None,
    mode: str | None = None, options: dict[str, Any] | None = None, name: str | None = None,
    disable: bool = False, recompile_limit: int | None = None, isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:  # fmt: skip
    """compile(model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None)

    The function or module itself; without one, a decorator that hands it back.

    >>> net = torch.nn.Linear(2, 1)
    >>> torch.compile(net, mode="max-autotune") is net
    True
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if model is None:
        return lambda given: compile(given, mode=mode, options=options)
    if not callable(model):
        raise RuntimeError(f"torch.compile expected a callable, but got {type(model).__name__}")
    return model


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """disable(fn=None): the function itself; without one, a decorator.

    >>> torch.compiler.disable(abs) is abs
    True
    """
    return (lambda given: given) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """allow_in_graph(fn): the function itself."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """assume_constant_result(fn): the function itself."""
    return fn


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """nested_compile_region(fn=None): the function itself; without one, a decorator."""
    return (lambda given: given) if fn is None else fn


def wrap_numpy(fn: Any) -> Any:
    """wrap_numpy(fn): the function, with tensors turned into NumPy arrays and back.

    >>> torch.compiler.wrap_numpy(lambda a: a + 1)(torch.ones(2))
    tensor([2., 2.])
    """
    from rushlight.arrays.host import ARRAY
    from rushlight.ops.registry import functions
    from rushlight.tensor import Tensor
    from rushlight.trees import tree_map_only

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map_only(Tensor, lambda t: t.numpy(), (args, kwargs))
        return tree_map_only(ARRAY, functions["as_tensor"], fn(*args, **kwargs))

    return wrapped


def substitute_in_graph(
    original_fn: Any, *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[Any], Any]:
    """substitute_in_graph(original_fn): a decorator that hands its function back."""
    return lambda fn: fn


def reset() -> None:
    """reset(): there is nothing compiled to forget."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """list_backends() -> list of str: none compiles.

    >>> torch.compiler.list_backends()
    []
    """
    return []


_default: list[Any] = ["inductor"]


def set_default_backend(backend: Any) -> None:
    """set_default_backend(backend): remembered."""
    _default[0] = "inductor" if backend is None else backend


def get_default_backend() -> Any:
    """get_default_backend(): what was set, or PyTorch's."""
    return _default[0]


class set_stance:
    """set_stance(stance='default'): changes nothing; also a `with` block and a decorator.

    >>> with torch.compiler.set_stance("force_eager"):
    ...     pass
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False,
        force_backend: Any = None,
    ) -> None:  # fmt: skip
        self.stance = stance

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None

    def __call__(self, fn: Any) -> Any:
        return fn


def set_enable_guard_collectives(enabled: bool) -> bool:
    """set_enable_guard_collectives(enabled) -> bool: changes nothing; it was off."""
    return False


def cudagraph_mark_step_begin() -> None:
    """cudagraph_mark_step_begin(): there are no graphs of CUDA."""


def is_compiling() -> bool:
    """is_compiling() -> bool: never.

    >>> torch.compiler.is_compiling()
    False
    """
    return False


def is_dynamo_compiling() -> bool:
    """is_dynamo_compiling() -> bool: never."""
    return False


def is_exporting() -> bool:
    """is_exporting() -> bool: never."""
    return False


def save_cache_artifacts() -> None:
    """save_cache_artifacts() -> None: nothing is compiled, and nothing cached."""


def load_cache_artifacts(serialized_artifacts: bytes) -> None:
    """load_cache_artifacts(serialized_artifacts) -> None: it takes nothing from them."""


def load_compiled_function(file: Any, **options: Any) -> NoReturn:
    """load_compiled_function(file): raises: it was compiled for PyTorch."""
    raise RuntimeError("rushlight compiles nothing, and cannot load a function compiled by PyTorch")


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.compiler", globals())
