"""Small programs of optim: the steps of optimisers, what they print, and rates by schedulers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.harness import PlainCases

exact = PlainCases()  # to the last bit and letter
close = PlainCases()  # to rounding


OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {"lr": 0.5}),
    "SGD momentum": ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    "SGD nesterov": ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "SGD dampening": ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "maximize": True}),
    "Adam": ("Adam", {"lr": 0.1}),
    "Adam amsgrad": (
        "Adam", {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "amsgrad": True}
    ),
    "Adam maximize": ("Adam", {"eps": 1e-3, "maximize": True}),
    "AdamW": ("AdamW", {"lr": 0.1}),
    "AdamW amsgrad": ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True, "maximize": True}),
    "Adagrad": ("Adagrad", {"lr": 0.1}),
    "Adagrad decay": (
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.1},
    ),
    "RMSprop": ("RMSprop", {}),
    "RMSprop centered": (
        "RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1, "maximize": True}
    ),
}  # fmt: skip


def parameters(torch: Any, dtype: str) -> list[Any]:
    torch.manual_seed(7)
    kind = getattr(torch, dtype)
    return [torch.randn(3, 4, dtype=kind, requires_grad=True), torch.randn((), dtype=kind)]


def descend(torch: Any, name: str, dtype: str) -> Any:
    """20 steps on a bumpy bowl: where each parameter was, and what the optimiser kept."""
    kind, options = OPTIMIZERS[name]
    w, b = parameters(torch, dtype)
    b.requires_grad_()
    optimizer = getattr(torch.optim, kind)([w, b], **options)
    way = []
    for step in range(20):
        optimizer.zero_grad()
        loss = ((w - 1) ** 2).mean() + 0.1 * ((w.sin() * b).sum() + b.cos())
        loss.backward()
        if step == 5:
            b.grad = None  # a parameter without a gradient is left alone
        optimizer.step()
        way.append([w.tolist(), b.item()])
    state = optimizer.state_dict()["state"]
    kept = {
        f"{i} {key}": value.tolist() for i, values in state.items() for key, value in values.items()
    }
    return [way, kept]


def descents(torch: Any) -> Any:
    return {
        f"{name} {dtype}": descend(torch, name, dtype)
        for name in OPTIMIZERS
        for dtype in ("float32", "float64")
    }


def optimizers_printed(torch: Any) -> Any:
    found = {}
    for name, (kind, options) in OPTIMIZERS.items():
        w, b = parameters(torch, "float32")
        groups = [{"params": [w]}, {"params": [b], "lr": 0.25}]
        optimizer = getattr(torch.optim, kind)(groups, **options)
        found[name] = [repr(optimizer), repr(optimizer.state_dict()["param_groups"])]
    return found


close["descents"] = descents
exact["optimizers printed"] = optimizers_printed


# --- learning rates -------------------------------------------------------------------------------
def rates(torch: Any) -> Any:
    """The learning rates of two groups over 25 epochs, and what the scheduler would save."""
    from_here = torch.optim.lr_scheduler
    makers: dict[str, Callable[[Any], Any]] = {
        "StepLR": lambda o: from_here.StepLR(o, 3, 0.5),
        "MultiStepLR": lambda o: from_here.MultiStepLR(o, [2, 5, 5, 9], 0.5),
        "ExponentialLR": lambda o: from_here.ExponentialLR(o, 0.9),
        "LambdaLR": lambda o: from_here.LambdaLR(o, lambda epoch: 1 / (epoch + 1)),
        "LambdaLR two": lambda o: from_here.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1.0]),
        "MultiplicativeLR": lambda o: from_here.MultiplicativeLR(o, lambda epoch: 0.95),
        "CosineAnnealingLR": lambda o: from_here.CosineAnnealingLR(o, 7, 0.01),
        "LinearLR": lambda o: from_here.LinearLR(o, 0.2, 0.9, 6),
        "ConstantLR": lambda o: from_here.ConstantLR(o, 0.3, 4),
        "PolynomialLR": lambda o: from_here.PolynomialLR(o, 8, 2.0),
        "SequentialLR": lambda o: from_here.SequentialLR(
            o, [from_here.LinearLR(o, 0.1, 1.0, 4), from_here.CosineAnnealingLR(o, 9)], [4]
        ),
        "ChainedScheduler": lambda o: from_here.ChainedScheduler(
            [from_here.ConstantLR(o, 0.3, 4), from_here.ExponentialLR(o, 0.9)]
        ),
    }
    found: dict[str, Any] = {}
    for name, make in makers.items():
        w, b = parameters(torch, "float32")
        optimizer = torch.optim.SGD([{"params": [w]}, {"params": [b], "lr": 0.05}], lr=0.8)
        scheduler = make(optimizer)
        seen = [scheduler.get_last_lr()]
        for _ in range(25):
            optimizer.step()
            scheduler.step()
            seen.append(scheduler.get_last_lr())
        state = scheduler.state_dict()
        found[name] = [seen, sorted(state), [g["initial_lr"] for g in optimizer.param_groups]]
    for mode, threshold in (("min", "rel"), ("max", "abs")):
        w, _ = parameters(torch, "float32")
        optimizer = torch.optim.SGD([w], lr=0.8)
        scheduler = from_here.ReduceLROnPlateau(
            optimizer, mode, 0.5, 1, 0.01, threshold, cooldown=1, min_lr=0.05
        )
        seen = []
        for metric in (1.0, 0.9, 0.9, 0.899, 0.9, 0.9, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.7, 0.8):
            scheduler.step(metric)
            seen.append(scheduler.get_last_lr())
        found[f"ReduceLROnPlateau {mode}"] = [seen, sorted(scheduler.state_dict())]
    return found


exact["rates"] = rates


def results(lib: Any) -> Any:
    return exact.results(lib) | close.results(lib)
