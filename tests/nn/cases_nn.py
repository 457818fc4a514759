"""Small programs of nn: what modules print, start with and compute, and errors of nn and optim."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from tests.harness import PlainCases

exact = PlainCases()  # to the last bit and letter
close = PlainCases()  # to rounding


# --- the printed form of modules ------------------------------------------------------------------
MODULES = """
Identity(3) | Linear(2, 3) | Linear(2, 3, bias=False) | Bilinear(2, 3, 4) | Flatten()
Flatten(0, 2) | Unflatten(1, (2, 3)) | Embedding(5, 3) | Embedding(5, 3, padding_idx=1)
Embedding(5, 3, max_norm=2.0)
Embedding(5, 3, norm_type=1.0, scale_grad_by_freq=True, sparse=True)
Embedding(5, 3, padding_idx=-1) | Dropout() | Dropout(0.2, True) | Dropout1d() | Dropout2d()
Dropout3d() | LayerNorm(3) | LayerNorm((2, 3), bias=False)
LayerNorm((2, 3), elementwise_affine=False) | BatchNorm1d(3) | BatchNorm1d(3, affine=False)
BatchNorm2d(3, momentum=None) | BatchNorm3d(3) | BatchNorm1d(3, track_running_stats=False)
BatchNorm1d(3, bias=False) | ReLU() | ReLU(True) | ReLU6() | ReLU6(True) | LeakyReLU()
LeakyReLU(0.2, True) | RReLU() | RReLU(inplace=True) | ELU() | ELU(0.5, True) | CELU()
CELU(inplace=True) | SELU() | SELU(True) | GELU() | GELU("tanh") | SiLU() | SiLU(True) | Mish()
Mish(True) | Sigmoid() | LogSigmoid() | Tanh() | Hardtanh() | Hardtanh(-2, 2, True)
Hardsigmoid() | Hardsigmoid(True) | Hardswish() | Hardswish(True) | Softplus() | Softplus(2, 10)
Softsign() | Softmax(1) | Softmax() | LogSoftmax(0) | Softmin(1) | Softmax2d() | Threshold(1, 2)
Threshold(1, 2, True) | PReLU() | PReLU(3) | Tanhshrink() | Hardshrink() | Softshrink(0.3) | GLU()
GLU(0) | MSELoss() | L1Loss() | SmoothL1Loss() | HuberLoss() | BCELoss() | BCEWithLogitsLoss()
NLLLoss() | CrossEntropyLoss() | KLDivLoss() | PoissonNLLLoss() | GaussianNLLLoss()
HingeEmbeddingLoss() | CosineEmbeddingLoss() | MarginRankingLoss() | SoftMarginLoss()
TripletMarginLoss() | CosineSimilarity() | PairwiseDistance() | Sequential() | Module()
ModuleList() | ModuleDict() | ParameterList() | ParameterDict()
Sequential(Linear(1, 2), ReLU(), Sequential(Tanh()))
ModuleList([Linear(1, 2), Linear(1, 2), ReLU(), ReLU(), Linear(1, 2)])
ModuleList([Sequential(ReLU()), Sequential(ReLU())])
ModuleDict({"b": Linear(1, 2), "a": ReLU()})
""".replace("\n", "|").split("|")
MODULES = [text.strip() for text in MODULES if text.strip()]


def build(torch: Any, text: str) -> Any:
    """A module from its text."""
    names = {name: getattr(torch.nn, name) for name in dir(torch.nn) if name[0].isupper()}
    return eval(text, names)


def printed(torch: Any) -> Any:
    return {text: repr(build(torch, text)) for text in MODULES}


def printed_with_parameters(torch: Any) -> Any:
    nn = torch.nn
    values = [torch.ones(2), 3, nn.Parameter(torch.ones(2, 3)), torch.ones(1, dtype=torch.int64)]
    return [
        repr(nn.ParameterList(values[:3])),
        repr(nn.ParameterList(values[:1])),
        repr(nn.ParameterDict({"b": torch.ones(2), "a": nn.Parameter(torch.ones(1))})),
        repr(nn.ParameterDict({"x": 3})),
        repr(nn.Parameter(torch.ones(2))),
        repr(nn.Parameter(torch.ones(2, 2), requires_grad=False)),
        repr(nn.Parameter()),
        repr(nn.Buffer(torch.ones(2))),
        repr(nn.Parameter),
    ]


exact["printed"] = printed
exact["printed with parameters"] = printed_with_parameters


# --- first values ---------------------------------------------------------------------------------
def first_values(torch: Any) -> Any:
    """The state of every module that draws numbers, for three seeds."""
    texts = [
        "Linear(3, 4)", "Linear(20, 30)", "Linear(5, 2, bias=False)", "Bilinear(2, 3, 4)",
        "Embedding(7, 3)", "Embedding(7, 3, padding_idx=2)", "PReLU(2)", "LayerNorm(3)",
        "BatchNorm1d(3)", "Sequential(Linear(4, 8), Tanh(), Linear(8, 1))",
    ]  # fmt: skip
    found: dict[str, Any] = {}
    for seed in (0, 1, 2147483647):
        torch.manual_seed(seed)
        for text in texts:
            state = build(torch, text).state_dict()
            found[f"{seed} {text}"] = {name: value.tolist() for name, value in state.items()}
    torch.manual_seed(5)
    found["double"] = torch.nn.Linear(3, 3, dtype=torch.float64).weight.tolist()
    return found


def initialised(torch: Any) -> Any:
    init = torch.nn.init
    calls: dict[str, Callable[[Any], Any]] = {
        "uniform_": lambda t: init.uniform_(t, -2, 3),
        "normal_": lambda t: init.normal_(t, 1.0, 0.5),
        "constant_": lambda t: init.constant_(t, 0.3),
        "ones_": init.ones_,
        "zeros_": init.zeros_,
        "eye_": init.eye_,
        "xavier_uniform_": lambda t: init.xavier_uniform_(t, 1.5),
        "xavier_normal_": init.xavier_normal_,
        "kaiming_uniform_": lambda t: init.kaiming_uniform_(t, nonlinearity="relu"),
        "kaiming_normal_": lambda t: init.kaiming_normal_(t, 0.1, "fan_out"),
        "sparse_": lambda t: init.sparse_(t, 0.4),
        "trunc_normal_": lambda t: init.trunc_normal_(t, 0.1, 0.7),
        "trunc_normal_ far out": lambda t: init.trunc_normal_(t, 0.0, 1.0, 2.0, 3.0),
    }
    found = {}
    for name, call in calls.items():
        torch.manual_seed(3)
        made = call(torch.empty(6, 5))
        found[name] = [made.tolist(), torch.rand(1).item()]
    torch.manual_seed(3)
    found["dirac_"] = init.dirac_(torch.empty(4, 2, 3), groups=2).tolist()
    found["xavier 3d"] = init.xavier_uniform_(torch.empty(3, 2, 4)).tolist()
    gains = ["linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]
    found["gains"] = [*map(init.calculate_gain, gains), init.calculate_gain("leaky_relu", 0.2)]
    return found


exact["first values"] = first_values
exact["initialised"] = initialised


# --- modules at work ------------------------------------------------------------------------------
def outputs(torch: Any) -> Any:
    """Each module of one real input: its output and the gradient of the input."""
    found = {}
    shapes = {
        "BatchNorm2d": (2, 3, 2, 2),
        "BatchNorm3d": (2, 3, 1, 2, 2),
        "Softmax2d": (2, 3, 2, 2),
    }
    shapes |= {"Unflatten": (2, 6), "Dropout1d": (2, 3, 2), "Dropout2d": (2, 3, 2, 2)}
    shapes |= {
        "Dropout3d": (2, 3, 1, 2, 2),
        "GLU": (2, 4),
        "LayerNorm": (4, 2, 3),
        "Linear": (4, 2),
    }
    skip = ("Loss", "Embedding", "Bilinear", "Module", "Parameter", "Cosine", "Pairwise", "Seq")
    for text in MODULES:
        name = text.partition("(")[0]
        if any(word in name for word in skip) or text in ("Softmax()", "Flatten(0, 2)"):
            continue
        torch.manual_seed(11)
        module = build(torch, text)
        x = torch.randn(shapes.get(name, (4, 3)), requires_grad=True)
        h = x * 1  # so that modules may write into their input
        y = module(h)
        (y * torch.arange(y.numel()).reshape(y.shape).sin()).sum().backward()
        found[text] = [y.tolist(), x.grad.tolist()]
        module.eval()
        found[text + " eval"] = module(x * 1).tolist()
    return found


def losses(torch: Any) -> Any:
    nn = torch.nn
    torch.manual_seed(4)
    x, t = torch.randn(5, 3), torch.randn(5, 3)
    p, labels, signs = (
        torch.rand(5, 3),
        torch.tensor([0, 2, 1, 1, 0]),
        torch.tensor([1, -1, 1, 1, -1]),
    )
    weight = torch.tensor([1.0, 2.0, 0.5])
    calls: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "MSELoss": (nn.MSELoss, (t,)),
        "L1Loss": (nn.L1Loss, (t,)),
        "SmoothL1Loss": (lambda **k: nn.SmoothL1Loss(beta=0.5, **k), (t,)),
        "HuberLoss": (lambda **k: nn.HuberLoss(delta=0.7, **k), (t,)),
        "NLLLoss": (lambda **k: nn.NLLLoss(weight, ignore_index=1, **k), (labels,)),
        "CrossEntropyLoss": (lambda **k: nn.CrossEntropyLoss(weight, **k), (labels,)),
        "CrossEntropyLoss smooth": (
            lambda **k: nn.CrossEntropyLoss(label_smoothing=0.1, **k), (labels,)
        ),
        "CrossEntropyLoss probabilities": (nn.CrossEntropyLoss, (p,)),
        "KLDivLoss": (nn.KLDivLoss, (p,)),
        "BCEWithLogitsLoss": (lambda **k: nn.BCEWithLogitsLoss(pos_weight=weight, **k), (p,)),
        "PoissonNLLLoss": (lambda **k: nn.PoissonNLLLoss(full=True, **k), (p * 5,)),
        "GaussianNLLLoss": (nn.GaussianNLLLoss, (t, p + 0.1)),
        "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, (t.sign(),)),
        "CosineEmbeddingLoss": (lambda **k: nn.CosineEmbeddingLoss(0.1, **k), (t, signs)),
        "MarginRankingLoss": (lambda **k: nn.MarginRankingLoss(0.1, **k), (t, t.sign())),
        "SoftMarginLoss": (nn.SoftMarginLoss, (t.sign(),)),
        "TripletMarginLoss": (lambda **k: nn.TripletMarginLoss(swap=True, **k), (t, p)),
        "CosineSimilarity": (lambda reduction: nn.CosineSimilarity(), (t,)),
        "PairwiseDistance": (lambda reduction: nn.PairwiseDistance(), (t,)),
    }  # fmt: skip
    found = {}
    for name, (make, rest) in calls.items():
        for reduction in ("mean", "sum", "none"):
            leaf = x.clone().requires_grad_()
            with warnings.catch_warnings():  # KLDivLoss thinks 'mean' is a mistake
                warnings.simplefilter("ignore")
                y = make(reduction=reduction)(leaf, *rest)
            y.sum().backward()
            found[f"{name} {reduction}"] = [y.tolist(), leaf.grad.tolist()]
    leaf = torch.sigmoid(x).requires_grad_()
    y = nn.BCELoss(weight)(leaf, p)
    y.backward()
    found["BCELoss"] = [y.item(), leaf.grad.tolist()]
    return found


close["outputs"] = outputs
close["losses"] = losses


# --- training -------------------------------------------------------------------------------------
def classify(torch: Any) -> Any:
    """A small classifier with everything in it, 50 steps of SGD."""
    nn = torch.nn
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 16),
        nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 3),
    )  # fmt: skip
    x, y = torch.randn(64, 6), torch.randint(0, 3, (64,))
    return fit(torch, net, x, y, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.1))


def regress(torch: Any) -> Any:
    """Words to numbers: embedding, Adam with a schedule, clipped gradients; part of it frozen."""
    nn = torch.nn
    torch.manual_seed(1)
    net = nn.Sequential(
        OrderedDict(
            words=nn.Embedding(20, 8, padding_idx=0), flat=nn.Flatten(), hidden=nn.Linear(32, 16),
            act=nn.SiLU(), out=nn.Linear(16, 2),
        )
    )  # fmt: skip
    net.hidden.requires_grad_(False)
    x, y = torch.randint(0, 20, (32, 4)), torch.randn(32, 2)
    learned = [p for p in net.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(learned, lr=0.01, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    return fit(torch, net, x, y, nn.SmoothL1Loss(), optimizer, scheduler, clip=0.5)


def fit(
    torch: Any, net: Any, x: Any, y: Any, loss_fn: Any, optimizer: Any, scheduler: Any = None,
    clip: float = 0.0,
) -> Any:  # fmt: skip
    history = []
    for _ in range(50):
        optimizer.zero_grad()
        loss = loss_fn(net(x), y)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        history.append(loss.item())
    net.eval()
    return [history, loss_fn(net(x), y).item()]


close["classify"] = classify
close["regress"] = regress


# --- errors ---------------------------------------------------------------------------------------
def errors(torch: Any) -> Any:
    nn, optim = torch.nn, torch.optim

    class BeforeInit(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, value: Any) -> None:
            self.value = value

    linear = nn.Linear(2, 3)
    w = torch.ones(2, requires_grad=True)
    other = torch.ones(2, requires_grad=True)
    sgd = optim.SGD([w], lr=0.1)
    bad_state = {"weight": torch.ones(2, 2), "x": torch.ones(1), "y.z": torch.ones(1)}
    calls: list[Callable[[], Any]] = [
        lambda: nn.Parameter(torch.ones(2, dtype=torch.int64)),
        lambda: nn.Parameter([1.0]),
        lambda: BeforeInit(nn.Parameter(torch.ones(1))),
        lambda: BeforeInit(nn.ReLU()),
        lambda: nn.Module()(3),
        lambda: nn.Module(3),
        lambda: nn.Module(a=3),
        lambda: setattr(linear, "weight", 3),
        lambda: setattr(linear, "weight", torch.ones(2)),
        lambda: setattr(nn.Sequential(linear), "0", 3),
        lambda: setattr(nn.BatchNorm1d(2), "running_mean", 3),
        lambda: linear.nothing,
        lambda: linear.register_buffer("weight", torch.ones(1)),
        lambda: linear.register_buffer("a.b", torch.ones(1)),
        lambda: linear.register_buffer("", torch.ones(1)),
        lambda: linear.register_buffer(3, torch.ones(1)),
        lambda: linear.register_buffer("a", 3),
        lambda: linear.register_parameter("a", torch.ones(1)),
        lambda: linear.register_parameter("forward", None),
        lambda: linear.register_parameter("a.b", None),
        lambda: linear.add_module("a.b", nn.ReLU()),
        lambda: linear.add_module("", nn.ReLU()),
        lambda: linear.add_module("a", 3),
        lambda: linear.add_module(3, nn.ReLU()),
        lambda: linear.get_submodule("a.b"),
        lambda: linear.get_submodule("weight"),
        lambda: linear.get_parameter("a"),
        lambda: linear.get_parameter("in_features"),
        lambda: nn.BatchNorm1d(2).get_buffer("weight"),
        lambda: linear.load_state_dict(bad_state),
        lambda: linear.load_state_dict({"weight": 3, "bias": torch.ones(3)}),
        lambda: nn.Sequential(linear).load_state_dict({"0.bias": torch.ones(4)}),
        lambda: linear.load_state_dict([1]),
        lambda: repr(linear.load_state_dict(bad_state, strict=False)),
        lambda: repr(linear.load_state_dict({"x.y": 1}, strict=False)),
        lambda: repr(linear.load_state_dict(linear.state_dict())),
        lambda: linear.to(torch.int32),
        lambda: linear.train(3),
        lambda: linear(torch.ones(2, 4)),
        lambda: nn.Sequential(3),
        lambda: nn.Sequential(linear)[3],
        lambda: nn.Sequential(linear)["0"],
        lambda: nn.Sequential(linear) + 3,
        lambda: nn.Sequential(linear) * 0,
        lambda: nn.Sequential(linear) * 1.5,
        lambda: nn.Sequential().insert(3, nn.ReLU()),
        lambda: nn.ModuleList([linear])[1],
        lambda: nn.ModuleList(3),
        lambda: nn.ModuleDict({"a": 3}),
        lambda: nn.ModuleDict(3),
        lambda: nn.ModuleDict([(1, 2, 3)]),
        lambda: nn.ModuleDict({})["a"],
        lambda: nn.ParameterDict({})["a"],
        lambda: nn.ParameterDict({1: torch.ones(1)}),
        lambda: nn.ParameterList()(3),
        lambda: nn.ParameterDict()(3),
        lambda: nn.BatchNorm1d(3)(torch.ones(3)),
        lambda: nn.BatchNorm2d(3)(torch.ones(3)),
        lambda: nn.BatchNorm1d(3)(torch.ones(1, 3)),
        lambda: nn.Embedding(3, 2, padding_idx=5),
        lambda: nn.Dropout(2),
        lambda: nn.Unflatten(1, 3),
        lambda: nn.Unflatten(1, ("a", 3)),
        lambda: nn.Bilinear(0, 1, 1),
        lambda: nn.Hardtanh(1, 1),
        lambda: nn.TripletMarginLoss(margin=-1),
        lambda: nn.init.eye_(torch.empty(3)),
        lambda: nn.init.dirac_(torch.empty(3)),
        lambda: nn.init.xavier_uniform_(torch.empty(3)),
        lambda: nn.init.kaiming_normal_(torch.empty(3, 2), mode="fan"),
        lambda: nn.init.calculate_gain("nothing"),
        lambda: nn.init.calculate_gain("leaky_relu", "x"),
        lambda: nn.utils.vector_to_parameters(3, []),
        lambda: nn.utils.get_total_norm([torch.tensor([float("inf")])], error_if_nonfinite=True),
        lambda: optim.SGD(w, lr=0.1),
        lambda: optim.SGD([], lr=0.1),
        lambda: optim.SGD([w], lr=-1),
        lambda: optim.SGD([w], momentum=-1),
        lambda: optim.SGD([w], weight_decay=-1),
        lambda: optim.SGD([w], nesterov=True),
        lambda: optim.SGD([w], lr=torch.ones(2)),
        lambda: optim.SGD([w], foreach=True, fused=True),
        lambda: optim.SGD([3]),
        lambda: optim.SGD([w * 2]),
        lambda: optim.SGD([{"params": {w}}]),
        lambda: optim.SGD([{"params": [w]}, {"params": [w]}]),
        lambda: optim.SGD([("a", w), other]),
        lambda: sgd.add_param_group([other]),
        lambda: sgd.add_param_group({"params": [("a", other)]}),
        lambda: sgd.load_state_dict({"state": {}, "param_groups": []}),
        lambda: sgd.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]}),
        lambda: optim.Adam([w], eps=-1),
        lambda: optim.Adam([w], betas=(1.0, 0.9)),
        lambda: optim.Adam([w], betas=(0.9, -1)),
        lambda: optim.Adam([w], betas=(0.9, torch.tensor(0.9))),
        lambda: optim.AdamW([w], weight_decay=-1),
        lambda: optim.Adagrad([w], lr_decay=-1),
        lambda: optim.Adagrad([w], initial_accumulator_value=-1),
        lambda: optim.RMSprop([w], alpha=-1),
        lambda: optim.lr_scheduler.StepLR(3, 1),
        lambda: optim.lr_scheduler.StepLR(sgd, 1, last_epoch=3),
        lambda: optim.lr_scheduler.LambdaLR(sgd, [abs, abs]),
        lambda: optim.lr_scheduler.ConstantLR(sgd, 2.0),
        lambda: optim.lr_scheduler.LinearLR(sgd, 0.0),
        lambda: optim.lr_scheduler.LinearLR(sgd, end_factor=2.0),
        lambda: optim.lr_scheduler.SequentialLR(sgd, [], []),
        lambda: optim.lr_scheduler.ReduceLROnPlateau(sgd, factor=1.0),
        lambda: optim.lr_scheduler.ReduceLROnPlateau(sgd, "up"),
        lambda: optim.lr_scheduler.ReduceLROnPlateau(sgd, min_lr=[1, 2]),
    ]
    return [_outcome(call) for call in calls]


def _outcome(call: Callable[[], Any]) -> str:
    try:
        result = call()
    except Exception as error:
        text = str(error).replace("rushlight.", "torch.")
        return f"{type(error).__name__}: {text}"
    return f"gave {result}"


exact["errors"] = errors


def results(lib: Any) -> Any:
    return exact.results(lib) | close.results(lib)
