"""Small programs of optim: the steps of optimisers, what they print, and rates by schedulers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tests.harness import PlainCases

exact = PlainCases()  # to the last bit and letter
close = PlainCases()  # to rounding
coarse = PlainCases()  # to the rounding of bfloat16


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
    "Adam decoupled": ("Adam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    "Adam fused": ("Adam", {"lr": 0.1, "fused": True}),
    "SGD foreach": ("SGD", {"lr": 0.1, "momentum": 0.9, "foreach": True}),
    "ASGD": ("ASGD", {"lr": 0.1}),
    "ASGD means": (
        "ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 5, "weight_decay": 0.1}
    ),
    "ASGD maximize": ("ASGD", {"t0": 3, "maximize": True}),
    "Adadelta": ("Adadelta", {}),
    "Adadelta decay": ("Adadelta", {"lr": 0.5, "rho": 0.5, "eps": 1e-3, "weight_decay": 0.1}),
    "Adadelta maximize": ("Adadelta", {"maximize": True}),
    "Adafactor": ("Adafactor", {}),
    "Adafactor decay": (
        "Adafactor",
        {"lr": 0.05, "beta2_decay": -0.5, "eps": (1e-3, 0.1), "d": 2.0, "weight_decay": 0.1},
    ),
    "Adafactor maximize": ("Adafactor", {"maximize": True, "foreach": True}),
    "Adamax": ("Adamax", {"lr": 0.1}),
    "Adamax decay": (
        "Adamax", {"betas": (0.5, 0.7), "eps": 1e-2, "weight_decay": 0.1, "maximize": True}
    ),
    "NAdam": ("NAdam", {"lr": 0.05}),
    "NAdam decay": (
        "NAdam",
        {"betas": (0.5, 0.7), "eps": 1e-2, "weight_decay": 0.1, "momentum_decay": 0.1},
    ),
    "NAdam decoupled": (
        "NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}
    ),
    "RAdam": ("RAdam", {"lr": 0.1, "betas": (0.9, 0.99)}),
    "RAdam early": ("RAdam", {"lr": 0.01}),
    "RAdam decay": ("RAdam", {"lr": 0.1, "betas": (0.5, 0.7), "eps": 1e-2, "weight_decay": 0.1}),
    "RAdam decoupled": (
        "RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}
    ),
    "Rprop": ("Rprop", {}),
    "Rprop sizes": ("Rprop", {"lr": 0.1, "etas": (0.3, 1.7), "step_sizes": (1e-2, 0.3)}),
    "Rprop maximize": ("Rprop", {"maximize": True}),
}  # fmt: skip
SEEN = (0, 1, 4, 9, 19)  # the steps whose results are stored


def parameters(torch: Any, dtype: str) -> list[Any]:
    torch.manual_seed(7)
    kind = getattr(torch, dtype)
    return [torch.randn(3, 4, dtype=kind, requires_grad=True), torch.randn((), dtype=kind)]


def kept(torch: Any, optimizer: Any) -> Any:
    """What an optimiser keeps of its parameters, as lists."""
    state = optimizer.state_dict()["state"]
    return {
        f"{i} {key}": numbers(torch, value)
        for i, values in state.items()
        for key, value in values.items()
    }


def numbers(torch: Any, t: Any) -> Any:
    t = t.detach()
    return (torch.view_as_real(t) if t.is_complex() else t).tolist()


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
        if step in SEEN:
            way.append([w.tolist(), b.item()])
    return [way, kept(torch, optimizer)]


def descents(torch: Any) -> Any:
    return {
        f"{name} {dtype}": descend(torch, name, dtype)
        for name in OPTIMIZERS
        for dtype in ("float32", "float64")
    }


def complex_descents(torch: Any) -> Any:
    """The same for complex numbers; "float64" in a name asks for full precision."""
    found: dict[str, Any] = {}
    for name in ("SGD nesterov", "Adam amsgrad", "Adagrad decay", "RMSprop centered", "ASGD means",
                 "Adadelta decay", "Adafactor", "Adamax decay", "NAdam", "RAdam decay",
                 "Rprop sizes"):  # fmt: skip
        kind, options = OPTIMIZERS[name]
        w, _ = parameters(torch, "complex128")
        optimizer = getattr(torch.optim, kind)([w], **options)
        try:
            for _ in range(20):
                optimizer.zero_grad()
                ((w - 1).abs() ** 2).mean().backward()
                optimizer.step()
        except RuntimeError as error:
            found[name] = str(error)
            continue
        found[f"{name} float64"] = [numbers(torch, w), kept(torch, optimizer)]
    return found


def whole_matrices(torch: Any) -> Any:
    """Muon: 20 steps on two matrices. It rounds to bfloat16 on the way."""
    found = {}
    for name, options in {
        "plain": {},
        "rate of AdamW": {"lr": 0.1, "adjust_lr_fn": "match_rms_adamw", "ns_steps": 3},
        "no decay": {"weight_decay": 0.0, "momentum": 0.5, "nesterov": False},
    }.items():
        torch.manual_seed(3)
        w, b = torch.randn(3, 4, requires_grad=True), torch.randn(5, 2, requires_grad=True)
        optimizer = torch.optim.Muon([w, b], **options)
        for _ in range(20):
            optimizer.zero_grad()
            (((w - 1) ** 2).mean() + (b.sin() ** 2).sum()).backward()
            optimizer.step()
        found[name] = [w.tolist(), b.tolist(), kept(torch, optimizer)]
    return found


def curved(torch: Any) -> Any:
    """LBFGS on Rosenbrock's valley, and how often it looked."""
    found = {}
    for name, options in {
        "plain": {"lr": 0.1, "max_iter": 4},
        "wolfe": {"line_search_fn": "strong_wolfe", "max_iter": 4},
        "short memory": {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 5},
        "few looks": {"line_search_fn": "strong_wolfe", "max_eval": 3},
    }.items():
        w = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
        c = torch.tensor([0.3 + 0.4j], dtype=torch.complex128, requires_grad=True)
        optimizer = torch.optim.LBFGS([w, c], **options)

        def closure() -> Any:
            optimizer.zero_grad()  # noqa: B023  # called in this round
            loss = (1 - w[0]) ** 2 + 10 * (w[1] - w[0] ** 2) ** 2  # noqa: B023
            loss = loss + (c.abs() ** 2).sum()  # noqa: B023
            loss.backward()
            return loss

        losses = [optimizer.step(closure).item() for _ in range(2)]
        state = optimizer.state[w]
        looked = [state["n_iter"], state["func_evals"], len(state["ro"])]
        found[f"{name} float64"] = [losses, w.tolist(), numbers(torch, c), looked]
    return found


