"""`torch.distributed.elastic.utils`: samplers and iterators."""

from rushlight.distributed.elastic.utils import data as data

__all__ = ["data"]
__dir__ = __all__.copy
