"""`autocast` of one device."""

from __future__ import annotations

import warnings
from typing import Any

from rushlight import amp, dtypes

__all__ = ["autocast", "custom_bwd", "custom_fwd"]
__dir__ = __all__.copy


class autocast(amp.autocast):
    """autocast(enabled=True, dtype=torch.float16, cache_enabled=True): `torch.autocast("cuda")`."""

    def __init__(
        self, enabled: bool = True, dtype: Any = dtypes.float16, cache_enabled: bool = True
    ) -> None:
        warnings.warn(
            "`torch.cuda.amp.autocast(args...)` is deprecated. Please use "
            "`torch.amp.autocast('cuda', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cuda", dtype, enabled, cache_enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """`torch.amp.custom_fwd` for the GPU."""
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """`torch.amp.custom_bwd` for the GPU."""
    return amp.custom_bwd(bwd, device_type="cuda")
