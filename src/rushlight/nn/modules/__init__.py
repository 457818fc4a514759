"""The modules. `rushlight.nn` exports all of them."""

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
