"""Random numbers: the same bits as PyTorch's for the same seed, and the same complaints.

Programs of random calls are compared step by step, result and generator state, with what PyTorch
gave when the reference was made, and with what it gives now where it is installed.
"""

from __future__ import annotations

import base64
import copy
import importlib.util
import math
import pickle
import platform
import random
import sys
import threading
import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rushlight import random as raw
from rushlight.random import choose, exact, generator, normals
from tests.harness import LIVE, stored
from tests.random import cases_random as written

STORED = stored("random/random")

# What goes through the C library's log, sin, ...: another library may differ in the last digit.
SAME_C_LIBRARY = platform.libc_ver()[0] == "glibc"
BY_C_LIBRARY = {"normal_", "exponential_", "cauchy_", "log_normal_"}


@pytest.fixture(autouse=True)
def bare() -> Iterator[None]:
    """States as arrays and devices as names, and the default generator left as it was."""
    outside = generator._outside
    before = outside.state, outside.array, outside.device
    plain = generator._Outside
    raw.present(plain.state, plain.array, plain.device)
    try:
        with raw.fork_rng():
            yield
    finally:
        raw.present(*before)


# -- PyTorch's numbers -------------------------------------------------------------------------


def perform(gen: raw.Generator, step: dict[str, Any]) -> Any:
    """One step of a program, by rushlight."""
    op, args = step["op"], step.get("args", [])
    if op == "manual_seed":
        return gen.manual_seed(*args).initial_seed()
    if op == "round trip":
        gen.set_state(gen.get_state())
        return None
    if op == "randperm":
        return raw.randperm(args[0], written.dtype(step["dtype"]), gen)
    if op == "multinomial":
        return raw.multinomial(written.probabilities(step["p"]), args[0], args[1], gen)
    array = written.blank(step)
    if op == "dropout_mask":
        return raw.dropout_mask(array, args[0], gen)
    if "p" in step:
        args = [written.probabilities(step["p"])]
    if op == "random_" and len(args) == 1:
        args = [None, *args]
    getattr(raw, op)(array, *args, gen=gen)
    return array


def agree(step: dict[str, Any], value: Any, wanted: Any) -> bool:
    if written.recorded(value) == wanted:
        return True
    if SAME_C_LIBRARY or step["op"] not in BY_C_LIBRARY or "bits" not in wanted:
        return False
    data = np.frombuffer(base64.b64decode(wanted["bits"]), value.dtype).reshape(value.shape)
    few = 8 * np.finfo(value.dtype).eps if value.dtype.kind in "fc" else 2.0**-7
    wide = np.complex128 if value.dtype.kind == "c" else np.float64
    return bool(np.allclose(value.astype(wide), data.astype(wide), rtol=few, atol=few))


