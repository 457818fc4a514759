"""`torch.amp` for one device, as it was once: `autocast()` is `torch.autocast("cuda")`."""

from rushlight.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from rushlight.cuda.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
__dir__ = __all__.copy
