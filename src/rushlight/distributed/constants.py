"""`torch.distributed.constants`: how long PyTorch's process groups wait."""

from rushlight.distributed import default_pg_timeout as default_pg_timeout

__all__ = ["default_pg_timeout"]
__dir__ = __all__.copy