def differences(steps: list[dict[str, Any]], results: list[Any]) -> list[str]:
    gen = raw.Generator().manual_seed(0)
    found = []
    for number, (step, result) in enumerate(zip(steps, results, strict=True)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                value = perform(gen, step)
            except (RuntimeError, TypeError, ValueError) as error:
                value = written.failure(error)
        said = [str(w.message) for w in caught]
        if not agree(step, value, result["value"]):
            found.append(f"step {number}: {step}\n  gave {value}\n  PyTorch {result['value']}")
        if said != result["warnings"]:
            found.append(f"step {number}: {step}\n  said {said}\n  PyTorch {result['warnings']}")
        if written.state_digest(gen) != result["state"]:
            found.append(f"step {number}: {step}\n  left another state than PyTorch")
            break
    return found


def test_programs_draw_pytorchs_numbers() -> None:
    for seed, results in STORED["programs"].items():
        assert not differences(written.program(int(seed)), results), f"program {seed}"
    if LIVE:
        for seed in range(10_000, 10_100):
            steps = written.program(seed)
            assert not differences(steps, written.torch_results(steps)), f"live program {seed}"


def test_faulty_calls_fail_as_in_pytorch() -> None:
    steps = written.faulty()
    found = differences(steps, STORED["faulty"])
    assert not found, "\n".join(found)
    if LIVE:
        found = differences(steps, written.torch_results(steps))
        assert not found, "\n".join(found)


def untempered(word: int) -> int:
    """The word of the twister's state that comes out as `word`."""
    word ^= word >> 18
    word ^= (word << 15) & 0xEFC60000
    whole = word
    for _ in range(4):
        word = whole ^ ((word << 7) & 0x9D2C5680)
    whole = word & 0xFFFFFFFF
    word = whole
    for _ in range(2):
        word = whole ^ (word >> 11)
    return word & 0xFFFFFFFF


def rigged(word: int) -> raw.Generator:
    """A generator about to give the same word many times."""
    state = raw.Generator().get_state()
    fields = state.view(generator.STATE)
    fields["left"], fields["next"], fields["words"] = 624, 1, untempered(word)
    return raw.Generator().set_state(state)


def drawn(word: int, op: str, dtype: str, *args: float, n: int = 1) -> list[float]:
    a = np.zeros(n, written.dtype(dtype))
    getattr(raw, op)(a, *args, gen=rigged(word))
    return [float(v) for v in a]


def test_the_least_and_the_largest_draw() -> None:
    least, most = 0, 0xFFFFFFFF
    assert rigged(0x12345678).take32(3).tolist() == [0x12345678] * 3
    assert drawn(least, "uniform_", "float32") == [0.0]
    assert drawn(most, "uniform_", "float32") == [1 - 2.0**-24]
    assert drawn(most, "uniform_", "float64") == [1 - 2.0**-53]
    # what rounds to the upper bound becomes the lower one
    assert drawn(most, "uniform_", "float16") == [0.0]
    assert drawn(most, "uniform_", "bfloat16", 0.0, 2.0) == [0.0]
    assert drawn(most, "uniform_", "float32", 0.6, 1.0) == [float(np.float32(0.6))]
    assert drawn(least, "exponential_", "float64") == [0.0]
    assert drawn(most, "exponential_", "float64") == [53 * math.log(2)]
    assert drawn(least, "geometric_", "float32", 0.5) == [math.inf]
    assert drawn(least, "geometric_", "int32", 0.5) == [-(2.0**31)]
    assert drawn(most, "bernoulli_", "float32", 1.0) == [1.0]
    assert drawn(least, "bernoulli_", "float32", 0.0) == [0.0]
    zeros = np.array(drawn(least, "normal_", "float32", n=16))
    assert not zeros.any() and not np.signbit(zeros).any()
    assert drawn(most, "random_", "int64") == [2.0**63]


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


# -- filling and making ------------------------------------------------------------------------


def test_elements_fill_in_rising_address() -> None:
    flat = np.empty(24, np.float32)
    raw.uniform_(flat, gen=raw.Generator().manual_seed(2))
    memory = np.zeros((4, 3, 2), np.float32)
    raw.uniform_(memory.transpose(2, 0, 1), gen=raw.Generator().manual_seed(2))
    assert (memory.reshape(-1) == flat).all()


def test_an_element_written_twice_is_refused() -> None:
    a = np.lib.stride_tricks.as_strided(np.zeros(3), (4, 3), (0, 8))
    for fill in (raw.uniform_, raw.normal_, raw.random_, raw.bernoulli_, raw.exponential_):
        with pytest.raises(RuntimeError, match="unsupported operation: more than one element"):
            fill(a)


def test_dropout_mask_keeps_dtype_and_layout() -> None:
    like = np.zeros((3, 4, 5), np.float32).transpose(2, 0, 1)
    mask = raw.dropout_mask(like, 0.25, raw.Generator())
    assert mask.strides == like.strides and mask.dtype == like.dtype
    assert set(np.unique(mask).tolist()) == {0.0, float(np.float32(1) / np.float32(0.75))}


def test_normal_takes_a_mean_and_a_deviation_for_each() -> None:
    mean, std = np.arange(40.0), np.linspace(0.0, 2.0, 40)
    unit = np.empty(40)
    raw.normal_(unit, gen=raw.Generator())
    assert (raw.normal(mean, std, raw.Generator()) == unit * std + mean).all()
    assert (raw.normal(0.5, std, raw.Generator()) == unit * std + 0.5).all()
    assert (raw.normal(mean, 2.0, raw.Generator()) == unit * 2.0 + mean).all()
    with pytest.raises(RuntimeError, match=r"normal expects all elements of std >= 0\.0"):
        raw.normal(mean, -std)


@pytest.mark.parametrize("n", [2, 3, 10, 200, 201, 1000, 8192, 8193, 30000])
def test_a_shuffle_without_a_loop_equals_the_loop(n: int) -> None:
    targets = choose._targets(n, raw.Generator().manual_seed(n))
    assert (choose._swap_all(targets) == choose._swap(targets.tolist())).all()


def test_a_long_permutation_is_made_from_the_inside_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "LONG", 100)
    words = raw.Generator().take64(150).tolist()
    order: list[int] = []
    for i, word in enumerate(words):
        place = word % (i + 1)
        order.append(i if place == i else order[place])
        order[place] = i
    assert raw.randperm(150, gen=raw.Generator()).tolist() == order


