"""Mixed precision: `autocast` computes products in low precision, `GradScaler` scales gradients.

>>> net = torch.nn.Linear(2, 1)
>>> with torch.amp.autocast("cpu", dtype=torch.bfloat16):
...     net(torch.ones(1, 2)).dtype
torch.bfloat16
"""

import typing as _typing

from rushlight.amp.autocast_mode import (
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)
from rushlight.amp.grad_scaler import GradScaler
from rushlight.missing import face as _face

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

if not _typing.TYPE_CHECKING:
    _later = {"autocast_mode": "", "grad_scaler": ""}
    __getattr__, __dir__ = _face("torch.amp", globals(), _later)
