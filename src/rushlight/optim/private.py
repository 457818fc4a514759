"""What programs import from `torch.optim.optimizer` though it is PyTorch's own: optimisers that
began as copies of PyTorch's, mostly. `optimizer` imports this file when it is first asked."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from rushlight.core.grad_mode import inference_enabled, within
from rushlight.core.graph import TensorBase
from rushlight.optim.optimizer import _after_steps, _before_steps, required
from rushlight.optim.rules import as_real_pairs, scalar_dtype

__all__ = [
    "Args", "DeviceDict", "DeviceDtypeDict", "GlobalOptimizerPostHook", "GlobalOptimizerPreHook",
    "Indices", "Kwargs", "ParamsT", "StateDict", "TensorListList", "_RequiredParameter",
    "_capturable_doc", "_default_to_fused_or_foreach", "_device_dtype_check_for_fused",
    "_differentiable_doc", "_disable_dynamo_if_unsupported", "_foreach_doc", "_fused_doc",
    "_get_capturable_supported_devices", "_get_foreach_kernels_supported_devices",
    "_get_fused_kernels_supported_devices", "_get_scalar_dtype", "_get_value",
    "_global_optimizer_post_hooks", "_global_optimizer_pre_hooks", "_maximize_doc", "_params_doc",
    "_stack_if_compiling", "_to_scalar", "_use_grad_for_differentiable", "_view_as_real",
]  # fmt: skip

Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
DeviceDict: TypeAlias = dict[Any, Any]
DeviceDtypeDict: TypeAlias = dict[Any, Any]
Indices: TypeAlias = list[int]
TensorListList: TypeAlias = list[list[Any]]
GlobalOptimizerPreHook: TypeAlias = Callable[..., Any]
GlobalOptimizerPostHook: TypeAlias = Callable[..., Any]
ParamsT: TypeAlias = Iterable[Any]

_RequiredParameter = type(required)
_global_optimizer_pre_hooks = _before_steps
_global_optimizer_post_hooks = _after_steps

# Parts of docstrings.
_params_doc = "params (iterable): parameters, pairs of name and parameter, or dicts of groups"
_foreach_doc = "foreach (bool, optional): accepted, and changes nothing here"
_fused_doc = "fused (bool, optional): accepted, and changes nothing here"
_capturable_doc = "capturable (bool, optional): accepted, and changes nothing here"
_maximize_doc = "maximize (bool, optional): climb instead of descend (default: False)"
_differentiable_doc = "differentiable (bool, optional): record the step itself (default: False)"


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` that records only if the optimiser is `differentiable`."""

    @functools.wraps(func)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with within(bool(self.defaults["differentiable"]), inference_enabled()):
            return func(self, *args, **kwargs)

    return call


def _get_value(x: Any) -> Any:
    """A tensor of one element as a number."""
    return x.item() if isinstance(x, TensorBase) else x  # type: ignore[attr-defined]


def _stack_if_compiling(x: Any) -> Any:
    return x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without dimensions."""
    if isinstance(x, TensorBase) and x._array.ndim != 0:
        return x.squeeze()  # type: ignore[attr-defined]
    return x


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    return scalar_dtype()


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Put pairs of real numbers in the place of complex tensors, in all lists."""
    for i, param in enumerate(params):
        if param.is_complex():
            params[i] = as_real_pairs(param)
            for column in state_and_grads:
                column[i] = as_real_pairs(column[i])


def _default_to_fused_or_foreach(
    params: list[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Whether to use the fused and the foreach implementation: neither on a CPU."""
    return False, False


def _device_dtype_check_for_fused(p: Any, cuda_unsupported: bool = False) -> None:
    if not p.is_floating_point():
        raise RuntimeError("`fused=True` requires all the params to be floating point Tensors")


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    """A decorator that changes nothing: nothing is compiled here."""
    return lambda func: func


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cuda"]


def _get_foreach_kernels_supported_devices() -> list[str]:
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["cpu", "cuda"]


def group_tensors(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], tuple[list[list[Any]], list[int]]]:
    """Lists of tensors, cut into those of one device and dtype of the first list."""
    places: defaultdict[tuple[Any, Any], list[int]] = defaultdict(list)
    for i, t in enumerate(tensorlistlist[0]):
        places[t.device, t.dtype].append(i)
    return {
        key: ([[column[i] for i in at] if column else [] for column in tensorlistlist], at)
        for key, at in places.items()
    }
