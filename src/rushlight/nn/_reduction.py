"""`torch.nn._reduction`: how the losses of the elements become one, as PyTorch's insides say it."""

__all__: list[str] = []
__dir__ = __all__.copy

_NUMBERS = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction.

    >>> from rushlight.nn import _reduction
    >>> _reduction.get_enum("sum")
    2
    """
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The reduction that two older arguments ask for."""
    if reduce is False:
        return "none"
    return "mean" if size_average is not False else "sum"


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """Its number."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
