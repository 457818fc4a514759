"""`torch.distributed.elastic.utils.data`: data for training that may be interrupted."""

from rushlight.distributed.elastic.utils.data.cycling_iterator import CyclingIterator
from rushlight.distributed.elastic.utils.data.elastic_distributed_sampler import (
    ElasticDistributedSampler,
)

__all__ = ["CyclingIterator", "ElasticDistributedSampler"]
__dir__ = __all__.copy
