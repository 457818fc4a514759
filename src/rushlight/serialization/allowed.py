"""What a file that is not trusted may name, and reading one.

Note [Loading is not running]
    Unpickling calls whatever a file names. By default (`weights_only=True`) only the few functions
    of `_CALLS` may be called, and each believes nothing that it is told; `safe` reads the pickle,
    and knows nothing that could do more. Whatever a file holds, `load` then gives what `save` wrote
    or raises one of

        RuntimeError              the file is damaged, or a tensor does not fit its memory
        pickle.UnpicklingError    the pickle is damaged, or names what it may not
        EOFError                  the file is empty
        OSError                   the file cannot be opened or read
"""

from __future__ import annotations

import pickle
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from rushlight import dtypes
from rushlight.serialization import old, rebuild
from rushlight.serialization.names import theirs
from rushlight.serialization.safe import Reader, hashable_key
from rushlight.storage import UntypedStorage
from rushlight.storage_types import storage_types
from rushlight.tensor import Tensor
from rushlight.tensor_types import tensor_types


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":  # how protocol 2 writes bytes
        raise pickle.UnpicklingError(f"text in {encoding!r} is not what `save` writes")
    return text.encode(encoding)


def _bytearray(data: Any = b"", encoding: str = "latin1") -> bytearray:
    if type(data) is str:
        return bytearray(_encode(data, encoding))
    if type(data) is not bytes:  # of a number, it would be as long as that
        raise pickle.UnpicklingError("a bytearray is not as `save` writes it")
    return bytearray(data)


