"""Calling several modules, each with an input of its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from rushlight.autograd.grad_mode import is_grad_enabled, set_grad_enabled

__all__ = ["get_a_var", "parallel_apply"]
__dir__ = __all__.copy


def get_a_var(obj: Any) -> Any:
    """A tensor out of nested lists, tuples and dictionaries; None if there is none."""
    from rushlight.core.graph import TensorBase

    if isinstance(obj, TensorBase):
        return obj
    parts = obj.items() if isinstance(obj, dict) else obj if isinstance(obj, (list, tuple)) else ()
    for part in parts:
        if (found := get_a_var(part)) is not None:
            return found
    return None


def parallel_apply(
    modules: Sequence[Any], inputs: Sequence[Any], kwargs_tup: Sequence[Any] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:  # fmt: skip
    """Call each module with its input, in threads.

    >>> modules = [torch.nn.ReLU(), torch.nn.Tanh()]
    >>> torch.nn.parallel.parallel_apply(modules, [torch.ones(1), torch.zeros(1)])
    [tensor([1.]), tensor([0.])]
    """
    if len(modules) != len(inputs):
        raise AssertionError(
            f"The number of modules {len(modules)} is not equal to the number of inputs "
            f"{len(inputs)}"
        )
    kwargs = [{}] * len(modules) if kwargs_tup is None else list(kwargs_tup)
    if len(kwargs) != len(modules):
        raise AssertionError("the number of kwargs is not equal to the number of modules")
    recording = is_grad_enabled()
    results: dict[int, Any] = {}
    errors: dict[int, Exception] = {}

    def work(i: int) -> None:
        given = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
        try:
            with set_grad_enabled(recording):
                results[i] = modules[i](*given, **kwargs[i])
        except Exception as error:  # raised again below, in the caller's thread
            errors[i] = error

    if len(modules) == 1:
        work(0)
    else:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for i in sorted(errors):
        error = errors[i]
        error.add_note(f"raised in replica {i}")
        raise error
    return [results[i] for i in range(len(modules))]
