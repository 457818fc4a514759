"""What `save` and `load` do unless told otherwise: settings of `torch.serialization`."""

from __future__ import annotations

import mmap
import sys
from contextvars import ContextVar, Token
from enum import Enum
from types import TracebackType
from typing import Any, Final

ALIGNMENT: Final = 64  # of the entries of an archive, in bytes
_PRIVATE: Final = getattr(mmap, "MAP_PRIVATE", 2)
_SHARED: Final = getattr(mmap, "MAP_SHARED", 1)


class LoadEndianness(Enum):
    """Which byte of a number comes first in files that do not say.

    >>> torch.serialization.LoadEndianness.LITTLE.value
    2
    """

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Options:
    """The settings."""

    endianness: LoadEndianness | None = None
    crc32: bool = True
    mmap_flags: int = _PRIVATE


_options: Final = _Options()
_skipping: Final[ContextVar[bool]] = ContextVar("skipping", default=False)


def get_default_load_endianness() -> LoadEndianness | None:
    """What was given to `set_default_load_endianness`, or None.

    >>> torch.serialization.get_default_load_endianness() is None
    True
    """
    return _options.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Which byte of a number comes first in files that do not say, as those of PyTorch before 2.1.

    >>> torch.serialization.set_default_load_endianness(None)
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _options.endianness = endianness


def default_byteorder() -> str:
    """The order of bytes in files that do not say: little, or as was set."""
    chosen = _options.endianness
    if chosen is LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if chosen is LoadEndianness.BIG else "little"


def get_crc32_options() -> bool:
    """Whether `save` writes checksums.

    >>> torch.serialization.get_crc32_options()
    True
    """
    return _options.crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether `save` writes checksums. Without them `load` cannot tell damage.

    >>> torch.serialization.set_crc32_options(True)
    """
    _options.crc32 = compute_crc32


def get_default_mmap_options() -> int:
    """How `load(..., mmap=True)` maps files.

    >>> import mmap
    >>> torch.serialization.get_default_mmap_options() == mmap.MAP_PRIVATE
    True
    """
    return _options.mmap_flags


class set_default_mmap_options:
    """How `load(..., mmap=True)` maps files: `mmap.MAP_PRIVATE` (what is written into tensors stays
    in this process) or `mmap.MAP_SHARED` (it goes into the file). Also a `with` block.

    >>> import mmap
    >>> with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
    ...     torch.serialization.get_default_mmap_options() == mmap.MAP_SHARED
    True
    """

    def __init__(self, flags: int) -> None:
        if sys.platform == "win32":
            raise RuntimeError(
                "Changing the default mmap options is currently not supported for Windows"
            )
        if flags not in (_PRIVATE, _SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self.before = _options.mmap_flags
        _options.mmap_flags = flags

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        _options.mmap_flags = self.before


def maps_shared() -> bool:
    """Whether mapped files are written through."""
    return _options.mmap_flags == _SHARED


class skip_data:
    """`with skip_data():` `save` writes how tensors lie, and zeros for their numbers.

    >>> import io
    >>> file = io.BytesIO()
    >>> with torch.serialization.skip_data():
    ...     torch.save(torch.ones(2), file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors
        self.token: Token[Any] | None = None

    def __enter__(self) -> None:
        self.token = _skipping.set(True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        assert self.token is not None
        _skipping.reset(self.token)


def skips_data() -> bool:
    """Whether numbers are left out of files now."""
    return _skipping.get()
