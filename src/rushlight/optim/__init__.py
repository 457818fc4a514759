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
from rushlight.optim.adagrad import Adagrad
from rushlight.optim.adam import Adam
from rushlight.optim.adamw import AdamW
from rushlight.optim.optimizer import Optimizer
from rushlight.optim.rmsprop import RMSprop
from rushlight.optim.sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]

if not _typing.TYPE_CHECKING:
    __getattr__, __dir__ = _face("torch.optim", globals())
