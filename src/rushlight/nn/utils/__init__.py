"""`nn.utils`: clipping gradients, parameters as one vector, parametrizations, pruning, packed
sequences and what else networks need now and then."""

import typing as _typing

from rushlight.missing import face as _face
from rushlight.nn.utils import clip_grad as clip_grad
from rushlight.nn.utils import convert_parameters as convert_parameters
from rushlight.nn.utils import rnn as rnn
from rushlight.nn.utils.clip_grad import (
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
)
from rushlight.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from rushlight.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from rushlight.nn.utils.weight_norm import remove_weight_norm, weight_norm
from rushlight.ops.described import describe_all as _describe_all

# Imported when first used: name, and its module.
_LATER = {
    "convert_conv2d_weight_memory_format": "memory_format",
    "convert_conv3d_weight_memory_format": "memory_format",
    "fuse_conv_bn_eval": "fusion",
    "fuse_conv_bn_weights": "fusion",
    "fuse_linear_bn_eval": "fusion",
    "fuse_linear_bn_weights": "fusion",
    "fusion": "",
    "init": "",
    "memory_format": "",
    "parametrizations": "",
    "parametrize": "",
    "skip_init": "init",
    "stateless": "",
}

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
    "get_total_norm", "parameters_to_vector", "parametrizations", "parametrize",
    "remove_spectral_norm", "remove_weight_norm", "rnn", "skip_init", "spectral_norm", "stateless",
    "vector_to_parameters", "weight_norm",
]  # fmt: skip

_describe_all(globals(), [name for name in __all__ if name not in _LATER and name != "rnn"])

if _typing.TYPE_CHECKING:
    from rushlight.nn.utils import fusion as fusion
    from rushlight.nn.utils import init as init
    from rushlight.nn.utils import memory_format as memory_format
    from rushlight.nn.utils import parametrizations as parametrizations
    from rushlight.nn.utils import parametrize as parametrize
    from rushlight.nn.utils import stateless as stateless
    from rushlight.nn.utils.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
    from rushlight.nn.utils.fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
    from rushlight.nn.utils.fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
    from rushlight.nn.utils.fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
    from rushlight.nn.utils.init import skip_init as skip_init
    from rushlight.nn.utils.memory_format import (
        convert_conv2d_weight_memory_format as convert_conv2d_weight_memory_format,
    )
    from rushlight.nn.utils.memory_format import (
        convert_conv3d_weight_memory_format as convert_conv3d_weight_memory_format,
    )
else:
    __getattr__, __dir__ = _face(
        "torch.nn.utils", globals(), _LATER, ("clip_grad", "convert_parameters")
    )