class Rows:
    """Stands in for a sparse gradient where a library has none."""

    is_sparse = True

    def __init__(self, indices: Any, values: Any) -> None:
        self.indices, self.values = indices, values

    def coalesce(self) -> Any:
        return self

    def _indices(self) -> Any:
        return self.indices

    def _values(self) -> Any:
        return self.values


def rows_only(torch: Any) -> Any:
    """Sparse gradients: only the rows they have are changed."""
    from importlib import import_module

    name = torch.__name__

    def gradient(rows: list[int], step: int) -> Any:
        indices = torch.tensor([rows])
        values = (torch.arange(2.0 * len(rows)).reshape(len(rows), 2) - 1) * (step + 1)
        if hasattr(torch, "sparse_coo_tensor"):
            with quiet():
                return torch.sparse_coo_tensor(indices, values, (4, 2)).coalesce()
        return Rows(indices, values)

    found = {}
    with torch.no_grad():
        for maximize in (False, True):
            w, m, v = torch.ones(4, 2), torch.zeros(4, 2), torch.zeros(4, 2)
            sparse_adam = import_module(f"{name}.optim._functional").sparse_adam
            for n, rows in enumerate(([0, 2], [2], [1, 2, 3])):
                sparse_adam([w], [gradient(rows, n)], [m], [v], [n + 1], eps=1e-8, beta1=0.9,
                            beta2=0.99, lr=0.1, maximize=maximize)  # fmt: skip
            found[f"SparseAdam {maximize}"] = [w.tolist(), m.tolist(), v.tolist()]
        w = torch.ones(4, 2)
        sgd = import_module(f"{name}.optim.sgd").sgd
        sgd([w], [gradient([0, 2], 0)], [None], has_sparse_grad=True, weight_decay=0, momentum=0,
            lr=0.1, dampening=0, nesterov=False, maximize=False)  # fmt: skip
        found["SGD"] = w.tolist()
        total, step = torch.zeros(4, 2), torch.tensor(0.0)
        adagrad = import_module(f"{name}.optim.adagrad").adagrad
        for n in range(2):
            adagrad([w], [gradient([0, 3], n)], [total], [step], has_sparse_grad=True, lr=0.1,
                    weight_decay=0, lr_decay=0.1, eps=1e-8, maximize=False)  # fmt: skip
        found["Adagrad"] = [w.tolist(), total.tolist(), step.item()]
    return found


