"""Losses: values and gradients by hand, reductions, stability, ignored targets, errors."""

from __future__ import annotations

import math
import types
from typing import Any

import pytest

import rushlight as torch
from rushlight.ops.registry import namespaces

F: Any = types.SimpleNamespace(**namespaces["nn.functional"])
INF, NAN = math.inf, math.nan
# NumPy warns of what IEEE arithmetic defines; the values are what is tested here.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def leaf(*values: Any) -> Any:
    return torch.tensor(values, dtype=torch.double, requires_grad=True)


def double(*values: Any) -> Any:
    return torch.tensor(values, dtype=torch.double)


def same(got: Any, want: Any) -> bool:
    flat = got.reshape(-1).tolist()
    return flat == pytest.approx(want, rel=1e-9, abs=1e-12, nan_ok=True)


# --- differences ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fn", "each", "slope"),
    [
        (F.mse_loss, [0.25, 9.0], [1.0, -6.0]),
        (F.l1_loss, [0.5, 3.0], [1.0, -1.0]),
        (F.smooth_l1_loss, [0.125, 2.5], [0.5, -1.0]),
        (F.huber_loss, [0.125, 2.5], [0.5, -1.0]),
        (lambda x, t, **k: F.smooth_l1_loss(x, t, beta=2.0, **k), [0.0625, 2.0], [0.25, -1.0]),
        (lambda x, t, **k: F.huber_loss(x, t, delta=2.0, **k), [0.125, 4.0], [0.5, -2.0]),
        (lambda x, t, **k: F.smooth_l1_loss(x, t, beta=0.0, **k), [0.5, 3.0], [1.0, -1.0]),
    ],
)
def test_differences(fn: Any, each: Any, slope: Any) -> None:
    t = double(1.0, 5.0)  # differences 0.5 and -3
    for reduction, share in (("none", 1), ("sum", 1), ("mean", 2)):
        x = leaf(1.5, 2.0)
        y = fn(x, t, reduction=reduction)
        total = each if reduction == "none" else [sum(each) / share]
        assert same(y, total)
        y.sum().backward()
        assert same(x.grad, [s / share for s in slope])


@pytest.mark.parametrize("fn", [F.smooth_l1_loss, F.huber_loss])
def test_second_derivatives_where_two_pieces_meet(fn: Any) -> None:
    """At a distance of exactly 1 the outer piece counts, which is straight."""
    x = torch.tensor([1.0, -1.0, 0.5], requires_grad=True)
    (g,) = torch.autograd.grad(fn(x, torch.zeros(3), reduction="sum"), x, create_graph=True)
    assert g.tolist() == [1, -1, 0.5]
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [0, 0, 1]


def test_the_target_gets_a_gradient_too() -> None:
    x, t = leaf(1.0), leaf(3.0)
    F.mse_loss(x, t).backward()
    assert x.grad.tolist() == [-4.0] and t.grad.tolist() == [4.0]


