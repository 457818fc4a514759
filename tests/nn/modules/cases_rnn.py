"""Recurrent layers and cells: first values, results and gradients, and errors."""

from __future__ import annotations

import copy
import itertools
import warnings
from typing import Any

from tests.harness import PlainCases, attempt

exact = PlainCases()
close = PlainCases()


def flat(x: Any) -> list[Any]:
    """The tensors of a nested result."""
    if isinstance(x, (tuple, list)):
        return [t for part in x for t in flat(part)]
    return [] if x is None else [x]


def seen(torch: Any, result: Any, leaves: list[Any]) -> Any:
    """Shapes, sums that tell elements apart, and such sums of gradients."""

    def told(t: Any) -> Any:
        t = t.detach().double()
        weights = torch.arange(t.numel(), dtype=torch.float64).reshape(t.shape) / 8
        return [list(t.shape), (t * weights).sum().item(), t.abs().sum().item()]

    tensors = [t for t in flat(result) if t.is_floating_point()]
    loss = sum((t * torch.arange(t.numel()).to(t).reshape(t.shape)).sum() for t in tensors) / 8
    found = torch.autograd.grad(loss, leaves)
    return [[told(t) for t in tensors], [told(t) for t in found]]


LAYERS = [
    ("LSTM", {}), ("LSTM", {"proj_size": 2}), ("GRU", {}), ("RNN", {}),
    ("RNN", {"nonlinearity": "relu"}),
]  # fmt: skip


def layers(torch: Any) -> Any:
    """Every kind of layer, with every option, in float32 and float64, with and without states."""
    found = {}
    options = itertools.product(LAYERS, (1, 2), (False, True), (True, False), (False, True))
    for (name, more), depth, both, bias, first in options:
        torch.manual_seed(depth)
        net = getattr(torch.nn, name)(
            3, 4, depth, bias=bias, bidirectional=both, batch_first=first, **more
        )
        x = torch.randn(3, 2, 3, requires_grad=True)
        sizes = [more.get("proj_size", 4), 4][: 2 if name == "LSTM" else 1]
        n = x.shape[0 if first else 1]
        state = [torch.randn(depth * (2 if both else 1), n, s).requires_grad_() for s in sizes]
        hx = tuple(state) if name == "LSTM" else state[0]
        title = f"{name} {more} {depth} {both} {bias} {first}"
        leaves = [x, *state, *net.parameters()]
        found[title] = seen(torch, net(x, hx), leaves)
        if depth == 1 and bias:
            found[f"{title} no state"] = seen(torch, net(x), [x, *net.parameters()])
            net = net.double()
            x = x.detach().double().requires_grad_()
            found[f"{title} float64"] = seen(torch, net(x), [x, *net.parameters()])
    return found


def packed(torch: Any) -> Any:
    """Sequences of different lengths, sorted and not."""
    rnn = torch.nn.utils.rnn
    found = {}
    for (name, more), both, ordered in itertools.product(LAYERS, (False, True), (True, False)):
        torch.manual_seed(3)
        net = getattr(torch.nn, name)(3, 4, 2, bidirectional=both, **more)
        x = torch.randn(5, 3, 3, requires_grad=True)
        lengths = [5, 3, 1] if ordered else [1, 5, 3]
        batch = rnn.pack_padded_sequence(x, lengths, enforce_sorted=ordered)
        y, last = net(batch)
        back, sizes = rnn.pad_packed_sequence(y)
        result = seen(torch, [back, last], [x, *net.parameters()])
        found[f"{name} {more} {both} {ordered}"] = [result, sizes.tolist(), y.batch_sizes.tolist()]
    return found


def alone(torch: Any) -> Any:
    """One sequence, without a dimension for sequences; cells with one element and several."""
    found = {}
    for name, more in LAYERS:
        torch.manual_seed(4)
        net = getattr(torch.nn, name)(3, 4, **more)
        x = torch.randn(5, 3, requires_grad=True)
        found[f"{name} {more}"] = seen(torch, net(x), [x, *net.parameters()])
    for name in ("LSTMCell", "GRUCell", "RNNCell"):
        torch.manual_seed(5)
        cell = getattr(torch.nn, name)(3, 4)
        x = torch.randn(2, 3, requires_grad=True)
        h = cell(x)
        found[name] = seen(torch, cell(x, h), [x, *cell.parameters()])
        found[f"{name} alone"] = seen(torch, cell(x[0]), [x, *cell.parameters()])
    return found


