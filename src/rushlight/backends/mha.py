"""The fast path of multi-head attention: a flag, remembered."""

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]
__dir__ = __all__.copy

_enabled = [True]


def get_fastpath_enabled() -> bool:
    """get_fastpath_enabled() -> bool: what was set.

    >>> torch.backends.mha.get_fastpath_enabled()
    True
    """
    return _enabled[0]


def set_fastpath_enabled(value: bool) -> None:
    """set_fastpath_enabled(value): remembered."""
    _enabled[0] = value
