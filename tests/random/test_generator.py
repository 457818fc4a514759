"""Generators: seeds, states, devices, threads."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import sys
import threading
from typing import Any

import numpy as np
import pytest

from rushlight import random as raw
from rushlight.random import generator


# -- generators --------------------------------------------------------------------------------
def numbers(gen: raw.Generator, n: int = 5) -> list[float]:
    a = np.empty(n)
    raw.uniform_(a, gen=gen)
    return [float(v) for v in a]


def test_a_seed_is_kept_modulo_two_to_the_64() -> None:
    gen = raw.Generator()
    assert gen.initial_seed() == 67280421310721
    assert gen.manual_seed(-1) is gen
    assert gen.initial_seed() == 2**64 - 1
    first = numbers(gen)
    assert numbers(gen.manual_seed(2**32 - 1)) == first  # only 32 bits reach the twister
    assert numbers(gen.manual_seed(5)) != first


def test_seed_takes_a_new_seed_each_time() -> None:
    gen = raw.Generator()
    seeds = {gen.seed() for _ in range(5)}
    assert len(seeds) == 5 and gen.initial_seed() in seeds


def test_a_state_resumes_the_stream_with_its_odd_normal() -> None:
    gen = raw.Generator().manual_seed(3)
    raw.normal_(np.empty(3), gen=gen)  # leaves the fourth behind
    state = gen.get_state()
    assert state.shape == (5056,) and state.dtype == np.uint8
    copies = [raw.Generator().set_state(state), gen.clone_state(), copy.deepcopy(gen)]
    copies.append(pickle.loads(pickle.dumps(gen)))
    after = np.empty(3)
    raw.normal_(after, gen=gen)
    for twin in copies:
        assert twin.initial_seed() == 3
        again = np.empty(3)
        raw.normal_(again, gen=twin)
        assert again.tolist() == after.tolist()
        assert (twin.get_state() == gen.get_state()).all()
    assert numbers(gen) == numbers(copies[0])


@pytest.mark.parametrize(
    ("state", "kind", "text"),
    [
        (np.zeros(100, np.uint8), RuntimeError, "Expected a CPUGeneratorImplState of size 5056 "),
        (np.zeros(5056, np.uint8), RuntimeError, "Invalid mt19937 state"),
        (np.zeros(10112, np.uint8)[::2], RuntimeError, "RNG state must be contiguous"),
        (np.zeros(5056, np.int64), TypeError, "RNG state must be a torch.ByteTensor"),
        (5, TypeError, "expected a torch.ByteTensor, but got int"),
    ],
)
def test_a_bad_state_is_refused(state: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        raw.Generator().set_state(state)
    with pytest.raises(kind, match=text):
        raw.set_rng_state(state)


@pytest.mark.parametrize(("field", "value"), [("left", 0), ("left", 625), ("next", 625)])
def test_an_impossible_position_is_refused(field: str, value: int) -> None:
    state = raw.Generator().get_state()
    state.view(generator.STATE)[field] = value
    with pytest.raises(RuntimeError, match="Invalid mt19937 state"):
        raw.Generator().set_state(state)


def test_bad_seeds_are_refused() -> None:
    for seed, name in [(1.5, "float"), (True, "bool"), (np.float64(3), "numpy.float64")]:
        with pytest.raises(RuntimeError, match=f"manual_seed expected a long, but got {name}$"):
            raw.Generator().manual_seed(seed)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an integer is required"):
        raw.Generator().manual_seed(np.int64(5))  # type: ignore[arg-type]
    assert raw.manual_seed(2.0).initial_seed() == 2  # type: ignore[arg-type]


def test_devices() -> None:
    assert raw.Generator().device == raw.Generator("cpu:0").device == "cpu"
    with pytest.raises(RuntimeError, match=r"Expected one of cpu, cuda, .*: toaster$"):
        raw.Generator("toaster")
    with pytest.raises(RuntimeError, match="META device type not an accelerator"):
        raw.Generator("meta")


def test_a_cuda_generator_draws_the_cpus_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RuntimeError, match=r"Cannot get CUDA generator .*pip install cupy"):
        raw.Generator("cuda")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    gen = raw.Generator("cuda")
    assert gen.device == "cuda:0" and raw.Generator("cuda:1").device == "cuda:1"
    assert numbers(gen.manual_seed(7)) == numbers(raw.Generator().manual_seed(7))


def test_the_tensor_layer_can_wrap_states_and_devices() -> None:
    raw.present(lambda a: ("state", a), lambda s: s[1], lambda name: ("device", name))
    gen = raw.Generator().manual_seed(1)
    assert gen.device == ("device", "cpu")
    assert raw.Generator().set_state(gen.get_state()).initial_seed() == 1
    assert gen.clone_state().initial_seed() == 1
    assert raw.get_rng_state()[0] == "state"


def test_the_default_generator() -> None:
    assert raw.manual_seed(11) is raw.default_generator
    assert raw.initial_seed() == 11
    state = raw.get_rng_state()
    a, b = np.empty((2, 20))
    raw.normal_(a)
    raw.set_rng_state(state)
    raw.normal_(b)
    assert a.tolist() == b.tolist()
    assert raw.seed() == raw.initial_seed()


def test_fork_rng_puts_the_state_back() -> None:
    state = raw.get_rng_state()
    with pytest.raises(KeyError), raw.fork_rng():
        raw.uniform_(np.empty(3))
        raise KeyError
    assert (raw.get_rng_state() == state).all()
    with raw.fork_rng(enabled=False):
        raw.uniform_(np.empty(3))
    assert (raw.get_rng_state() != state).any()


def test_threads_take_turns() -> None:
    gen, other = raw.Generator().manual_seed(1), raw.Generator().manual_seed(1)
    found: list[tuple[float, ...]] = []

    def work() -> None:
        for _ in range(50):
            a = np.empty(21)
            raw.normal_(a, gen=gen)
            found.append(tuple(a.tolist()))

    pace = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(pace)
    expected = set()
    for _ in range(400):
        a = np.empty(21)
        raw.normal_(a, gen=other)
        expected.add(tuple(a.tolist()))
    assert set(found) == expected
