"""OpenMP, with which PyTorch uses several threads."""

__all__ = ["is_available"]
__dir__ = __all__.copy


def is_available() -> bool:
    """is_available() -> bool: NumPy has threads of its own.

    >>> torch.backends.openmp.is_available()
    False
    """
    return False
