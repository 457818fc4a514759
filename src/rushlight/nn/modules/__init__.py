"""The modules. `rushlight.nn` exports all of them."""

import typing as _typing

from rushlight.nn.modules import (
    activation,
    batchnorm,
    container,
    distance,
    dropout,
    flatten,
    linear,
    loss,
    normalization,
    sparse,
)
from rushlight.nn.modules.activation import *  # noqa: F403
from rushlight.nn.modules.batchnorm import *  # noqa: F403
from rushlight.nn.modules.container import *  # noqa: F403
from rushlight.nn.modules.distance import *  # noqa: F403
from rushlight.nn.modules.dropout import *  # noqa: F403
from rushlight.nn.modules.flatten import *  # noqa: F403
from rushlight.nn.modules.linear import *  # noqa: F403
from rushlight.nn.modules.loss import *  # noqa: F403
from rushlight.nn.modules.module import Module as Module
from rushlight.nn.modules.normalization import *  # noqa: F403
from rushlight.nn.modules.sparse import *  # noqa: F403

if not _typing.TYPE_CHECKING:  # mypy does not follow these sums, and would see no module at all
    __all__ = ["Module"]
    __all__ += activation.__all__
    __all__ += batchnorm.__all__
    __all__ += container.__all__
    __all__ += distance.__all__
    __all__ += dropout.__all__
    __all__ += flatten.__all__
    __all__ += linear.__all__
    __all__ += loss.__all__
    __all__ += normalization.__all__
    __all__ += sparse.__all__
