"""What schedulers do to the learning rate."""

import warnings

import torch
from torch.optim import lr_scheduler as s

warnings.simplefilter("ignore")
makers = [
    lambda o: s.StepLR(o, 3, 0.5),
    lambda o: s.MultiStepLR(o, [2, 5], 0.1),
    lambda o: s.ExponentialLR(o, 0.9),
    lambda o: s.CosineAnnealingLR(o, 6, 0.01),
    lambda o: s.CosineAnnealingWarmRestarts(o, 3, 2),
    lambda o: s.OneCycleLR(o, 1.0, total_steps=9),
    lambda o: s.CyclicLR(o, 0.1, 1.0, 2),
    lambda o: s.LambdaLR(o, lambda epoch: 1 / (epoch + 1)),
    lambda o: s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 3), s.PolynomialLR(o, 5)], [3]),
    lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.5, 2), s.ExponentialLR(o, 0.8)]),
]
for make in makers:
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=0.5, momentum=0.9)
    scheduler = make(optimizer)
    rates = []
    for _ in range(8):
        optimizer.step()
        scheduler.step()
        rates.append(round(optimizer.param_groups[0]["lr"], 8))
    print(type(scheduler).__name__, rates)
plateau = s.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
for loss in (3.0, 2.0, 2.0, 2.0, 2.0, 1.0):
    plateau.step(loss)
    print(optimizer.param_groups[0]["lr"])
