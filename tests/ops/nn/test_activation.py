"""Activations, softmax, normalisation, dropout, embedding: edges, dtypes, nodes, errors."""

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


def same(got: Any, want: list[float], rel: float = 1e-6) -> bool:
    flat = got.reshape(-1).tolist()
    return flat == pytest.approx(want, rel=rel, abs=1e-7, nan_ok=True)


def slopes(fn: Any, values: list[float]) -> list[float]:
    """The derivative of an element-wise function at some values."""
    x = torch.tensor(values, dtype=torch.double, requires_grad=True)
    fn(x).sum().backward()
    out: list[float] = x.grad.tolist()
    return out


# --- activations ----------------------------------------------------------------------------------
def test_relu_at_its_edges() -> None:
    x = torch.tensor([NAN, INF, -INF, -1.0, 0.0, 2.0])
    assert same(F.relu(x), [NAN, INF, 0, 0, 0, 2])
    assert slopes(F.relu, [NAN, INF, -INF, -1.0, 0.0, 2.0]) == [1, 1, 0, 0, 0, 1]
    assert torch.relu(torch.tensor([-2, 3])).tolist() == [0, 3]
    assert F.relu(torch.tensor(-1.0)).item() == 0.0
    assert F.relu(torch.ones(0, 2)).shape == (0, 2)
    assert F.relu(torch.ones(2, 3).t()).shape == (3, 2)
    with pytest.raises(RuntimeError, match="Boolean inputs not supported for relu"):
        torch.relu(torch.tensor([True]))
    with pytest.raises(
        TypeError, match=r"relu\(\): argument 'input' \(position 1\) must be Tensor"
    ):
        F.relu(3)


def test_infinite_gradients_are_stopped_not_spoiled() -> None:
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    F.relu(x).backward(torch.tensor([INF, INF]))
    assert x.grad.tolist() == [0.0, INF]


@pytest.mark.parametrize(
    ("fn", "values", "results", "derivatives"),
    [
        (F.relu6, [-1, 0, 3, 6, 7], [0, 0, 3, 6, 6], [0, 0, 1, 0, 0]),
        (F.hardtanh, [-2, -1, 0.5, 1, 2], [-1, -1, 0.5, 1, 1], [0, 0, 1, 0, 0]),
        (F.leaky_relu, [-1, 0, 2, NAN], [-0.01, 0, 2, NAN], [0.01, 0.01, 1, 0.01]),
        (F.elu, [-INF, 0, 2], [-1, 0, 2], [0, 1, 1]),
        (F.celu, [-INF, 0, 2], [-1, 0, 2], [0, 1, 1]),
        (F.hardsigmoid, [-4, -3, 0, 3, 4], [0, 0, 0.5, 1, 1], [0, 0, 1 / 6, 0, 0]),
        (F.hardswish, [-4, -3, 0, 3, 4], [0, 0, 0, 3, 4], [0, 0, 0.5, 1, 1]),
        (F.softshrink, [-1, -0.5, 0.2, 0.5, 2], [-0.5, 0, 0, 0, 1.5], [1, 0, 0, 0, 1]),
        (F.hardshrink, [-1, -0.5, 0.2, 0.5, 2], [-1, 0, 0, 0, 2], [1, 0, 0, 0, 1]),
        (lambda x: F.threshold(x, 1, -9), [-INF, 1, 2, NAN], [-9, -9, 2, NAN], [0, 0, 1, 1]),
        (F.softplus, [-1000, 0, 1000], [0, math.log(2), 1000], [0, 0.5, 1]),
        (F.logsigmoid, [-1000, 0, 1000], [-1000, -math.log(2), 0], [1, 0.5, 0]),
        (F.silu, [0, 1000], [0, 1000], [0.5, 1]),
        (F.gelu, [0, 1000], [0, 1000], [0.5, 1]),
        (F.mish, [0, 1000], [0, 1000], [0.6, 1]),
        (F.softsign, [-1, 0, 3], [-0.5, 0, 0.75], [0.25, 1, 1 / 16]),
        (F.tanhshrink, [0], [0], [0]),
        (F.rrelu, [-24, 24], [-5.5, 24], [11 / 48, 1]),
    ],
)
def test_activations(fn: Any, values: Any, results: Any, derivatives: Any) -> None:
    values = [float(value) for value in values]
    assert same(fn(torch.tensor(values, dtype=torch.double)), results)
    assert slopes(fn, values) == pytest.approx(derivatives, abs=1e-12)


