"""`torch.serialization`: PyTorch's name for `rushlight.serialize`, which saved files name."""

from rushlight.serialize import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    load,
    safe_globals,
    save,
)

__all__ = [
    "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save",
]  # fmt: skip
__dir__ = __all__.copy
