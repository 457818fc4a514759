"""Permutations and samples of indices, and normals with a mean and deviation for each element.

These make new arrays, where `draw` fills existing ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rushlight.random.draw import exponential_, normal_
from rushlight.random.exact import Raw, dense_like
from rushlight.random.generator import SIGNED, Generator, default_generator
from rushlight.random.names import FLOATS, INTEGERS, dtype_name, not_implemented, scalar_type

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"

LONG = 214748364  # from here on PyTorch draws 64-bit words, and shuffles from the inside out
SHORT = 200  # up to here a Python loop beats NumPy's overhead
SORTED = 8192  # up to here a sort beats repeated scattering
BLOCK = 1 << 14  # steps of a shuffle at a time


# -- permutations ------------------------------------------------------------------------------


def randperm(n: int, dtype: npt.DTypeLike = np.int64, gen: Generator | None = None) -> Raw:
    """A random permutation of 0 ... n-1."""
    kind = np.dtype(dtype)
    _check_randperm(n, kind)
    gen = gen or default_generator
    with gen.lock:
        if n >= LONG:
            order = _inside_out(n, gen)
        elif (shuffled := gen.bits.shuffled(n)) is not None:
            order = shuffled
        elif n <= SHORT:
            order = _swap(_targets(n, gen).tolist())
        else:
            order = _swap_all(_targets(n, gen))
    if kind.itemsize == 2 and dtype_name(kind) in FLOATS:
        return order.astype(np.float32).astype(kind)  # as PyTorch makes 16-bit floats
    return order.astype(kind, copy=False)


def _check_randperm(n: int, dtype: np.dtype[Any]) -> None:
    if not -(1 << 63) <= n < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if dtype.kind in "iu" and n - 1 > int(np.iinfo(dtype).max):
        raise RuntimeError(
            f"value cannot be converted to type {dtype_name(dtype)}_t without overflow"
        )
    limit, words = _RANDPERM_LIMITS.get(dtype_name(dtype), (n, ""))
    if n > limit:
        raise RuntimeError(f"n cannot be greater than {words} type.")
    if dtype_name(dtype) not in FLOATS + INTEGERS:
        not_implemented("randperm", dtype)


_RANDPERM_LIMITS = {
    "float16": (2049, "2049 for Half"),
    "float32": ((1 << 24) + 1, "2^24+1 for Float"),
    "float64": ((1 << 53) + 1, "2^53+1 for Double"),
}


def _targets(n: int, gen: Generator) -> Ints:
    """Step i of the shuffle swaps element i with element targets[i] >= i."""
    targets = np.arange(n)
    if n > 1:
        words = gen.take32(n - 1)
        np.remainder(words, np.arange(n, 1, -1, dtype=words.dtype), words)
        np.add(targets[:-1], words.view(SIGNED[words.itemsize]), targets[:-1])
    return targets


def _swap(targets: list[int]) -> Ints:
    order = list(range(len(targets)))
    for i, target in enumerate(targets):
        order[i], order[target] = order[target], order[i]
    return np.array(order, np.int64)


def _swap_all(targets: Ints) -> Ints:
    """`_swap` without a loop over steps: a block of them at a time, which keeps what it works on in
    the processor's cache, and the memory that it takes small.

    Before step i of a block, place x >= i holds what the last step j < i with targets[j] == x put
    there, and that is what place j held before step j. Followed back so, place i leads to its root,
    a place that no step of the block had touched. Step i fetches what place targets[i] holds: the
    root of the last step before it with the same target, or targets[i] itself.
    """
    order = np.arange(len(targets))
    table = np.empty(len(targets) if len(targets) > SORTED else 0, np.int64)
    for start in range(0, len(targets), BLOCK):
        block = targets[start : start + BLOCK]
        root = _roots(block, start)
        source = block.copy()
        for step, before in _same_target(block, table):
            source[step] = root.take(before)
        if len(source) == len(order):  # one block: the places still hold their own numbers
            return source
        fetched = order.take(source)
        order[block] = order.take(root)  # of several with one target, the last stays
        order[start : start + len(block)] = fetched
    return order


def _roots(block: Ints, start: int) -> Ints:
    """The root of each place of a block that begins at place `start`."""
    places, root = block - start, np.arange(len(block))
    moves = np.flatnonzero((places < len(block)) & (places != root))
    root[places.take(moves)] = moves  # of several, the last stays
    while moves.size:
        further = root.take(root)
        further = further.take(further)
        if (further == root).all():
            break
        root = further
    root += start
    return root


def _same_target(block: Ints, table: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Steps, each with the last step before it that has the same target (if there is one).

    Steps count from the beginning of the block. `table` has a place for every target, if there are
    more than SORTED of them; what is in it does not matter.
    """
    steps = np.arange(len(block))
    if not len(table):
        pairs = np.sort(((block << 16) | steps).astype(np.uint32))
        step = (pairs & 0xFFFF).astype(np.int64)
        target = pairs >> 16
        second = np.flatnonzero(target[1:] == target[:-1])
        yield step.take(second + 1), step.take(second)
        return
    table[block] = steps
    rest = np.flatnonzero(table.take(block) != steps)
    while rest.size:  # peel off, for every target, its last step
        target = block.take(rest)
        step = table.take(target)
        table[target] = rest
        before = table.take(target)
        yield step, before
        rest = rest.take(np.flatnonzero(before != rest))


