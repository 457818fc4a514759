"""`GradScaler` of one device."""

from __future__ import annotations

import warnings

from rushlight import amp

__all__ = ["GradScaler"]
__dir__ = __all__.copy


class GradScaler(amp.GradScaler):
    """GradScaler(init_scale=65536.0, ...): `torch.amp.GradScaler("cpu", ...)`."""

    def __init__(
        self, init_scale: float = 65536.0, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        warnings.warn(
            "`torch.cpu.amp.GradScaler(args...)` is deprecated. Please use "
            "`torch.amp.GradScaler('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
