"""`functional_call` under its older name."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight.func import modules

__all__ = ["functional_call"]
__dir__ = __all__.copy


def functional_call(
    module: Any, parameters_and_buffers: dict[str, Any], args: Any = None,
    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """`torch.func.functional_call`, which is to be used instead."""
    warnings.warn(
        "This API is deprecated as of PyTorch 2.0 and will be removed in a future version of "
        "PyTorch. Please use torch.func.functional_call instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return modules.functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _functional_call(
    module: Any, parameters_and_buffers: dict[str, Any], args: Any = None,
    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    return modules.functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _reparametrize_module(
    module: Any, parameters_and_buffers: dict[str, Any], tie_weights: bool = False,
    strict: bool = False, stack_weights: bool = False,
) -> Any:  # fmt: skip
    """Other values in the place of a module's parameters and buffers, while a block runs."""
    own = {**dict(module.named_parameters(remove_duplicate=False)),
           **dict(module.named_buffers(remove_duplicate=False))}  # fmt: skip
    values = parameters_and_buffers
    if tie_weights:
        values = modules.find_tied(own, values)
    if strict:
        modules.check_names(module, own, values)
    return modules.exchange(module, {k: t for k, t in values.items() if k in own})
