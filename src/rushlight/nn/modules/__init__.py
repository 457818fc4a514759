"""The modules. `rushlight.nn` exports all of them."""

import typing as _typing

from rushlight.nn.modules import (
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy_layers,
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)
from rushlight.nn.modules.activation import *  # noqa: F403
from rushlight.nn.modules.adaptive import *  # noqa: F403
from rushlight.nn.modules.batchnorm import *  # noqa: F403
from rushlight.nn.modules.channelshuffle import *  # noqa: F403
from rushlight.nn.modules.container import *  # noqa: F403
from rushlight.nn.modules.conv import *  # noqa: F403
from rushlight.nn.modules.distance import *  # noqa: F403
from rushlight.nn.modules.dropout import *  # noqa: F403
from rushlight.nn.modules.flatten import *  # noqa: F403
from rushlight.nn.modules.fold import *  # noqa: F403
from rushlight.nn.modules.instancenorm import *  # noqa: F403
from rushlight.nn.modules.lazy_layers import *  # noqa: F403
from rushlight.nn.modules.linear import *  # noqa: F403
from rushlight.nn.modules.loss import *  # noqa: F403
from rushlight.nn.modules.module import Module as Module
from rushlight.nn.modules.normalization import *  # noqa: F403
from rushlight.nn.modules.padding import *  # noqa: F403
from rushlight.nn.modules.pixelshuffle import *  # noqa: F403
from rushlight.nn.modules.pooling import *  # noqa: F403
from rushlight.nn.modules.rnn import *  # noqa: F403
from rushlight.nn.modules.sparse import *  # noqa: F403
from rushlight.nn.modules.transformer import *  # noqa: F403
from rushlight.nn.modules.upsampling import *  # noqa: F403

_FILES = (
    activation, adaptive, batchnorm, channelshuffle, container, conv, distance, dropout, flatten,
    fold, instancenorm, lazy_layers, linear, loss, normalization, padding, pixelshuffle, pooling,
    rnn, sparse, transformer, upsampling,
)  # fmt: skip
if not _typing.TYPE_CHECKING:  # mypy does not follow this sum, and would see no module at all
    from rushlight.nn.modules.loss import LinearCrossEntropyOptions as LinearCrossEntropyOptions

    __all__ = ["Module", *(name for file in _FILES for name in file.__all__)]
    __all__.append("LinearCrossEntropyOptions")  # not given by `modules.loss` itself

    def __dir__() -> list[str]:
        files = {file.__name__.rpartition(".")[2] for file in _FILES}
        return [*__all__, *(files - {"lazy_layers"}), "lazy", "module", "utils"]
