"""`nn.parallel`: modules on several devices. Here there is one, and the module runs on it."""

import typing as _typing

from rushlight.missing import face as _face
from rushlight.nn.parallel.data_parallel import DataParallel, data_parallel
from rushlight.nn.parallel.distributed import DistributedDataParallel
from rushlight.nn.parallel.parallel_apply import parallel_apply
from rushlight.nn.parallel.replicate import replicate
from rushlight.nn.parallel.scatter_gather import gather, scatter

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply",
    "replicate", "scatter",
]  # fmt: skip

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.nn.parallel", globals())
