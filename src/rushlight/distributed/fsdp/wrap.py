"""Which modules within a module are sharded on their own: policies of
`FullyShardedDataParallel(auto_wrap_policy=...)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = [
    "ModuleWrapPolicy", "always_wrap_policy", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy",
]  # fmt: skip
__dir__ = __all__.copy


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Every module."""
    return True


def lambda_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Any], bool]
) -> bool:
    """The modules of which a function says so."""
    return recurse or bool(lambda_fn(module))


def transformer_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type]
) -> bool:
    """The modules of some classes.

    >>> from rushlight.distributed.fsdp.wrap import transformer_auto_wrap_policy
    >>> transformer_auto_wrap_policy(torch.nn.Linear(1, 1), False, 0, {torch.nn.Linear})
    True
    """
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, min_num_params: int = int(1e8),
    force_leaf_modules: set[type] | None = None, exclude_wrap_modules: set[type] | None = None,
) -> bool:  # fmt: skip
    """The modules that have many parameters outside of modules that are sharded already."""
    from rushlight import nn

    leaves = tuple(force_leaf_modules or {nn.MultiheadAttention})
    excluded = tuple(exclude_wrap_modules or {nn.ModuleList, nn.ModuleDict})
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, leaves)
    return large and not isinstance(module, excluded)


class ModuleWrapPolicy:
    """ModuleWrapPolicy(module_classes): the modules of some classes."""

    def __init__(self, module_classes: Iterable[type]) -> None:
        self._module_classes = tuple(module_classes)

    def __call__(self, module: Any, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, self._module_classes)


def modules_to_wrap(root: Any, policy: Callable[..., Any]) -> list[Any]:
    """The modules within `root` that a policy names, inner ones first."""
    chosen: list[Any] = []

    def visit(module: Any) -> int:
        """Choose within a module; the parameters that are left in it."""
        size = sum(int(p.numel()) for p in module.parameters())
        taken = 0
        if policy(module=module, recurse=True, nonwrapped_numel=size):
            for child in module.children():
                whole = sum(int(p.numel()) for p in child.parameters())
                taken += whole - visit(child)
        left = size - taken
        if module is not root and policy(module=module, recurse=False, nonwrapped_numel=left):
            chosen.append(module)
            return 0
        return left

    visit(root)
    return chosen
