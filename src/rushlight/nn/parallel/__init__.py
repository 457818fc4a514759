"""`nn.parallel`: modules on several devices, in one process or in several."""

import typing as _typing

from rushlight.missing import face as _face
from rushlight.nn.parallel.data_parallel import DataParallel, data_parallel
from rushlight.nn.parallel.parallel_apply import parallel_apply
from rushlight.nn.parallel.replicate import replicate
from rushlight.nn.parallel.scatter_gather import gather, scatter

__all__ = [
    "DataParallel", "DistributedDataParallel", "data_parallel", "gather", "parallel_apply",
    "replicate", "scatter",
]  # fmt: skip

if _typing.TYPE_CHECKING:
    from rushlight.nn.parallel.distributed import DistributedDataParallel
else:
    # late: programs of one process need not import what `distributed` needs
    __getattr__, __dir__ = _face(
        "torch.nn.parallel",
        globals(),
        {"DistributedDataParallel": "distributed", "distributed": ""},
    )
