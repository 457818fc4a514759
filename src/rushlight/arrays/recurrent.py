"""The loops over time of recurrent layers, forward and backward: words of the vocabulary.

All steps stand in one array, one behind the other: step `t` is rows `starts[t]` to `starts[t + 1]`,
and `sizes[t]` of the sequences are still running then (those that stand first; packed sequences are
sorted by length). A state has a row for every sequence; a step writes the rows that run. So a
sequence that has ended keeps its last state, and one that has not begun, its first.

Each loop is written twice. In plain words, for arrays of any kind (tensors, batches, recordings):
that is the definition. And for NumPy's and CuPy's arrays in place, without a temporary in sight:
that is what training runs, and the laws compare the two.

Note [Factors]
    Between a state and the next the derivative is a product of factors that depend on the forward
    pass alone: those are computed for all steps at once, in few large operations. What is left to
    each step is one product with the hidden weights and a few multiplications.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final

from rushlight.arrays import vocabulary as v
from rushlight.arrays.batched import rules
from rushlight.arrays.host import is_array
from rushlight.arrays.kernels import table
from rushlight.arrays.vocabulary import Array, primitive

Sizes = tuple[int, ...]


# --- steps ----------------------------------------------------------------------------------------
def steps(sizes: Sizes, reverse: bool) -> list[tuple[int, int]]:
    """First row and number of rows of each step, in the order in which they run."""
    found = []
    at = 0
    for size in sizes:
        found.append((at, size))
        at += size
    return found[::-1] if reverse else found


def rows(x: Any, start: int, size: int) -> Any:
    """Some rows of a matrix: a view."""
    return v.window(x, (slice(start, start + size),))


def block(x: Any, at: int, width: int) -> Any:
    """One of the blocks of columns that a matrix is made of: a view."""
    return v.window(x, (slice(None), slice(at * width, (at + 1) * width)))


def updated(state: Any, new: Any, size: int) -> Any:
    """A state whose first rows are new."""
    if size == state.shape[0]:
        return new
    return v.concat([new, rows(state, size, state.shape[0] - size)], 0)


def in_time(parts: list[Any], reverse: bool) -> Any:
    """Rows of all steps, from those of each step in the order in which they ran."""
    return v.concat(parts[::-1] if reverse else parts, 0)


def before(y: Any, first: Any, sizes: Sizes, reverse: bool) -> Any:
    """The state that each step began with, from the states after the steps and the first one."""
    if len(sizes) == 1:
        return first
    n = len(sizes)
    if sizes[-1] == sizes[0]:
        kept = (n - 1) * sizes[0]
        if reverse:
            return v.concat([rows(y, sizes[0], kept), first], 0)
        return v.concat([first, rows(y, 0, kept)], 0)
    parts = []
    last: tuple[int, int] | None = None
    for start, size in steps(sizes, reverse):
        if last is None:
            parts.append(rows(first, 0, size))
        elif size <= last[1]:
            parts.append(rows(y, last[0], size))
        else:  # more sequences run now than ran in the step before: those begin
            joined = [rows(y, last[0], last[1]), rows(first, last[1], size - last[1])]
            parts.append(v.concat(joined, 0))
        last = (start, size)
    return in_time(parts, reverse)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow."""
    return v.tanh(x * 0.5) * 0.5 + 0.5


def inputs_side(x: Any, w: Any, b: Any) -> Any:
    """What the inputs of all steps give to the gates."""
    y = v.matmul(x, v.swap(w, -1, -2))
    return y if b is None else y + b


# --- LSTM: gates i, f, g, o -----------------------------------------------------------------------
def lstm_cell(
    xi: Any, xf: Any, xg: Any, xo: Any, hi: Any, hf: Any, hg: Any, ho: Any, c: Any
) -> tuple[Any, ...]:
    """One step, element by element, from what input and state give to the gates: a kernel."""
    i, f = v.special(xi + hi, "expit"), v.special(xf + hf, "expit")
    g, o = v.tanh(xg + hg), v.special(xo + ho, "expit")
    now = f * c + i * g
    return i, f, g, o, now, o * v.tanh(now)


