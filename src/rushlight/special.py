"""`torch.special`: special functions, by the names that the op table gives them there."""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from rushlight.missing import face as _face
from rushlight.ops.registry import namespaces

globals().update(namespaces["special"])
__all__ = sorted(namespaces["special"])

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.special", globals())
