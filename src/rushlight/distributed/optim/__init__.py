"""`torch.distributed.optim`: optimisers of which each process keeps a part."""

import typing as _typing

from rushlight.distributed.optim.zero_redundancy_optimizer import (
    ZeroRedundancyOptimizer as ZeroRedundancyOptimizer,
)
from rushlight.missing import face as _face

__all__ = ["ZeroRedundancyOptimizer"]

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face(
        "torch.distributed.optim", globals(), {"zero_redundancy_optimizer": ""}
    )