def _inside_out(n: int, gen: Generator) -> Ints:
    """For each i in turn, order[i] = order[z], order[z] = i, with z a draw from 0 ... i."""
    order = np.arange(n)
    for start in range(0, n, 1 << 16):
        stop = min(start + (1 << 16), n)
        places = gen.take64(stop - start) % np.arange(start + 1, stop + 1, dtype=np.uint64)
        for i, place in enumerate(places.tolist(), start):
            order[i] = order[place]
            order[place] = i
    return order


# -- samples -----------------------------------------------------------------------------------


def multinomial(
    p: Raw, num_samples: int, replacement: bool = False, gen: Generator | None = None
) -> Ints:
    """Indices drawn with probabilities proportional to p (a row, or rows)."""
    _check_multinomial(p, num_samples, replacement)
    gen = gen or default_generator
    if replacement and num_samples > 1:
        if dtype_name(p.dtype) not in FLOATS:
            not_implemented("multinomial", p.dtype)
        rows = p if p.ndim == 2 else p[None]
        picked = np.empty((len(rows), num_samples), np.int64)
        with gen.lock:
            for i, row in enumerate(rows):
                picked[i] = np.searchsorted(_cumulative(row), gen.unit53(num_samples))
        return picked if p.ndim == 2 else picked[0]
    _check_probabilities(p)
    # the least of exponential variables with rates p is element i with probability p[i]
    race = dense_like(p)
    exponential_(race, 1.0, gen)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        race = np.divide(p, race, race)
    if num_samples == 1:
        winner: Ints = np.argmax(race, -1, keepdims=True).astype(np.int64)
        return winner
    # the largest, largest first (which of equal ones, and in what order, PyTorch leaves open too)
    best = np.argpartition(-race, num_samples - 1, -1)[..., :num_samples]
    order = np.argsort(-np.take_along_axis(race, best, -1), -1, kind="stable")
    winners: Ints = np.take_along_axis(best, order, -1)
    return winners


def _check_multinomial(p: Raw, num_samples: int, replacement: bool) -> None:
    if not 1 <= p.ndim <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if p.dtype.kind in "biuc":
        raise RuntimeError(
            "multinomial only supports floating-point dtypes for input, got: "
            f"{scalar_type(p.dtype)}"
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > p.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if p.shape[-1] > 1 << 24:
        raise RuntimeError("number of categories cannot exceed 2^24")


def _check_probabilities(p: Raw) -> None:
    if dtype_name(p.dtype) not in FLOATS:
        not_implemented("aminmax_cpu", p.dtype)
    if p.shape[-1] == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
            "identity."
        )
    if not (np.isfinite(p).all() and (p >= 0).all()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not (p > 0).any(-1).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def _cumulative(row: Raw) -> npt.NDArray[np.float64]:
    """Running sums scaled to end at 1, in the dtype of the row (float32 for the 16-bit ones)."""
    fault = "invalid multinomial distribution ({})"
    row = row.astype(np.float32) if row.itemsize == 2 else row
    bad = np.flatnonzero(~((row >= 0) & np.isfinite(row)))
    if bad.size:
        entry = "= infinity or NaN" if row[bad[0]] > 0 else "< 0"
        raise RuntimeError(fault.format(f"encountering probability entry {entry}"))
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.add.accumulate(row)
        if row.size == 0 or not sums[-1] > 0:
            raise RuntimeError(fault.format("sum of probabilities <= 0"))
        sums /= sums[-1]
    sums[-1] = 1
    return sums.astype(np.float64)


# -- normals -----------------------------------------------------------------------------------


def normal(mean: float | Raw, std: float | Raw, gen: Generator | None = None) -> Raw:
    """Normals with a mean or a deviation (or both) for each element, in the dtype of the first."""
    leading = mean if isinstance(mean, np.ndarray) else std
    assert isinstance(leading, np.ndarray)
    if isinstance(std, np.ndarray):
        if std.dtype.kind == "c":
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if std.size and not (std >= 0).all():
            raise RuntimeError("normal expects all elements of std >= 0.0")
        shape = std.shape
        if leading.shape != shape:
            shape = np.broadcast_shapes(np.shape(mean), shape)
        out = np.empty(shape, leading.dtype)
        normal_(out, 0.0, 1.0, gen)
        np.multiply(out, std, out, casting="same_kind")
    else:
        out = np.empty(leading.shape, leading.dtype)
        normal_(out, 0.0, std, gen)
    np.add(out, np.asarray(mean, leading.dtype), out)
    return out
