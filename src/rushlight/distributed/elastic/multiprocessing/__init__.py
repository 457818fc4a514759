"""`torch.distributed.elastic.multiprocessing`: what worker processes of a launcher use of it."""

from rushlight.distributed.elastic.multiprocessing import errors as errors

__all__: list[str] = []
__dir__ = __all__.copy
