"""`torch.package`: models with their code in one archive, which rushlight does not make or read."""

from __future__ import annotations

import typing as _typing
from typing import Any

from rushlight.missing import face as _face

__all__ = ["PackageExporter", "PackageImporter", "PackagingError", "is_from_package"]

_NO_PACKAGES = (
    "rushlight has no torch.package archives: keep the code in a Python package, and the "
    "state_dict with torch.save."
)


class PackagingError(ValueError):
    """PyTorch's error about a package; rushlight never raises it."""


class PackageExporter:
    """PackageExporter(f): raises: rushlight makes no packages."""

    def __init__(self, f: Any, importer: Any = None, debug: bool = False) -> None:
        raise RuntimeError(_NO_PACKAGES)


class PackageImporter:
    """PackageImporter(f): raises: rushlight reads no packages."""

    def __init__(self, file_or_buffer: Any, module_allowed: Any = None) -> None:
        raise RuntimeError(_NO_PACKAGES)


def is_from_package(obj: Any) -> bool:
    """is_from_package(obj) -> bool: never.

    >>> torch.package.is_from_package(abs)
    False
    """
    return False


if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.package", globals())