@pytest.mark.parametrize("fn", [F.elu, F.selu, F.celu])
def test_second_derivatives_where_two_pieces_meet(fn: Any) -> None:
    """At 0 the piece above counts, which is straight."""
    x = torch.tensor([0.0, -0.0, 1.0], requires_grad=True)
    (g,) = torch.autograd.grad(fn(x).sum(), x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == [0, 0, 0]


def test_gelu_and_its_approximation() -> None:
    x = torch.tensor([1.0], dtype=torch.double)
    assert F.gelu(x).item() == pytest.approx(0.5 * (1 + math.erf(math.sqrt(0.5))))
    inner = math.sqrt(2 / math.pi) * 1.044715
    assert F.gelu(x, approximate="tanh").item() == pytest.approx(0.5 * (1 + math.tanh(inner)))
    with pytest.raises(RuntimeError, match="approximate argument must be either none or tanh"):
        F.gelu(x, approximate="x")


def test_low_precision_rounds_once() -> None:
    x = torch.tensor([1.0, -2.0], dtype=torch.bfloat16)
    for fn in (F.relu, F.gelu, F.silu, F.mish, F.elu, F.softplus, F.leaky_relu, F.hardswish):
        want = fn(x.to(torch.float)).to(torch.bfloat16)
        got = fn(x)
        assert got.dtype is torch.bfloat16 and got.tolist() == want.tolist()


def test_integers_are_refused_or_kept() -> None:
    x = torch.tensor([-2, 7])
    assert F.relu6(x).tolist() == [0, 6] and F.relu6(x).dtype is torch.int64
    assert F.threshold(x, 0, 1).tolist() == [1, 7]
    for fn, kernel in ((F.gelu, "GeluKernelImpl"), (F.silu, "silu_cpu"), (F.elu, "elu_cpu")):
        with pytest.raises(NotImplementedError, match=f"\"{kernel}\" not implemented for 'Long'"):
            fn(x)


def test_in_place_activations() -> None:
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    y = x * 1
    assert F.relu(y, inplace=True) is y and y.tolist() == [0.0, 2.0]
    assert type(y.grad_fn).__name__ == "ReluBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0]
    for fn in (F.relu_, F.elu_, F.leaky_relu_, F.hardtanh_, torch.selu_, torch.celu_):
        z = torch.tensor([0.5])
        assert fn(z) is z
    with pytest.raises(
        RuntimeError, match="a leaf Variable that requires grad is being used in an"
    ):
        F.relu_(x)


def test_node_names() -> None:
    x = torch.tensor([[0.5, -0.5]], requires_grad=True)
    names = {
        F.relu: "Relu", F.relu6: "Hardtanh", F.leaky_relu: "LeakyRelu", F.elu: "Elu", F.selu: "Elu",
        F.celu: "Celu", F.gelu: "Gelu", F.silu: "Silu", F.mish: "Mish", F.softplus: "Softplus",
        F.logsigmoid: "LogSigmoid", F.rrelu: "RreluWithNoise", F.glu: "Glu",
        F.hardshrink: "Hardshrink", F.softshrink: "Softshrink", F.hardswish: "Hardswish",
    }  # fmt: skip
    for fn, name in names.items():
        assert type(fn(x).grad_fn).__name__ == name + "Backward0"


def test_prelu() -> None:
    x = torch.tensor([[-1.0, -2.0], [3.0, -4.0]], requires_grad=True)
    w = torch.tensor([0.5, 0.25], requires_grad=True)
    y = F.prelu(x, w)
    assert y.tolist() == [[-0.5, -0.5], [3.0, -1.0]]
    y.sum().backward()
    assert x.grad.tolist() == [[0.5, 0.25], [1.0, 0.25]] and w.grad.tolist() == [-1.0, -6.0]
    with pytest.raises(RuntimeError, match="Mismatch of parameter numbers and input channel size"):
        F.prelu(x, torch.ones(3))


def test_glu() -> None:
    assert F.glu(torch.tensor([[2.0], [0.0]]), 0).tolist() == [[1.0]]
    with pytest.raises(
        RuntimeError, match="Halving dimension must be even, but dimension 1 is size"
    ):
        F.glu(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="glu does not support scalars"):
        F.glu(torch.tensor(1.0))


# --- softmax --------------------------------------------------------------------------------------
def test_softmax() -> None:
    x = torch.tensor([[0.0, 0.0], [1000.0, 0.0]])
    assert torch.softmax(x, 1).tolist() == [[0.5, 0.5], [1.0, 0.0]]
    assert torch.log_softmax(x, 1)[1].tolist() == [0.0, -1000.0]
    assert x.softmax(0)[:, 1].tolist() == [0.5, 0.5]
    assert torch.softmax(torch.tensor(3.0), 0).item() == 1.0
    assert torch.softmax(torch.ones(2, 0), 1).shape == (2, 0)
    assert same(torch.softmax(torch.tensor([-INF, 0.0]), 0), [0, 1])
    assert same(torch.softmax(torch.tensor([-INF, -INF]), 0), [NAN, NAN])
    assert torch.softmax(torch.tensor([1, 1]), 0, dtype=torch.double).dtype is torch.double
    assert F.softmin(torch.tensor([0.0, 1000.0]), 0).tolist() == [1.0, 0.0]
    low = torch.softmax(torch.zeros(4, dtype=torch.float16), 0)
    assert low.dtype is torch.float16 and low.tolist() == [0.25] * 4


def test_softmax_gradient_by_hand() -> None:
    x = torch.zeros(2, dtype=torch.double, requires_grad=True)
    (g,) = torch.autograd.grad(torch.softmax(x, 0)[0], x, create_graph=True)
    assert g.tolist() == [0.25, -0.25]
    (h,) = torch.autograd.grad(g[0], x)  # p(1-p)(1-2p) is 0 at a half
    assert h.tolist() == [0.0, 0.0]
    x = torch.zeros(2, dtype=torch.double, requires_grad=True)
    torch.log_softmax(x, 0)[0].backward()
    assert x.grad.tolist() == [0.5, -0.5]


def test_softmax_errors() -> None:
    x = torch.ones(2, 3)
    with pytest.raises(
        IndexError, match=r"Dimension out of range \(expected to be in range of \[-2"
    ):
        torch.softmax(x, 2)
    with pytest.raises(NotImplementedError, match="softmax_lastdim_kernel_impl"):
        torch.softmax(x.to(torch.long), 1)
    with pytest.warns(
        UserWarning, match="Implicit dimension choice for softmax has been deprecated"
    ):
        assert F.softmax(x).shape == (2, 3)


def test_gumbel_softmax() -> None:
    logits = torch.zeros(5, 3, requires_grad=True)
    hard = F.gumbel_softmax(logits, hard=True)
    assert sorted(set(hard.reshape(-1).tolist())) == [0.0, 1.0] and hard.sum().item() == 5.0
    hard[:, 0].sum().backward()
    assert logits.grad.abs().sum().item() > 0


# --- likeness -------------------------------------------------------------------------------------
def test_likeness() -> None:
    a, b = torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]])
    assert same(F.normalize(a), [0.6, 0.8])
    assert F.normalize(torch.zeros(1, 2)).tolist() == [[0.0, 0.0]]
    assert same(F.cosine_similarity(a, b), [0.96])
    assert F.cosine_similarity(torch.zeros(1, 2), b).tolist() == [0.0]
    assert same(F.pairwise_distance(a, torch.zeros(2)), [5.0], 1e-5)
    with pytest.raises(RuntimeError, match="expected common dtype to be floating point"):
        F.cosine_similarity(torch.tensor([[1]]), torch.tensor([[1]]))


