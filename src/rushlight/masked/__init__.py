"""`torch.masked`: reductions of what a mask names, by the names that the op table gives them
there, and tensors that have a mask (`masked_tensor`)."""

from __future__ import annotations

import typing as _typing

from rushlight.missing import face as _face
from rushlight.ops import fill_rest as _fill_rest
from rushlight.ops.described import describe as _describe
from rushlight.ops.registry import namespaces

_fill_rest()
for _fn in namespaces["masked"].values():
    _describe(_fn)
globals().update(namespaces["masked"])
_LATER = {
    "MaskedTensor": "maskedtensor.core",
    "as_masked_tensor": "maskedtensor.creation",
    "is_masked_tensor": "maskedtensor.core",
    "masked_tensor": "maskedtensor.creation",
}
__all__ = sorted([*namespaces["masked"], *_LATER])

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.masked", globals(), {**_LATER, "maskedtensor": ""})
