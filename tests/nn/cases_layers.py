"""Normalisation, losses, bags and adaptive softmax: what modules print, and what they compute."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tests.harness import PlainCases
from tests.nn.cases_attention import QuietCases, built, numbers, outcome, weighed

exact = PlainCases()  # to the last bit and letter
close = QuietCases()  # to rounding


# --- what is printed ------------------------------------------------------------------------------
MODULES = """
GroupNorm(2, 4) | GroupNorm(2, 4, affine=False) | GroupNorm(2, 4, bias=False) | RMSNorm(3)
RMSNorm((2, 3), eps=1e-3, elementwise_affine=False) | InstanceNorm1d(3)
InstanceNorm2d(3, affine=True, track_running_stats=True)
InstanceNorm3d(3, affine=True, bias=False)
LocalResponseNorm(2) | CrossMapLRN2d(2) | SyncBatchNorm(3) | EmbeddingBag(4, 3)
EmbeddingBag(4, 3, 1.0, norm_type=1.0, mode="sum", scale_grad_by_freq=True, padding_idx=-1)
CTCLoss() | MultiMarginLoss() | MultiLabelMarginLoss() | MultiLabelSoftMarginLoss() | NLLLoss2d()
TripletMarginWithDistanceLoss() | LinearCrossEntropyLoss(3, 4)
AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10], div_value=2.0, head_bias=True)
"""


def modules() -> list[str]:
    texts = MODULES.replace("\n", "|").split("|")
    return [text.strip() for text in texts if text.strip()]


def printed(torch: Any) -> Any:
    return {text: repr(built(torch, text)) for text in modules()}


def first_values(torch: Any) -> Any:
    found = {}
    for text in modules():
        torch.manual_seed(3)
        state = built(torch, text).state_dict()
        found[text] = {name: [list(p.shape), p.double().sum().item()] for name, p in state.items()}
    return found


exact["printed"] = printed
close["first values"] = first_values


# --- functions ------------------------------------------------------------------------------------
def run(torch: Any, call: Callable[..., Any], *shapes: Any, second: bool = False) -> Any:
    """The node, values and gradients of a function of drawn inputs; with `second` the gradients of
    the first gradient too, which PyTorch lacks for some."""
    torch.manual_seed(1)
    xs = [torch.randn(*shape, dtype=torch.float64).requires_grad_() for shape in shapes]
    y = call(*xs)
    gs = torch.autograd.grad(weighed(torch, y), xs, create_graph=second)
    found = [type(y.grad_fn).__name__, numbers(y), numbers(gs)]
    if second:
        found.append(numbers(torch.autograd.grad(weighed(torch, gs[0]), xs[:1])))
    return found


def norms(torch: Any) -> Any:
    f = torch.nn.functional
    return {
        "group": run(
            torch, lambda x, w, b: f.group_norm(x, 2, w, b), (2, 4, 3), (4,), (4,), second=True
        ),
        "group, plain": run(torch, lambda x: f.group_norm(x, 3, eps=0.1), (2, 6), second=True),
        "group, images": run(
            torch, lambda x, w: f.group_norm(x, 1, w), (2, 2, 2, 2), (2,), second=True
        ),
        "instance": run(
            torch,
            lambda x, w, b: f.instance_norm(x, weight=w, bias=b),
            (2, 3, 4),
            (3,),
            (3,),
            second=True,
        ),
        "rms": run(torch, lambda x, w: f.rms_norm(x, (3,), w), (2, 3), (3,), second=True),
        "rms of two": run(torch, lambda x: f.rms_norm(x, (2, 3), eps=0.1), (2, 2, 3), second=True),
        "local": run(torch, lambda x: f.local_response_norm(x, 3, 0.1), (1, 4, 2), second=True),
        "local, even": run(
            torch, lambda x: f.local_response_norm(x, 2, 0.1, 0.5, 2.0), (2, 3, 2), second=True
        ),
        "free": numbers(
            [
                *torch.native_group_norm(
                    torch.arange(12.0).view(2, 2, 3), None, None, 2, 2, 3, 1, 0.1
                ),
                *torch.native_batch_norm(
                    torch.arange(6.0).view(3, 2), None, None, None, None, True, 0.1, 0.1
                ),
            ]
        ),
    }


def norm_modules(torch: Any) -> Any:
    """Modules in training and evaluation, with what they keep."""
    nn = torch.nn
    x = torch.linspace(-1, 3, 48).reshape(2, 3, 8) ** 2
    found = {}
    for text in (
        "InstanceNorm1d(3, affine=True, track_running_stats=True)", "InstanceNorm1d(3)",
        "BatchNorm1d(3, momentum=None)", "SyncBatchNorm(3)", "GroupNorm(3, 3)", "RMSNorm(8)",
        "LocalResponseNorm(2, 0.1)",
    ):  # fmt: skip
        m = built(torch, text)
        kept = [numbers(m(x)), numbers(m(x * 2)), numbers(list(m.state_dict().values()))]
        found[text] = [*kept, numbers(m.eval()(x))]
    images = x.reshape(2, 3, 2, 4)
    found["cross map"] = [numbers(nn.CrossMapLRN2d(n, 0.1)(images)) for n in (1, 2, 3, 4)]
    found["alone"] = numbers(nn.InstanceNorm1d(3)(x[0]))
    made = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm1d(3), nn.ReLU()))
    found["converted"] = [type(m).__name__ for m in made]
    return found


def norm_mistakes(torch: Any) -> Any:
    f, nn = torch.nn.functional, torch.nn
    x = torch.ones(2, 6, 3)
    calls = [
        lambda: f.group_norm(x, 4),
        lambda: f.group_norm(x[0, 0], 1),
        lambda: f.group_norm(x[:1, :4, 0], 4),
        lambda: f.group_norm(x, 2, torch.ones(3)),
        lambda: f.group_norm(x.long(), 2),
        lambda: f.group_norm(x.double(), 2, torch.ones(6)),
        lambda: torch.group_norm(x[0, 0], 4),
        lambda: nn.GroupNorm(3, 4),
        lambda: f.instance_norm(x[:, :, :1]),
        lambda: f.instance_norm(x, use_input_stats=False),
        lambda: f.instance_norm(x, weight=torch.ones(3)),
        lambda: f.rms_norm(x, (4,)),
        lambda: f.rms_norm(x, ()),
        lambda: f.rms_norm(x, 3),
        lambda: f.rms_norm(x, (3,), torch.ones(4)),
        lambda: f.rms_norm(x.long(), (3,)),
        lambda: f.local_response_norm(x[0], 2),
        lambda: nn.InstanceNorm2d(3)(x[0]),
        lambda: nn.InstanceNorm1d(3, affine=True)(x),
        lambda: nn.SyncBatchNorm(3)(x[0, 0]),
        lambda: nn.CrossMapLRN2d(3)(x),
        lambda: f.group_norm(x[:0], 2),
        lambda: f.group_norm(x[:, :, :0], 2),
    ]
    return [outcome(call) for call in calls]


close["norms"] = norms
close["modules of norms"] = norm_modules
close["errors of norms"] = norm_mistakes


def losses(torch: Any) -> Any:
    f = torch.nn.functional
    y = torch.tensor([0, 2, 1, 2])
    many = torch.tensor([[1, -1, 0], [0, 1, 2], [-1, 0, 0], [2, 2, -1]])
    w = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    shape = (4, 3)
    found: dict[str, Any] = {}
    for how in ("none", "mean", "sum"):
        found[how] = [
            run(torch, lambda x, how=how: f.multi_margin_loss(x, y, reduction=how), shape),
            run(
                torch, lambda x, how=how: f.multi_margin_loss(x, y, 2, 0.5, w, reduction=how), shape
            ),
            run(torch, lambda x, how=how: f.multilabel_margin_loss(x, many, reduction=how), shape),
            run(
                torch,
                lambda x, how=how: f.multilabel_soft_margin_loss(
                    x, many.clamp(0, 1), w, reduction=how
                ),
                shape,
            ),
            run(
                torch,
                lambda a, b, c, how=how: f.triplet_margin_with_distance_loss(
                    a, b, c, margin=0.5, swap=True, reduction=how
                ),
                *[shape] * 3,
            ),
            run(
                torch,
                lambda x, v, how=how: f.linear_cross_entropy(x, v, y, reduction=how),
                (4, 2),
                (3, 2),
            ),
        ]
    found["one"] = [
        run(torch, lambda x: f.multi_margin_loss(x, y[1], reduction="none"), (3,)),
        run(torch, lambda x: f.multi_margin_loss(x, y[1:2], reduction="none"), (3,)),
        run(torch, lambda x: f.multilabel_margin_loss(x, many[0], reduction="none"), (3,)),
    ]
    a, b = torch.linspace(-1, 2, 6).view(2, 3), torch.linspace(1, -1, 6).view(2, 3)
    signs = torch.tensor([1, -1])
    found["free"] = numbers(
        [
            torch.cosine_embedding_loss(a, b, signs, 0.1, 0),
            torch.hinge_embedding_loss(a[:, 0], signs, 0.5, 2),
            torch.margin_ranking_loss(a[:, 0], b[:, 0], signs),
            torch.triplet_margin_loss(a, b, a * b),
            torch.poisson_nll_loss(a, b.abs(), True, True, 1e-8, 1),
            torch.kl_div(a, b.abs(), 1),
            torch.binary_cross_entropy_with_logits(a, b.abs()),
        ]
    )
    return found


def distances(torch: Any) -> Any:
    orders = (0.0, 0.5, 1.0, 2.0, 3.0, float("inf"))
    found = []
    for p in orders:
        torch.manual_seed(1)
        x = torch.randn(4, 3, dtype=torch.float64).requires_grad_()
        y = torch.nn.functional.pdist(x, p)
        g = torch.autograd.grad(weighed(torch, y), x)
        found.append([type(y.grad_fn).__name__, numbers(y), numbers(g)])
    return [*found, numbers(torch.pdist(torch.ones(1, 2)))]


def labellings(torch: Any) -> Any:
    """ctc_loss, its gradients, and labellings that no input can have."""
    f = torch.nn.functional
    torch.manual_seed(2)
    x = torch.randn(5, 3, 4, dtype=torch.float64).requires_grad_()
    y = torch.tensor([[1, 2, 1], [2, 2, 3], [3, 0, 0]])
    flat = torch.tensor([1, 2, 1, 2, 2, 3])
    found = []
    for how in ("none", "mean", "sum"):
        for zero in (False, True):
            logs = x.log_softmax(-1)
            for labels, sizes, steps in (
                (y, [3, 2, 1], [5, 4, 5]), (flat, [3, 2, 1], [5, 3, 0]), (y, [3, 3, 0], [3, 2, 1]),
            ):  # fmt: skip
                loss = f.ctc_loss(logs, labels, steps, sizes, reduction=how, zero_infinity=zero)
                g = torch.autograd.grad(weighed(torch, loss), logs, retain_graph=True)
                found.append([type(loss.grad_fn).__name__, numbers(loss), numbers(g)])
    one = x.log_softmax(-1)[:, 0]
    args = (y[0, :2], torch.tensor(5), torch.tensor(2))
    found.append(numbers(f.ctc_loss(one, *args, blank=3, reduction="none")))
    return found


def loss_mistakes(torch: Any) -> Any:
    f = torch.nn.functional
    x, y = torch.ones(3, 4), torch.tensor([0, 1, 2])
    logs, labels = torch.zeros(5, 2, 4), torch.tensor([[1, 2], [2, 2]])
    many = torch.zeros(3, 4, dtype=torch.int64)
    calls = [
        lambda: f.multi_margin_loss(x, y[:2]),
        lambda: f.multi_margin_loss(x, y + 2),
        lambda: f.multi_margin_loss(x, y, p=3),
        lambda: f.multi_margin_loss(x, y, weight=torch.ones(3)),
        lambda: f.multi_margin_loss(x, y.float()),
        lambda: f.multi_margin_loss(x[None], y),
        lambda: f.multi_margin_loss(x.long(), y),
        lambda: f.multilabel_margin_loss(x, many[:2]),
        lambda: f.multilabel_margin_loss(x, many + 5),
        lambda: f.multilabel_margin_loss(x, many.float()),
        lambda: f.multilabel_soft_margin_loss(x, x, reduction="x"),
        lambda: f.triplet_margin_with_distance_loss(x, x, x, margin=0),
        lambda: f.pdist(x[0]),
        lambda: f.pdist(x, -1),
        lambda: f.pdist(x.long()),
        lambda: f.ctc_loss(logs, labels, [5, 6], [2, 2]),
        lambda: f.ctc_loss(logs, labels, [5], [2, 2]),
        lambda: f.ctc_loss(logs, labels, [5, 5], [2, 3]),
        lambda: f.ctc_loss(logs, labels, [5, 5], [2]),
        lambda: f.ctc_loss(logs, labels, [5, 5], [2, 2], blank=4),
        lambda: f.ctc_loss(logs, labels.view(-1)[:3], [5, 5], [2, 2]),
        lambda: f.ctc_loss(logs, labels, [-1, 5], [2, 2]),
        lambda: f.ctc_loss(logs.long(), labels, [5, 5], [2, 2]),
        lambda: f.ctc_loss(logs, labels[:1], [5, 5], [2, 2]),
        lambda: f.ctc_loss(logs[:, 0], labels[0], torch.tensor(5), torch.tensor(1)),
        lambda: torch.nn.MultiMarginLoss(p=3),
        lambda: torch.nn.TripletMarginWithDistanceLoss(margin=-1),
    ]
    return [outcome(call) for call in calls]


close["losses"] = losses
close["distances"] = distances
close["labellings"] = labellings
close["errors of losses"] = loss_mistakes


# --- bags -----------------------------------------------------------------------------------------
def bags(torch: Any) -> Any:
    f = torch.nn.functional
    i, o = torch.tensor([0, 1, 2, 2, 3]), torch.tensor([0, 2, 2])
    square = torch.tensor([[0, 1], [3, 3]])
    found = {}
    for mode in ("sum", "mean", "max"):
        for name, args, more in (
            ("cut", (i, o), {}),
            ("padded", (i, o), {"padding_idx": 2}),
            ("square", (square,), {}),
            ("ended", (i, torch.tensor([0, 2, 5])), {"include_last_offset": True}),
            ("empty", (i[:0], torch.tensor([0, 0])), {}),
        ):
            torch.manual_seed(1)
            w = torch.randn(4, 3, dtype=torch.float64).requires_grad_()
            y = f.embedding_bag(args[0], w, *args[1:], mode=mode, **more)
            g = torch.autograd.grad(weighed(torch, y), w)
            found[f"{mode}, {name}"] = [type(y.grad_fn).__name__, numbers(y), numbers(g)]
    found["weighed"] = run(
        torch,
        lambda w, s: f.embedding_bag(i, w, o, mode="sum", per_sample_weights=s, padding_idx=1),
        (4, 3),
        (5,),
    )
    twice = torch.tensor([0, 1, 2, 3, 3])  # behind repeated ones PyTorch takes the wrong count
    found["scaled"] = [
        run(
            torch,
            lambda w, m=m: f.embedding_bag(twice, w, o, mode=m, scale_grad_by_freq=True),
            (4, 3),
        )
        for m in ("sum", "mean")
    ]
    w = torch.arange(12.0).view(4, 3)
    found["shortened"] = numbers([f.embedding_bag(square, w, max_norm=1.0), w])
    w = torch.arange(12.0).view(4, 3)
    found["free"] = numbers(
        [
            torch.embedding_bag(w, i, o, False, m, False, None, False, p)
            for m in range(3)
            for p in (None, 2)
        ]
    )
    found["shortened in place"] = numbers(torch.embedding_renorm_(w, i[:2], 1.0, 2.0))
    return found


def bag_mistakes(torch: Any) -> Any:
    f = torch.nn.functional.embedding_bag
    w, i, o = torch.ones(4, 3), torch.tensor([0, 1, 2, 2, 3]), torch.tensor([0, 2, 2])
    ones = torch.ones(5)
    calls = [
        lambda: f(i, w),
        lambda: f(i, w, o + 1),
        lambda: f(i, w, torch.tensor([0, 6])),
        lambda: f(i.float(), w, o),
        lambda: f(i, w, o.float()),
        lambda: f(torch.tensor([0, 6, 2, 2, 3]), w, o),  # of several, PyTorch tells of any one
        lambda: f(i, w, o, mode="x"),
        lambda: f(i, w, o, mode="max", scale_grad_by_freq=True),
        lambda: f(i, w, o, mode="mean", per_sample_weights=ones),
        lambda: f(i, w, o, mode="sum", per_sample_weights=ones[:4]),
        lambda: f(i, w, o, mode="sum", per_sample_weights=ones.double()),
        lambda: f(i[None, None], w),
        lambda: f(i, w, o[None]),
        lambda: f(i, w, o[:0], include_last_offset=True),
        lambda: f(i, w, o, padding_idx=7),
        lambda: f(i, w.long(), o),
        lambda: f(i, w[0], o),
    ]
    return [outcome(call) for call in calls]


def bag_modules(torch: Any) -> Any:
    make = torch.nn.EmbeddingBag
    torch.manual_seed(4)
    m = make(4, 3, padding_idx=1, mode="sum")
    i = torch.tensor([0, 1, 2, 3])
    given = make.from_pretrained(torch.arange(12.0).view(4, 3), mode="max")
    return [
        numbers(m.weight), numbers(m(i, torch.tensor([0, 3]))), numbers(m(i.view(2, 2))),
        numbers(given(i.view(2, 2))), given.weight.requires_grad,
    ]  # fmt: skip


close["bags"] = bags
close["errors of bags"] = bag_mistakes
close["modules of bags"] = bag_modules


def adaptive(torch: Any) -> Any:
    make = torch.nn.AdaptiveLogSoftmaxWithLoss
    torch.manual_seed(5)
    m = make(8, 20, [5, 10], div_value=2.0, dtype=torch.float64)
    x = torch.randn(6, 8, dtype=torch.float64).requires_grad_()
    y = torch.tensor([0, 6, 12, 19, 4, 5])
    output, loss = m(x, y)
    gs = torch.autograd.grad(weighed(torch, output), [x, *m.parameters()])
    one = m(x[1], y[1])
    calls = [
        lambda: make(8, 20, [10, 5]),
        lambda: make(8, 20, []),
        lambda: make(8, 20, [20]),
        lambda: m(x, y + 1),
        lambda: m(x, y[:3]),
        lambda: m(x[0], y[:1]),
        lambda: m(x, y[:, None]),
    ]
    found = [output, loss, *gs, one.output, one.loss, m.log_prob(x), m.predict(x)]
    return [numbers(found), [outcome(call) for call in calls]]


close["adaptive softmax"] = adaptive


def warned(torch: Any) -> Any:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.nn.InstanceNorm1d(3)(torch.ones(2, 4, 5))
        torch.nn.MultiMarginLoss(size_average=False)
    return [str(w.message) for w in seen]


exact["warnings"] = warned


def results(lib: Any) -> Any:
    return exact.results(lib) | close.results(lib)
