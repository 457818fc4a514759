"""Neural networks: modules, their parameters, first values, and functions.

>>> from rushlight import nn
>>> net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
>>> net(torch.ones(2, 3)).shape
torch.Size([2, 1])
"""

import typing as _typing

from rushlight.missing import face as _face
from rushlight.nn import functional as functional
from rushlight.nn import init as init
from rushlight.nn import modules as modules
from rushlight.nn import parameter as parameter
from rushlight.nn import utils as utils
from rushlight.nn.modules import *  # noqa: F403
from rushlight.nn.parameter import Buffer as Buffer
from rushlight.nn.parameter import Parameter as Parameter
from rushlight.nn.parameter import UninitializedBuffer as UninitializedBuffer
from rushlight.nn.parameter import UninitializedParameter as UninitializedParameter

if _typing.TYPE_CHECKING:
    from rushlight.nn import attention as attention
    from rushlight.nn import parallel as parallel
    from rushlight.nn.modules.loss import LinearCrossEntropyOptions as LinearCrossEntropyOptions
    from rushlight.nn.parallel import DataParallel as DataParallel
else:
    _LATER = {"attention": "", "parallel": "", "DataParallel": "parallel"}
    __all__ = [
        "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "functional",
        "init", "modules", "parameter", "utils", *modules.__all__, *_LATER,
    ]  # fmt: skip
    __getattr__, __dir__ = _face("torch.nn", globals(), _LATER)
