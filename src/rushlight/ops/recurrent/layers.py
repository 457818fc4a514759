"""Recurrent layers: LSTM, GRU and RNN, each over a whole sequence as one op.

The inputs' side of all steps is one product, and so is the gradient of each weight; only the
hidden side goes step by step, in the words of `arrays.recurrent`. A packed batch of sequences is
the general case: how many sequences run at each step stands in the op's `sizes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from rushlight import dtypes
from rushlight.arrays import recurrent as loops
from rushlight.arrays import vocabulary as v
from rushlight.arrays.recurrent import before, block, rows
from rushlight.core.families import conj
from rushlight.core.graph import Node, Op, TensorBase
from rushlight.ops.checks import raw_dtype
from rushlight.ops.registry import implements, op
from rushlight.ops.sample_inputs import Draw

for _name in loops.IN_WORDS:
    implements(_name)(loops.IN_WORDS[_name])

_FLOAT32 = dtypes.float32.numpy
_AS_INTEGERS = {2: dtypes.int16.numpy, 4: dtypes.int32.numpy, 8: dtypes.int64.numpy}


def wide(xs: Any, dtype: Any) -> list[Any]:
    """Arrays of low precision in float32; others as they are."""
    if not v.low_precision(dtype):
        return list(xs)
    return [None if x is None or not hasattr(x, "dtype") else v.cast(x, _FLOAT32) for x in xs]


def hide(x: Any) -> Any:
    """Numbers that are kept for the backward pass, and have no derivative of their own: their bits,
    as integers. A backward pass that is recorded computes them again."""
    dtype = raw_dtype(x)
    if dtype.kind == "c":  # nothing was kept
        return v.full(x, x.shape, 0, dtypes.int64.numpy)
    return v.bits(x, _AS_INTEGERS[dtype.itemsize])


def shown(x: Any) -> Any:
    """What `hide` hid."""
    return v.bits(x, _FLOAT32 if x.dtype.itemsize == 4 else dtypes.float64.numpy)


def times(a: Any, b: Any) -> Any:
    """a bᵀ, of matrices."""
    return v.matmul(a, v.swap(b, -1, -2))


def across(a: Any, b: Any) -> Any:
    """aᵀ b, of matrices: a sum over all rows, as in the gradient of a weight."""
    return v.matmul(v.swap(a, -1, -2), b)


def plus(a: Any, b: Any) -> Any:
    """The sum of two of which either may be missing."""
    return b if a is None else a if b is None else a + b


class Layer(Op):
    """A recurrent layer over a sequence, in one direction.

    `sizes` says how many sequences run at each step (see `arrays.recurrent`), `padded` that the
    input has three dimensions (steps, sequences, features) rather than the rows of all steps;
    `keep` that a backward pass may follow.
    """

    params: ClassVar[tuple[str, ...]] = ("sizes", "padded", "reverse", "keep")
    complex_too: ClassVar[bool] = True
    sizes: tuple[int, ...]
    padded: bool
    reverse: bool
    keep: bool

    def flat(self, x: Any) -> Any:
        """The rows of all steps."""
        return v.reshape(x, (sum(self.sizes), x.shape[-1])) if self.padded else x

    def full(self, y: Any) -> Any:
        """Rows of all steps, in the shape that the input has."""
        if not self.padded:
            return y
        return v.reshape(y, (len(self.sizes), *self.batch(), y.shape[-1]))

    def batch(self) -> tuple[int]:
        return (self.sizes[0],)

    def keeps(self, dtype: Any) -> bool:
        """Whether gates and states are kept; those of complex numbers are computed anew."""
        return self.keep and dtype.kind != "c"

    def inputs_tangent(self, ts: tuple[Any, ...], x: Any, w: Any) -> Any:
        found = None
        if ts[0] is not None:
            found = times(self.flat(ts[0]), w)
        if ts[1] is not None:
            found = plus(found, times(self.flat(x), ts[1]))
        return plus(found, ts[3])

    def weight_gradients(
        self, node: Node, pre: Any, by_h: Any, x: Any, w_ih: Any, earlier: Any
    ) -> list[Any]:
        """Gradients of the input, the two weights and the two biases, from those of the gates'
        arguments on the inputs' side and on the hidden side."""
        gx = gw = gu = gb = gc = None
        if node._needs_grad(0):
            gx = self.full(v.matmul(pre, w_ih))
        if node._needs_grad(1):
            gw = across(pre, self.flat(x))
        if node._needs_grad(2):
            gu = across(by_h, earlier())
        if node._needs_grad(3) or (node._needs_grad(4) and pre is by_h):
            gb = v.reduce_sum(pre, (0,), False)
        if node._needs_grad(4):
            gc = gb if pre is by_h else v.reduce_sum(by_h, (0,), False)
        return [gx, gw, gu, gb, gc]