def optimizers_printed(torch: Any) -> Any:
    found = {}
    for name, (kind, options) in OPTIMIZERS.items():
        w, b = parameters(torch, "float32")
        groups = [{"params": [w]}, {"params": [b], "lr": 0.25}]
        optimizer = getattr(torch.optim, kind)(groups, **options)
        found[name] = [repr(optimizer), repr(optimizer.state_dict()["param_groups"])]
    return found


close["descents"] = descents
close["complex descents"] = complex_descents
coarse["whole matrices"] = whole_matrices
close["curved"] = curved
close["rows only"] = rows_only
exact["optimizers printed"] = optimizers_printed


def momenta(optimizer: Any) -> Any:
    return [group["momentum"] for group in optimizer.param_groups]


# --- learning rates -------------------------------------------------------------------------------
def quiet() -> Any:
    return warnings.catch_warnings(action="ignore")


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
        "CyclicLR": lambda o: from_here.CyclicLR(o, 0.1, [0.5, 0.6], 4),
        "CyclicLR halving": lambda o: from_here.CyclicLR(o, 0.1, 0.5, 3, 2, "triangular2"),
        "CyclicLR falling": lambda o: from_here.CyclicLR(
            o, 0.1, 0.5, 3, mode="exp_range", gamma=0.9, cycle_momentum=False
        ),
        "CyclicLR function": lambda o: from_here.CyclicLR(
            o, 0.1, 0.5, 3, scale_fn=lambda x: 1 / x, scale_mode="cycle", base_momentum=0.5
        ),
        "OneCycleLR": lambda o: from_here.OneCycleLR(o, 0.5, total_steps=26),
        "OneCycleLR three": lambda o: from_here.OneCycleLR(
            o, [0.5, 0.7], epochs=5, steps_per_epoch=6, three_phase=True, anneal_strategy="linear"
        ),
        "OneCycleLR rate alone": lambda o: from_here.OneCycleLR(
            o, 0.5, 30, cycle_momentum=False, pct_start=0.5, div_factor=10.0, final_div_factor=5.0
        ),
        "CosineAnnealingWarmRestarts": lambda o: from_here.CosineAnnealingWarmRestarts(o, 4),
        "CosineAnnealingWarmRestarts longer": lambda o: from_here.CosineAnnealingWarmRestarts(
            o, 3, 2, 0.01
        ),
        "SWALR": lambda o: torch.optim.swa_utils.SWALR(o, [0.05, 0.01]),
        "SWALR linear": lambda o: torch.optim.swa_utils.SWALR(o, 0.05, 3, "linear"),
        "SWALR at once": lambda o: torch.optim.swa_utils.SWALR(o, 0.05, 0),
        "SequentialLR warm": lambda o: from_here.SequentialLR(
            o, [from_here.ConstantLR(o, 0.1, 3), from_here.OneCycleLR(o, 0.5, 30)], [3]
        ),
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
        groups = [{"params": [w]}, {"params": [b], "lr": 0.05}]
        optimizer = torch.optim.SGD(groups, lr=0.8, momentum=0.9)
        scheduler = make(optimizer)
        seen = [[scheduler.get_last_lr(), momenta(optimizer)]]
        for _ in range(25):
            optimizer.step()
            scheduler.step()
            seen.append([scheduler.get_last_lr(), momenta(optimizer)])
        state = {key: repr(value) for key, value in scheduler.state_dict().items()}
        options = repr(optimizer.state_dict()["param_groups"])
        found[name] = [seen, list(state), state, options]
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