# --- normalisation --------------------------------------------------------------------------------
def test_layer_norm() -> None:
    x = torch.tensor([[1.0, 3.0], [5.0, 9.0]], requires_grad=True)
    w, b = torch.tensor([2.0, 3.0], requires_grad=True), torch.tensor([10.0, 20.0])
    y = F.layer_norm(x, (2,), w, b, eps=0.0)
    assert y.tolist() == [[8.0, 23.0], [8.0, 23.0]]
    assert type(y.grad_fn).__name__ == "NativeLayerNormBackward0"
    y.sum().backward()
    assert w.grad.tolist() == [-2.0, 2.0]
    assert same(x.grad, [0, 0, 0, 0])  # two numbers are always sent to -1 and 1
    _, mean, rstd = torch.native_layer_norm(x, (2,), w, b, 0.0)
    assert mean.tolist() == [[2.0], [7.0]] and rstd.tolist() == [[1.0], [0.5]]
    assert F.layer_norm(torch.ones(0, 2), (2,)).shape == (0, 2)


def test_layer_norm_twice_differentiable() -> None:
    x = torch.tensor([[0.0, 1.0, 3.0]], dtype=torch.double, requires_grad=True)

    def slope(t: Any) -> Any:
        y = (F.layer_norm(t, (3,)) ** 3).sum()
        return torch.autograd.grad(y, t, create_graph=True)[0]

    (h,) = torch.autograd.grad(slope(x)[0, 0], x)
    step = 1e-6
    for j in range(3):
        up, down = (
            torch.tensor(
                [[v + s * (i == j) for i, v in enumerate((0.0, 1.0, 3.0))]],
                dtype=torch.double,
                requires_grad=True,
            )
            for s in (step, -step)
        )
        numeric = (slope(up)[0, 0].item() - slope(down)[0, 0].item()) / (2 * step)
        assert h[0, j].item() == pytest.approx(numeric, rel=1e-5)