@op
class LSTMLayer(Layer):
    """y, h and c of a layer of LSTM cells, whose weights hold the gates i, f, g, o one above the
    other; with `w_hr`, h is a projection of what the cells put out."""

    name = "lstm_layer"
    aten = "mkldnn_rnn_layer.default"
    node = "MkldnnRnnLayerBackward0"
    inputs = ("input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_tmp", "weight4")
    outputs = ("result0", "result1", "result2", "gates", "states")
    saves = (
        "input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_tmp", "weight4",
        "result0", "gates", "states",
    )  # fmt: skip
    saved_names = ""
    shown_edges = (0, 1, 2, 3, 4, 5, 6)

    def run(self, keep: bool, *xs: Any) -> Any:
        x, w_ih, w_hh, b_ih, b_hh, h, c, wr = xs
        return loops.lstm_loop(
            self.flat(x), w_ih, plus(b_ih, b_hh), h, c, w_hh, wr, self.sizes, self.reverse, keep
        )

    def forward(self, *xs: Any) -> Any:
        dtype = raw_dtype(xs[0])
        y, h, c, gates, states = self.run(self.keeps(dtype), *wide(xs, dtype))
        y, h, c = v.cast(self.full(y), dtype), v.cast(h, dtype), v.cast(c, dtype)
        return y, h, c, hide(gates), hide(states)

    def again(self, xs: list[Any], y: Any, gates: Any, states: Any) -> tuple[Any, Any, Any]:
        """Outputs, gates and states of the forward pass: those kept, or computed anew where they
        must have derivatives themselves, or were not kept."""
        if isinstance(xs[0], TensorBase) or gates.shape == states.shape:
            y, _, _, gates, states = self.run(True, *xs)
            return y, gates, states
        return self.flat(y), shown(gates), shown(states)

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        dtype = raw_dtype(saved[0])
        if dtype.kind == "c":
            saved = tuple([conj(x) for x in saved])
        xs = wide(saved[:8], dtype)
        x, w_ih, w_hh, _, _, h, c, wr = xs
        gy, gh, gc = wide(g[:3], dtype)
        (y,) = wide(saved[8:9], dtype)
        y, gates, states = self.again(xs, y, saved[9], saved[10])
        pre, gh, gc, *received = loops.lstm_unloop(
            gates, states, before(states, c, self.sizes, self.reverse), self.flat(gy), gh, gc,
            w_hh, wr, self.sizes, self.reverse,
        )  # fmt: skip
        found = self.weight_gradients(
            node, pre, pre, x, w_ih, lambda: before(y, h, self.sizes, self.reverse)
        )
        gr = None
        if wr is not None and node._needs_grad(7):
            cells = states.shape[-1]
            gr = across(received[0], block(gates, 3, cells) * v.tanh(states))
        return [*found, gh, gc, gr]

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        dtype = raw_dtype(xs[0])
        ins = wide(xs, dtype)
        ts = tuple(wide(ts, dtype))
        x, w_ih, w_hh, _, _, h, c, wr = ins
        (out,) = wide(y[:1], dtype)
        out, gates, states = self.again(ins, out, y[3], y[4])
        cells = states.shape[-1]
        earlier = before(states, c, self.sizes, self.reverse)
        in_c, o_in_h, c_in_h, c_in_c = loops.lstm_factors(gates, states, earlier)
        pre = plus(self.inputs_tangent(ts, x, w_ih), ts[4])
        if ts[2] is not None:
            pre = plus(pre, times(before(out, h, self.sizes, self.reverse), ts[2]))
        if pre is not None and pre.ndim < 2:  # of a bias alone
            pre = pre + gates * 0
        th = h * 0 if ts[5] is None else ts[5]
        tc = c * 0 if ts[6] is None else ts[6]
        by_weight = None
        if ts[7] is not None:
            by_weight = times(block(gates, 3, cells) * v.tanh(states), ts[7])
        tys: list[Any] = []
        for start, size in loops.steps(self.sizes, self.reverse):
            arg = times(rows(th, 0, size), w_hh)
            if pre is not None:
                arg = arg + rows(pre, start, size)
            weights = rows(in_c, start, size)
            now = rows(tc, 0, size) * rows(c_in_c, start, size)
            for k in range(3):
                now = now + block(weights, k, cells) * block(arg, k, cells)
            new = rows(c_in_h, start, size) * now
            new = new + rows(o_in_h, start, size) * block(arg, 3, cells)
            if wr is not None:
                new = times(new, wr)
                if by_weight is not None:
                    new = new + rows(by_weight, start, size)
            th, tc = loops.updated(th, new, size), loops.updated(tc, now, size)
            tys.append(new)
        ty = self.full(loops.in_time(tys, self.reverse))
        return v.cast(ty, dtype), v.cast(th, dtype), v.cast(tc, dtype), y[3] * 0, y[4] * 0

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        def weights(x: int, h: int, p: int, bias: bool) -> list[Any]:
            b = [draw.real(4 * h), draw.real(4 * h)] if bias else [None, None]
            return [draw.real(4 * h, x), draw.real(4 * h, p), *b]

        def states(n: int, h: int, p: int) -> list[Any]:
            return [draw.real(n, p), draw.real(n, h)]

        x = draw.real(3, 2, 3)
        yield (
            LSTMLayer((2, 2, 2), True, False, True),
            x,
            *weights(3, 2, 2, True),
            *states(2, 2, 2),
            None,
        )
        packed = draw.real(6, 2)
        for reverse in (False, True):
            what = LSTMLayer((3, 2, 1), False, reverse, True)
            yield what, packed, *weights(2, 3, 2, False), *states(3, 3, 2), draw.real(2, 3)
        what = LSTMLayer((2,), True, True, False)
        yield what, draw.real(1, 2, 3), *weights(3, 2, 2, True), *states(2, 2, 2), None


