"""`autocast`: blocks in which products are computed in low precision, others in float32."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from rushlight import dtypes
from rushlight.amp.casting import (
    autocast_tensor,
    cache,
    install_casts,
    nesting,
    setting,
    uninstall_casts,
)
from rushlight.arrays.device import cuda_count
from rushlight.arrays.device import device as Device
from rushlight.core.graph import TensorBase
from rushlight.dtypes import type_name
from rushlight.ops.checks import unmatched

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]
__dir__ = __all__.copy

_LOW = (dtypes.bfloat16, dtypes.float16)


def is_autocast_available(device_type: str) -> bool:
    """is_autocast_available(device_type) -> bool

    Whether there is autocast for a kind of device.

    >>> torch.amp.is_autocast_available("cpu")
    True
    """
    return Device(device_type).type in ("cpu", "cuda")


class autocast:
    """autocast(device_type, dtype=None, enabled=True, cache_enabled=None)

    A block, or a decorator, in which matrix products and convolutions of float32 tensors are
    computed in `dtype` (bfloat16 or float16), and losses and the like in float32; see
    `rushlight.amp.lists`. `enabled=False` switches it off inside. Parameters that were cast are
    kept until the outermost block ends, unless `cache_enabled` says no.

    >>> net, x = torch.nn.Linear(2, 3), torch.ones(1, 2)
    >>> with torch.autocast("cpu"):
    ...     y = net(x)
    ...     loss = torch.nn.functional.mse_loss(y, torch.ones(1, 3))
    >>> y.dtype, loss.dtype, net.weight.dtype
    (torch.bfloat16, torch.float32, torch.float32)
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = Device(device_type).type
        if self.device not in ("cpu", "cuda"):
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{self.device}'"
            )
        now = setting.get()
        self.fast_dtype = now.dtype[self.device] if dtype is None else dtype
        self._cache_enabled = now.caches if cache_enabled is None else cache_enabled
        if enabled and self.device == "cuda" and cuda_count() == 0:
            warnings.warn(
                "CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=2
            )
            enabled = False
        if enabled and self.fast_dtype not in _LOW:
            kind = "CPU" if self.device == "cpu" else "CUDA"
            warnings.warn(
                f"In {kind} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{kind} Autocast only supports dtypes of torch.bfloat16, torch.float16 currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._entered: list[tuple[Any, Any]] = []

    def __enter__(self) -> autocast:
        now = setting.get().copy()
        now.enabled[self.device] = self._enabled
        now.dtype[self.device] = self.fast_dtype
        now.caches = self._cache_enabled
        if self._enabled:
            install_casts()
        self._entered.append((setting.set(now), nesting.set(nesting.get() + 1)))
        return self

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        before, depth = self._entered.pop()
        setting.reset(before)
        nesting.reset(depth)
        if nesting.get() == 0:
            cache.clear()
        if self._enabled:
            uninstall_casts()

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        return autocast_decorator(self, func)


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function that runs inside an autocast."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None
) -> Any:
    """custom_fwd(fwd=None, *, device_type, cast_inputs=None)

    For `forward` of a custom function: with `cast_inputs` its float inputs come in that dtype, and
    autocast is off inside; `custom_bwd` for `backward` then has the same setting.

    >>> class Double(torch.autograd.Function):
    ...     @staticmethod
    ...     @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    ...     def forward(ctx, x):
    ...         return 2 * x
    ...     @staticmethod
    ...     @torch.amp.custom_bwd(device_type="cpu")
    ...     def backward(ctx, g):
    ...         return 2 * g
    >>> with torch.autocast("cpu"):
    ...     Double.apply(torch.ones(1, dtype=torch.bfloat16)).dtype
    torch.float32
    """
    _check_device(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        ctx, now = args[0], setting.get()
        ctx._dtype = now.dtype[device_type]
        on = now.enabled[device_type]
        if cast_inputs is None or not on:
            ctx._fwd_used_autocast = on
            return fwd(*args, **kwargs)
        ctx._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(
                *[_cast(x, device_type, cast_inputs) for x in args],
                **{name: _cast(x, device_type, cast_inputs) for name, x in kwargs.items()},
            )

    return decorate_fwd


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """custom_bwd(bwd=None, *, device_type)

    For `backward` of a custom function whose `forward` has `custom_fwd`: runs with the autocast
    that was in force there.
    """
    _check_device(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """The eligible tensors in nested lists and dicts, in a dtype."""
    if isinstance(value, TensorBase):
        return autocast_tensor(value, dtype, device_type, False)
    if isinstance(value, dict):
        return {key: _cast(x, device_type, dtype) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(x, device_type, dtype) for x in value])
    return value


def _check_device(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


# --- settings by plain calls ----------------------------------------------------------------------
_HAVE = frozenset("cpu cuda xpu ipu hpu xla mps mtia maia privateuseone".split())


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """is_autocast_enabled(device_type=None) -> bool

    Whether autocast is on here; without a device, on the GPU.
    """
    if device_type is None:
        return setting.get().enabled["cuda"]
    kind = _with_autocast(_kind("is_autocast_enabled", device_type))
    return setting.get().enabled.get(kind, False)


def set_autocast_enabled(*args: Any, **named: Any) -> None:
    """set_autocast_enabled(device_type, enabled)

    Switch autocast on or off, until the next call; `autocast` does it for a block. Also
    set_autocast_enabled(enabled), of the GPU.
    """
    name = "set_autocast_enabled"
    if len(args) + len(named) not in (1, 2) or not named.keys() <= {"device_type", "enabled"}:
        forms = "\n * (str device_type, bool enabled)\n * (bool enabled)\n"
        raise unmatched(name, forms, args, named)
    left = [x for x in ("device_type", "enabled")[-len(args) - len(named) :] if x not in named]
    given = {**dict(zip(left, args)), **named}
    kind = _kind(name, given["device_type"]) if "device_type" in given else "cuda"
    on = given.get("enabled")
    if not isinstance(on, bool):
        raise _wrong(name, "enabled", len(given), "bool", on)
    now = setting.get().copy()
    if now.enabled.get(_with_autocast(kind), False) != on:
        (install_casts if on else uninstall_casts)()
    now.enabled[kind] = on
    setting.set(now)


def get_autocast_dtype(device_type: str) -> Any:
    """get_autocast_dtype(device_type) -> dtype

    >>> torch.get_autocast_dtype("cpu")
    torch.bfloat16
    """
    kind = _kind("get_autocast_dtype", device_type)
    found = setting.get().dtype.get(kind)
    if found is None:
        raise RuntimeError(f"unknown device type for autocast in get_autocast_dtype: {kind}")
    return found


def set_autocast_dtype(device_type: str, dtype: Any) -> None:
    """set_autocast_dtype(device_type, dtype)"""
    kind = _kind("set_autocast_dtype", device_type)
    if not isinstance(dtype, dtypes.dtype):
        raise _wrong("set_autocast_dtype", "dtype", 2, "torch.dtype", dtype)
    now = setting.get().copy()
    now.dtype[kind] = dtype
    setting.set(now)


def _kind(function: str, device_type: Any) -> str:
    """The kind of device that a string names."""
    if not isinstance(device_type, str):
        raise _wrong(function, "device_type", 1, "str", device_type)
    return Device(device_type).type


def _with_autocast(kind: str) -> str:
    """A kind of device for which PyTorch has autocast; rushlight computes on two of them."""
    if kind not in _HAVE:
        raise RuntimeError(
            "unknown device type for autocast in get_autocast_dispatch_key_from_device_type: "
            f"{kind}"
        )
    return kind


def _wrong(function: str, name: str, position: int, wanted: str, given: Any) -> TypeError:
    return TypeError(
        f"{function}(): argument '{name}' (position {position}) must be {wanted}, "
        f"not {type_name(given)}"
    )


def _checked(enabled: Any) -> bool:
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type_name(enabled)})")
    return enabled


