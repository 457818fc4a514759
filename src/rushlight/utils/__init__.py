"""Helpers for training scripts: `utils.hooks`, and `utils.checkpoint` when first used."""

import typing as _typing

from rushlight.missing import face as _face
from rushlight.tensor_resize import swap_tensors
from rushlight.utils import hooks

__all__ = ["hooks", "swap_tensors"]

if _typing.TYPE_CHECKING:
    from rushlight.utils import checkpoint as checkpoint
else:
    __getattr__, __dir__ = _face(
        "torch.utils",
        globals(),
        {
            "_contextlib": "",
            "_foreach_utils": "",
            "_mode_utils": "",
            "_python_dispatch": "",
            "_pytree": "",
            "benchmark": "",
            "checkpoint": "",
            "collect_env": "",
            "data": "",
            "dlpack": "",
            "model_zoo": "",
            "weak": "",
        },
    )