# -- arithmetic to the last bit ----------------------------------------------------------------


def rounded32(value: Fraction) -> np.float32:
    """The float32 nearest to a fraction, ties to even."""
    near = np.float32(float(value))
    around = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    finite = [x for x in around if np.isfinite(x)]
    return min(finite, key=lambda x: (abs(Fraction(float(x)) - value), int(x.view(np.int32)) & 1))


def test_fma32_rounds_once() -> None:
    r = random.Random(0)
    for _ in range(60):
        scale = 2.0 ** r.choice([-149, -140, -126, -60, 0, 3])
        x = np.array([r.gauss(0, 1) for _ in range(8)] + [1 + 2**-12, 1.5], np.float32)
        y = float(np.float32(r.choice([r.gauss(0, 1), 1 + 2.0**-12, 3.0]) * scale))
        z = float(np.float32(r.choice([r.gauss(0, 1), 2.0**-30, 1.0, 2.0**24]) * scale))
        wanted = [rounded32(Fraction(float(v)) * Fraction(y) + Fraction(z)) for v in x]
        assert exact.fma32(x, y, z).tolist() == [float(v) for v in wanted]


def test_fma32_sees_a_tie_made_by_the_first_rounding() -> None:
    # 1 + 2^-23 + 2^-24 - 2^-60: float64 drops the last term, and the tie would then go up
    x = np.array([1 + 2.0**-18], np.float32)
    y, z = 2.0**-24 * (1 - 2.0**-18), 1 + 2.0**-23
    assert (x.astype(np.float64) * y + z).astype(np.float32)[0] == 1 + 2.0**-22
    assert exact.fma32(x, y, z)[0] == rounded32(Fraction(float(x[0])) * Fraction(y) + Fraction(z))
    assert exact.fma32(x, y, z)[0] == 1 + 2.0**-23


def test_fma64_rounds_once() -> None:
    r = random.Random(1)
    for _ in range(100):
        x = np.array([r.random() for _ in range(20)])
        y, z = r.gauss(0, 3), r.choice([r.gauss(0, 1), 1e-17, -0.5, 1e10])
        wanted = [float(Fraction(v) * Fraction(y) + Fraction(z)) for v in x.tolist()]
        assert exact.fma64(x, y, z).tolist() == wanted
    with np.errstate(over="ignore"):
        assert exact.fma64(np.array([2.0]), 1e308, 1.0).tolist() == [math.inf]
    assert exact.fma64(np.array([2.0]), 1.0, math.inf).tolist() == [math.inf]


