"""How the weights of convolutions lie in memory."""

from __future__ import annotations

from typing import Any

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]
__dir__ = __all__.copy


def _convert(module: Any, memory_format: Any, kinds: tuple[str, ...]) -> Any:
    if any(cls.__name__ in kinds for cls in type(module).__mro__):
        module.weight.data = module.weight.detach().clone(memory_format=memory_format)
    for child in module.children():
        _convert(child, memory_format, kinds)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay the weights of all `Conv2d` and `ConvTranspose2d` in a module out as `memory_format`.

    >>> net = torch.nn.Sequential(torch.nn.ReLU())
    >>> torch.nn.utils.convert_conv2d_weight_memory_format(net, torch.channels_last) is net
    True
    """
    return _convert(module, memory_format, ("Conv2d", "ConvTranspose2d"))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Lay the weights of all `Conv3d` and `ConvTranspose3d` in a module out as `memory_format`."""
    return _convert(module, memory_format, ("Conv3d", "ConvTranspose3d"))