def lstm_cell_back(
    i: Any, f: Any, g: Any, o: Any, now: Any, earlier: Any, gh: Any, gy: Any, gc: Any
) -> tuple[Any, ...]:
    """The gradients of the gates' arguments and of the earlier c, likewise."""
    t = v.tanh(now)
    dh = gh + gy
    dc = gc + dh * (o * (1 - t * t))
    pre_i, pre_f = dc * (g * (i * (1 - i))), dc * (earlier * (f * (1 - f)))
    return pre_i, pre_f, dc * (i * (1 - g * g)), dh * (t * (o * (1 - o))), dc * f


def _cell_kernel(name: str, x: Array) -> Any:
    """The kernel of a cell, if it is made for such arrays."""
    fits = is_array(x) and x.dtype.kind == "f" and x.dtype.itemsize >= 4
    return table.get(name) if fits else None


def _lstm_by_kernel(
    cell: Any, x: Array, w_ih: Array, b: Array, h: Array, c: Array, w_hh: Array, sizes: Sizes,
    reverse: bool, keep: bool,
) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
    """`lstm_loop` where a kernel does all of a step but the product."""
    cells = c.shape[1]
    most = len(c)
    gates = v.matrices(x, w_ih.T)
    if b is not None:
        gates += b
    w = v.contiguous(w_hh.T)
    n = len(gates)
    y = v.empty(x, (n, cells), x.dtype)
    states = v.empty(x, (n if keep else 0, cells), x.dtype)
    last, hidden = c.copy(), h.copy()
    product = v.empty(x, (most, 4 * cells), x.dtype)
    parts = product.reshape(most, 4, cells).transpose(1, 0, 2)
    now, earlier = last, hidden
    into_product, given = product, tuple(parts)
    if sizes and sizes[-1] == most:  # all run to the end: what a step sees is made in one go
        each = slice(None, None, -1 if reverse else 1)
        shape = (len(sizes), most, cells)
        four_of = gates.reshape(len(sizes), most, 4, cells).transpose(0, 2, 1, 3)[each]
        into_of = states.reshape(shape)[each] if keep else itertools.repeat(now)
        for four, into, step in zip(map(tuple, four_of), into_of, y.reshape(shape)[each]):
            earlier.dot(w, into_product)  # half a microsecond quicker than `matmul`
            cell.into((*four, into, step), *four, *given, now)
            now, earlier = into, step
        last[:], hidden[:] = now, earlier
        return y, hidden, last, gates if keep else states, states
    blocks = gates.reshape(n, 4, cells).transpose(1, 0, 2)
    for start, size in steps(sizes, reverse):
        stop = start + size
        if size != len(now) or size != most:  # the first rows run; the others wait as they are
            last[: len(now)], hidden[: len(earlier)] = now, earlier
            now, earlier = last[:size], hidden[:size]
            into_product, given = product[:size], tuple(parts[:, :size])
        earlier.dot(w, into_product)
        four, step = tuple(blocks[:, start:stop]), y[start:stop]
        into = states[start:stop] if keep else now
        cell.into((*four, into, step), *four, *given, now)
        now, earlier = into, step
    last[: len(now)], hidden[: len(earlier)] = now, earlier
    return y, hidden, last, gates if keep else states, states