@op
class GRULayer(Layer):
    """y and h of a layer of GRU cells, whose weights hold the gates r, z, n one above the other."""

    name = "gru_layer"
    aten = "gru.input"
    node = "StackBackward0"
    inputs = ("input", "w_ih", "w_hh", "b_ih", "b_hh", "hx")
    outputs = ("output", "h_n", "gates", "given")
    saves = ("input", "w_ih", "w_hh", "b_ih", "b_hh", "hx", "output", "gates", "given")
    saved_names = ""

    def run(self, keep: bool, *xs: Any) -> Any:
        x, w_ih, w_hh, b_ih, b_hh, h = xs
        bias, last = b_ih, None
        if b_hh is not None:
            cells = h.shape[-1]
            last = v.window(b_hh, (slice(2 * cells, None),))
            bias = b_ih + v.concat([v.window(b_hh, (slice(0, 2 * cells),)), last * 0], 0)
        xg = loops.inputs_side(self.flat(x), w_ih, bias)
        return loops.gru_loop(xg, h, v.swap(w_hh, -1, -2), last, self.sizes, self.reverse, keep)

    def forward(self, *xs: Any) -> Any:
        dtype = raw_dtype(xs[0])
        y, h, gates, given = self.run(self.keeps(dtype), *wide(xs, dtype))
        return v.cast(self.full(y), dtype), v.cast(h, dtype), hide(gates), hide(given)

    def again(self, xs: list[Any], y: Any, gates: Any, given: Any) -> tuple[Any, Any, Any]:
        """Outputs, gates and what h gave to n: see `LSTMLayer.again`."""
        if isinstance(xs[0], TensorBase) or gates.shape == given.shape:
            y, _, gates, given = self.run(True, *xs)
            return y, gates, given
        return self.flat(y), shown(gates), shown(given)

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        dtype = raw_dtype(saved[0])
        if dtype.kind == "c":
            saved = tuple([conj(x) for x in saved])
        xs = wide(saved[:6], dtype)
        x, w_ih, w_hh, _, _, h = xs
        gy, gh = wide(g[:2], dtype)
        (y,) = wide(saved[6:7], dtype)
        y, gates, given = self.again(xs, y, saved[7], saved[8])
        earlier = before(y, h, self.sizes, self.reverse)
        by_h, in_n, z = loops.gru_factors(gates, given, earlier)
        by_h, received, gh = loops.gru_unloop(
            by_h, z, self.flat(gy), gh, w_hh, self.sizes, self.reverse
        )
        cells = h.shape[-1]
        both = v.window(by_h, (slice(None), slice(0, 2 * cells)))
        pre = v.concat([both, received * in_n], 1)
        return [*self.weight_gradients(node, pre, by_h, x, w_ih, lambda: earlier), gh]

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        dtype = raw_dtype(xs[0])
        ins = wide(xs, dtype)
        ts = tuple(wide(ts, dtype))
        x, w_ih, w_hh, _, _, h = ins
        (out,) = wide(y[:1], dtype)
        out, gates, given = self.again(ins, out, y[2], y[3])
        cells = h.shape[-1]
        earlier = before(out, h, self.sizes, self.reverse)
        by_h, in_n, z = loops.gru_factors(gates, given, earlier)
        pre = self.inputs_tangent(ts, x, w_ih)
        other = ts[4]
        if ts[2] is not None:
            other = plus(times(earlier, ts[2]), other)
        change = by_h * other if other is not None else by_h * 0
        fixed = sum((block(change, k, cells) for k in range(1, 3)), block(change, 0, cells))
        if pre is not None:
            pre = pre + gates * 0
            for k, part in enumerate((block(by_h, 0, cells), block(by_h, 1, cells), in_n)):
                fixed = fixed + part * block(pre, k, cells)
        th = h * 0 if ts[5] is None else ts[5]
        tys: list[Any] = []
        for start, size in loops.steps(self.sizes, self.reverse):
            now = rows(th, 0, size)
            change = rows(by_h, start, size) * times(now, w_hh)
            new = now * rows(z, start, size) + rows(fixed, start, size)
            for k in range(3):
                new = new + block(change, k, cells)
            th = loops.updated(th, new, size)
            tys.append(new)
        ty = self.full(loops.in_time(tys, self.reverse))
        return v.cast(ty, dtype), v.cast(th, dtype), y[2] * 0, y[3] * 0

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        def weights(x: int, h: int, bias: bool) -> list[Any]:
            b = [draw.real(3 * h), draw.real(3 * h)] if bias else [None, None]
            return [draw.real(3 * h, x), draw.real(3 * h, h), *b]

        x = draw.real(3, 2, 3)
        yield GRULayer((2, 2, 2), True, False, True), x, *weights(3, 2, True), draw.real(2, 2)
        packed = draw.real(6, 2)
        for reverse in (False, True):
            what = GRULayer((3, 2, 1), False, reverse, True)
            yield what, packed, *weights(2, 3, reverse), draw.real(3, 3)
        what = GRULayer((2,), True, True, False)
        yield what, draw.real(1, 2, 3), *weights(3, 2, True), draw.real(2, 2)


