"""`torch.special`: special functions, by the names that the op table gives them there."""

from __future__ import annotations

from rushlight.ops.table import namespaces

globals().update(namespaces["special"])
__all__ = sorted(namespaces["special"])
