"""The compiled twister draws what the way over NumPy draws, and leaves the same state."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rushlight import random as raw
from rushlight.arrays import kernels
from rushlight.random import generator, rejection
from rushlight.random.plain import PlainTwister

needs_kernels = pytest.mark.skipif(kernels.Twister is None, reason="not compiled")
SIZES = (0, 1, 2, 15, 16, 17, 31, 32, 33, 100, 623, 624, 625, 1023, 5000)


def twin(kind: Any, seed: int) -> Any:
    gen = raw.Generator().manual_seed(seed)
    gen.__dict__["bits"] = kind(seed)
    return gen


FILLS: dict[str, Callable[[Any, Any], Any]] = {
    "uniform": lambda a, g: raw.uniform_(a, gen=g),
    "uniform between": lambda a, g: raw.uniform_(a, -0.3, 0.7, g),
    "uniform of nothing": lambda a, g: raw.uniform_(a, 0.25, 0.25, g),
    "normal": lambda a, g: raw.normal_(a, gen=g),
    "normal moved": lambda a, g: raw.normal_(a, 0.3, 2.7, g),
    "normal scaled": lambda a, g: raw.normal_(a, 0.0, 1e-3, g),
    "normal without spread": lambda a, g: raw.normal_(a, -0.0, 0.0, g),
    "bernoulli": lambda a, g: raw.bernoulli_(a, 0.3, g),
    "bernoulli never": lambda a, g: raw.bernoulli_(a, 0.0, g),
    "bernoulli always": lambda a, g: raw.bernoulli_(a, 1.0, g),
    "bernoulli rarely": lambda a, g: raw.bernoulli_(a, 1e-3, g),
    "exponential": lambda a, g: raw.exponential_(a, 1.7, g),
    "log-normal": lambda a, g: raw.log_normal_(a, gen=g),
    "integers": lambda a, g: raw.random_(a, -5, 100, g),
    "cauchy": lambda a, g: raw.cauchy_(a, gen=g),
}


def same(a: Any, b: Any) -> bool:
    return bool(a.dtype == b.dtype and a.tobytes() == b.tobytes())


@needs_kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(FILLS))
def test_fills(name: str, dtype: Any) -> None:
    ours, plain = twin(kernels.Twister, 7), twin(PlainTwister, 7)
    for n in SIZES:
        for layout in ("piece", "steps"):
            width = n if layout == "piece" else 2 * n
            a, b = np.zeros(width, dtype), np.zeros(width, dtype)
            step = 1 if layout == "piece" else 2
            FILLS[name](a[::step], ours)
            FILLS[name](b[::step], plain)
            assert same(a, b), (n, layout)
            assert same(ours.raw_state(), plain.raw_state()), (n, layout)


@needs_kernels
@pytest.mark.parametrize("span", [1, 2, 10, (1 << 28) - 1, 1 << 28, 1 << 40, (1 << 63) + 5])
def test_integers(span: int) -> None:
    ours, plain = twin(kernels.Twister, 1), twin(PlainTwister, 1)
    low = -(1 << 62) if span > 1 << 60 else -3
    for n in SIZES:
        a, b = np.zeros(n, np.int64), np.zeros(n, np.int64)
        raw.random_(a, low, low + span, ours)
        raw.random_(b, low, low + span, plain)
        assert same(a, b) and same(ours.raw_state(), plain.raw_state())


@needs_kernels
def test_permutations_and_masks() -> None:
    ours, plain = twin(kernels.Twister, 3), twin(PlainTwister, 3)
    for n in SIZES:
        assert same(raw.randperm(n, gen=ours), raw.randperm(n, gen=plain))
    for like in (np.ones((5, 7), np.float32), np.ones((5, 7)), np.ones((4, 6), np.float32).T,
                 np.ones((3, 3), np.float16)):  # fmt: skip
        a, b = raw.dropout_mask(like, 0.3, ours), raw.dropout_mask(like, 0.3, plain)
        assert same(a, b) and a.strides == b.strides
    mask = np.zeros(100, bool), np.zeros(100, bool)
    raw.bernoulli_(mask[0], 0.4, ours)
    raw.bernoulli_(mask[1], 0.4, plain)
    assert same(*mask) and same(ours.raw_state(), plain.raw_state())


@needs_kernels
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rejection(dtype: Any) -> None:
    ours, plain = twin(kernels.Twister, 5), twin(PlainTwister, 5)
    rng = np.random.default_rng(0)
    for n in (1, 7, 300):
        alpha = rng.uniform(0.1, 5, n).astype(dtype)
        alpha[0] = 0
        rates = rng.uniform(0, 40, n).astype(dtype)
        rates[0] = 0
        tries, p = rng.integers(0, 60, n).astype(dtype), rng.uniform(0, 1, n).astype(dtype)
        p[:3] = [0, 1, np.nan][: len(p[:3])]
        for draw, given in (
            (rejection.standard_gamma, (alpha,)),
            (rejection.poisson, (rates,)),
            (rejection.binomial, (tries, p)),
            (rejection.dirichlet, (alpha + dtype(1),)),
        ):
            assert same(draw(*given, ours), draw(*given, plain))
            assert same(ours.raw_state(), plain.raw_state())


@needs_kernels
def test_words_and_states() -> None:
    ours, plain = kernels.Twister(2**32 - 1), PlainTwister(2**32 - 1)
    for n in SIZES:
        assert ours.take32(n).tolist() == plain.take32(n).tolist()
        assert ours.take64(n).tolist() == plain.take64(n).tolist()
    state = plain.get()
    assert [state[0].tolist(), *state[1:]] == [ours.get()[0].tolist(), *ours.get()[1:]]
    other = kernels.Twister(0)
    other.set(*state)
    assert other.take32(3).tolist() == plain.take32(3).tolist()


@needs_kernels
def test_bad_arguments_are_refused() -> None:
    bits = kernels.Twister(0)
    before = bits.get()[1]
    with pytest.raises(TypeError):
        bits.uniform(np.zeros(3))
    with pytest.raises(TypeError):
        bits.normals(np.zeros(3), "0", 1.0)
    with pytest.raises(ValueError, match="624 words"):
        bits.set(np.zeros(3, np.uint32), 0, False, None)
    with pytest.raises(ValueError, match="624 words"):
        bits.set(np.zeros(624, np.uint32), 625, False, None)
    frozen = np.zeros(20)
    frozen.flags.writeable = False
    for a in (np.zeros(4, np.int8), np.zeros(8)[::2], np.zeros(4, ">f8"), [1.0], frozen):
        assert bits.uniform(a, 0.0, 1.0) is bits.normals(a, 0.0, 1.0) is False
        assert bits.keeps(a, 0.5, 1.0) is bits.integers(a, 0, 3) is False
        assert bits.poissons(a, a) is bits.exponentials(a, 1.0) is False
    for sizes in ((), (-1,), (1.0,), (True,), ([2],), (3, (4,)), (1 << 70,), (1 << 40,), 5):
        assert bits.new_uniform(sizes, 11, 0.0, 1.0) is None
    assert bits.new_uniform((2,), np.dtype(np.int8).num, 0.0, 1.0) is None
    assert bits.get()[1] == before  # nothing was drawn


@needs_kernels
def test_new_arrays() -> None:
    bits, filled = kernels.Twister(9), kernels.Twister(9)
    for sizes, shape in (((2, 3), (2, 3)), (((4, 5),), (4, 5)), ((0, 2), (0, 2)), (((),), ())):
        for kind in (np.float32, np.float64):
            a = np.zeros(shape, kind)
            filled.uniform(a, 0.0, 1.0)
            assert same(bits.new_uniform(sizes, a.dtype.num, 0.0, 1.0), a)
            filled.normals(a, 0.0, 1.0)
            assert same(bits.new_normals(sizes, a.dtype.num, 0.0, 1.0), a)
    bits.busy = True
    assert bits.new_uniform((2,), 11, 0.0, 1.0) is None


def test_threads_share_a_generator() -> None:
    """Every word is drawn once, however many draw at a time."""
    gen = raw.Generator().manual_seed(0)
    found: list[Any] = []

    def draw() -> None:
        for n in (100, 50_000, 3):
            a = np.empty(n, np.float32)
            raw.uniform_(a, gen=gen)
            found.append(a)

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = np.empty(sum(a.size for a in found), np.float32)
    raw.uniform_(whole, gen=raw.Generator().manual_seed(0))
    assert (np.sort(np.concatenate(found)) == np.sort(whole)).all()
    assert generator.Twister in (kernels.Twister, PlainTwister)