@primitive
def lstm_loop(
    x: Array, w_ih: Array, b: Array, h: Array, c: Array, w_hh: Array, wr: Array, sizes: Sizes,
    reverse: bool, keep: bool,
) -> tuple[Array, Array, Array, Array, Array]:  # fmt: skip
    """Outputs, last h and c, and (if they are kept; else empty) gates and states c of all steps.

    `b` is the sum of the biases, or None; `wr` of shape [h, c], or None, makes h of what the cells
    put out.
    """
    cell = _cell_kernel("lstm_cell", x)
    if cell is not None and wr is None:
        return _lstm_by_kernel(cell, x, w_ih, b, h, c, w_hh, sizes, reverse, keep)
    cells = c.shape[1]
    most = len(c)
    half = v.full(x, (most, 4, cells), 0.5, x.dtype)
    half[:, 2] = 1
    half = half.reshape(most, 4 * cells)  # a row for each sequence: quicker than one for all
    shift = 1 - half  # 0 for g, one half for the others
    one = half[0] if most else v.empty(x, (4 * cells,), x.dtype)
    # A sigmoid is a tanh of half its argument: with that half in the weights, one tanh makes all.
    gates = v.matrices(x, (w_ih * one[:, None]).T)
    if b is not None:
        gates += b * one
    w = v.contiguous(w_hh.T * one)
    n = len(gates)
    y = v.empty(x, (n, h.shape[1]), x.dtype)
    states = v.empty(x, (n if keep else 0, cells), x.dtype)
    last, hidden = c.copy(), h.copy()
    own = True  # whether `hidden` is an array of its own, not part of `y`
    product = v.empty(x, (most, 4 * cells), x.dtype)
    spare = v.empty(x, (most, cells), x.dtype)
    blocks = gates.reshape(n, 4, cells).transpose(1, 0, 2)
    for start, size in steps(sizes, reverse):
        stop = start + size
        g, (i, f, new, o), step = gates[start:stop], blocks[:, start:stop], y[start:stop]
        p, s, now, earlier, by, plus = product, spare, last, hidden, half, shift
        if size != most:
            p, s, now, earlier = product[:size], spare[:size], last[:size], hidden[:size]
            by, plus = half[:size], shift[:size]
        v.matmul(earlier, w, p)
        v.add(g, p, g)
        v.tanh(g, g)
        v.multiply(g, by, g)
        v.add(g, plus, g)
        v.multiply(f, now, now)
        v.multiply(i, new, s)
        v.add(now, s, now)
        v.tanh(now, s)
        if wr is None:
            v.multiply(o, s, step)
        else:
            v.matmul(o * s, wr.T, step)
        if keep:
            states[start:stop] = now
        if size == most:
            hidden, own = step, False
        else:
            if not own:  # the step before was the last in which all ran
                hidden, own = hidden.copy(), True
                earlier = hidden[:size]
            earlier[...] = step
    return y, hidden.copy(), last, gates if keep else states, states


def lstm_loop_in_words(
    x: Any, w_ih: Any, b: Any, h: Any, c: Any, w_hh: Any, wr: Any, sizes: Sizes, reverse: bool,
    keep: bool,
) -> Any:  # fmt: skip
    """`lstm_loop` on arrays of any kind."""
    cells = c.shape[1]
    xg = inputs_side(x, w_ih, b)
    w = v.swap(w_hh, -1, -2)
    ys: list[Any] = []
    gates: list[Any] = []
    states: list[Any] = []
    for start, size in steps(sizes, reverse):
        pre = rows(xg, start, size) + v.matmul(rows(h, 0, size), w)
        first = sigmoid(v.window(pre, (slice(None), slice(0, 2 * cells))))
        g = v.tanh(block(pre, 2, cells))
        o = sigmoid(block(pre, 3, cells))
        now = block(first, 1, cells) * rows(c, 0, size) + block(first, 0, cells) * g
        y = o * v.tanh(now)
        if wr is not None:
            y = v.matmul(y, v.swap(wr, -1, -2))
        h, c = updated(h, y, size), updated(c, now, size)
        ys.append(y)
        gates.append(v.concat([first, g, o], 1))
        states.append(now)
    y, last = in_time(ys, reverse), in_time(states, reverse)
    if not keep:
        last = rows(last, 0, 0)
    return y, h, c, in_time(gates, reverse) if keep else last, last


def lstm_factors(gates: Any, states: Any, earlier: Any) -> tuple[Any, Any, Any, Any]:
    """What the gates' arguments weigh in c (i, f, g) and o's in h; what c weighs in h, and what
    the earlier c weighs in c. See Note [Factors]."""
    cells = states.shape[1]
    i, f, g, o = (block(gates, k, cells) for k in range(4))
    t = v.tanh(states)
    in_c = v.concat([g * i * (1 - i), earlier * f * (1 - f), i * (1 - g * g)], 1)
    return in_c, t * o * (1 - o), o * (1 - t * t), f