def is_autocast_cache_enabled() -> bool:
    """Whether parameters that were cast are kept until the outermost block ends."""
    return setting.get().caches


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Switch that on or off."""
    now = setting.get().copy()
    now.caches = _checked(enabled)
    setting.set(now)


def clear_autocast_cache() -> None:
    """Forget the parameters that were cast."""
    cache.clear()


def autocast_increment_nesting() -> int:
    """One block deeper: gives how deep."""
    nesting.set(nesting.get() + 1)
    return nesting.get()


def autocast_decrement_nesting() -> int:
    """One block less deep: gives how deep."""
    nesting.set(nesting.get() - 1)
    return nesting.get()


def _old(device: str) -> tuple[Callable[..., Any], ...]:
    """The functions of one device, as they were once called."""
    return (
        lambda: is_autocast_enabled(device),
        lambda enabled: set_autocast_enabled(device, _checked(enabled)),
        lambda: get_autocast_dtype(device),
        lambda dtype: set_autocast_dtype(device, dtype),
    )


(
    is_autocast_cpu_enabled,
    set_autocast_cpu_enabled,
    get_autocast_cpu_dtype,
    set_autocast_cpu_dtype,
) = _old("cpu")
_, _, get_autocast_gpu_dtype, set_autocast_gpu_dtype = _old("cuda")