def told_epochs(torch: Any) -> Any:
    """Schedulers that are told the epoch, and momentum that is Adam's first beta."""
    from_here = torch.optim.lr_scheduler
    found: dict[str, Any] = {}
    w, _ = parameters(torch, "float32")
    for name, make in {
        "StepLR": lambda o: from_here.StepLR(o, 3, 0.5),
        "MultiStepLR": lambda o: from_here.MultiStepLR(o, [2, 5, 5, 9], 0.5),
        "ExponentialLR": lambda o: from_here.ExponentialLR(o, 0.9),
        "CosineAnnealingLR": lambda o: from_here.CosineAnnealingLR(o, 7, 0.01),
        "LinearLR": lambda o: from_here.LinearLR(o, 0.2, 0.9, 6),
        "ConstantLR": lambda o: from_here.ConstantLR(o, 0.3, 4),
        "PolynomialLR": lambda o: from_here.PolynomialLR(o, 8, 2.0),
        "LambdaLR": lambda o: from_here.LambdaLR(o, lambda epoch: 1 / (epoch + 1)),
        "CosineAnnealingWarmRestarts": lambda o: from_here.CosineAnnealingWarmRestarts(o, 3, 2),
        "CosineAnnealingWarmRestarts 1": lambda o: from_here.CosineAnnealingWarmRestarts(o, 3),
    }.items():
        optimizer = torch.optim.Adam([w], lr=0.8)
        scheduler = make(optimizer)
        seen = []
        for now in (1, 2, 5, 4, None, 9, None):
            optimizer.step()
            with quiet():
                scheduler.step(now)
            seen.append([scheduler.get_last_lr(), scheduler.last_epoch])
        found[name] = seen
    for make in (
        lambda o: from_here.OneCycleLR(o, 0.5, 10),
        lambda o: from_here.CyclicLR(o, 0.1, 0.5, 3),
    ):
        optimizer = torch.optim.Adam([w], lr=0.8)
        scheduler = make(optimizer)
        seen = []
        for _ in range(8):
            optimizer.step()
            scheduler.step()
            seen.append([scheduler.get_last_lr(), optimizer.param_groups[0]["betas"]])
        found[type(scheduler).__name__] = seen
    return found


exact["told epochs"] = told_epochs


# --- averages -------------------------------------------------------------------------------------
def averages(torch: Any) -> Any:
    swa = torch.optim.swa_utils
    found = {}
    for name, options in {
        "mean": {},
        "buffers": {"use_buffers": True},
        "ema": {"avg_fn": swa.get_ema_avg_fn(0.9)},
        "swa": {"avg_fn": swa.get_swa_avg_fn()},
        "many ema": {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9), "use_buffers": True},
        "many swa": {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
    }.items():
        torch.manual_seed(1)
        net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
        average = swa.AveragedModel(net, **options)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        for _ in range(4):
            optimizer.zero_grad()
            (net(torch.randn(5, 2)) ** 3).mean().backward()
            optimizer.step()
            average.update_parameters(net)
        loader = [torch.randn(4, 2), [torch.randn(6, 2), "label"]]
        before = {key: value.tolist() for key, value in average.state_dict().items()}
        average.eval()
        swa.update_bn(loader, average)
        norm = average.module[1]
        after = [norm.running_mean.tolist(), norm.running_var.tolist(), norm.momentum]
        found[name] = [before, after, average.training, average(torch.ones(1, 2)).tolist()]
    return found


close["averages"] = averages


# --- what optimisers are, but for numbers ---------------------------------------------------------
def stepped(torch: Any, kind: str = "Adam", **options: Any) -> Any:
    p = torch.ones(2, requires_grad=True)
    optimizer = getattr(torch.optim, kind)([p], **options)
    p.grad = torch.ones(2)
    optimizer.step()
    return p, optimizer


def told(fn: Callable[[], Any]) -> Any:
    """What a call gives, or its error."""
    try:
        return repr(fn())
    except Exception as error:
        lines = str(error).splitlines()
        return f"{type(error).__name__}: {lines[0] if lines else ''}"


EVERY = (
    "ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam",
    "RAdam", "RMSprop", "Rprop", "SGD", "SparseAdam",
)  # fmt: skip
BAD: dict[str, Any] = {
    "lr": -1.0, "rho": 2.0, "eps": -1.0, "weight_decay": -1.0, "betas": (0.5, 1.0),
    "lr_decay": -1.0, "momentum_decay": -1.0, "etas": (1.2, 1.5), "alpha": -1.0,
    "beta2_decay": 1.0, "d": 0.0, "momentum": -1.0, "adjust_lr_fn": "x",
    "initial_accumulator_value": -1.0,
}  # fmt: skip


