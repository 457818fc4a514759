"""Connectionist temporal classification: `ctc_loss`.

Note [States of a labelling]
    A labelling l of length L is read with blanks between: -, l1, -, l2, …, - (2L + 1 states). A
    path goes through the states in time, staying, taking the next, or passing over a blank between
    two labels that differ. alpha is the log-probability of all ways to a state, beta that of all
    ways from it; both count the step at the state itself. So alpha + beta less that step, summed
    over the states at any time, is the likelihood. All examples and states go together; only time
    is a loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rushlight import dtypes
from rushlight.arrays import vocabulary as v
from rushlight.core.graph import Node, Op, TensorBase, wrap
from rushlight.core.record import apply
from rushlight.ops.checks import check_tensor, mismatch, not_implemented, raw_dtype
from rushlight.ops.nn.loss import MEAN, NONE, reduction_enum
from rushlight.ops.registry import function, functional, functions, op
from rushlight.ops.sample_inputs import Draw

_INT64: Final = dtypes.int64.numpy
_BOOL: Final = dtypes.bool_.numpy
# The logarithm of 0. Infinity would do for values, but differences of two are no number.
_NEVER: Final = -1e30
_INF: Final = float("inf")
_NAN: Final = float("nan")


@op
class CtcLoss(Op):
    """The negative log-likelihood of each example's labelling; see Note [States of a labelling].

    Inputs: log-probabilities (time, examples, classes), labels (examples, longest), and how long
    the input and the labelling of each example are. With `of_logits` the gradient is that by the
    values that `log_softmax` made the log-probabilities of, as in PyTorch: behind a `log_softmax`
    both are the same.
    """

    name = "ctc_loss"
    aten = "_ctc_loss.default"
    shown_edges = (0,)
    inputs = ("log_probs", "targets", "input_lengths", "target_lengths")
    saves = ("log_probs", "targets", "input_lengths", "target_lengths", "result")
    saved_names = "blank zero_infinity"
    params = ("blank", "zero_infinity", "of_logits")
    blank: int
    zero_infinity: bool
    of_logits: bool

    def states(self, t: Any) -> Any:
        """The labels with blanks between: (examples, states)."""
        n, most = t.shape
        gaps = v.full(t, (n, most, 1), self.blank, _INT64)
        pairs = v.reshape(v.concat([gaps, v.window(t, (..., None))], -1), (n, 2 * most))
        return v.concat([pairs, v.full(t, (n, 1), self.blank, _INT64)], -1)

    def skips(self, states: Any) -> Any:
        """Whether a state may follow the one before the last."""
        n, count = states.shape
        if count < 3:
            return v.full(states, (n, count), False, _BOOL)
        here = v.window(states, (..., slice(2, None)))
        there = v.window(states, (..., slice(0, count - 2)))
        free = v.logical_and(v.not_equal(here, self.blank), v.not_equal(here, there))
        return v.pad(free, ((0, 0), (2, 0)), False)

    def steps(self, x: Any, states: Any) -> Any:
        """The log-probability of each state at each time: (time, examples, states)."""
        y = v.gather(x, -1, v.broadcast(states, (x.shape[0], *states.shape)))
        return v.maximum(y, _NEVER)

    def shifted(self, a: Any, by: int) -> Any:
        """For each state the value of the one `by` earlier (later, if negative)."""
        count = a.shape[-1]
        if abs(by) >= count:
            return a * 0 + _NEVER
        if by > 0:
            return v.pad(v.window(a, (..., slice(0, count - by))), ((0, 0), (by, 0)), _NEVER)
        return v.pad(v.window(a, (..., slice(-by, None))), ((0, 0), (0, -by)), _NEVER)

    def alphas(self, steps: Any, skip: Any) -> Any:
        first = v.iota(skip, steps.shape[-1], _INT64) < 2
        a = v.where(first, v.window(steps, (0,)), _NEVER)
        found = [v.window(a, (None,))]
        for i in range(1, steps.shape[0]):
            two = v.where(skip, self.shifted(a, 2), _NEVER)
            a = v.window(steps, (i,)) + v.logaddexp(v.logaddexp(a, self.shifted(a, 1)), two)
            found.append(v.window(a, (None,)))
        return v.concat(found, 0)

    def betas(self, steps: Any, skip: Any, input_lengths: Any, lengths: Any) -> Any:
        count = steps.shape[-1]
        last = 2 * v.window(lengths, (..., None))
        place = v.iota(lengths, count, _INT64)
        end = v.logical_or(v.equal(place, last), v.equal(place, last - 1))
        left = v.window(input_lengths, (..., None)) - 1
        b: Any = None
        found = []
        for i in range(steps.shape[0] - 1, -1, -1):
            now = v.window(steps, (i,))
            begin = v.where(v.logical_and(end, v.equal(left, i)), now, _NEVER)
            if b is not None:
                two = self.shifted(v.where(skip, b, _NEVER), -2)
                later = now + v.logaddexp(v.logaddexp(b, self.shifted(b, -1)), two)
                begin = v.where(left > i, later, begin)
            b = begin
            found.append(v.window(b, (None,)))
        return v.concat(found[::-1], 0)

    def forward(self, x: Any, t: Any, input_lengths: Any, lengths: Any) -> Any:
        none = v.full(x, (x.shape[1],), 0, raw_dtype(x))
        none = v.where(v.equal(lengths, 0), none, _INF)
        if x.shape[0] == 0:
            return none
        states = self.states(t)
        a = self.alphas(self.steps(x, states), self.skips(states))
        at = v.maximum(v.reshape(input_lengths, (1, -1, 1)) - 1, 0)
        a = v.window(v.gather(a, 0, v.broadcast(at, (1, *a.shape[1:]))), (0,))
        last = 2 * v.window(lengths, (..., None))
        label = v.where(last > 0, v.gather(a, -1, v.maximum(last - 1, 0)), _NEVER)
        y = -v.window(v.logaddexp(v.gather(a, -1, last), label), (..., 0))
        y = v.where(y > -0.5 * _NEVER, _INF, y)
        return v.where(v.equal(input_lengths, 0), none, y)

    def slopes(self, x: Any, t: Any, input_lengths: Any, lengths: Any, y: Any) -> Any:
        """The derivative of each example's loss by its log-probabilities (or by the logits)."""
        states = self.states(t)
        skip = self.skips(states)
        steps = self.steps(x, states)
        through = self.alphas(steps, skip) + self.betas(steps, skip, input_lengths, lengths) - steps
        lost = v.equal(y, _INF)
        share = v.exp(through + v.window(v.where(lost, 0, y), (..., None)))
        index = v.broadcast(states, (x.shape[0], *states.shape))
        s = -v.ungather(share, x.shape, -1, index)
        if self.of_logits:
            s = v.exp(x) + s
        time = v.reshape(v.iota(t, x.shape[0], _INT64), (-1, 1, 1))
        inside = time < v.reshape(input_lengths, (1, -1, 1))
        broken = 0.0 if self.zero_infinity else _NAN
        s = v.where(v.reshape(lost, (1, -1, 1)), broken, s)
        return v.where(inside, s, 0)

    def vjp(self, node: Node, g: Any, x: Any, t: Any, n: Any, lengths: Any, y: Any) -> Any:
        s = self.slopes(x, t, n, lengths, y) if x.shape[0] else x
        return v.reshape(g, (1, -1, 1)) * s, None, None, None

    def jvp(self, ts: tuple[Any, ...], xs: tuple[Any, ...], y: Any) -> Any:
        x, t, n, lengths = xs
        return v.reduce_sum(self.slopes(x, t, n, lengths, y) * ts[0], (0, 2), False)

    @staticmethod
    def samples(draw: Draw) -> Iterator[tuple[Any, ...]]:
        t = draw.ints(1, 4, 2, 3)
        five = draw.ints(5, 6, 2)
        yield CtcLoss(0, False, False), draw.real(5, 2, 4), t, five, draw.ints(1, 3, 2)
        yield CtcLoss(0, True, False), draw.real(6, 2, 4), t, five, draw.ints(0, 3, 2)
        yield CtcLoss(3, False, False), draw.real(5, 2, 4), t - 1, five, draw.ints(0, 2, 2)