def _lstm_back_by_kernel(
    cell: Any, gates: Array, states: Array, earlier: Array, gy: Array, gh: Array, gc: Array,
    w: Array, sizes: Sizes, reverse: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """`lstm_unloop` where a kernel does all of a step but the product."""
    n, cells = states.shape
    blocks = gates.reshape(n, 4, cells).transpose(1, 0, 2)
    pre = v.empty(gates, gates.shape, gates.dtype)
    gh, gc, gy = gh.copy(), gc.copy(), v.contiguous(gy)
    if sizes and sizes[-1] == len(gc):  # all run to the end: what a step sees is made in one go
        each = slice(None, None, 1 if reverse else -1)
        count, most = len(sizes), len(gc)
        four_of, into_of = (
            x.reshape(count, most, 4, cells).transpose(0, 2, 1, 3)[each] for x in (gates, pre)
        )
        one_of = [x.reshape(count, most, x.shape[1])[each] for x in (states, earlier, gy, pre)]
        for four, out, now, past, dy, rows_of_pre in zip(
            map(tuple, four_of), map(tuple, into_of), *one_of
        ):
            cell.into((*out, gc), *four, now, past, gh, dy, gc)
            rows_of_pre.dot(w, gh)
        return pre, gh, gc
    into = pre.reshape(n, 4, cells).transpose(1, 0, 2)
    for start, size in reversed(steps(sizes, reverse)):
        stop = start + size
        dh, dc = gh[:size], gc[:size]
        cell.into(
            (*into[:, start:stop], dc), *blocks[:, start:stop], states[start:stop],
            earlier[start:stop], dh, gy[start:stop], dc,
        )  # fmt: skip
        pre[start:stop].dot(w, dh)
    return pre, gh, gc


@primitive
def lstm_unloop(
    gates: Array, states: Array, earlier: Array, gy: Array, gh: Array, gc: Array, w: Array,
    wr: Array, sizes: Sizes, reverse: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """The gradients of the gates' arguments and of the first h and c, from those of the outputs
    and the last h and c. `w` is [4c, h], `wr`, or None, [h, c]; with it, the gradients of the
    outputs as each step received them are given too."""
    cell = _cell_kernel("lstm_cell_back", gates)
    if cell is not None and wr is None:
        return _lstm_back_by_kernel(cell, gates, states, earlier, gy, gh, gc, w, sizes, reverse)
    n, cells = states.shape
    i, f, g, o = gates.reshape(n, 4, cells).transpose(1, 0, 2)
    pre = 1 - gates
    pre *= gates
    blocks = pre.reshape(n, 4, cells)
    pi, pf, pg, po = blocks.transpose(1, 0, 2)
    pi *= g
    pf *= earlier
    v.multiply(g, g, pg)
    v.subtract(1, pg, pg)
    pg *= i
    t = v.tanh(states)
    po *= t
    t *= t
    v.subtract(1, t, t)
    t *= o
    gh, gc = gh.copy(), gc.copy()
    most = len(gc)
    spare = v.empty(gates, gc.shape, gates.dtype)
    received = None if wr is None else v.empty(gy, gy.shape, gates.dtype)
    for start, size in reversed(steps(sizes, reverse)):
        stop = start + size
        s, dh, dc = spare, gh, gc
        if size != most:
            s, dh, dc = spare[:size], gh[:size], gc[:size]
        into = dh
        v.add(dh, gy[start:stop], dh)
        if received is not None:
            received[start:stop] = dh
            dh = v.matmul(dh, wr)
        v.multiply(dh, t[start:stop], s)
        v.add(dc, s, dc)
        three = blocks[start:stop, :3]
        v.multiply(three, dc[:, None], three)
        fourth = po[start:stop]
        v.multiply(fourth, dh, fourth)
        v.multiply(dc, f[start:stop], dc)
        v.matmul(pre[start:stop], w, into)
    return (pre, gh, gc) if received is None else (pre, gh, gc, received)


def lstm_unloop_in_words(
    gates: Any, states: Any, earlier: Any, gy: Any, gh: Any, gc: Any, w: Any, wr: Any,
    sizes: Sizes, reverse: bool,
) -> Any:  # fmt: skip
    """`lstm_unloop` on arrays of any kind."""
    cells = states.shape[-1]
    in_c, o_in_h, c_in_h, c_in_c = lstm_factors(gates, states, earlier)
    pres: list[Any] = []
    received: list[Any] = []
    for start, size in reversed(steps(sizes, reverse)):
        dh = rows(gh, 0, size) + rows(gy, start, size)
        received.append(dh)
        if wr is not None:
            dh = v.matmul(dh, wr)
        dc = rows(gc, 0, size) + dh * rows(c_in_h, start, size)
        weights = rows(in_c, start, size)
        parts = [dc * block(weights, k, cells) for k in range(3)]
        pre = v.concat([*parts, dh * rows(o_in_h, start, size)], 1)
        gh = updated(gh, v.matmul(pre, w), size)
        gc = updated(gc, dc * rows(c_in_c, start, size), size)
        pres.append(pre)
    found = (in_time(pres, not reverse), gh, gc)
    return found if wr is None else (*found, in_time(received, not reverse))


# --- GRU: gates r, z, n ---------------------------------------------------------------------------
@primitive
def gru_loop(
    xg: Array, h: Array, w: Array, b: Array, sizes: Sizes, reverse: bool, keep: bool
) -> tuple[Array, Array, Array, Array]:
    """Outputs, last h, and (if they are kept; else empty) the gates of all steps, and what h gave
    to n: w[2] h + b. `xg` has the other biases already; `w` is of shape [h, 3h], `b` of n's."""
    n, width = xg.shape
    cells = width // 3
    gates = xg.copy()
    gates[:, : 2 * cells] *= 0.5  # see `lstm_loop`
    w = w.copy()
    w[:, : 2 * cells] *= 0.5
    y = v.empty(xg, (n, cells), xg.dtype)
    hns = v.empty(xg, (n if keep else 0, cells), xg.dtype)
    most = sizes[0] if sizes else 0
    product = v.empty(xg, (most, width), xg.dtype)
    last = h.copy()
    for start, size in steps(sizes, reverse):
        stop = start + size
        g, now = gates[start:stop], last[:size]
        p = product[:size]
        v.matmul(now, w, out=p)
        rz, hn, new = g[:, : 2 * cells], p[:, 2 * cells :], g[:, 2 * cells :]
        rz += p[:, : 2 * cells]
        v.tanh(rz, out=rz)
        rz *= 0.5
        rz += 0.5
        if b is not None:
            hn += b
        if keep:
            hns[start:stop] = hn
        hn *= g[:, :cells]
        new += hn
        v.tanh(new, out=new)
        now -= new
        now *= g[:, cells : 2 * cells]
        now += new
        y[start:stop] = now
    return y, last, gates if keep else hns, hns


def gru_loop_in_words(
    xg: Any, h: Any, w: Any, b: Any, sizes: Sizes, reverse: bool, keep: bool
) -> Any:
    """`gru_loop` on arrays of any kind."""
    cells = w.shape[1] // 3
    ys: list[Any] = []
    gates: list[Any] = []
    hns: list[Any] = []
    for start, size in steps(sizes, reverse):
        x = rows(xg, start, size)
        now = rows(h, 0, size)
        given = v.matmul(now, w)
        both = (slice(None), slice(0, 2 * cells))
        rz = sigmoid(v.window(x, both) + v.window(given, both))
        hn = block(given, 2, cells)
        if b is not None:
            hn = hn + b
        new = v.tanh(block(x, 2, cells) + block(rz, 0, cells) * hn)
        y = (now - new) * block(rz, 1, cells) + new
        h = updated(h, y, size)
        ys.append(y)
        gates.append(v.concat([rz, new], 1))
        hns.append(hn)
    given = in_time(hns, reverse)
    if not keep:
        given = rows(given, 0, 0)
    return in_time(ys, reverse), h, in_time(gates, reverse) if keep else given, given


def gru_factors(gates: Any, hns: Any, earlier: Any) -> tuple[Any, Any, Any]:
    """What the arguments of r and z, and w[2] h + b, weigh in the new h, side by side; what n's
    argument does, and what the earlier h does directly: z. See Note [Factors]."""
    cells = hns.shape[1]
    r, z, new = (block(gates, k, cells) for k in range(3))
    in_n = (1 - z) * (1 - new * new)
    by_h = v.concat([in_n * hns * r * (1 - r), (earlier - new) * z * (1 - z), in_n * r], 1)
    return by_h, in_n, z


@primitive
def gru_unloop(
    by_h: Array, z: Array, gy: Array, gh: Array, w: Array, sizes: Sizes, reverse: bool
) -> tuple[Array, Array, Array]:
    """The gradients of what h gave to the gates, of h after each step, and of the first h. `w` is
    [3h, h]."""
    n, cells = z.shape
    pre = by_h.copy()
    threes = pre.reshape(n, 3, cells)
    given = v.empty(by_h, (n, cells), by_h.dtype)
    gh = gh.copy()
    product = v.empty(by_h, gh.shape, by_h.dtype)
    for start, size in reversed(steps(sizes, reverse)):
        stop = start + size
        dh, step, p = gh[:size], given[start:stop], product[:size]
        v.add(dh, gy[start:stop], out=step)
        three = threes[start:stop]
        three *= step[:, None]
        v.matmul(pre[start:stop], w, out=p)
        v.multiply(step, z[start:stop], out=dh)
        dh += p
    return pre, given, gh


def gru_unloop_in_words(
    by_h: Any, z: Any, gy: Any, gh: Any, w: Any, sizes: Sizes, reverse: bool
) -> Any:
    """`gru_unloop` on arrays of any kind."""
    cells = z.shape[1]
    pres: list[Any] = []
    given: list[Any] = []
    for start, size in reversed(steps(sizes, reverse)):
        dh = rows(gh, 0, size) + rows(gy, start, size)
        weights = rows(by_h, start, size)
        pre = v.concat([dh * block(weights, k, cells) for k in range(3)], 1)
        gh = updated(gh, dh * rows(z, start, size) + v.matmul(pre, w), size)
        pres.append(pre)
        given.append(dh)
    return in_time(pres, not reverse), in_time(given, not reverse), gh


# --- RNN: one tanh or ReLU ------------------------------------------------------------------------
@primitive
def rnn_loop(
    xg: Array, h: Array, w: Array, relu: bool, sizes: Sizes, reverse: bool
) -> tuple[Array, Array]:
    """Outputs and last h; `w` is of shape [h, h]."""
    y = xg.copy()
    most = sizes[0] if sizes else 0
    product = v.empty(xg, (most, xg.shape[1]), xg.dtype)
    last = h.copy()
    for start, size in steps(sizes, reverse):
        step, p, now = y[start : start + size], product[:size], last[:size]
        v.matmul(now, w, out=p)
        step += p
        if relu:
            v.maximum(step, 0, out=step)
        else:
            v.tanh(step, out=step)
        now[...] = step
    return y, last


def rnn_loop_in_words(xg: Any, h: Any, w: Any, relu: bool, sizes: Sizes, reverse: bool) -> Any:
    """`rnn_loop` on arrays of any kind."""
    ys: list[Any] = []
    for start, size in steps(sizes, reverse):
        pre = rows(xg, start, size) + v.matmul(rows(h, 0, size), w)
        y = v.where(pre > 0, pre, pre * 0) if relu else v.tanh(pre)
        h = updated(h, y, size)
        ys.append(y)
    return in_time(ys, reverse), h


@primitive
def rnn_unloop(
    factors: Array, gy: Array, gh: Array, w: Array, sizes: Sizes, reverse: bool
) -> tuple[Array, Array]:
    """The gradients of the arguments of the tanh or ReLU and of the first h; `w` is [h, h]."""
    pre = factors.copy()
    gh = gh.copy()
    for start, size in reversed(steps(sizes, reverse)):
        step, dh = pre[start : start + size], gh[:size]
        dh += gy[start : start + size]
        step *= dh
        v.matmul(step, w, out=dh)
    return pre, gh


def rnn_unloop_in_words(factors: Any, gy: Any, gh: Any, w: Any, sizes: Sizes, reverse: bool) -> Any:
    """`rnn_unloop` on arrays of any kind."""
    pres: list[Any] = []
    for start, size in reversed(steps(sizes, reverse)):
        dh = rows(gh, 0, size) + rows(gy, start, size)
        pre = dh * rows(factors, start, size)
        gh = updated(gh, v.matmul(pre, w), size)
        pres.append(pre)
    return in_time(pres, not reverse), gh


# --- other kinds of array -------------------------------------------------------------------------
IN_WORDS: Final[dict[str, Callable[..., Any]]] = {
    "lstm_loop": lstm_loop_in_words,
    "lstm_unloop": lstm_unloop_in_words,
    "gru_loop": gru_loop_in_words,
    "gru_unloop": gru_unloop_in_words,
    "rnn_loop": rnn_loop_in_words,
    "rnn_unloop": rnn_unloop_in_words,
}


def _on_batches(primitive: Any, level: Any, *args: Any) -> Any:
    return IN_WORDS[primitive.__name__](*args)


for _name in IN_WORDS:
    rules[_name] = _on_batches