def wrong_options(torch: Any) -> Any:
    import inspect

    found = {}
    w = torch.ones(2, 2, requires_grad=True)
    two = torch.tensor([0.1, 0.2])
    for name in EVERY:
        make = getattr(torch.optim, name)
        taken = inspect.signature(make).parameters
        found[f"{name} signature"] = [
            [p.name, str(p.kind), repr(p.default)] for p in taken.values()
        ]
        for option, value in BAD.items():
            if option in taken and not (name == "Adafactor" and option == "eps"):
                found[f"{name} {option}"] = told(lambda: make([w], **{option: value}))  # noqa: B023
        found[f"{name} two rates"] = told(lambda: make([w], lr=two))  # noqa: B023
    optim = torch.optim
    vector = torch.ones(2, requires_grad=True)
    plane = torch.ones(2, 2, dtype=torch.complex64, requires_grad=True)
    plane.grad = torch.ones_like(plane)
    found |= {
        "Adafactor eps1": told(lambda: optim.Adafactor([w], eps=(-1.0, 1.0))),
        "Adafactor eps2": told(lambda: optim.Adafactor([w], eps=(1.0, -1.0))),
        "Muon vector": told(lambda: optim.Muon([vector])),
        "Muon complex": told(lambda: optim.Muon([plane]).step()),
        "LBFGS groups": told(lambda: optim.LBFGS([{"params": [w]}, {"params": [vector]}])),
        "SGD nesterov": told(lambda: optim.SGD([w], nesterov=True)),
        "Adam fused": told(lambda: optim.Adam([w], fused=True, foreach=True)),
        "Adam recorded": told(lambda: optim.Adam([w], fused=True, differentiable=True)),
        "Adam betas": told(lambda: optim.Adam([w], betas=(torch.tensor(0.9), 0.99))),
        "Adam beta": told(lambda: optim.Adam([w], betas=(two, two))),
    }
    w.grad = torch.ones_like(w)
    for steps in (100, 5):
        coefficients = (1.0, 2.0, 3.0) if steps == 100 else (1.0, 2.0)
        muon = optim.Muon([w], ns_steps=steps, ns_coefficients=coefficients)
        found[f"Muon {steps}"] = told(muon.step)
    found["dense"] = told(optim.SparseAdam([w]).step)
    found["search"] = told(lambda: optim.LBFGS([w], line_search_fn="x").step(lambda: (w * w).sum()))
    return found


def wrong_schedulers(torch: Any) -> Any:
    made = torch.optim.lr_scheduler

    def new(kind: str = "SGD") -> Any:
        options = {"momentum": 0.9} if kind == "SGD" else {}
        params = [{"params": [torch.ones(1, requires_grad=True)]} for _ in range(2)]
        return getattr(torch.optim, kind)(params, lr=0.1, **options)

    found = {}
    for kind, options in (
        ("OneCycleLR", {}), ("OneCycleLR", {"total_steps": -1}),
        ("OneCycleLR", {"total_steps": 1.5}),
        ("OneCycleLR", {"epochs": 0, "steps_per_epoch": 1}),
        ("OneCycleLR", {"epochs": 1, "steps_per_epoch": 0}),
        ("OneCycleLR", {"total_steps": 3, "pct_start": 2.0}),
        ("OneCycleLR", {"total_steps": 3, "anneal_strategy": "x"}),
        ("OneCycleLR", {"total_steps": 3, "max_lr": [0.5]}),
        ("OneCycleLR", {"total_steps": 3, "base_momentum": [0.5]}),
        ("CyclicLR", {"mode": "x"}), ("CyclicLR", {"base_lr": [0.1]}),
        ("CosineAnnealingWarmRestarts", {"T_0": 0}),
        ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 1.5}),
        ("CosineAnnealingWarmRestarts", {"T_0": 3, "eta_min": "a"}),
        ("CosineAnnealingWarmRestarts", {"T_0": 3, "last_epoch": 5}),
        ("LambdaLR", {"lr_lambda": [max]}), ("LRScheduler", {}), ("_LRScheduler", {}),
        ("ReduceLROnPlateau", {"factor": 2.0}), ("ReduceLROnPlateau", {"mode": "x"}),
        ("ReduceLROnPlateau", {"threshold_mode": "x"}), ("ReduceLROnPlateau", {"min_lr": [1.0]}),
        ("StepLR", {"step_size": 1, "verbose": True}),
    ):  # fmt: skip
        start = {"OneCycleLR": {"max_lr": 0.5}, "CyclicLR": {"base_lr": 0.1, "max_lr": 0.5}}
        options = start.get(kind, {}) | options
        make = getattr(made, kind)
        found[f"{kind} {options}"] = told(lambda: make(new(), **options) and None)  # noqa: B023
    found["no momentum"] = told(lambda: made.CyclicLR(new("Adagrad"), 0.1, 0.5))
    found["no optimizer"] = told(lambda: made.OneCycleLR(3, 0.1))
    scheduler = made.OneCycleLR(new(), 0.5, 2)
    scheduler.optimizer.step()
    found["too far"] = [told(scheduler.step) for _ in range(4)]
    restarts = made.CosineAnnealingWarmRestarts(new(), 3)
    found["back"] = told(lambda: restarts.step(-1))
    swa = torch.optim.swa_utils
    for options in ({"anneal_strategy": "x"}, {"anneal_epochs": -1}, {"swa_lr": [0.1]}):
        found[f"SWALR {options}"] = told(
            lambda: swa.SWALR(new(), **({"swa_lr": 0.1} | options))  # noqa: B023
        )
    net = torch.nn.Linear(1, 1)
    found["two"] = told(lambda: swa.AveragedModel(net, avg_fn=max, multi_avg_fn=max))
    found["decays"] = [
        told(lambda: swa.get_ema_avg_fn(2.0)),
        told(lambda: swa.get_ema_multi_avg_fn(-1)),
    ]
    return found


