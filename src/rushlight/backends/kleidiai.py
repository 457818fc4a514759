"""KleidiAI, Arm's library for low precision, which rushlight does not use."""

__all__ = ["is_available"]
__dir__ = __all__.copy


def is_available() -> bool:
    """is_available() -> bool: never."""
    return False
