"""`torch.fft`: Fourier transforms, by the names that the op table gives them there."""

from __future__ import annotations

import typing as _typing

from rushlight.missing import face as _face
from rushlight.ops import fill_rest as _fill_rest
from rushlight.ops.described import describe as _describe
from rushlight.ops.registry import namespaces

_fill_rest()
for _fn in namespaces["fft"].values():
    _describe(_fn)
globals().update(namespaces["fft"])
# PyTorch does not give these to `from torch.fft import *`
_UNLISTED = ["hfft2", "hfftn", "ihfft2", "ihfftn"]
__all__ = sorted(namespaces["fft"].keys() - _UNLISTED)

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.fft", globals(), unlisted=_UNLISTED)
