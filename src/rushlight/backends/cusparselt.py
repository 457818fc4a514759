"""cuSPARSELt, NVIDIA's library for sparse matrices, which rushlight does not use."""

__all__ = ["get_max_alg_id", "is_available", "version"]
__dir__ = __all__.copy


def is_available() -> bool:
    """is_available() -> bool: never."""
    return False


def version() -> int | None:
    """version() -> None."""
    return None


def get_max_alg_id() -> int | None:
    """get_max_alg_id() -> None."""
    return None
