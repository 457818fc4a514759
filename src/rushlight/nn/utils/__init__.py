"""`nn.utils`: clipping gradients, and parameters as one vector."""

import typing as _typing

from rushlight.missing import say_missing as _say_missing
from rushlight.nn.utils.clip_grad import clip_grad_norm_ as clip_grad_norm_
from rushlight.nn.utils.clip_grad import clip_grad_value_ as clip_grad_value_
from rushlight.nn.utils.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from rushlight.nn.utils.clip_grad import get_total_norm as get_total_norm
from rushlight.nn.utils.convert_parameters import parameters_to_vector as parameters_to_vector
from rushlight.nn.utils.convert_parameters import vector_to_parameters as vector_to_parameters
from rushlight.ops.described import describe_all as _describe_all

_describe_all(globals(), list(globals()))

if not _typing.TYPE_CHECKING:
    __getattr__ = _say_missing("torch.nn.utils", globals())
