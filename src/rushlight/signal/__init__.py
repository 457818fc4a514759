"""`torch.signal`: windows of signals."""

from __future__ import annotations

import typing as _typing

from rushlight.missing import face as _face

__all__ = ["windows"]

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.signal", globals(), {"windows": ""})
