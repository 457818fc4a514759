"""`torch.functional`: functions of `torch` under the name of the file where PyTorch has them.

>>> torch.functional.norm is torch.norm
True
"""

from __future__ import annotations

from typing import Any

import rushlight as _rushlight

__all__ = list("""
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod
    cdist chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot
    unique unique_consecutive unravel_index
""".split())  # fmt: skip
__dir__ = __all__.copy


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(_rushlight, name)
    raise AttributeError(f"module 'torch.functional' has no attribute {name!r}")