def dropped(torch: Any) -> Any:
    """Dropout between layers draws PyTorch's numbers; none in evaluation."""
    found = {}
    for name in ("LSTM", "GRU", "RNN"):
        torch.manual_seed(6)
        net = getattr(torch.nn, name)(3, 4, 3, dropout=0.5, bidirectional=True)
        x = torch.randn(4, 2, 3, requires_grad=True)
        found[name] = seen(torch, net(x)[0], [x])
        found[f"{name} next"] = torch.rand(2).tolist()
        found[f"{name} eval"] = seen(torch, net.eval()(x)[0], [x])
    return found


def first_values(torch: Any) -> Any:
    found = {}
    for text in ("LSTM(2, 3, 2, proj_size=1)", "GRU(2, 3, bidirectional=True)", "RNN(2, 2, 2)",
                 "LSTMCell(2, 3)", "GRUCell(2, 2, bias=False)", "RNNCell(1, 2)"):  # fmt: skip
        torch.manual_seed(7)
        net = eval(f"nn.{text}", {"nn": torch.nn})
        found[text] = {name: value.tolist() for name, value in net.state_dict().items()}
    return found


def weights(torch: Any) -> Any:
    """The lists of weights follow what becomes of the parameters."""
    net = torch.nn.LSTM(2, 3, proj_size=1)
    found: list[Any] = [net._flat_weights_names, net._all_weights, len(net.all_weights[0])]
    net.load_state_dict(torch.nn.LSTM(2, 3, proj_size=1).state_dict(), assign=True)
    found.append(net._flat_weights[0] is net.weight_ih_l0)
    net.double()
    found.append(net._flat_weights[1] is net.weight_hh_l0)
    other = copy.deepcopy(net)
    found.append(other._flat_weights[0] is other.weight_ih_l0)
    found.append(other._flat_weights[0] is net.weight_ih_l0)
    found.append(net.flatten_parameters() is None)
    net.weight_ih_l0 = torch.nn.Parameter(torch.ones(12, 2).double())
    found.append(net(torch.ones(1, 1, 2).double())[0].item() != 0)
    return found


def nodes(torch: Any) -> Any:
    """What results show of how they were made, and how they lie."""
    nn = torch.nn
    results = [
        nn.LSTM(3, 4)(torch.ones(5, 2, 3)), nn.LSTM(3, 4, batch_first=True)(torch.ones(2, 5, 3)),
        nn.LSTM(3, 4)(torch.ones(5, 3)), nn.GRU(3, 4)(torch.ones(5, 2, 3)),
        nn.LSTM(3, 4, bidirectional=True)(torch.ones(5, 2, 3)), nn.LSTMCell(3, 4)(torch.ones(2, 3)),
        nn.GRUCell(3, 4)(torch.ones(2, 3)), nn.RNNCell(3, 4)(torch.ones(2, 3)),
    ]  # fmt: skip
    return [[[type(t.grad_fn).__name__, list(t.stride())] for t in flat(r)] for r in results]


def printed(torch: Any) -> Any:
    nn = torch.nn
    return [
        repr(m)
        for m in (
            nn.RNN(3, 4, 2, "relu"), nn.LSTM(3, 4, 2, False, True, 0.5, True, 2), nn.GRU(3, 4),
            nn.RNN(3, 4, 1, "tanh", False), nn.RNNBase("GRU", 2, 3), nn.LSTMCell(2, 3),
            nn.RNNCell(2, 3, nonlinearity="relu"), nn.GRUCell(2, 3, bias=False),
        )
    ]  # fmt: skip