@pytest.mark.parametrize(
    ("vector", "scalar", "low", "high"),
    [
        (exact.c_log, math.log, 1e-300, 1.0),
        (exact.c_log1p, math.log1p, -1 + 2.0**-53, 0.0),
        (exact.c_cos, math.cos, 0.0, 7.0),
        (exact.c_sin, math.sin, 0.0, 7.0),
        (exact.c_tan, math.tan, -1.57, 1.57),
        (exact.c_exp, math.exp, -700.0, 700.0),
    ],
)
def test_functions_are_the_c_librarys(vector: Any, scalar: Any, low: float, high: float) -> None:
    for n in (0, 1, 2, 3, 4, 5, 8, 9, 1000):
        x = np.random.default_rng(n).uniform(low, high, n)
        assert vector()(x).tolist() == [scalar(v) for v in x.tolist()]


def test_functions_fall_back_to_mapping_math() -> None:
    class Wrong:
        def __call__(self, x: Any, out: Any = None) -> Any:
            return np.log(x) * 1.5 if out is None else np.multiply(np.log(x), 1.5, out)

    log = exact._c_library(Wrong(), math.log, 0.1, 1.0)  # type: ignore[arg-type]
    assert log(np.array([0.25, 0.5])).tolist() == [math.log(0.25), math.log(0.5)]
    assert exact._exp(800.0) == math.inf


def fused(a: Any, b: Any, c: Any) -> Any:
    """a*b + c of float32 arrays, rounded once: in float64 to odd, then to float32."""
    a, b, c = (np.asarray(v, np.float32).astype(np.float64) for v in (a, b, c))
    product, c = np.broadcast_arrays(a * b, c)
    return exact._to_odd(product, c).astype(np.float32)


def horner(x: Any, *coefficients: float) -> Any:
    y = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        y = fused(y, x, c)
    return y


def test_float32_normals_use_fused_arithmetic_throughout() -> None:
    """A sample of the 2^24 inputs, by the fused steps that `normals` replaces."""
    f = np.float32
    k = np.concatenate([np.arange(0, 1 << 24, 97), np.arange((1 << 24) - 300, 1 << 24)])
    k = np.concatenate(
        [k, *(np.arange(-50, 50) + quarter for quarter in range(1 << 21, 1 << 24, 1 << 21))]
    )
    u = f(1) - k.astype(f) * f(2.0**-24)
    bits = u.view(np.int32)
    e = (bits - 0x3F3504F3) >> 23
    x = (bits - (e << 23)).view(f) - f(1)
    y = horner(x, *(float(c) for c in (normals.LOG_FIRST, *normals.LOG_REST)))
    z, ef = x * x, e.astype(f)
    y = fused(y * x, z, ef * normals.LN2_LOW) - z * f(0.5)
    radius = np.sqrt(f(-2) * ((x + y) + ef * normals.LN2_HIGH))
    assert (normals._radius(k.astype(np.int32)) == radius).all()

    angle = (k.astype(f) * f(2.0**-24)) * f(2 * np.pi)
    j = ((angle * f(1.27323954473516)).astype(np.int32) + 1) & ~1
    x = angle
    for d in (-0.78515625, -2.4187564849853515625e-4, -3.77489497744594108e-8):
        x = fused(j, f(d), x)
    z = x * x
    c = fused(horner(z, *(float(v) for v in normals.COS_POLY)) * z, z, -z * f(0.5)) + f(1)
    s = fused(horner(z, *(float(v) for v in normals.SIN_POLY)) * z, x, x)
    c, s = np.where(j & 2, s, c), np.where(j & 2, c, s)
    c, s = np.where((j + 2) & 4, -c, c), np.where(j & 4, -s, s)
    assert (normals._cos_sin(k.astype(np.int32)) == np.stack((c, s))).all()
