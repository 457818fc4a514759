"""`torch._tensor_str`: how tensors print, by the name that libraries import it by."""

from typing import Any

from rushlight.printing import _append, _contents, _options
from rushlight.printing import get_printoptions as get_printoptions
from rushlight.printing import printoptions as printoptions
from rushlight.printing import set_printoptions as set_printoptions
from rushlight.printing import tensor_str as _str

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]
__dir__ = __all__.copy

PRINT_OPTS = _options


def _tensor_str(t: Any, indent: int) -> str:
    """The numbers alone, in brackets."""
    return _contents(t, indent)


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """The numbers, and behind them what else is to be said, with the closing bracket."""
    if force_newline and suffixes:
        first, *rest = suffixes
        return _append(f"{tensor_str},\n{' ' * indent}{first}", rest, indent)
    return _append(tensor_str, suffixes, indent)


def _str_intern(inp: Any, *, tensor_contents: str | None = None) -> str:
    return _str(inp, tensor_contents)
