"""`torch.amp` for one device, as it was once: `autocast()` is `torch.autocast("cpu")`."""

from rushlight.cpu.amp.autocast_mode import autocast
from rushlight.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
__dir__ = __all__.copy