def test_layer_norm_errors() -> None:
    x = torch.ones(2, 3)
    for shape, text in [
        ((2,), r"Given normalized_shape=\[2\], expected input with shape \[\*, 2\], but got input"),
        ((), "Expected normalized_shape to be at least 1-dimensional"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            F.layer_norm(x, shape)
    with pytest.raises(
        RuntimeError, match="Expected weight to be of same shape as normalized_shape"
    ):
        F.layer_norm(x, (3,), torch.ones(2))
    with pytest.raises(NotImplementedError, match="LayerNormKernelImpl"):
        F.layer_norm(x.to(torch.long), (3,))


def test_batch_norm() -> None:
    x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    mean, var = torch.zeros(2), torch.ones(2)
    y = F.batch_norm(x, mean, var, training=True, momentum=0.5, eps=1e-30)
    assert y.tolist() == [[-1.0, -1.0], [1.0, 1.0]]
    assert mean.tolist() == [1.0, 10.0]  # half way to [2, 20]
    assert same(var, [1.5, 100.5])  # half way to the unbiased [2, 200]
    y = F.batch_norm(x, torch.tensor([1.0, 10.0]), torch.tensor([4.0, 100.0]), eps=0.0)
    assert y.tolist() == [[0.0, 0.0], [1.0, 2.0]]
    image = F.batch_norm(torch.ones(2, 3, 4, 5), None, None, training=True)
    assert image.shape == (2, 3, 4, 5) and image.abs().sum().item() == 0.0


def test_batch_norm_errors() -> None:
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="running_mean must be defined in evaluation mode"):
        F.batch_norm(x, None, None)
    with pytest.raises(RuntimeError, match="running_mean should contain 3 elements not 2"):
        F.batch_norm(x, torch.ones(2), torch.ones(3))
    with pytest.raises(
        ValueError, match=r"Expected more than 1 value per channel when training, got"
    ):
        F.batch_norm(x[:1], None, None, training=True)
    with pytest.raises(ValueError, match="batch_norm eps must be positive during training"):
        F.batch_norm(x, None, None, training=True, eps=0.0)
    with pytest.raises(ValueError, match="batch_norm eps must be non-negative"):
        F.batch_norm(x, torch.ones(3), torch.ones(3), eps=-1.0)


# --- dropout --------------------------------------------------------------------------------------
def test_dropout() -> None:
    x = torch.ones(1000, requires_grad=True)
    assert F.dropout(x, training=False) is x and F.dropout(x, 0.0) is x
    y = F.dropout(x, 0.25)
    assert sorted(set(y.tolist())) == pytest.approx([0.0, 4 / 3])
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()
    assert F.dropout(x, 1.0).sum().item() == 0.0
    assert F.dropout(torch.ones(0)).shape == (0,)
    z = torch.ones(8)
    assert F.dropout(z, 0.5, inplace=True) is z and set(z.tolist()) <= {0.0, 2.0}
    rows = F.dropout1d(torch.ones(4, 50, 3), 0.5)
    assert {tuple(r) for r in rows.reshape(-1, 3).tolist()} == {(0.0,) * 3, (2.0,) * 3}
    with pytest.raises(
        ValueError, match="dropout probability has to be between 0 and 1, but got 2"
    ):
        F.dropout(x, 2)


def test_one_seed_one_mask() -> None:
    torch.manual_seed(7)
    first = F.dropout(torch.ones(50))
    torch.manual_seed(7)
    assert F.dropout(torch.ones(50)).tolist() == first.tolist()


# --- embedding ------------------------------------------------------------------------------------
def test_embedding() -> None:
    w = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], requires_grad=True)
    y = F.embedding(torch.tensor([[2, 0], [2, 1]]), w, padding_idx=-2)
    assert y.tolist() == [[[4.0, 5.0], [0.0, 1.0]], [[4.0, 5.0], [2.0, 3.0]]]
    assert type(y.grad_fn).__name__ == "EmbeddingBackward0"
    y.sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]  # row 1 is padding
    w.grad = None
    F.embedding(torch.tensor([2, 2, 0]), w, scale_grad_by_freq=True).sum().backward()
    assert w.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
    assert F.embedding(torch.tensor([], dtype=torch.long), w).shape == (0, 2)
    long = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    F.embedding(torch.tensor([0, 0, 1]), long, max_norm=1.0)
    assert same(long, [0.6, 0.8, 0.3, 0.4], 1e-5)
    for bad in (3, -1):
        with pytest.raises(IndexError, match="index out of range in self"):
            F.embedding(torch.tensor([bad]), w)
    with pytest.raises(RuntimeError, match="Expected tensor for argument #1 'indices' to have one"):
        F.embedding(torch.tensor([1.0]), w)


def test_one_hot() -> None:
    assert F.one_hot(torch.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(torch.tensor(1), 3).tolist() == [0, 1, 0]
    assert F.one_hot(torch.tensor([], dtype=torch.long), 3).shape == (0, 3)
    for call, text in [
        (lambda: F.one_hot(torch.tensor([2]), 2), "Class values must be smaller than num_classes"),
        (lambda: F.one_hot(torch.tensor([-1])), "Class values must be non-negative"),
        (lambda: F.one_hot(torch.tensor([1.0])), "only applicable to index tensor of type Long"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            call()
