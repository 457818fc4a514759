"""`torch.distributed.elastic.multiprocessing`: what worker processes of a launcher use of it."""

from rushlight.distributed.elastic.multiprocessing import errors as errors

__all__ = ["errors"]
__dir__ = __all__.copy
