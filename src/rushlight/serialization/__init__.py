"""`torch.serialization`: tensors and what they stand in, to files and back.

>>> import io
>>> file = io.BytesIO()
>>> torch.save([torch.arange(3)], file)
>>> _ = file.seek(0)
>>> torch.load(file)
[tensor([0, 1, 2])]
"""

import typing as _typing

from rushlight.missing import face as _face
from rushlight.serialization.allowed import add_safe_globals as add_safe_globals
from rushlight.serialization.allowed import clear_safe_globals as clear_safe_globals
from rushlight.serialization.allowed import get_safe_globals as get_safe_globals
from rushlight.serialization.allowed import safe_globals as safe_globals
from rushlight.serialization.locations import default_restore_location as default_restore_location
from rushlight.serialization.locations import location_tag as location_tag
from rushlight.serialization.locations import register_package as register_package
from rushlight.serialization.locations import validate_cuda_device as validate_cuda_device
from rushlight.serialization.options import LoadEndianness as LoadEndianness
from rushlight.serialization.options import get_crc32_options as get_crc32_options
from rushlight.serialization.options import (
    get_default_load_endianness as get_default_load_endianness,
)
from rushlight.serialization.options import get_default_mmap_options as get_default_mmap_options
from rushlight.serialization.options import set_crc32_options as set_crc32_options
from rushlight.serialization.options import (
    set_default_load_endianness as set_default_load_endianness,
)
from rushlight.serialization.options import set_default_mmap_options as set_default_mmap_options
from rushlight.serialization.options import skip_data as skip_data
from rushlight.serialization.rebuild import _get_layout as _get_layout
from rushlight.serialization.save_load import (
    get_unsafe_globals_in_checkpoint as get_unsafe_globals_in_checkpoint,
)
from rushlight.serialization.save_load import load as load
from rushlight.serialization.save_load import save as save
from rushlight.serialization.storages import StorageType as StorageType

DEFAULT_PROTOCOL = 2  # of pickles
MAP_LOCATION: _typing.TypeAlias = _typing.Any  # a function, a device, a dict of both, or None
FILE_LIKE: _typing.TypeAlias = _typing.Any  # a name, or something that reads and writes


class SourceChangeWarning(Warning):
    """The source of a class is not what it was when an object of it was saved."""


__all__ = [
    "LoadEndianness", "SourceChangeWarning", "StorageType", "add_safe_globals",
    "clear_safe_globals", "default_restore_location", "get_crc32_options",
    "get_default_load_endianness", "get_default_mmap_options", "get_safe_globals",
    "get_unsafe_globals_in_checkpoint", "load", "location_tag", "register_package", "safe_globals",
    "save", "set_crc32_options", "set_default_load_endianness", "set_default_mmap_options",
    "skip_data", "validate_cuda_device",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.serialization", globals())
