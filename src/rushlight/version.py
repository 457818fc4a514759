"""`torch.version`: which rushlight this is, and for which hardware it was built."""

from __future__ import annotations

from rushlight._version import __version__

__all__ = ["__version__", "cuda", "debug", "hip", "xpu"]
__dir__ = __all__.copy

debug = False
# kernels for GPUs are CuPy's: rushlight itself is built for none
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
git_version = "Unknown"
