"""`torch._jit_internal`: marks for PyTorch's script compiler."""

from __future__ import annotations

import typing as _typing
from importlib import import_module as _import_module
from typing import Any

from rushlight import jit as _jit

__all__: list[str] = []
__dir__ = __all__.copy

for (
    _name
) in "Future _overload _overload_method export ignore is_scripting is_tracing unused".split():
    globals()[_name] = getattr(_jit, _name)
_annotations = _import_module("rushlight.jit.annotations")
for _name in "BroadcastingList1 BroadcastingList2 BroadcastingList3".split():
    globals()[_name] = getattr(_annotations, _name)
Final = _typing.Final


def _copy_to_script_wrapper(fn: Any) -> Any:
    return fn


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any,
    module_name: str, func_name: str,
) -> Any:  # fmt: skip
    """A function that calls one of two, as a boolean argument says."""

    def chosen(*args: Any, **kwargs: Any) -> Any:
        said = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if said else if_false)(*args, **kwargs)

    return chosen


def _is_tensor_annotation(found: Any) -> bool:
    from rushlight.tensor import Tensor

    return found is Tensor
