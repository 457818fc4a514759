"""`torch.distributed.elastic`: what programs use when processes come and go."""

from rushlight.distributed.elastic import multiprocessing as multiprocessing
from rushlight.distributed.elastic import utils as utils

__all__ = ["multiprocessing", "utils"]
__dir__ = __all__.copy