def errors(torch: Any) -> Any:
    nn, ones = torch.nn, torch.ones
    lstm, gru, rnn = nn.LSTM(3, 4, 2, bidirectional=True), nn.GRU(3, 4), nn.RNN(3, 4)
    cells = [nn.LSTMCell(3, 4), nn.GRUCell(3, 4), nn.RNNCell(3, 4)]
    x = ones(5, 2, 3)
    calls = [
        lambda: nn.LSTM(3, 4.0), lambda: nn.LSTM(3, 0), lambda: nn.LSTM(3, 4, 0),
        lambda: nn.LSTM(3, 4, proj_size=-1), lambda: nn.LSTM(3, 4, proj_size=4),
        lambda: nn.GRU(3, 4, proj_size=2), lambda: nn.RNN(3, 4, proj_size=2),
        lambda: nn.LSTM(3, 4, dropout=2), lambda: nn.LSTM(3, 4, dropout=True),
        lambda: nn.RNN(3, 4, nonlinearity="x"), lambda: nn.RNNBase("x", 2, 3),
        lambda: nn.RNNCell(2, 3, nonlinearity="q")(ones(1, 2)), lambda: lstm(ones(5)),
        lambda: lstm(ones(5, 2, 4)), lambda: lstm(x, (ones(4, 2), ones(4, 2))),
        lambda: lstm(x, (ones(4, 2, 3), ones(4, 2, 4))),
        lambda: lstm(x, (ones(4, 2, 4), ones(4, 2, 5))), lambda: lstm(x.double()),
        lambda: lstm(ones(0, 2, 3)), lambda: lstm(ones(5, 3), (ones(4, 1, 4), ones(4, 1, 4))),
        lambda: lstm(x, ones(4, 2, 4)), lambda: gru(ones(5)), lambda: gru(ones(5, 2, 4)),
        lambda: gru(x, ones(1, 2)), lambda: gru(x, ones(1, 2, 3)), lambda: gru(x.long()),
        lambda: gru(ones(5, 3), ones(1, 1, 4)), lambda: rnn(ones(5)), lambda: rnn(x, ones(1, 2)),
        lambda: cells[0](ones(2, 3), (ones(3, 4), ones(3, 4))),
        lambda: cells[0](ones(2, 3), (ones(2, 5), ones(2, 5))),
        lambda: cells[0](ones(2, 3), ones(2, 4)), lambda: cells[1](ones(2, 3), ones(2, 5)),
        *[lambda c=c: c(ones(3, 3, 3)) for c in cells],
        *[lambda c=c: c(ones(2, 4)) for c in cells],
        *[lambda c=c: c(ones(2, 3), ones(3, 4)) for c in cells[1:]],
        *[lambda c=c: c(ones(2, 3), ones(2, 1, 4)) for c in cells[1:]],
    ]  # fmt: skip
    return [attempt(call) for call in calls]


def warned(torch: Any) -> Any:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        torch.nn.LSTM(3, 4, dropout=0.5)
    return [str(w.message) for w in said]


def derivatives(torch: Any) -> Any:
    """Second derivatives and forward mode, in float64, where PyTorch has them."""
    found = {}
    for name, more in LAYERS:
        torch.manual_seed(8)
        net = getattr(torch.nn, name)(2, 3, **more).double()
        x = torch.randn(3, 2, 2, dtype=torch.float64, requires_grad=True)
        y = net(x)[0]
        (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        again = torch.autograd.grad((g * g).sum(), [x, *net.parameters()])
        found[f"{name} {more} float64"] = [t.sum().item() for t in again]
        along = (x.detach(),), (torch.ones_like(x),)
        _, tangent = torch.func.jvp(lambda x, net=net: net(x)[0], *along)
        found[f"{name} {more} tangent float64"] = tangent.tolist()
    return found


def quiet(case: Any) -> Any:
    """A case without PyTorch's warning that oneDNN has no projections."""

    def run(torch: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return case(torch)

    return run


for _case in (layers, packed, alone, dropped, derivatives):
    close.enter(_case.__name__, quiet(_case))
for _case in (first_values, weights, nodes, printed, errors, warned):
    exact.enter(_case.__name__, _case)


def results(torch: Any) -> Any:
    return exact.results(torch) | close.results(torch)
