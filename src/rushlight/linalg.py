"""`torch.linalg`: linear algebra, by the names that the op table gives it there."""

from __future__ import annotations

from rushlight.ops.linalg_parts import LinAlgError
from rushlight.ops.table import namespaces

globals().update(namespaces["linalg"])
__all__ = ["LinAlgError", *sorted(namespaces["linalg"])]
