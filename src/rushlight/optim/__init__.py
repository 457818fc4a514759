"""Optimisers: they change parameters by their gradients, one `step` at a time.

>>> net = torch.nn.Linear(2, 1)
>>> opt = torch.optim.Adam(net.parameters(), lr=0.01)
>>> net(torch.ones(3, 2)).sum().backward()
>>> opt.step()
>>> opt.zero_grad()
"""

import typing as _typing

from rushlight.missing import face as _face
from rushlight.optim import lr_scheduler
from rushlight.optim.adam import Adam
from rushlight.optim.adamw import AdamW
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.sgd import SGD

if _typing.TYPE_CHECKING:
    from rushlight.optim import swa_utils
    from rushlight.optim._adafactor import Adafactor
    from rushlight.optim._muon import Muon
    from rushlight.optim._stateless import swap_in_optimizer_params_and_state
    from rushlight.optim.adadelta import Adadelta
    from rushlight.optim.adagrad import Adagrad
    from rushlight.optim.adamax import Adamax
    from rushlight.optim.asgd import ASGD
    from rushlight.optim.lbfgs import LBFGS
    from rushlight.optim.nadam import NAdam
    from rushlight.optim.radam import RAdam
    from rushlight.optim.rmsprop import RMSprop
    from rushlight.optim.rprop import Rprop
    from rushlight.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon",
    "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler", "swa_utils",
    "swap_in_optimizer_params_and_state",
]  # fmt: skip

# Imported when first used, so that `import rushlight.optim` stays quick: name, and its module.
_LATER = {
    "ASGD": "asgd",
    "Adadelta": "adadelta",
    "Adafactor": "_adafactor",
    "Adagrad": "adagrad",
    "Adamax": "adamax",
    "LBFGS": "lbfgs",
    "Muon": "_muon",
    "NAdam": "nadam",
    "RAdam": "radam",
    "RMSprop": "rmsprop",
    "Rprop": "rprop",
    "SparseAdam": "sparse_adam",
    "swa_utils": "",
    "swap_in_optimizer_params_and_state": "_stateless",
}

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.optim", globals(), _LATER)
