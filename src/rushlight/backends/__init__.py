"""Flags of the libraries that PyTorch computes with.

Programs set and read them; NumPy and CuPy have none of these libraries' choices, so that nothing
changes by them.

>>> torch.backends.cudnn.benchmark = True
>>> torch.backends.cudnn.benchmark
True
>>> torch.backends.cudnn.benchmark = False
"""

import typing as _typing

from rushlight.missing import face as _face

__all__: list[str] = []

fp32_precision = "none"

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face(
        "torch.backends",
        globals(),
        {
            "cpu": "",
            "cuda": "",
            "cudnn": "",
            "cusparselt": "",
            "kleidiai": "",
            "mha": "",
            "miopen": "",
            "mkl": "",
            "mkldnn": "",
            "mps": "",
            "nnpack": "",
            "openmp": "",
            "opt_einsum": "",
            "quantized": "",
        },
    )