def _from_items(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes a container of what stands in a list, tuple or dictionary."""

    def made(items: Any = ()) -> Any:
        if type(items) not in (list, tuple, dict):
            raise pickle.UnpicklingError(f"{make.__name__} is not as `save` writes it")
        for item in items:
            hashable_key(item)
        return make(items)

    return made


def _ordered(items: Any = ()) -> Any:
    if type(items) not in (list, tuple, dict):
        raise pickle.UnpicklingError("OrderedDict is not as `save` writes it")
    made: OrderedDict[Any, Any] = OrderedDict()
    for key, value in items.items() if type(items) is dict else items:
        made[hashable_key(key)] = value
    return made


def _complex(real: float, imag: float) -> complex:
    return complex(float(real), float(imag))


# What a file may call.
_CALLS: Final[dict[str, Callable[..., Any]]] = {
    **old.CALLS,
    **{
        ".".join(theirs(rebuild.__name__, fn.__name__)): fn
        for fn in (
            rebuild._rebuild_tensor, rebuild._rebuild_tensor_v2, rebuild._rebuild_tensor_v3,
            rebuild._rebuild_parameter, rebuild._rebuild_parameter_with_state,
            rebuild._rebuild_from_type_v2, rebuild._rebuild_sparse_tensor, rebuild._get_layout,
            rebuild._rebuild_meta_tensor_no_storage,
        )
    },
    "torch.Size": old._size,
    "torch.device": old._device,
    "collections.OrderedDict": _ordered,
    "collections.Counter": _from_items(Counter),
    "_codecs.encode": _encode,
    **{
        f"{module}.{name}": fn
        for module in ("builtins", "__builtin__")
        for name, fn in (
            ("bytearray", _bytearray), ("set", _from_items(set)), ("complex", _complex),
            ("frozenset", _from_items(frozenset)),
        )
    },
}  # fmt: skip
# What it may name, and hand to those.
_VALUES: Final[dict[str, Any]] = {
    **{str(dtype): dtype for dtype in dtypes.all_dtypes},
    **{f"torch.{title}": cls for title, cls in storage_types.items()},
    **{f"torch.cuda.{title}": cls for title, cls in storage_types.items()},
    **{f"torch.{title}": cls for title, cls in tensor_types.items()},
    "torch.storage.UntypedStorage": UntypedStorage,
    "torch.UntypedStorage": UntypedStorage,
    "torch.Tensor": Tensor,
    "torch._tensor.Tensor": Tensor,
}
_mine: dict[str, Any] = {}  # what the user added, by name
_given: dict[str, Any] = {}  # the same, as it was given


def _name(obj: Any) -> str:
    """How a file spells a class or a function."""
    return ".".join(theirs(str(obj.__module__), str(obj.__qualname__)))


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let files that are loaded with `weights_only=True` name these classes and functions; a pair
    (thing, name) says how they spell it.

    >>> class Config:
    ...     pass
    >>> torch.serialization.add_safe_globals([Config])
    >>> torch.serialization.get_safe_globals() == [Config]
    True
    >>> torch.serialization.clear_safe_globals()
    """
    for item in safe_globals:
        thing, name = item if isinstance(item, tuple) else (item, _name(item))
        _mine[name] = thing
        _given[name] = item


def get_safe_globals() -> list[Any]:
    """What was added by `add_safe_globals`.

    >>> torch.serialization.get_safe_globals()
    []
    """
    return list(_given.values())


def clear_safe_globals() -> None:
    """Forget what was added by `add_safe_globals`.

    >>> torch.serialization.clear_safe_globals()
    """
    _mine.clear()
    _given.clear()


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """`add_safe_globals` for the length of a `with` block.

    >>> with torch.serialization.safe_globals([torch.nn.Linear]):
    ...     len(torch.serialization.get_safe_globals())
    1
    """
    before, given = dict(_mine), dict(_given)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        clear_safe_globals()
        _mine.update(before)
        _given.update(given)


# --- reading --------------------------------------------------------------------------------------
class _Refused(Exception):
    """A file names what it may not."""


class _Passed(Exception):
    """What was raised while a memory was looked for, on its way through the reader."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def _find(name: str) -> Any:
    """What a file names. See Note [Loading is not running]."""
    for table in (_CALLS, _VALUES, _mine):
        if name in table:
            return table[name]
    if name == "torch.nn.parameter.Parameter":
        from rushlight.nn.parameter import Parameter

        return Parameter
    raise _Refused(name)


def is_known(name: str) -> bool:
    """Whether a file may name this."""
    return any(name in table for table in (_CALLS, _VALUES, _mine)) or (
        name == "torch.nn.parameter.Parameter"
    )


def _failed(what: str) -> pickle.UnpicklingError:
    """The error for a pickle that `weights_only=True` does not load."""
    return pickle.UnpicklingError(
        "Weights only load failed. Re-running `torch.load` with `weights_only` set to `False` may "
        "succeed, but it can result in arbitrary code execution. Do it only if you got the file "
        f"from a trusted source.\nWeightsUnpickler error: {what}"
    )


def _refused(name: str) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(
        "Weights only load failed. This file can still be loaded, to do so you have two options, "
        "do those steps only if you trust the source of the checkpoint. \n"
        "\t(1) Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but "
        "it can result in arbitrary code execution. Do it only if you got the file from a trusted "
        "source.\n"
        "\t(2) Alternatively, to load with `weights_only=True` please check the recommended steps "
        "in the following error message.\n"
        f"\tWeightsUnpickler error: Unsupported global: GLOBAL {name} was not an allowed global by "
        f"default. Please use `torch.serialization.add_safe_globals([{name}])` or the "
        f"`torch.serialization.safe_globals([{name}])` context manager to allowlist this global if "
        "you trust this class/function."
    )


def read_safely(
    data: bytes, at: int, memory: Callable[[Any], Any], encoding: str = "utf-8"
) -> tuple[Any, int]:
    """The object of a pickle that begins at `at`, and where the pickle ends."""

    def remembered(name: Any) -> Any:
        try:
            return memory(name)
        except pickle.UnpicklingError:
            raise
        except Exception as error:  # of the archive, or of the user's `map_location`
            raise _Passed(error) from error

    calls, mine = list(_CALLS.values()), list(_mine.values())
    reader = Reader(data, _find, remembered, calls, mine, encoding=encoding, at=at)
    try:
        return reader.load(), reader.at
    except _Passed as passed:
        raise passed.error from passed.error.__cause__
    except _Refused as refused:
        raise _refused(str(refused)) from None
    except pickle.UnpicklingError as error:
        raise _failed(str(error)) from None
    except (OSError, RuntimeError, MemoryError):
        raise
    except Exception as error:  # what it does not raise by itself, its numbers and names did
        raise _failed(f"the pickle is damaged: {type(error).__name__}: {error}") from error


def unknown_names(data: bytes) -> list[str]:
    """The names in a pickle that a file may not name, in their order."""
    import pickletools  # slow to import, and wanted here alone

    found: dict[str, None] = {}
    texts: list[Any] = [None, None]
    memo: dict[int, Any] = {}
    for code, given, _ in pickletools.genops(data):
        name = None
        if code.name == "GLOBAL":
            name = str(given).replace(" ", ".")
        elif code.name == "STACK_GLOBAL":
            name = f"{texts[0]}.{texts[1]}"
        elif "UNICODE" in code.name:
            texts = [texts[1], given]
        elif code.name == "MEMOIZE":
            memo[len(memo)] = texts[1]
        elif code.name in ("BINGET", "LONG_BINGET") and given in memo:
            texts = [texts[1], memo[given]]
        if name is not None and not is_known(name):
            found[name] = None
    return list(found)