def test_second_derivative_of_mse() -> None:
    x = leaf(1.0, 2.0)
    (g,) = torch.autograd.grad(F.mse_loss(x, double(0.0, 0.0)), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert g.tolist() == [1.0, 2.0] and h.tolist() == [1.0, 1.0]


def test_weights_weigh_the_mean() -> None:
    x, t, w = double(1.0, 2.0), double(0.0, 0.0), double(1.0, 3.0)
    assert F.mse_loss(x, t, weight=w).item() == 13 / 4
    assert F.l1_loss(x, t, weight=w, reduction="sum").item() == 7
    with pytest.raises(ValueError, match=r"Weights and input must have the same size\."):
        F.mse_loss(x, t, weight=w[:1])


def test_empty_and_scalar() -> None:
    empty = torch.ones(0)
    assert math.isnan(F.mse_loss(empty, empty).item())
    assert F.mse_loss(empty, empty, reduction="sum").item() == 0.0
    assert F.mse_loss(torch.tensor(3.0), torch.tensor(1.0)).item() == 4.0


def test_dtypes() -> None:
    assert F.mse_loss(torch.ones(2), double(1.0, 1.0)).dtype is torch.double
    low = F.mse_loss(torch.ones(1000, dtype=torch.float16), torch.zeros(1000, dtype=torch.float16))
    assert low.dtype is torch.float16 and low.item() == 1.0
    with pytest.raises(NotImplementedError, match="\"mse_cpu\" not implemented for 'Long'"):
        F.mse_loss(torch.tensor([1]), torch.tensor([1]))


# --- how they reduce ------------------------------------------------------------------------------
def test_old_arguments_warn() -> None:
    x, t = double(1.0, 3.0), double(0.0, 0.0)
    old: list[tuple[dict[str, bool], str]] = [
        ({"size_average": False}, "sum"),
        ({"reduce": False}, "none"),
        ({"size_average": True, "reduce": True}, "mean"),
    ]
    for arguments, name in old:
        with pytest.warns(UserWarning, match=f"please use reduction='{name}' instead"):
            y = F.mse_loss(x, t, **arguments)
        assert y.tolist() == F.mse_loss(x, t, reduction=name).tolist()
    with pytest.raises(ValueError, match="foo is not a valid value for reduction"):
        F.mse_loss(x, t, reduction="foo")


def test_sizes_that_differ_warn() -> None:
    with pytest.warns(
        UserWarning, match=r"Using a target size \(torch.Size\(\[2\]\)\) that is diff"
    ):
        y = F.mse_loss(torch.ones(3, 2), torch.zeros(2))
    assert y.item() == 1.0


# --- two classes ----------------------------------------------------------------------------------
def test_binary_cross_entropy() -> None:
    x = leaf(0.5, 0.25)
    y = F.binary_cross_entropy(x, double(1.0, 0.0), reduction="none")
    assert same(y, [math.log(2), -math.log(0.75)])
    y.sum().backward()
    assert same(x.grad, [-2.0, 1 / 0.75])
    sure = F.binary_cross_entropy(double(0.0, 1.0, 0.0), double(1.0, 0.0, 0.0), reduction="none")
    assert same(sure, [100, 100, 0])  # logarithms stop at -100
    assert same(
        F.binary_cross_entropy(double(0.5, 0.5), double(1.0, 1.0), double(1.0, 3.0)),
        [2 * math.log(2)],
    )
    with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
        F.binary_cross_entropy(double(1.5), double(1.0))
    with pytest.raises(
        ValueError, match=r"Using a target size \(torch.Size\(\[1\]\)\) that is diff"
    ):
        F.binary_cross_entropy(double(0.5, 0.5), double(1.0))
    with pytest.raises(RuntimeError, match="Found dtype Float but expected Double"):
        F.binary_cross_entropy(double(0.5), torch.ones(1))


def test_binary_cross_entropy_with_logits() -> None:
    fn = F.binary_cross_entropy_with_logits
    x = leaf(0.0, 1000.0, -1000.0)
    y = fn(x, double(1.0, 0.0, 1.0), reduction="none")
    assert same(y, [math.log(2), 1000, 1000])  # no overflow
    assert type(y.grad_fn).__name__ == "BinaryCrossEntropyWithLogitsBackward0"
    y.sum().backward()
    assert same(x.grad, [-0.5, 1, -1])
    x = leaf(0.0, 0.0)
    y = fn(x, double(1.0, 0.0), pos_weight=double(3.0), weight=double(2.0, 1.0), reduction="none")
    assert same(y, [6 * math.log(2), math.log(2)])
    y.sum().backward()
    assert same(x.grad, [-3, 0.5])
    with pytest.raises(
        ValueError, match=r"Target size \(torch.Size\(\[1\]\)\) must be the same as"
    ):
        fn(x, double(1.0))


def test_soft_margin() -> None:
    x = leaf(0.0, -1000.0)
    y = F.soft_margin_loss(x, double(1.0, 1.0), reduction="sum")
    assert same(y, [math.log(2) + 1000])
    y.backward()
    assert same(x.grad, [-0.5, -1])
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'target'"):
        F.soft_margin_loss(x, leaf(1.0, 1.0))


# --- many classes ---------------------------------------------------------------------------------
def test_nll_loss() -> None:
    x = leaf([-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0])
    t = torch.tensor([2, 0])
    y = F.nll_loss(x, t, reduction="none")
    assert y.tolist() == [3.0, 4.0] and type(y.grad_fn).__name__ == "NllLossBackward0"
    y = F.nll_loss(x, t, weight=double(1.0, 1.0, 3.0))
    assert y.item() == (3 * 3 + 4) / 4
    y.backward()
    assert x.grad.tolist() == [[0.0, 0.0, -0.75], [-0.25, 0.0, 0.0]]
    assert F.nll_loss(x[0], torch.tensor(1)).item() == 2.0
    assert F.nll_loss(x, t.to(torch.uint8)).item() == 3.5


def test_ignored_targets() -> None:
    x = leaf([-1.0, -2.0], [INF, INF], [-4.0, -5.0])
    t = torch.tensor([0, -100, 1])
    assert F.nll_loss(x, t, reduction="none").tolist() == [1.0, 0.0, 5.0]
    y = F.nll_loss(x, t)
    assert y.item() == 3.0
    y.backward()
    assert x.grad.tolist() == [[-0.5, 0.0], [0.0, 0.0], [0.0, -0.5]]
    assert F.nll_loss(x, torch.tensor([0, 1, 1]), ignore_index=1, reduction="sum").item() == 1.0
    assert math.isnan(F.nll_loss(x, torch.tensor([-100, -100, -100])).item())


def test_a_class_at_each_position() -> None:
    x = torch.arange(12.0).reshape(1, 3, 4).requires_grad_()
    t = torch.tensor([[0, 1, 2, 0]])
    y = F.nll_loss(x, t, reduction="none")
    assert y.tolist() == [[-0.0, -5.0, -10.0, -3.0]]
    assert type(y.grad_fn).__name__ == "NllLoss2DBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [[[-1, 0, 0, -1], [0, -1, 0, 0], [0, 0, -1, 0]]]
    image = F.cross_entropy(torch.zeros(2, 3, 4, 5), torch.zeros(2, 4, 5, dtype=torch.long))
    assert image.item() == pytest.approx(math.log(3))


def test_cross_entropy() -> None:
    x = leaf([0.0, 0.0], [1000.0, 0.0])
    y = F.cross_entropy(x, torch.tensor([0, 1]), reduction="none")
    assert same(y, [math.log(2), 1000])
    y.sum().backward()
    assert same(x.grad, [-0.5, 0.5, 1, -1])
    soft = double([0.5, 0.5], [1.0, 0.0])
    assert same(F.cross_entropy(x, soft, reduction="none"), [math.log(2), 0])
    assert same(F.cross_entropy(x, soft), [math.log(2) / 2])
    zero = double([0.0, 0.0, 0.0, 0.0])
    assert same(F.cross_entropy(zero, torch.tensor([1]), label_smoothing=0.3), [math.log(4)])
    logits = double([2.0, 0.0])
    p = math.log(1 + math.exp(-2.0))
    smooth = F.cross_entropy(logits, torch.tensor([0]), label_smoothing=0.5)
    assert same(smooth, [0.75 * p + 0.25 * (p + 2)])
    hard = F.cross_entropy(logits, double([0.75, 0.25]))
    assert same(smooth, hard.reshape(-1).tolist())
    assert same(F.cross_entropy(double(0.0, 0.0), torch.tensor(0)), [math.log(2)])


def test_class_errors() -> None:
    x, t = torch.ones(2, 3), torch.tensor([0, 2])
    index: list[tuple[Any, str]] = [
        (torch.tensor([0, 3]), r"Target 3 is out of bounds\."),
        (torch.tensor([0, -1]), r"Target -1 is out of bounds\."),
    ]
    for target, text in index:
        for fn in (F.nll_loss, F.cross_entropy):
            with pytest.raises(IndexError, match=text):
                fn(x, target)
    with pytest.raises(
        ValueError, match=r"Expected input batch_size \(2\) to match target batch_siz"
    ):
        F.nll_loss(x, torch.tensor([0]))
    runtime: list[tuple[Any, str]] = [
        (
            lambda: F.nll_loss(x, torch.ones(2)),
            "expected target dtype to be Long or Byte, but got Fl",
        ),
        (
            lambda: F.nll_loss(x, t, torch.ones(2)),
            "weight tensor should be defined either for all 3",
        ),
        (
            lambda: F.cross_entropy(x, x.to(torch.long)),
            "Expected floating point type for target wit",
        ),
        (
            lambda: F.cross_entropy(x, t, label_smoothing=2.0),
            "label_smoothing must be between 0.0 a",
        ),
        (
            lambda: F.cross_entropy(x, torch.ones(2, 2)),
            "0D or 1D target tensor expected, multi-targ",
        ),
        (
            lambda: F.cross_entropy(x, x, ignore_index=1),
            "ignore_index is not supported for floating",
        ),
    ]
    for call, text in runtime:
        with pytest.raises(RuntimeError, match=text):
            call()


# --- made of other functions ----------------------------------------------------------------------
def test_kl_div() -> None:
    log_q, p = double([0.5, 0.5]).log(), double([1.0, 0.0])
    assert same(F.kl_div(log_q, p, reduction="batchmean"), [math.log(2)])  # 0 log 0 is 0
    assert same(F.kl_div(log_q, p, reduction="sum"), [math.log(2)])
    assert same(F.kl_div(log_q, log_q, reduction="sum", log_target=True), [0])
    with pytest.warns(UserWarning, match="'batchmean' divides only by the batch size"):
        assert same(F.kl_div(log_q, p), [math.log(2) / 2])


def test_margins() -> None:
    one = double(1.0)
    both = torch.tensor([1, -1])
    assert F.hinge_embedding_loss(double(0.25, 0.25), both, reduction="none").tolist() == [
        0.25,
        0.75,
    ]
    assert F.margin_ranking_loss(one, 3 * one, one, margin=0.5).item() == 2.5
    assert F.margin_ranking_loss(3 * one, one, one).item() == 0.0
    with pytest.raises(RuntimeError, match="All input tensors should have same dimension but got"):
        F.margin_ranking_loss(one, one, torch.tensor(1.0))
    x = double([1.0, 0.0], [1.0, 0.0])
    y = F.cosine_embedding_loss(x, x, both, margin=0.25, reduction="none")
    assert y.tolist() == pytest.approx([0, 0.75], abs=1e-9)
    with pytest.raises(RuntimeError, match="1D target tensor expects 2D input tensors, but found"):
        F.cosine_embedding_loss(x, x[0], both)
    near, far = x + double(0.0, 1.0), x + double(0.0, 3.0)
    assert F.triplet_margin_loss(x, near, far, margin=3.0).item() == pytest.approx(1.0, abs=1e-5)
    swapped = F.triplet_margin_loss(x, near, far, margin=3.0, swap=True)
    assert swapped.item() == pytest.approx(2.0, abs=1e-5)
    with pytest.raises(ValueError, match="margin must be greater than 0, got -1"):
        F.triplet_margin_loss(x, x, x, margin=-1)


def test_likelihoods() -> None:
    x, t = double(0.0, 1.0), double(2.0, 0.0)
    assert same(F.poisson_nll_loss(x, t, reduction="none"), [1, math.e])
    assert same(F.poisson_nll_loss(x + 1, t, log_input=False, eps=0.0, reduction="sum"), [3])
    stirling = 2 * math.log(2) - 2 + 0.5 * math.log(4 * math.pi)
    assert same(F.poisson_nll_loss(x, t, full=True, reduction="none"), [1 + stirling, math.e])
    var = leaf(4.0, 0.0)
    y = F.gaussian_nll_loss(x, t, var, reduction="none")
    assert same(y, [0.5 * (math.log(4) + 1), 0.5 * (math.log(1e-6) + 1e6)])
    assert F.gaussian_nll_loss(x, t, 1.0).item() == 0.5 * (4 + 1) / 2
    for wrong, text in ((double(-1.0, 1.0), "var has negative"), (-1.0, "var has negative")):
        with pytest.raises(ValueError, match=text):
            F.gaussian_nll_loss(x, t, wrong)
    with pytest.raises(ValueError, match="var is of incorrect size"):
        F.gaussian_nll_loss(x, t, double(1.0, 1.0, 1.0))
