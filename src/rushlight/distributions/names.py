"""The functions that distributions are written in, by the names users know: `ops.lgamma(x)`.

Formulas read so as they stand in books. Only files of this package import it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

from rushlight import dtypes
from rushlight.ops import fill_rest
from rushlight.ops.registry import functions, namespaces

fill_rest()

ops: Final[Any] = SimpleNamespace(
    **functions,
    linalg=SimpleNamespace(**namespaces["linalg"]),
    special=SimpleNamespace(**namespaces["special"]),
    finfo=dtypes.finfo,
    bool=dtypes.bool_,
    long=dtypes.int64,
    contiguous_format=dtypes.contiguous_format,
)
F: Final[Any] = SimpleNamespace(**namespaces["nn.functional"])
