"""`torch.signal.windows`, by the names that the op table gives them there."""

from __future__ import annotations

import typing as _typing

from rushlight.missing import face as _face
from rushlight.ops import fill_rest as _fill_rest
from rushlight.ops.described import describe as _describe
from rushlight.ops.registry import namespaces

_fill_rest()
for _fn in namespaces["signal.windows"].values():
    _describe(_fn)
globals().update(namespaces["signal.windows"])
__all__ = sorted(namespaces["signal.windows"])

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.signal.windows", globals())
