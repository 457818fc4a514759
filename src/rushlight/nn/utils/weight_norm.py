"""`weight_norm` by a hook: the older form of `parametrizations.weight_norm`."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import Parameter
from rushlight.ops.registry import functions

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]
__dir__ = __all__.copy


class WeightNorm:
    """WeightNorm(name, dim): the hook that computes a weight from its length and direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Any:
        """The weight, from `name_g` and `name_v`."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return functions["_weight_norm"](v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Put the hook on a module."""
        warnings.warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of "
            "`torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
            stacklevel=3,
        )
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two weight_norm hooks on the same parameter {name}"
                )
        made = WeightNorm(name, dim)
        weight = getattr(module, name)
        del module._parameters[name]
        g = functions["norm_except_dim"](weight, 2, made.dim)
        module.register_parameter(name + "_g", Parameter(g.data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Module) -> None:
        """Make the weight an ordinary parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int = 0) -> Any:
    """Let a weight be lengths (`weight_g`) times directions (`weight_v`), computed before each
    call.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     m = torch.nn.utils.weight_norm(torch.nn.Linear(20, 40))
    >>> m.weight_g.shape
    torch.Size([40, 1])
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Take `weight_norm` from a module.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     m = torch.nn.utils.weight_norm(torch.nn.Linear(20, 40))
    >>> torch.nn.utils.remove_weight_norm(m)
    Linear(in_features=20, out_features=40, bias=True)
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
