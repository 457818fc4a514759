"""Names of PyTorch's compiled core that programs use in Python: switches of `__torch_function__`.

>>> with torch._C.DisableTorchFunctionSubclass():
...     torch.ones(1) + 1
tensor([2.])
"""

from importlib import import_module
from typing import Any

from rushlight.core.graph import TensorBase as TensorBase
from rushlight.dispatch_keys import DispatchKey as DispatchKey
from rushlight.dispatch_keys import DispatchKeySet as DispatchKeySet
from rushlight.dispatch_keys import _ExcludeDispatchKeyGuard as _ExcludeDispatchKeyGuard
from rushlight.ops.overriding import DisableTorchFunction as DisableTorchFunction
from rushlight.ops.overriding import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from rushlight.ops.overriding import disabled_torch_function as _disabled_torch_function_impl
from rushlight.ops.overriding import state as _overriding_state
from rushlight.random import Generator as Generator
from rushlight.size import Size as Size
from rushlight.tensor import TensorClass

_TensorBase, _TensorMeta = TensorBase, TensorClass

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "Generator", "Size", "TensorBase",
    "_disabled_torch_function_impl",
]  # fmt: skip
__dir__ = __all__.copy


def _log_api_usage_once(name: str) -> None:
    """PyTorch counts the use of its parts where it is told to; here nobody counts."""


# --- what libraries ask of PyTorch's insides ------------------------------------------------------
def _get_tracing_state() -> None:
    """Nothing is traced by `jit`."""


def _get_accelerator(check: bool | None = None) -> Any:
    """The GPU, if there is one; else the CPU."""
    from rushlight.arrays.device import cuda_count, device

    return device("cuda" if cuda_count() else "cpu")


def _get_default_device() -> str:
    """The kind of device that new tensors are on."""
    from rushlight.arrays.device import get_default_device

    return str(get_default_device())


def _get_privateuse1_backend_name() -> str:
    """The name of the device that a program may add: PyTorch's own name for it."""
    return "privateuseone"


def _is_torch_function_mode_enabled() -> bool:
    """Whether a `TorchFunctionMode` is active."""
    return bool(_overriding_state.modes)


def _is_torch_function_enabled() -> bool:
    """Whether `__torch_function__` of classes is called."""
    return not _overriding_state.subclasses_off and not _overriding_state.all_off


def _len_torch_function_stack() -> int:
    """How many modes are active."""
    return len(_overriding_state.modes)


def _len_torch_dispatch_stack() -> int:
    """There are no dispatch modes."""
    return 0


def _are_functorch_transforms_active() -> bool:
    """Whether the call is made inside `vmap`, `grad` or `jvp`."""
    from rushlight.core.transforms.stack import stack

    return any(level.kind != "dual" for level in list(stack.open))


def _is_alias_of(a: Any, b: Any) -> bool:
    """Whether two tensors share memory."""
    return bool(a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr())


def _get_cudnn_enabled() -> bool:
    """A flag of `backends.cudnn`."""
    return bool(import_module("rushlight.backends.cudnn").enabled)


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """What the arguments of `to` mean: device, dtype, non_blocking, memory_format."""
    more = {k: kwargs.pop(k) for k in ("non_blocking", "memory_format") if k in kwargs}
    dtype, where = import_module("rushlight.nn.modules.module").parse_to(args, kwargs)
    return where, dtype, bool(more.get("non_blocking", False)), more.get("memory_format")


class _Names:
    """Functions under the names that PyTorch's compiled core has for them: `_linalg.linalg_norm`.
    Traced graphs print these."""

    def __init__(self, home: str, prefix: str) -> None:
        self._home, self._prefix = home, prefix

    def __getattr__(self, name: str) -> Any:
        if name == "_parse_to":
            return _parse_to
        if not name.startswith(self._prefix) or name.startswith("__"):
            raise AttributeError(f"module 'torch._C.{self._home}' has no attribute {name!r}")
        return getattr(import_module(f"rushlight.{self._home}"), name.removeprefix(self._prefix))


_nn = _Names("nn.functional", "")
_linalg = _Names("linalg", "linalg_")
_special = _Names("special", "special_")
_fft = _Names("fft", "fft_")


def __getattr__(name: str) -> Any:
    # Switches of a compiler of graphs that rushlight has not; programs set them to make it quicker.
    if name.startswith(("_jit_set_", "_jit_override_")):
        return lambda *args: False
    if name in _STAND_INS:
        stand_in = import_module("rushlight.absent").stand_in
        return stand_in(f"torch._C.{name}", "rushlight has no compiled core and no dispatcher")
    raise AttributeError(f"module 'torch._C' has no attribute {name!r}")


# Classes that programs name in annotations, or ask `isinstance` for.
_STAND_INS = frozenset(
    """
    Argument Block FunctionSchema Graph Node ScriptModule TensorType Type Value
""".split()
)