def _read_lengths(name: str, given: Any, n: int, most: int | None) -> list[int]:
    if isinstance(given, TensorBase):
        lengths: Any = given._array
        if lengths.dtype.kind not in "iu":
            raise RuntimeError(f"{name} must be integral")
        given = lengths.reshape(-1).tolist()
    found = [int(i) for i in given]
    if len(found) != n:
        raise RuntimeError(f"{name} must be of size batch_size")
    for i in found:
        if i < 0 or (most is not None and i > most):
            bound = f"least 0, but got value {i}" if i < 0 else f"most {most}, but got value {i}"
            raise RuntimeError(
                f"Expected {name} to have value at {bound} (while checking arguments for "
                "ctc_loss_allocate_outputs)"
            )
    return found


def _pad_targets(targets: Any, lengths: list[int]) -> Any:
    """The labels of each example in a row of its own. They may come in such rows, or all in one,
    one example behind the other."""
    most = max(lengths, default=0)
    t = targets._array
    if t.ndim == 1:
        if t.shape[0] != sum(lengths):
            raise RuntimeError(
                f"Expected tensor to have size {sum(lengths)} at dimension 0, but got size "
                f"{t.shape[0]} for argument #2 'targets' (while checking arguments for "
                "ctc_loss_allocate_outputs)"
            )
        starts = [sum(lengths[:i]) for i in range(len(lengths))]
        if most == 0:
            return wrap(v.full(t, (len(lengths), 0), 0, _INT64))
        first = v.constant(t, starts, _INT64)
        place = v.window(first, (slice(None), None)) + v.iota(t, most, _INT64)
        return targets[wrap(v.minimum(place, t.shape[0] - 1))]
    if t.shape[0] != len(lengths):
        raise RuntimeError(
            f"Expected tensor to have size {len(lengths)} at dimension 0, but got size "
            f"{t.shape[0]} for argument #2 'targets' (while checking arguments for "
            "ctc_loss_allocate_outputs)"
        )
    if t.shape[1] < most:
        raise RuntimeError(
            f"Expected tensor to have size at least {most} at dimension 1, but got size "
            f"{t.shape[1]} for argument #2 'targets' (while checking arguments for "
            "ctc_loss_allocate_outputs)"
        )
    return targets[:, :most]


