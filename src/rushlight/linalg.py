"""`torch.linalg`: linear algebra, by the names that the op table gives it there."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from rushlight.missing import face as _face
from rushlight.ops.linalg.common import LinAlgError
from rushlight.ops.registry import namespaces

globals().update(namespaces["linalg"])
__all__ = ["LinAlgError", *sorted(namespaces["linalg"])]

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.linalg", globals())
