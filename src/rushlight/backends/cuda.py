"""Flags of CUDA's libraries. CuPy chooses for itself: they are remembered.

>>> torch.backends.cuda.matmul.allow_tf32 = True
>>> torch.get_float32_matmul_precision()
'high'
>>> torch.backends.cuda.matmul.allow_tf32 = False
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from rushlight.arrays.device import cuda_count
from rushlight.settings import get_float32_matmul_precision, set_float32_matmul_precision

__all__ = [
    "allow_fp16_bf16_reduction_math_sdp", "can_use_cudnn_attention", "can_use_efficient_attention",
    "can_use_flash_attention", "cuBLASModule", "cudnn_sdp_enabled", "enable_cudnn_sdp",
    "enable_flash_sdp", "enable_math_sdp", "enable_mem_efficient_sdp", "flash_sdp_enabled",
    "fp16_bf16_reduction_math_sdp_allowed", "is_built", "is_flash_attention_available",
    "math_sdp_enabled", "matmul", "mem_efficient_sdp_enabled", "preferred_blas_library",
    "preferred_linalg_library", "sdp_kernel",
]  # fmt: skip
__dir__ = __all__.copy


def is_built() -> bool:
    """is_built() -> bool: whether there is a GPU that rushlight could use."""
    return cuda_count() > 0


class cuBLASModule:
    """The flags of matrix products: `torch.backends.cuda.matmul`."""

    def __init__(self) -> None:
        vars(self).update(
            allow_fp16_reduced_precision_reduction=True,
            allow_bf16_reduced_precision_reduction=True,
            allow_fp16_accumulation=False,
            fp32_precision="none",
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "allow_tf32":
            set_float32_matmul_precision("high" if value else "highest")
        elif name in vars(self):
            vars(self)[name] = value
        else:
            raise AttributeError(f"Unknown attribute {name}")

    def __getattr__(self, name: str) -> Any:
        if name == "allow_tf32":
            return get_float32_matmul_precision() != "highest"
        raise AttributeError(f"Unknown attribute {name}")


matmul: Final = cuBLASModule()

# Which ways of computing attention are allowed; rushlight has one.
_allowed: Final = {
    "flash": True, "math": True, "mem_efficient": True, "cudnn": True, "reduction": False,
}  # fmt: skip
_preferred: Final = {"linalg": "default", "blas": "default"}


def enable_flash_sdp(enabled: bool) -> None:
    """enable_flash_sdp(enabled): remembered."""
    _allowed["flash"] = enabled


def flash_sdp_enabled() -> bool:
    """flash_sdp_enabled() -> bool: what was set."""
    return _allowed["flash"]


def enable_math_sdp(enabled: bool) -> None:
    """enable_math_sdp(enabled): remembered."""
    _allowed["math"] = enabled


def math_sdp_enabled() -> bool:
    """math_sdp_enabled() -> bool: what was set."""
    return _allowed["math"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """enable_mem_efficient_sdp(enabled): remembered."""
    _allowed["mem_efficient"] = enabled


def mem_efficient_sdp_enabled() -> bool:
    """mem_efficient_sdp_enabled() -> bool: what was set."""
    return _allowed["mem_efficient"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """enable_cudnn_sdp(enabled): remembered."""
    _allowed["cudnn"] = enabled


def cudnn_sdp_enabled() -> bool:
    """cudnn_sdp_enabled() -> bool: what was set."""
    return _allowed["cudnn"]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """allow_fp16_bf16_reduction_math_sdp(enabled): remembered."""
    _allowed["reduction"] = enabled


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """fp16_bf16_reduction_math_sdp_allowed() -> bool: what was set."""
    return _allowed["reduction"]


def is_flash_attention_available() -> bool:
    """is_flash_attention_available() -> bool: never."""
    return False


def can_use_flash_attention(params: Any, debug: bool = False) -> bool:
    """can_use_flash_attention(params, debug=False) -> bool: never."""
    return False


def can_use_efficient_attention(params: Any, debug: bool = False) -> bool:
    """can_use_efficient_attention(params, debug=False) -> bool: never."""
    return False


def can_use_cudnn_attention(params: Any, debug: bool = False) -> bool:
    """can_use_cudnn_attention(params, debug=False) -> bool: never."""
    return False


def preferred_linalg_library(backend: Any = None) -> Any:
    """preferred_linalg_library(backend=None): remembered, and returned."""
    if backend is not None:
        _preferred["linalg"] = backend
    return _preferred["linalg"]


def preferred_blas_library(backend: Any = None) -> Any:
    """preferred_blas_library(backend=None): remembered, and returned."""
    if backend is not None:
        _preferred["blas"] = backend
    return _preferred["blas"]


@contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[None]:  # fmt: skip
    """sdp_kernel(enable_flash=True, ...): what is allowed within a `with` block."""
    before = dict(_allowed)
    _allowed.update(
        flash=enable_flash, math=enable_math, mem_efficient=enable_mem_efficient,
        cudnn=enable_cudnn,
    )  # fmt: skip
    try:
        yield
    finally:
        _allowed.update(before)
