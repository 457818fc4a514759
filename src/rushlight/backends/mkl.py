"""MKL, which NumPy may be built on; rushlight does not ask."""

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]
__dir__ = __all__.copy

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """is_available() -> bool: NumPy's wheels bring OpenBLAS, not MKL.

    >>> torch.backends.mkl.is_available()
    False
    """
    return False


class verbose:
    """verbose(enable): a context that would print what MKL does, and prints nothing."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> "verbose":
        return self

    def __exit__(self, *error: object) -> None:
        return None