exact["errors of options"] = wrong_options
exact["errors of schedulers"] = wrong_schedulers


def loading(torch: Any) -> Any:
    """What a loaded state shares, which names win, and states of older versions."""
    found: dict[str, Any] = {}
    p, first = stepped(torch)
    saved = first.state_dict()
    for dtype in ("float32", "float64", "complex64"):
        q = torch.ones(2, dtype=getattr(torch, dtype), requires_grad=True)
        second = torch.optim.Adam([q])
        second.load_state_dict(saved)
        pairs = ((v, second.state[q][k]) for k, v in first.state[p].items())
        found[dtype] = [[a is b, str(b.dtype).split(".")[-1]] for a, b in pairs]
    found["saved"] = [saved["state"][0] is first.state[p], list(saved["param_groups"][0])]

    def named(*names: str) -> Any:
        params = [torch.ones(1, requires_grad=True) for _ in range(2)]
        return torch.optim.SGD(zip(names, params) if names else params, lr=0.1)

    for name, (a, b) in {
        "both": (named("x", "y"), named("a", "b")),
        "saved alone": (named(), named("a", "b")),
        "own alone": (named("x", "y"), named()),
    }.items():
        a.load_state_dict(b.state_dict())
        found[name] = [list(a.param_groups[0]), a.param_groups[0].get("param_names")]
    for kind in EVERY:
        if kind in ("LBFGS", "Muon", "SparseAdam", "Adafactor"):
            continue
        _, optimizer = stepped(torch, kind)
        state = optimizer.__getstate__()
        for group in state["param_groups"]:
            for key in ("foreach", "maximize", "capturable", "differentiable", "fused", "amsgrad",
                        "decoupled_weight_decay", "nesterov", "centered"):  # fmt: skip
                group.pop(key, None)
        for values in state["state"].values():
            for key in ("step", "eta", "mu", "mu_product"):
                if key in values:
                    values[key] = values[key].item()
        state["defaults"].pop("differentiable", None)
        old = type(optimizer).__new__(type(optimizer))
        old.__setstate__(state)
        old.step()
        (group,) = old.param_groups
        (param,) = group.pop("params")
        keys = [[k, repr(v)] for k, v in sorted(group.items())]
        kept = {k: str(v.dtype).split(".")[-1] for k, v in old.state[param].items()}
        found[f"old {kind}"] = [keys, kept, old.defaults["differentiable"]]
    return found


