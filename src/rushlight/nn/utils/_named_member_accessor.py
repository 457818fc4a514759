"""`torch.nn.utils._named_member_accessor`: tensors and modules inside a module, by dotted names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__: list[str] = []
__dir__ = __all__.copy

_MISSING = object()


def swap_tensor(module: Any, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Put a tensor in the place of a parameter, buffer or attribute; what was there comes back."""
    for kept in (module._parameters, module._buffers, vars(module)):
        if name in kept:
            old = kept[name]
            if tensor is _MISSING:
                del kept[name]
            else:
                kept[name] = tensor
            return old
    if not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    setattr(module, name, tensor)
    return _MISSING


def set_tensor(module: Any, name: str, tensor: Any) -> None:
    """Put a tensor in the place of a parameter, buffer or attribute."""
    swap_tensor(module, name, tensor, allow_missing=True)


class NamedMemberAccessor:
    """NamedMemberAccessor(module): its tensors and modules by names such as `layer.0.weight`."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def get_submodule(self, name: str) -> Any:
        """The module of a name; "" is the whole."""
        return self.module.get_submodule(name)

    def _home(self, name: str) -> tuple[Any, str]:
        home, _, last = name.rpartition(".")
        return self.get_submodule(home), last

    def get_tensor(self, name: str) -> Any:
        """The tensor of a name."""
        home, last = self._home(name)
        return getattr(home, last)

    def set_tensor(self, name: str, value: Any) -> None:
        """Put a tensor under a name."""
        home, last = self._home(name)
        set_tensor(home, last, value)

    def swap_tensor(self, name: str, value: Any, allow_missing: bool = False) -> Any:
        """Put a tensor under a name; what was there comes back."""
        home, last = self._home(name)
        return swap_tensor(home, last, value, allow_missing)

    def swap_tensors_dict(
        self, named_tensors: dict[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Likewise of several: the old ones, and the names that there were not."""
        old = {n: self.swap_tensor(n, t, allow_missing) for n, t in named_tensors.items()}
        return old, [n for n, t in old.items() if t is _MISSING]

    def get_tensors(self, names: Iterable[str]) -> list[Any]:
        """The tensors of some names."""
        return [self.get_tensor(n) for n in names]

    def set_tensors_dict(self, named_tensors: dict[str, Any]) -> None:
        """Put tensors under names."""
        for name, tensor in named_tensors.items():
            self.set_tensor(name, tensor)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Any]]:
        """The parameters of the module."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Any]]:
        """The buffers of the module."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)
