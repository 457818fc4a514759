"""Kernels on several threads: the same results, whoever computes them, also in a forked child."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rushlight as torch
from rushlight.arrays import kernels

pytestmark = pytest.mark.skipif(not kernels.table, reason="not compiled")


@pytest.fixture
def threads() -> Iterator[Any]:
    """A function that sets the number of threads; it is as before behind the test."""
    before = kernels.use_threads(1)
    yield kernels.use_threads
    kernels.use_threads(before)


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def results() -> list[Any]:
    """Of kernels over elements, rows and columns, all large enough for several threads."""
    table = kernels.table
    x, wide = numbers(401, 1003), numbers(3, 500, 301)
    found = [
        table["Silu.forward"](x), table["Add.alpha=1.forward"](x, x[0]),
        table["Mul.forward"](x.T, numbers(1003, 401)), table["Add.alpha=1.forward"](x, 1.5),
        table["Softmax.forward"](x), table["Softmax.forward"].over((-2,), False)(wide),
        table["Sum.dtype=None.forward"].over((0,), False)(x),
        table["Sum.dtype=None.forward"].over((0, 2), True)(wide),
        table["Sum.dtype=None.forward"].over(None, False)(x),
        *table["Mul.vjp.3"](x, x + 1, x + 2), *table["layer_norm"].bind(1e-5)(x),
        table["Sub.alpha=1.forward"](2.5, x), table["Div.forward"](x, x[:, :1]),
        table["Sin.forward"](x), table["Amax.forward"].over((0,), False)(x.reshape(-1, 17)),
        kernels.copied(x), kernels.in_new_rows(x.T), kernels.joined(0, x, x),
        kernels.joined(1, x, x), kernels.stacked(-1, x, x), kernels.flipped((0, 1), x),
        kernels.rolled((3,), (1,), x), kernels.padded((1, 2, 3, 4), 1.5, x),
        kernels.tiled((2, 3), x), kernels.filled_as(2.5, x), kernels.filled_as(0, x),
        kernels.recast(np.dtype(np.float64).num, x),
        kernels.nonzero(0, x > 0), kernels.nonzero(0, x.round()),
        *kernels.ranked(1, True, 5, True, x), kernels.ranked(0, False, -1, False, x),
        *kernels.extreme(1, True, False, x), *kernels.extreme(0, False, True, wide),
    ]  # fmt: skip
    into = np.zeros_like(x)
    assert table["Exp.forward"].into((into,), x)
    return [*found, into]


@pytest.mark.parametrize("count", [2, 3, 7])
def test_results_do_not_depend_on_the_number_of_threads(threads: Any, count: int) -> None:
    alone = results()
    threads(count)
    for _ in range(5):
        for a, b in zip(alone, results(), strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.strides == b.strides


def test_several_threads_of_python_at_once(threads: Any) -> None:
    alone = results()
    threads(3)
    same: list[bool] = []

    def run() -> None:
        for _ in range(4):
            same.append(all(np.array_equal(a, b) for a, b in zip(alone, results(), strict=True)))

    running = [threading.Thread(target=run) for _ in range(4)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert same == [True] * 16


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_starts_its_own(threads: Any) -> None:
    threads(3)
    before = results()
    child = os.fork()
    if child == 0:  # no exception may leave this block
        fine = 1
        try:
            fine = int(not all(map(np.array_equal, before, results())))
        finally:
            os._exit(fine)
    assert os.waitpid(child, 0)[1] == 0
    for a, b in zip(before, results(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_set_num_threads_tells_the_kernels(threads: Any) -> None:
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert kernels.use_threads(1) == 3
    finally:
        torch.set_num_threads(before)


def test_a_wrong_number_is_refused(threads: Any) -> None:
    for wrong in ((0,), (-2,), ()):
        with pytest.raises(ValueError, match="use_threads"):
            threads(*wrong)
    with pytest.raises(TypeError):
        threads("a")
    assert threads(1000) == 1 and threads(1) == 64
