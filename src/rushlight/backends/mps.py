"""Apple's GPUs, which rushlight does not use."""

__all__ = [
    "get_core_count", "get_name", "is_available", "is_built", "is_macos13_or_newer",
    "is_macos_or_newer",
]  # fmt: skip
__dir__ = __all__.copy


def is_built() -> bool:
    """is_built() -> bool: never.

    >>> torch.backends.mps.is_built()
    False
    """
    return False


def is_available() -> bool:
    """is_available() -> bool: never.

    >>> torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    device(type='cpu')
    """
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """is_macos_or_newer(major, minor) -> bool: whether MPS runs on that macOS: it does not."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """is_macos13_or_newer(minor=0) -> bool: likewise."""
    return False


def get_name() -> str:
    """get_name() -> str: the name of the GPU; there is none."""
    return ""


def get_core_count() -> int:
    """get_core_count() -> int: 0."""
    return 0
