"""Optimisers: they change parameters by their gradients, one `step` at a time.

>>> import rushlight as torch
>>> net = torch.nn.Linear(2, 1)
>>> opt = torch.optim.Adam(net.parameters(), lr=0.01)
>>> net(torch.ones(3, 2)).sum().backward()
>>> opt.step()
>>> opt.zero_grad()
"""

import typing as _typing

from rushlight.missing import say_missing as _say_missing
from rushlight.optim import lr_scheduler as lr_scheduler
from rushlight.optim.adagrad import Adagrad as Adagrad
from rushlight.optim.adam import Adam as Adam
from rushlight.optim.adamw import AdamW as AdamW
from rushlight.optim.optimizer import Optimizer as Optimizer
from rushlight.optim.rmsprop import RMSprop as RMSprop
from rushlight.optim.sgd import SGD as SGD

if not _typing.TYPE_CHECKING:
    __getattr__ = _say_missing("torch.optim", globals())
