"""`autocast` of one device."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight import amp, dtypes

__all__ = ["autocast"]
__dir__ = __all__.copy


class autocast(amp.autocast):
    """autocast(enabled=True, dtype=torch.bfloat16, cache_enabled=True): `torch.autocast("cpu")`."""

    def __init__(
        self, enabled: bool = True, dtype: Any = dtypes.bfloat16, cache_enabled: bool = True
    ) -> None:
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use "
            "`torch.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", dtype, enabled, cache_enabled)
