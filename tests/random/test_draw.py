"""Random numbers: the same bits as PyTorch's for the same seed, and the same complaints.

Programs of random calls are compared step by step, result and generator state, with what PyTorch
gave when the reference was made, and with what it gives now where it is installed.
"""

from __future__ import annotations

import base64
import math
import platform
import warnings
from typing import Any

import numpy as np
import pytest

from rushlight import random as raw
from rushlight.random import generator
from tests.harness import LIVE, stored
from tests.random import cases_random as written

STORED = stored("random/random")


# What goes through the C library's log, sin, ...: another library may differ in the last digit.
SAME_C_LIBRARY = platform.libc_ver()[0] == "glibc"
BY_C_LIBRARY = {"normal_", "exponential_", "cauchy_", "log_normal_"}


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