@op
class RNNLayer(Layer):
    """y and h of a layer of cells with one tanh, or ReLU."""

    name = "rnn_layer"
    aten = "rnn_tanh.input"
    node = "StackBackward0"
    inputs = ("input", "w_ih", "w_hh", "b_ih", "b_hh", "hx")
    outputs = ("output", "h_n")
    saves = ("input", "w_ih", "w_hh", "b_ih", "b_hh", "hx", "output")
    saved_names = ""
    params = ("relu", "sizes", "padded", "reverse", "keep")
    relu: bool

    def run(self, x: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, h: Any) -> Any:
        xg = loops.inputs_side(self.flat(x), w_ih, plus(b_ih, b_hh))
        turned = v.swap(w_hh, -1, -2)
        return loops.rnn_loop(xg, h, turned, self.relu, self.sizes, self.reverse)

    def forward(self, *xs: Any) -> Any:
        dtype = raw_dtype(xs[0])
        y, h = self.run(*wide(xs, dtype))
        return v.cast(self.full(y), dtype), v.cast(h, dtype)

    def factors(self, y: Any) -> Any:
        return v.where(y > 0, y * 0 + 1, y * 0) if self.relu else 1 - y * y

    def vjp(self, node: Node, g: Any, *saved: Any) -> Any:
        dtype = raw_dtype(saved[0])
        if dtype.kind == "c":
            saved = tuple([conj(x) for x in saved])
        x, w_ih, w_hh, _, _, h = xs = wide(saved[:6], dtype)
        gy, gh, y = wide((*g, saved[6]), dtype)
        y = self.run(*xs)[0] if isinstance(x, TensorBase) else self.flat(y)
        pre, gh = loops.rnn_unloop(
            self.factors(y), self.flat(gy), gh, w_hh, self.sizes, self.reverse
        )
        return [*self.weight_gradients(
            node, pre, pre, x, w_ih, lambda: before(y, h, self.sizes, self.reverse)
        ), gh]  # fmt: skip

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        dtype = raw_dtype(xs[0])
        x, w_ih, w_hh, _, _, h = ins = wide(xs, dtype)
        ts = tuple(wide(ts, dtype))
        (out,) = wide(y[:1], dtype)
        out = self.run(*ins)[0] if isinstance(x, TensorBase) else self.flat(out)
        pre = plus(self.inputs_tangent(ts, x, w_ih), ts[4])
        if ts[2] is not None:
            pre = plus(pre, times(before(out, h, self.sizes, self.reverse), ts[2]))
        if pre is not None:
            pre = pre + out * 0  # a bias's alone has one row
        factors = self.factors(out)
        th = h * 0 if ts[5] is None else ts[5]
        tys: list[Any] = []
        for start, size in loops.steps(self.sizes, self.reverse):
            arg = times(rows(th, 0, size), w_hh)
            if pre is not None:
                arg = arg + rows(pre, start, size)
            new = arg * rows(factors, start, size)
            th = loops.updated(th, new, size)
            tys.append(new)
        ty = self.full(loops.in_time(tys, self.reverse))
        return v.cast(ty, dtype), v.cast(th, dtype)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        def weights(x: int, h: int, bias: bool) -> list[Any]:
            b = [draw.real(h), draw.real(h)] if bias else [None, None]
            return [draw.real(h, x), draw.real(h, h), *b]

        x = draw.real(3, 2, 3)
        for relu in (False, True):
            what = RNNLayer(relu, (2, 2, 2), True, False, True)
            yield what, x, *weights(3, 2, True), draw.real(2, 2)
            packed = draw.real(6, 2)
            for reverse in (False, True):
                what = RNNLayer(relu, (3, 2, 1), False, reverse, True)
                yield what, packed, *weights(2, 3, reverse), draw.real(3, 3)
