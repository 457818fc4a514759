"""Tensors with a mask: see `core`."""

from __future__ import annotations

import typing as _typing

from rushlight.masked.maskedtensor.core import MaskedTensor, is_masked_tensor
from rushlight.missing import face as _face

__all__ = ["MaskedTensor", "is_masked_tensor"]

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face(
        "torch.masked.maskedtensor", globals(), {"core": "", "creation": ""}
    )
