"""`lstm`, `gru`, `rnn_tanh`, `rnn_relu`: stacks of recurrent layers; and single cells.

The layers' weights come in one list: for each layer and direction the weights of the input and of
the state, then (`has_biases`) their biases, then for an LSTM with projections its weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from rushlight.core.grad_mode import state
from rushlight.core.graph import TensorBase
from rushlight.core.record import any_requires_grad, apply, recording
from rushlight.dtypes import type_name
from rushlight.ops.checks import check_tensor, mismatch
from rushlight.ops.numbers import number
from rushlight.ops.recurrent.layers import GRULayer, LSTMLayer, RNNLayer
from rushlight.ops.registry import function, functions, namespaces, shared_op

_PER_CELL: Final = {False: 2, True: 4}


def _keeps(xs: tuple[Any, ...]) -> bool:
    """Whether a backward pass may follow."""
    return state.level != 0 or (recording() and any_requires_grad(xs))


def _lstm(xs: tuple[Any, ...], sizes: Any, padded: bool, reverse: bool) -> tuple[Any, ...]:
    found = apply(shared_op(LSTMLayer, sizes, padded, reverse, _keeps(xs)), *xs)
    return tuple(found[:3])


def _gru(xs: tuple[Any, ...], sizes: Any, padded: bool, reverse: bool) -> tuple[Any, ...]:
    found = apply(shared_op(GRULayer, sizes, padded, reverse, _keeps(xs)), *xs)
    return tuple(found[:2])


def _rnn(relu: bool) -> Callable[..., tuple[Any, ...]]:
    def run(xs: tuple[Any, ...], sizes: Any, padded: bool, reverse: bool) -> tuple[Any, ...]:
        found: tuple[Any, ...] = apply(shared_op(RNNLayer, relu, sizes, padded, reverse, True), *xs)
        return found

    return run


def _stack(
    layer: Callable[..., Any], width: int, input: Any, sizes: tuple[int, ...] | None, hx: list[Any],
    params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any,
) -> tuple[Any, ...]:  # fmt: skip
    """The output of the last layer, then each state after the last step, of all layers and
    directions. `hx` are the states before the first, `width` the tensors a cell has in `params`."""
    padded = sizes is None
    if sizes is None:
        if input.ndim != 3:
            raise RuntimeError(f"input must have 3 dimensions, got {input.ndim}")
        sizes = (input.shape[1],) * input.shape[0]
        if not sizes:
            raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    directions = 2 if bidirectional else 1
    if len(params) != width * num_layers * directions:
        raise RuntimeError(
            f"got an incorrect number of RNN parameters: {len(params)}, expected "
            f"{width * num_layers * directions}"
        )
    firsts = [h.unbind(0) for h in hx]
    lasts: list[list[Any]] = [[] for _ in hx]
    for k in range(num_layers):
        outputs = []
        for d in range(directions):
            at = k * directions + d
            own = list(params[at * width : (at + 1) * width])
            weights = [*own[:2], *(own[2:4] if has_biases else (None, None))]
            more = own[4 if has_biases else 2 :]
            states = [first[at] for first in firsts]
            if layer is _lstm:
                states.append(more[0] if more else None)
            y, *after = layer((input, *weights, *states), sizes, padded, d == 1)
            outputs.append(y)
            for last, h in zip(lasts, after, strict=True):
                last.append(h)
        input = outputs[0] if directions == 1 else functions["cat"](outputs, -1)
        if dropout and train and k < num_layers - 1:
            input = functions["dropout"](input, dropout, True)
    return input, *(functions["stack"](last) for last in lasts)


def _run(
    title: str, layer: Callable[..., Any], packed: bool, args: tuple[Any, ...], states: int
) -> tuple[Any, ...]:
    """Read the two forms of arguments: padded sequences, and packed ones with their sizes."""
    batch_first = False
    if packed:
        data, batch_sizes, hx, params, *rest = args
        sizes = tuple(batch_sizes.tolist())
        input = data
    else:
        input, hx, params, *rest, batch_first = args
        sizes = None
    check_tensor(input, title)
    rest[2] = number(rest[2], "float")  # its place depends on the form: no annotation can say it
    if rest[2] is NotImplemented:
        raise mismatch(title, *args)
    states_before = list(hx) if states == 2 else [hx]
    if len(states_before) != states:
        raise RuntimeError("lstm expects two hidden states")
    width = _PER_CELL[bool(rest[0])]
    if states == 2 and states_before[0].shape[-1] != states_before[1].shape[-1]:
        width += 1
    if batch_first:
        input = input.transpose(0, 1)
    found = _stack(layer, width, input, sizes, states_before, params, *rest)
    if batch_first:
        return found[0].transpose(0, 1), *found[1:]
    return found


@function(method=False, returns="tuple[Tensor, Tensor, Tensor]")
def lstm(
    input: Any, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any,
    bidirectional: Any, batch_first: Any = False,
) -> Any:  # fmt: skip
    """A stack of LSTM layers over sequences; `nn.LSTM` is the convenient form.

    Also lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional),
    of packed sequences.

    Args:
        hx: the states h and c before the first step.
        params: the weights of all layers.
        has_biases: whether there are biases among them.
        num_layers: how many layers there are.
        dropout: the probability of dropout between layers.
        train: whether to drop anything.
        bidirectional: whether each layer also runs backwards.
        batch_first: whether the first dimension is that of sequences, not of steps.

    >>> w = [torch.ones(4, 1), torch.ones(4, 1), torch.zeros(4), torch.zeros(4)]
    >>> h = torch.zeros(1, 1, 1)
    >>> torch.lstm(torch.ones(2, 1, 1), (h, h), w, True, 1, 0., False, False, False)[0].flatten()
    tensor([0.3696, 0.6505])
    """
    packed = isinstance(hx, TensorBase)
    args = (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
    return _run("lstm", _lstm, packed, args, 2)


def _export(name: str, layer: Callable[..., Any], text: str, gates: int, shown: str) -> None:
    """Make a function for layers with one state."""

    def run(
        input: Any, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any,
        train: Any, bidirectional: Any, batch_first: Any = False,
    ) -> Any:  # fmt: skip
        packed = isinstance(params, TensorBase)
        args = (
            input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first,
        )  # fmt: skip
        return _run(name, layer, packed, args, 1)

    run.__name__ = run.__qualname__ = name
    module = name.partition("_")[0].upper()
    run.__doc__ = f"""{text} over sequences; `nn.{module}` is the convenient form.

    Also {name}(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train,
    bidirectional), of packed sequences.

    Args:
        hx: the state before the first step.
        params: the weights of all layers.
        has_biases: whether there are biases among them.
        num_layers: how many layers there are.
        dropout: the probability of dropout between layers.
        train: whether to drop anything.
        bidirectional: whether each layer also runs backwards.
        batch_first: whether the first dimension is that of sequences, not of steps.

    >>> w = [torch.ones({gates}, 1), torch.ones({gates}, 1)]
    >>> x, h = torch.ones(2, 1, 1), torch.zeros(1, 1, 1)
    >>> torch.{name}(x, h, w, False, 1, 0., False, False, False)[0].flatten()
    {shown}
    """
    function(method=False, returns="tuple[Tensor, Tensor]")(run)


_export("gru", _gru, "A stack of GRU layers", 3, "tensor([0.2048, 0.3468])")
_export(
    "rnn_tanh", _rnn(False), "A stack of recurrent layers with tanh", 1, "tensor([0.7616, 0.9427])"
)
_export("rnn_relu", _rnn(True), "A stack of recurrent layers with ReLU", 1, "tensor([1., 2.])")


# --- single cells: compositions, so that their nodes are those of PyTorch -------------------------
def _check_cell(
    name: str, gates: int, input: Any, hx: tuple[Any, ...], w_ih: Any, w_hh: Any, *biases: Any
) -> None:
    """Refuse what is no tensor, and shapes that do not fit; `hx` is h, and c of an LSTM."""
    for k, h in enumerate(hx):
        if not isinstance(h, TensorBase):
            raise TypeError(f"expected Tensor as element {k} in argument 1, but got {type_name(h)}")
    ih, hh = check_tensor(w_ih, name, "w_ih", 3).shape, check_tensor(w_hh, name, "w_hh", 4).shape
    for k, bias in enumerate(biases):
        if bias is not None:
            check_tensor(bias, name, ("b_ih", "b_hh")[k], 5 + k)
    if gates == 4 and len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    for x in (input, *hx, w_ih, w_hh):
        if x._array.ndim < 2:
            x.size(1)  # which says what is wrong
    given, hidden = input._array.shape, hh[1]
    if given[1] != ih[1]:
        raise RuntimeError(f"input has inconsistent input_size: got {given[1]} expected {ih[1]}")
    wide = gates * hidden
    if ih[0] != wide or hh[0] != wide:
        side, rows = ("ih", ih[0]) if ih[0] != wide else ("hh", hh[0])
        raise RuntimeError(
            f"weight_{side} first dim must be {gates} * hidden_size = {wide}, but got {rows}"
        )
    for k, h in enumerate(hx):
        size = h._array.shape
        if given[0] != size[0]:
            raise RuntimeError(
                f"Input batch size {given[0]} doesn't match hidden{k} batch size {size[0]}"
            )
        if hidden != size[1]:
            raise RuntimeError(
                f"hidden{k} has inconsistent hidden_size: got {size[1]}, expected {hidden}"
            )


def _linear(x: Any, w: Any, b: Any) -> Any:
    return namespaces["nn.functional"]["linear"](x, w, b)


@function(method=False, returns="tuple[Tensor, Tensor]")
def lstm_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """One step of an LSTM: the new h and c.

    Args:
        hx: h and c before.
        w_ih: the weights of the input, of shape [4 * hidden, in].
        w_hh: the weights of h, of shape [4 * hidden, hidden].
        b_ih: the bias of the input's side, or None.
        b_hh: the bias of the hidden side, or None.

    >>> h = torch.zeros(1, 1)
    >>> torch.lstm_cell(torch.ones(1, 1), (h, h), torch.ones(4, 1), torch.ones(4, 1))[0]
    tensor([[0.3696]])
    """
    check_tensor(input, "lstm_cell")
    if not isinstance(hx, (tuple, list)):
        raise TypeError(
            f"lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not {type_name(hx)}"
        )
    _check_cell("lstm_cell", 4, input, tuple(hx), w_ih, w_hh, b_ih, b_hh)
    h, c = hx
    gates = _linear(input, w_ih, b_ih) + _linear(h, w_hh, b_hh)
    i, f, g, o = gates.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


@function(method=False)
def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """One step of a GRU: the new h.

    Args:
        hx: h before.
        w_ih: the weights of the input, of shape [3 * hidden, in].
        w_hh: the weights of h, of shape [3 * hidden, hidden].
        b_ih: the bias of the input's side, or None.
        b_hh: the bias of the hidden side, or None.

    >>> torch.gru_cell(torch.ones(1, 1), torch.zeros(1, 1), torch.ones(3, 1), torch.ones(3, 1))
    tensor([[0.2048]])
    """
    check_tensor(input, "gru_cell")
    check_tensor(hx, "gru_cell", "hx", 2)
    _check_cell("gru_cell", 3, input, (hx,), w_ih, w_hh, b_ih, b_hh)
    xr, xz, xn = _linear(input, w_ih, b_ih).chunk(3, 1)
    hr, hz, hn = _linear(hx, w_hh, b_hh).chunk(3, 1)
    r, z = (hr + xr).sigmoid(), (hz + xz).sigmoid()
    n = (xn + hn * r).tanh()
    return (hx - n) * z + n


def _export_cell(name: str, act: str, shown: str) -> None:
    def cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        check_tensor(input, name)
        check_tensor(hx, name, "hx", 2)
        _check_cell(name, 1, input, (hx,), w_ih, w_hh, b_ih, b_hh)
        return getattr(_linear(hx, w_hh, b_hh) + _linear(input, w_ih, b_ih), act)()

    cell.__name__ = cell.__qualname__ = name
    cell.__doc__ = f"""One step of a recurrent layer: {act} of the sum of both sides.

    Args:
        hx: h before.
        w_ih: the weights of the input, of shape [hidden, in].
        w_hh: the weights of h, of shape [hidden, hidden].
        b_ih: the bias of the input's side, or None.
        b_hh: the bias of the hidden side, or None.

    >>> torch.{name}(torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1))
    {shown}
    """
    function(method=False)(cell)


_export_cell("rnn_tanh_cell", "tanh", "tensor([[0.9640]])")
_export_cell("rnn_relu_cell", "relu", "tensor([[2.]])")