def hooks(torch: Any) -> Any:
    log: list[Any] = []
    _, o = stepped(torch)
    o.register_state_dict_pre_hook(lambda o: log.append("save"))
    o.register_state_dict_pre_hook(lambda o: log.append("save first"), prepend=True)
    o.register_state_dict_post_hook(lambda o, s: log.append(f"saved {sorted(s)}"))
    o.register_load_state_dict_pre_hook(lambda o, s: log.append("load"))
    o.register_load_state_dict_post_hook(lambda o: log.append("loaded"))
    o.register_load_state_dict_post_hook(lambda o: log.append("loaded first"), prepend=True)
    o.register_step_pre_hook(
        lambda o, args, kwargs: log.append(["before", len(args), sorted(kwargs)])
    )
    o.register_step_post_hook(
        lambda o, args, kwargs: log.append(["after", len(args), sorted(kwargs)])
    )
    o.load_state_dict(o.state_dict())
    o.step()
    o.step(closure=None)
    handle = o.register_step_pre_hook(lambda o, args, kwargs: (args, {"closure": lambda: 7}))
    log.append(o.step())
    handle.remove()
    log.append(o.step())
    return log


def groups(torch: Any) -> Any:
    a, b = (torch.ones(1, requires_grad=True) for _ in range(2))
    sgd = torch.optim.SGD
    net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))
    apart = [
        {"params": net[0].named_parameters(), "lr": 0.1}, {"params": net[1].named_parameters()}
    ]  # fmt: skip
    o = torch.optim.Adam(apart)
    return {
        "some names": told(lambda: sgd([("a", a), b])),
        "then none": told(lambda: sgd([{"params": [("a", a)]}, {"params": [b]}])),
        "then names": told(lambda: sgd([{"params": [a]}, {"params": [("b", b)]}])),
        "set": told(lambda: sgd([{"params": {a}}])),
        "number": told(lambda: sgd([1])),
        "tensor": told(lambda: sgd(a)),
        "empty": told(lambda: sgd([])),
        "result": told(lambda: sgd([a * 1])),
        "twice": told(lambda: sgd([{"params": [a]}, {"params": [a]}])),
        "named": [group["param_names"] for group in o.param_groups],
        "printed": repr(torch.optim.Adam(net.named_parameters())),
        "rate": repr(sgd([a], lr=torch.tensor(0.5))),
        "not a group": told(lambda: o.add_param_group(3)),
        "fewer": told(lambda: o.load_state_dict({"state": {}, "param_groups": []})),
        "other": told(
            lambda: o.load_state_dict(
                {"state": {}, "param_groups": [{"params": [0]}, {"params": [1]}]}
            )
        ),
        "no step": told(lambda: torch.optim.Optimizer([a], {}).step()),
    }


def swapped(torch: Any) -> Any:
    """Another state and other parameters for a while."""
    from copy import deepcopy

    swap = torch.optim.swap_in_optimizer_params_and_state
    p, o = stepped(torch)
    saved = deepcopy(o.state_dict())
    fresh = torch.optim.Adam([torch.ones(2, requires_grad=True)])
    other = torch.zeros(2)
    other.grad = torch.ones(2)

    def using(params: Any, state: Any, optimizer: Any = o) -> Any:
        with swap(optimizer, params, state):
            optimizer.step()

    def without(*path: Any) -> Any:
        state: Any = deepcopy(saved)
        *way, last = path
        inner = state
        for key in way:
            inner = inner[key]
        del inner[last]
        return state

    saved["param_groups"][0]["lr"] = 9.0
    found = {
        "none yet": told(lambda: using({"p": other}, saved, fresh)),
        "good": told(lambda: using({"p": other}, saved)),
        "none": told(lambda: using({}, saved)),
        "no state": told(lambda: using({"p": other}, without("state"))),
        "no groups": told(lambda: using({"p": other}, without("param_groups"))),
        "no group": told(lambda: using({"p": other}, without("param_groups", 0))),
        "no rate": told(lambda: using({"p": other}, without("param_groups", 0, "lr"))),
        "no param": told(lambda: using({"p": other}, without("param_groups", 0, "params", 0))),
    }
    steps = [saved["state"][0]["step"].item(), o.state[p]["step"].item()]
    return found | {"after": [other.tolist(), steps, o.param_groups[0]["lr"]]}


exact["loading"] = loading
exact["hooks"] = hooks
exact["errors of groups"] = groups
exact["errors of swapping"] = swapped


def results(lib: Any) -> Any:
    return exact.results(lib) | close.results(lib) | coarse.results(lib)
