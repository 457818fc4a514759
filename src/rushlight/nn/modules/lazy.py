"""Modules that find the sizes of their parameters when they are first called: what they share.

The modules themselves stand in `lazy_layers`.
"""

from __future__ import annotations

import itertools
from typing import Any

from rushlight.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]
__dir__ = __all__.copy


class LazyModuleMixin:
    """LazyModuleMixin(*args, **kwargs): for modules whose parameters are
    `UninitializedParameter`s until `initialize_parameters`, called with the first input, gives them
    shapes. Then the module becomes one of the class `cls_to_become`, if that is given.

    >>> class Scaled(torch.nn.modules.lazy.LazyModuleMixin, torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.scale = torch.nn.UninitializedParameter()
    ...     def initialize_parameters(self, x):
    ...         self.scale.materialize(x.shape[-1:])
    ...         torch.nn.init.ones_(self.scale)
    ...     def forward(self, x):
    ...         return x * self.scale
    >>> Scaled()(torch.ones(2)).detach()
    tensor([1., 1.])
    """

    cls_to_become: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        me: Any = self
        me._load_hook = me._register_load_state_dict_pre_hook(self._lazy_load_hook)
        me._initialize_hook = me.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Values without a shape are saved as such."""
        for name, value in self._own_state():  # type: ignore[attr-defined]
            kept = is_lazy(value) or keep_vars
            destination[prefix + name] = value if kept else value.detach()

    def _lazy_load_hook(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any,
        unexpected_keys: Any, error_msgs: Any,
    ) -> None:  # fmt: skip
        """Give parameters the shapes of the values that are about to be loaded."""
        me: Any = self
        for name, param in itertools.chain(me._parameters.items(), me._buffers.items()):
            key = prefix + name
            if key in state_dict and param is not None and is_lazy(param):
                given = state_dict[key]
                if not is_lazy(given):
                    param.materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters shapes, from the first input."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        me: Any = self
        parts = itertools.chain(me._parameters.values(), me._buffers.values())
        return any(is_lazy(x) for x in parts)

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        """The hook before the first call."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(
                f"module {self._get_name()} has not been fully initialized"  # type: ignore[attr-defined]
            )
        module._initialize_hook.remove()
        module._load_hook.remove()
        delattr(module, "_initialize_hook")
        delattr(module, "_load_hook")
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy "
            "forward pass to correctly initialize the modules"
        )
