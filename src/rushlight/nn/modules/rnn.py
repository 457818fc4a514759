"""Recurrent layers: `RNN`, `LSTM`, `GRU`, and their cells.

A layer's weights go by name (`weight_ih_l0_reverse`); `_flat_weights` has them in the order in
which the functions `torch.lstm` and its kin take them.
"""

from __future__ import annotations

import math
import numbers
import sys
import warnings
from typing import Any, ClassVar, Self

from rushlight.nn import init
from rushlight.nn.modules.linear import new_parameter
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import explain, unusual
from rushlight.nn.utils.rnn import PackedSequence
from rushlight.ops.registry import functions

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "GRUCell",
    "LSTMCell",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
]  # fmt: skip
__dir__ = __all__.copy

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def apply_permutation(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    """A tensor with its slices in another order."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` "
        "instead",
        FutureWarning,
        stacklevel=2,
    )
    return _permuted(tensor, permutation, dim)


def _permuted(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    return tensor if permutation is None else tensor.index_select(dim, permutation)


def _autocasting() -> bool:
    """Whether autocast is on, and will see to dtypes."""
    amp: Any = sys.modules.get("rushlight.amp.casting")  # not there: never in force
    return amp is not None and any(amp.setting.get().enabled.values())


class RNNBase(Module):
    """RNNBase(mode, input_size, hidden_size, num_layers=1, bias=True, batch_first=False,
    dropout=0.0, bidirectional=False, proj_size=0): what `RNN`, `LSTM` and `GRU` share.

    `mode` is "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
    """

    __constants__ = (
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout",
        "bidirectional", "proj_size",
    )  # fmt: skip
    __jit_unused_properties__ = ("all_weights",)

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
        proj_size: int = 0, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_sizes(dropout)
        self._flat_weights_names: list[str] = []
        self._all_weights: list[list[str]] = []
        gates = _GATES[mode] * hidden_size
        state = proj_size or hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else state * (2 if bidirectional else 1)
            for suffix in ("", "_reverse") if bidirectional else ("",):
                shapes = {"weight_ih": (gates, width), "weight_hh": (gates, state)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}  # type: ignore[dict-item]
                if proj_size > 0:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = []
                for name, shape in shapes.items():
                    full = f"{name}_l{layer}{suffix}"
                    setattr(self, full, new_parameter(*shape, device=device, dtype=dtype))
                    names.append(full)
                self._flat_weights_names += names
                self._all_weights.append(names)
        self._init_flat_weights()
        self.reset_parameters()

    def _check_sizes(self, dropout: Any) -> None:
        if (
            isinstance(dropout, bool)
            or not isinstance(dropout, numbers.Number)
            or not 0 <= self.dropout <= 1
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}",
                stacklevel=4,
            )
        width: Any = self.hidden_size
        if not isinstance(width, int):
            kind = type(width).__name__
            raise TypeError(f"hidden_size should be of type int, got: {kind}")
        if self.hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    # --- the weights ----------------------------------------------------------------------------
    def _init_flat_weights(self) -> None:
        self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]

    def __setattr__(self, attr: str, value: Any) -> None:
        names = self.__dict__.get("_flat_weights_names", ())
        if attr in names and "_flat_weights" in self.__dict__:
            self._flat_weights[names.index(attr)] = value
        super().__setattr__(attr, value)

    def flatten_parameters(self) -> None:
        """Nothing to do: the weights need not lie in one piece of memory here."""

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self._init_flat_weights()
        return self

    def _update_flat_weights(self) -> None:
        self._init_flat_weights()

    def _weights_have_changed(self) -> bool:
        return any(
            getattr(self, name, None) is not kept
            for name, kept in zip(self._flat_weights_names, self._flat_weights, strict=True)
        )

    def _weights_now(self) -> list[Any]:
        """The weights as they stand under their names: `functional_call` and duals may have put
        others there."""
        own = self._parameters
        found = [own.get(name) for name in self._flat_weights_names]
        if any(w is None for w in found):  # duals stand in for the parameters
            found = [getattr(self, name) for name in self._flat_weights_names]
        return found

    @property
    def all_weights(self) -> list[list[Any]]:
        """The weights, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def reset_parameters(self) -> None:
        """Draw new values."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("proj_size", 0)
        if "all_weights" in state:
            self._all_weights = state["all_weights"]
        names: Any = self._all_weights
        if names and not isinstance(names[0][0], str):
            return  # written when the weights themselves stood there
        self._flat_weights_names = [name for part in names for name in part]
        self._init_flat_weights()

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def _replicate_for_data_parallel(self) -> Self:
        replica = super()._replicate_for_data_parallel()
        replica._flat_weights = replica._flat_weights[:]
        return replica

    # --- checks ---------------------------------------------------------------------------------
    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """Refuse an input whose dtype or shape does not fit."""
        weight = self._flat_weights[0]
        if weight is not None and input.dtype != weight.dtype and not _autocasting():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: "
                f"model.to({input.dtype})"
            )
        rank = 2 if batch_sizes is not None else 3
        if input.ndim != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.ndim}")
        if self.input_size != input.shape[-1]:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.shape[-1]}\n"
                "The last dimension holds the features of a step; the input is "
                f"{list(input.shape)}."
            )

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape that h must have."""
        return self._state_shape(input, batch_sizes, self.proj_size or self.hidden_size)

    def _state_shape(self, input: Any, batch_sizes: Any, width: int) -> tuple[int, int, int]:
        if batch_sizes is not None:
            size = int(batch_sizes[0])
        else:
            size = input.shape[0 if self.batch_first else 1]
        return (self.num_layers * (2 if self.bidirectional else 1), size, width)

    def check_hidden_size(
        self, hx: Any, expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:  # fmt: skip
        """Refuse a state of another shape."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(
                f"{msg.format(expected_hidden_size, list(hx.shape))}\n"
                "A state is (layers * directions, batch, width), also with `batch_first`; left "
                "out, it is zeros."
            )

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Refuse an input or a state that does not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """A state with its sequences in another order."""
        return _permuted(hx, permutation)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + unusual(
            self, proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0,
            bidirectional=False,
        )  # fmt: skip

    # --- calling --------------------------------------------------------------------------------
    _states: ClassVar[int] = 1  # 2 for an LSTM, which has h and c

    def forward(self, input: Any, hx: Any = None) -> Any:
        batch_sizes = order = back = None
        alone = False
        if isinstance(input, PackedSequence):
            data, batch_sizes, order, back = input
        else:
            data = input
            if data.ndim not in (2, 3):
                kind = type(self).__name__
                what = "tensor " if self._states == 1 and kind == "RNN" else ""
                raise ValueError(
                    f"{kind}: Expected input to be 2D or 3D, got {data.ndim}D {what}instead"
                )
            alone = data.ndim == 2
            if alone:
                data = data.unsqueeze(0 if self.batch_first else 1)
        hx = self._first_state(data, hx, batch_sizes, order, alone)
        self.check_forward_args(data, hx, batch_sizes)
        fn = functions[self.mode.lower()]
        settings = (
            self._weights_now(), self.bias, self.num_layers, self.dropout, self.training,
            self.bidirectional,
        )  # fmt: skip
        if batch_sizes is None:
            y, *last = fn(data, hx, *settings, self.batch_first)
        else:
            y, *last = fn(data, batch_sizes, hx, *settings)
        state: Any = tuple(last) if self._states == 2 else last[0]
        if isinstance(input, PackedSequence):
            return PackedSequence(y, batch_sizes, order, back), self.permute_hidden(state, back)
        if alone:
            y = y.squeeze(0 if self.batch_first else 1)
            squeezed = [h.squeeze(1) for h in last]
            return y, tuple(squeezed) if self._states == 2 else squeezed[0]
        return y, state

    def _first_state(self, data: Any, hx: Any, batch_sizes: Any, order: Any, alone: bool) -> Any:
        if hx is None:
            widths = [self.proj_size or self.hidden_size, self.hidden_size][: self._states]
            zeros = [
                functions["zeros"](
                    *self._state_shape(data, batch_sizes, width), dtype=data.dtype,
                    device=data.device,
                )
                for width in widths
            ]  # fmt: skip
            return tuple(zeros) if self._states == 2 else zeros[0]
        if batch_sizes is None:
            self._check_state_rank(hx, alone)
            if alone:
                return tuple(h.unsqueeze(1) for h in hx) if self._states == 2 else hx.unsqueeze(1)
        return self.permute_hidden(hx, order)

    def _check_state_rank(self, hx: Any, alone: bool) -> None:
        want = 2 if alone else 3
        given = "unbatched 2-D" if alone else "batched 3-D"
        if self._states == 2:
            if len(hx) == 1:
                raise IndexError(
                    "index 1 is out of bounds for dimension 0 with size 1\n"
                    "An LSTM has two states: pass `(h, c)`, not `h`."
                )
            h, c = hx[0], hx[1]
            if h.ndim != want or c.ndim != want:
                raise RuntimeError(
                    f"For {given} input, hx and cx should also be {want}-D but got "
                    f"({h.ndim}-D, {c.ndim}-D) tensors\n"
                    "An LSTM has two states: pass `(h, c)`, each (layers * directions, batch, "
                    "width)."
                )
        elif hx.ndim != want:
            raise RuntimeError(
                f"For {given} input, hx should also be {want}-D but got {hx.ndim}-D tensor"
            )


class RNN(RNNBase):
    """RNN(input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True,
    batch_first=False, dropout=0.0, bidirectional=False): layers of
    h' = tanh(W_ih x + b_ih + W_hh h + b_hh), over sequences.

    Takes (input, h0) and gives (output, h_n): input [steps, sequences, input_size], or with
    `batch_first` [sequences, steps, input_size], or one sequence without that dimension, or a
    PackedSequence.

    >>> rnn = torch.nn.RNN(10, 20, 2)
    >>> output, hn = rnn(torch.randn(5, 3, 10))
    >>> output.shape, hn.shape
    (torch.Size([5, 3, 20]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *args, **kwargs)


class LSTM(RNNBase):
    """LSTM(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, proj_size=0): layers of long short-term memory, over sequences.

    i, f, o = sigmoid, g = tanh of W_ih x + b_ih + W_hh h + b_hh; c' = f c + i g; h' = o tanh(c').
    Takes (input, (h0, c0)) and gives (output, (h_n, c_n)); for shapes see `RNN`.

    >>> lstm = torch.nn.LSTM(10, 20, batch_first=True)
    >>> output, (hn, cn) = lstm(torch.randn(3, 5, 10))
    >>> output.shape, cn.shape
    (torch.Size([3, 5, 20]), torch.Size([1, 3, 20]))
    """

    _states = 2

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape that c must have."""
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Refuse an input or states that do not fit."""
        self.check_input(input, batch_sizes)
        h, c = hidden
        text = "Expected hidden[{}] size {{}}, got {{}}"
        expected = self.get_expected_hidden_size(input, batch_sizes)
        self.check_hidden_size(h, expected, text.format(0))
        self.check_hidden_size(c, self.get_expected_cell_size(input, batch_sizes), text.format(1))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """States with their sequences in another order."""
        if permutation is None:
            return hx
        return _permuted(hx[0], permutation), _permuted(hx[1], permutation)


class GRU(RNNBase):
    """GRU(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False): layers of gated recurrent units, over sequences.

    r, z = sigmoid of W_ih x + b_ih + W_hh h + b_hh; n = tanh(W_in x + b_in + r (W_hn h + b_hn));
    h' = (1 - z) n + z h. Takes (input, h0) and gives (output, h_n); for shapes see `RNN`.

    >>> gru = torch.nn.GRU(10, 20, bidirectional=True)
    >>> output, hn = gru(torch.randn(5, 3, 10))
    >>> output.shape, hn.shape
    (torch.Size([5, 3, 40]), torch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


# --- cells ----------------------------------------------------------------------------------------
class RNNCellBase(Module):
    """RNNCellBase(input_size, hidden_size, bias, num_chunks): what the cells share; they have
    `num_chunks` gates."""

    __constants__: ClassVar[tuple[str, ...]] = ("input_size", "hidden_size", "bias")

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        kind = {"device": device, "dtype": dtype}
        gates = num_chunks * hidden_size
        self.weight_ih = new_parameter(gates, input_size, **kind)
        self.weight_hh = new_parameter(gates, hidden_size, **kind)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, new_parameter(gates, **kind) if bias else None)
        self.reset_parameters()

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}" + unusual(self, bias=True)
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return text if nonlinearity == "tanh" else f"{text}, nonlinearity={nonlinearity}"

    def reset_parameters(self) -> None:
        """Draw new values."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check_ranks(self, input: Any, states: dict[str, Any]) -> None:
        for name, x in {"input": input, **states}.items():
            if x is not None and x.ndim not in (1, 2):
                raise ValueError(
                    f"{type(self).__name__}: Expected {name} to be 1D or 2D, got {x.ndim}D instead"
                )

    def _step(self, fn: str, input: Any, hx: Any) -> Any:
        """One step of a cell with one state."""
        self._check_ranks(input, {"hidden": hx})
        alone = input.ndim == 1
        if alone:
            input = input.unsqueeze(0)
        if hx is None:
            hx = self._zeros(input)
        elif alone:
            hx = hx.unsqueeze(0)
        h = functions[fn](input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return h.squeeze(0) if alone else h

    def _zeros(self, input: Any) -> Any:
        return functions["zeros"](
            input.shape[0], self.hidden_size, dtype=input.dtype, device=input.device
        )


class RNNCell(RNNCellBase):
    """RNNCell(input_size, hidden_size, bias=True, nonlinearity="tanh"): one step of an `RNN`.

    >>> cell = torch.nn.RNNCell(10, 20)
    >>> h = torch.zeros(3, 20)
    >>> for x in torch.randn(6, 3, 10):
    ...     h = cell(x, h)
    >>> h.shape
    torch.Size([3, 20])
    """

    __constants__ = ("input_size", "hidden_size", "bias", "nonlinearity")
    nonlinearity: str

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"rnn_{self.nonlinearity}_cell", input, hx)


class LSTMCell(RNNCellBase):
    """LSTMCell(input_size, hidden_size, bias=True): one step of an `LSTM`. Takes (input, (h, c))
    and gives (h, c).

    >>> h, c = torch.nn.LSTMCell(10, 20)(torch.randn(3, 10))
    >>> h.shape
    torch.Size([3, 20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        states = {} if hx is None else {f"hx[{i}]": h for i, h in enumerate(hx)}
        if not isinstance(hx, (tuple, list)) and hx is not None:
            states = {}
        self._check_ranks(input, states)
        alone = input.ndim == 1
        if alone:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = self._zeros(input)
            hx = (zeros, zeros)
        elif alone:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = functions["lstm_cell"](
            input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )
        return (h.squeeze(0), c.squeeze(0)) if alone else (h, c)


class GRUCell(RNNCellBase):
    """GRUCell(input_size, hidden_size, bias=True): one step of a `GRU`.

    >>> torch.nn.GRUCell(10, 20)(torch.randn(3, 10)).shape
    torch.Size([3, 20])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step("gru_cell", input, hx)


_SIZES = """
input_size: features of each step of the input.
hidden_size: features of the state.
"""
_LAYERS = (
    _SIZES
    + """num_layers: layers, each over the results of the one below.
bias: whether there are b_ih and b_hh.
batch_first: whether inputs and results are [sequences, steps, features], instead of
    [steps, sequences, features]; states are [layers * directions, sequences, features] always.
dropout: the share of results that is dropped between layers, while training.
bidirectional: whether each layer also runs from the last step to the first; results are both.
"""
)
explain(_LAYERS + "nonlinearity: 'tanh' or 'relu'.", RNN)
explain(_LAYERS + "proj_size: if not 0, h is multiplied by a matrix to so many features.", LSTM)
explain(_LAYERS, GRU)
explain(_SIZES + "bias: whether there are b_ih and b_hh.", LSTMCell, GRUCell)
explain(_SIZES + "bias: whether there are b_ih and b_hh.\nnonlinearity: 'tanh' or 'relu'.", RNNCell)