def _ctc(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, how: int,
    zero_infinity: bool,
) -> Any:  # fmt: skip
    check_tensor(log_probs, "ctc_loss", "log_probs")
    check_tensor(targets, "ctc_loss", "targets", 2)
    if isinstance(input_lengths, TensorBase) != isinstance(target_lengths, TensorBase):
        raise mismatch(
            "ctc_loss", log_probs, targets, input_lengths, target_lengths, blank, how, zero_infinity
        )
    single = log_probs._array.ndim == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
    x = log_probs._array
    kind = dtypes.of(x.dtype)
    if kind not in (dtypes.float32, dtypes.float64):
        raise not_implemented("ctc_loss_cpu", kind)
    time, n, classes = x.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    widths = _read_lengths("input_lengths", input_lengths, n, time)
    lengths = _read_lengths("target_lengths", target_lengths, n, None)
    labels = _pad_targets(targets.long(), lengths)
    of_input, of_labels = (wrap(v.constant(x, each, _INT64)) for each in (widths, lengths))
    y = apply(CtcLoss(blank, zero_infinity, True), log_probs, labels, of_input, of_labels)
    if zero_infinity:
        y = functions["where"](y == _INF, 0.0, y)
    if how == MEAN:
        counts = v.maximum(v.constant(x, lengths, x.dtype), 1)
        return (y / wrap(counts)).mean()
    if how != NONE:
        return y.sum()
    return y.squeeze(0) if single else y


@functional()
def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """The negative log-likelihood of labellings, over all ways to lay them along time, with blanks
    between. 'mean' divides each by the length of its labelling first.

    Args:
        log_probs: log-probabilities of the classes: (time, examples, classes).
        targets: the labels, a row an example, or all in one row.
        input_lengths: how many steps of time each example has.
        target_lengths: how many labels.
        blank: the class that stands for no label.
        zero_infinity: count labellings that are longer than their input as 0.

    >>> even = torch.full((2, 1, 2), 0.5).log()
    >>> torch.nn.functional.ctc_loss(even, torch.tensor([[1]]), [2], [1])  # three ways of four
    tensor(0.2877)
    """
    how = reduction_enum(reduction, None, None)
    return _ctc(log_probs, targets, input_lengths, target_lengths, blank, how, zero_infinity)


@function(name="ctc_loss", method=False)
def _free_ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: int = 0, zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """`nn.functional.ctc_loss`, with the reduction as a number: 0 none (as in PyTorch by default),
    1 mean, 2 sum.

    Args:
        log_probs: log-probabilities of the classes: (time, examples, classes).
        targets: the labels, a row an example, or all in one row.
        input_lengths: how many steps of time each example has.
        target_lengths: how many labels.
        blank: the class that stands for no label.
        zero_infinity: count labellings that are longer than their input as 0.

    >>> even = torch.full((2, 1, 2), 0.5).log()
    >>> torch.ctc_loss(even, torch.tensor([[1]]), [2], [1])
    tensor([0.2877])
    """
    return _ctc(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)
