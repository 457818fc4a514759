"""`device`: where a tensor's array lies, and the default device of each thread.

Part of the array layer; imports `dtypes` alone, and CuPy only when asked about CUDA.

PyTorch's whole list of device types is parsed, so that `device("xla")` can be named, compared and
printed. rushlight has arrays on `cpu`, `cuda` and `meta`; to ask for one elsewhere fails there, not
here.
"""

import re
import threading
from functools import cache
from types import TracebackType
from typing import Any, Final, Self, TypeAlias, overload

from ..dtypes import type_name

_TYPES: Final = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia",
    "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
_Raised: TypeAlias = type[BaseException] | None  # named here: in the class `type` is a field
_STRING: Final = re.compile(r"([a-zA-Z_]+)(?::(0|[1-9][0-9]*))?")


class device:
    """A kind of memory and, where there are several, which: `device("cuda", 1)`.

    As a context manager it is where tensors are made that name no device.

    >>> torch.device("cuda:1"), torch.device("cpu").index
    (device(type='cuda', index=1), None)
    >>> with torch.device("cpu"):
    ...     torch.get_default_device()
    device(type='cpu')
    """

    __slots__ = ("index", "type")
    type: str
    index: int | None

    @overload
    def __new__(cls, device: "str | int | device") -> "device": ...
    @overload
    def __new__(cls, type: str, index: int | None = None) -> "device": ...
    def __new__(cls, *args: Any, **kwargs: Any) -> "device":
        if len(args) == 1 and not kwargs and isinstance(args[0], str):
            return _parse(args[0])
        return _from_arguments(args, kwargs)

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__slots__:
            raise AttributeError(f"attribute {name!r} of 'torch.device' objects is not writable")
        raise AttributeError(f"'torch.device' object has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type,) if self.index is None else (self.type, self.index)

    def __enter__(self) -> Self:
        global chosen_anywhere
        chosen_anywhere = True
        _local.stack.append(self)
        return self

    def __exit__(
        self,
        kind: _Raised,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        stack = _local.stack
        # Not simply the top: `set_default_device` may have been called inside the `with`.
        for i in range(len(stack) - 1, -1, -1):
            if stack[i] is self and i != _local.chosen:
                del stack[i]
                if i < _local.chosen:
                    _local.chosen -= 1
                return
        raise RuntimeError("trying to pop from empty mode stack")


@cache
def _make(kind: str, index: int | None) -> device:
    """The one object of a device. Equal devices are the same object: `is` compares them."""
    made = object.__new__(device)
    object.__setattr__(made, "type", kind)
    object.__setattr__(made, "index", index)
    return made


@cache
def _parse(text: str) -> device:
    if not text:
        raise RuntimeError("Device string must not be empty")
    match = _STRING.fullmatch(text)
    if match is None:
        raise RuntimeError(f"Invalid device string: '{text}'")
    kind, digits = match.groups()
    if kind not in _TYPES:
        raise RuntimeError(
            f"Expected one of {', '.join(_TYPES)} device type at start of device string: {kind}"
        )
    if digits is not None and int(digits) >= 1 << 31:
        raise RuntimeError(f"Could not parse device index '{digits}' in device string '{text}'")
    return _make(kind, None if digits is None else int(digits))


def _from_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> device:
    """The rarer forms: a device or an int, keywords, a type with an index."""
    count = len(args) + len(kwargs)
    if count == 1 and (args or "device" in kwargs):
        given = args[0] if args else kwargs["device"]
        if isinstance(given, device):
            return given
        if isinstance(given, str | bytes):
            return _parse(_text(given))
        if _is_int(given):
            return _accelerator(_index(given))
    elif count == 2 or isinstance(kwargs.get("type"), str | bytes):
        return _with_index(*args, **_keywords(len(args), kwargs))
    raise _no_such_form(args, kwargs)


def _keywords(given: int, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Checks the keywords of `device(type, index)`, of which the first were given by position."""
    if given == 0 and "type" not in kwargs:
        raise TypeError('device() missing 1 required positional arguments: "type"')
    for name in kwargs:
        if name not in ("type", "index"):
            raise TypeError(f"device() got an unexpected keyword argument {name!r}")
        if given > ("type", "index").index(name):
            raise TypeError(f"device() got multiple values for argument {name!r}")
    return kwargs


def _with_index(type: object, index: object = None) -> device:
    if not isinstance(type, str | bytes):
        raise TypeError(
            f"device(): argument 'type' (position 1) must be str, not {type_name(type)}"
        )
    if index is not None and not _is_int(index):
        raise TypeError(
            f"device(): argument 'index' (position 2) must be int, not {type_name(index)}"
        )
    found = _parse(_text(type))
    if found.index is not None:
        raise RuntimeError(
            f"type (string) must not include an index because index was passed explicitly: {found}"
        )
    return found if index is None else _make(found.type, _index(index))


def _text(given: str | bytes) -> str:
    return given.decode() if isinstance(given, bytes) else str(given)


def _is_int(given: object) -> bool:
    # NumPy's integers are taken too, and known by __index__; so is a tensor, which PyTorch refuses.
    return (
        hasattr(given, "__index__")
        and not isinstance(given, bool)
        and not hasattr(given, "requires_grad")
    )


def _index(given: Any) -> int:
    index = int(given)
    if index < 0:
        raise RuntimeError("Device index must not be negative")
    if index >= 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    return index


def _accelerator(index: int) -> device:
    if cuda_count() == 0:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return _make("cuda", index)


def _no_such_form(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    got = ", ".join(map(type_name, args))
    named = "".join(f"{name}={type_name(value)}, " for name, value in kwargs.items())
    reason = ""
    if kwargs and "device" not in kwargs and not args:
        reason = f"some of the keywords were incorrect: {', '.join(kwargs)}"
    elif len(args) + len(kwargs) == 1:
        shown = f"!{got}!" if got else f"!{named[:-2]}!, "
        reason = f"some of the arguments have invalid types: ({shown})"
    return TypeError(
        "device() received an invalid combination of arguments - got "
        f"({', '.join(filter(None, (got, named)))}), but expected one of:\n"
        " * (torch.device device)\n"
        + (f"      didn't match because {reason}\n" if reason else "")
        + " * (str type, int index = -1)\n"
    )


@cache
def cuda_count() -> int:
    """The number of CUDA devices at hand: none without CuPy, or without a driver."""
    try:
        import cupy
    except ImportError:
        return 0
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


CPU: Final = _make("cpu", None)


class _Local(threading.local):
    """A thread's devices that were entered or set, newest last, and the place of the set one."""

    def __init__(self) -> None:
        self.stack: list[device] = []
        self.chosen = -1


_local: Final = _Local()
chosen_anywhere = False  # whether any thread ever chose a device: until then nobody looks further


def current() -> device:
    """Where a tensor is made that names no device, as it was named: perhaps without an index."""
    if chosen_anywhere and (stack := _local.stack):
        return stack[-1]
    return CPU


def get_default_device() -> device:
    """The device on which tensors are made by default.

    >>> torch.get_default_device()
    device(type='cpu')
    """
    found = current()
    if found.type != "cuda" or found.index is not None:
        return found
    if cuda_count() == 0:
        raise AssertionError(
            "Torch not compiled with CUDA enabled: rushlight finds no CuPy with a CUDA device. "
            "Install one that fits your driver: `pip install cupy-cuda12x`."
        )
    import cupy

    return _make("cuda", int(cupy.cuda.Device().id))


def set_default_device(device: "str | int | device | None") -> None:
    """Sets the device on which this thread makes tensors by default; None goes back to the CPU.

    >>> torch.set_default_device("cpu")
    >>> torch.get_default_device()
    device(type='cpu')
    >>> torch.set_default_device(None)
    """
    global chosen_anywhere
    wanted = None if device is None else _to_device(device)
    stack = _local.stack
    if _local.chosen >= 0:
        del stack[_local.chosen]
        _local.chosen = -1
    if wanted is not None:
        chosen_anywhere = True
        _local.chosen = len(stack)
        stack.append(wanted)


def _to_device(given: "str | int | device") -> device:
    return device(given)
