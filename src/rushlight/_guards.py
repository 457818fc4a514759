"""`torch._guards`: what PyTorch's compiler knows while it compiles; here it never does."""

from typing import Any

__all__: list[str] = []
__dir__ = __all__.copy


def detect_fake_mode(inputs: Any = None) -> None:
    """No tensors are fake."""


class TracingContext:
    """Of a compilation under way: there is none."""

    @staticmethod
    def try_get() -> None:
        return None


class CompileContext:
    """Of a compilation under way: there is none."""

    @staticmethod
    def try_get() -> None:
        return None


def active_fake_mode() -> None:
    """No tensors are fake."""
