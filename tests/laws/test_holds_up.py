"""It holds up: a million nodes, flat memory, eight threads, garbage arguments."""

from __future__ import annotations

import gc
import threading
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rushlight as torch


def test_a_chain_of_a_million_nodes() -> None:
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(1_000_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1
    del y


def test_a_long_chain_with_saved_values_and_second_order() -> None:
    x = torch.ones(1, requires_grad=True, dtype=torch.float64)
    y = x
    for _ in range(20_000):
        y = y * x
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.item() == 20_001
    g.backward()
    assert x.grad.item() == 20_001 * 20_000


def test_ten_thousand_steps_leave_memory_flat() -> None:
    w = torch.ones(4, 4, requires_grad=True)
    x = torch.ones(2, 4)

    def step() -> None:
        nonlocal w
        h = torch.tanh(x @ w)
        loss = ((h - 1) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.01 * w.grad
            w.grad = None

    gc.collect()
    gc.disable()
    try:
        for _ in range(200):
            step()
        before = len(gc.get_objects())
        for _ in range(10_000):
            step()
        after = len(gc.get_objects())
    finally:
        gc.enable()
    assert after - before < 50


def test_eight_threads_share_leaves() -> None:
    a = torch.ones(3, requires_grad=True)
    b = torch.full((3,), 2.0, requires_grad=True)
    shared = a * b
    trouble: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(200):
                (shared * a + b).sum().backward(retain_graph=True)
        except BaseException as error:  # the main thread reports it
            trouble.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert trouble == []
    # d/da (a b a + b) = 2 a b = 4, d/db = a a + 1 = 2; 1600 times
    assert a.grad.tolist() == [6400.0] * 3
    assert b.grad.tolist() == [3200.0] * 3


garbage = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.complex_numbers(),
    st.text(max_size=3), st.binary(max_size=3), st.just(object), st.just(len),
    st.lists(st.integers(-3, 3), max_size=3), st.tuples(st.integers(-2, 2)),
    st.dictionaries(st.text(max_size=1), st.integers(), max_size=1),
    st.sampled_from([torch.float32, torch.int64, torch.bool, torch.device("cpu"), slice(None)]),
    st.builds(lambda n: torch.ones(n), st.integers(0, 3)),
    st.builds(lambda: torch.ones(2, 2, requires_grad=True)),
    st.builds(lambda: torch.arange(4).reshape(2, 2)),
    st.builds(lambda: torch.tensor([True, False])),
)  # fmt: skip

# These wait for input, end the process or reserve what they are told to by design.
EXEMPT = {
    "save", "load", "set_printoptions", "set_default_dtype", "set_default_device", "manual_seed",
    "set_default_tensor_type", "set_num_threads", "seed", "set_rng_state",
    "set_autocast_enabled", "set_autocast_cpu_enabled",
}  # fmt: skip
HUGE = 10**6


def too_big(args: tuple[Any, ...]) -> bool:
    """Arguments that ask for more memory than a test may take."""
    return any(isinstance(a, int) and abs(a) > HUGE for a in args)


PUBLIC = {n: getattr(torch, n) for n in dir(torch) if not n.startswith("_") and n not in EXEMPT}
FUNCTIONS = sorted(n for n, f in PUBLIC.items() if callable(f) and not isinstance(f, type))
METHODS = sorted(
    n for n in dir(torch.Tensor) if not n.startswith("_") and callable(getattr(torch.Tensor, n))
)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(FUNCTIONS), st.lists(garbage, max_size=4).map(tuple))
def test_garbage_to_functions_raises_python_exceptions(name: str, args: tuple[Any, ...]) -> None:
    if too_big(args):
        return
    try:
        getattr(torch, name)(*args)
    except Exception as error:
        assert not isinstance(error, (SystemError, RecursionError, MemoryError)), (name, args)


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(METHODS), st.sampled_from([(), (0,), (3,), (2, 2)]), st.booleans(),
    st.lists(garbage, max_size=3).map(tuple),
)  # fmt: skip
def test_garbage_to_methods_leaves_the_tensor_whole(
    name: str, shape: tuple[int, ...], asks: bool, args: tuple[Any, ...]
) -> None:
    if too_big(args):
        return
    x = torch.ones(shape, requires_grad=asks)
    try:
        getattr(x, name)(*args)
    except Exception as error:
        assert not isinstance(error, (SystemError, RecursionError, MemoryError)), (name, args)
    repr(x)
    assert (x.detach() + 1).shape == x.shape


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(garbage, garbage)
def test_garbage_to_indexing_and_operators(a: Any, b: Any) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    for act in (
        lambda: x[a], lambda: x[a, b], lambda: x.__setitem__(a, b), lambda: x + a, lambda: a * x,
        lambda: x @ a, lambda: x.backward(a), lambda: torch.autograd.grad(x, a, b),
        lambda: x == a, lambda: x**a,
    ):  # fmt: skip
        if too_big((a, b)):
            return
        try:
            act()
        except Exception as error:
            assert not isinstance(error, (SystemError, RecursionError, MemoryError)), (a, b)
    assert x.shape == (2, 3)
