"""`nn.utils`: clipping gradients, and parameters as one vector."""

import typing as _typing

from rushlight.missing import face as _face
from rushlight.nn.utils import clip_grad as clip_grad
from rushlight.nn.utils import convert_parameters as convert_parameters
from rushlight.nn.utils import rnn as rnn
from rushlight.nn.utils.clip_grad import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from rushlight.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from rushlight.ops.described import describe_all as _describe_all

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm",
    "parameters_to_vector", "vector_to_parameters",
]  # fmt: skip

_describe_all(globals(), __all__)

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face(
        "torch.nn.utils", globals(), unlisted=("clip_grad", "convert_parameters")
    )
