"""Programs of random calls, and what PyTorch's CPU generator draws, call by call.

Everything up to `torch_results` needs NumPy alone, and the tests use it too: a program is a list of
steps (plain dictionaries), made from a seed by `program`; `blank` and `probabilities` make the
arrays of a step, so that PyTorch and rushlight start from the same memory.
"""

from __future__ import annotations

import base64
import hashlib
import math
import random
import warnings
from typing import Any

import ml_dtypes
import numpy as np

PROGRAMS = 160

Step = dict[str, Any]
Array = np.ndarray[Any, np.dtype[Any]]

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint8"]
ALL = [*FLOATS, *INTEGERS, "bool", "uint16", "uint32", "uint64", "complex64", "complex128"]


def dtype(name: str) -> np.dtype[Any]:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


# -- arrays of a step --------------------------------------------------------------------------


def blank(step: Step) -> Array:
    """Zeros of the step's dtype, shape and layout."""
    kind, shape, layout = dtype(step["dtype"]), step["shape"], step["layout"]
    if layout == "every second":
        return np.zeros([2 * n for n in shape], kind)[tuple(slice(0, None, 2) for _ in shape)]
    if layout == "inside":
        return np.zeros([n + 2 for n in shape], kind)[tuple(slice(1, n + 1) for n in shape)]
    if layout == "transposed":
        return np.zeros(shape[::-1], kind).T
    if layout == "rolled":  # the last dimension outermost
        return np.moveaxis(np.zeros(shape[-1:] + shape[:-1], kind), 0, -1)
    return np.zeros(shape, kind)


def probabilities(recipe: Step) -> Array:
    """Numbers in [0, 1): NumPy's PCG64 gives the same ones everywhere."""
    p: Array = np.asarray(np.random.default_rng(recipe["seed"]).random(recipe["shape"]))
    if recipe.get("zeros"):
        p *= np.random.default_rng(recipe["seed"] + 1).random(recipe["shape"]) < 0.7
    if "first" in recipe:
        p.flat[0] = float(recipe["first"])
    return np.asarray(p, order=recipe.get("order", "C")).astype(dtype(recipe["dtype"]))


# -- programs ----------------------------------------------------------------------------------


def program(seed: int, length: int = 8) -> list[Step]:
    """A random program: a seeding, then draws of every kind."""
    r = random.Random(seed)
    steps: list[Step] = [{"op": "manual_seed", "args": [r.getrandbits(64)]}]
    while len(steps) < length:
        make = r.choice([filler, filler, filler, integers, bernoulli, chosen, reseeding])
        steps.append(make(r))
    return steps


def where(r: random.Random, kinds: list[str]) -> Step:
    dims = r.choice([0, 1, 1, 1, 2, 2, 3])
    longest = r.choice([3, 6, 20]) if dims > 1 else r.choice([3, 17, 40, 200, 1100, 6000, 20000])
    shape = [r.randint(0 if r.random() < 0.05 else 1, longest) for _ in range(dims)]
    layouts = ["contiguous"] * 4 + ["every second", "inside", "transposed", "rolled"] * (dims > 0)
    return {"dtype": r.choice(kinds), "shape": shape, "layout": r.choice(layouts)}


def number(r: random.Random) -> float:
    size = float(10 ** r.randint(-3, 3))
    return r.choice([0.0, 1.0, -1.0, 2.0, 0.5, r.gauss(0, 1), r.gauss(0, 1) * size, r.random()])


def filler(r: random.Random) -> Step:
    others = ["exponential_", "cauchy_", "log_normal_", "geometric_"]
    op = r.choice(["uniform_", "uniform_", "normal_", "normal_", *others])
    kinds = [*FLOATS, *FLOATS]
    a, b = number(r), abs(number(r)) or 1.0
    if op in ("uniform_", "normal_"):
        kinds += ["complex64", "complex128"]
        args = r.choice([[], [], [a, a + b] if op == "uniform_" else [a, b]])
    elif op == "exponential_":
        args = [b]
    elif op == "geometric_":
        kinds += INTEGERS
        args = [r.choice([0.5, r.random() ** 6 + 1e-9, r.random()])]
    else:
        args = [a, b]
    return {"op": op, **where(r, kinds), "args": args}


def bound(r: random.Random) -> int:
    return r.choice(
        [
            r.randint(0, 10),
            r.randint(-300, 300),
            r.randint(-70000, 70000),
            r.randint(-(2**31), 2**33),
            r.randint(-(2**63), 2**63 - 1),
            (1 << r.randint(0, 62)) + r.randint(-3, 3),
        ]
    )


def integers(r: random.Random) -> Step:
    low = bound(r)
    high = min(r.choice([low + r.randint(1, 300), bound(r)]), 2**63 - 1)
    args = r.choice([[], [high], [low, high], [low, high], [low, None]])
    return {"op": "random_", **where(r, ALL), "args": args}


def bernoulli(r: random.Random) -> Step:
    place = where(r, [*FLOATS, *INTEGERS, "bool"])
    if r.random() < 0.5:
        return {"op": "bernoulli_", **place, "args": [r.choice([0.0, 0.5, 1.0, r.random()])]}
    shape = [1 if r.random() < 0.2 else n for n in place["shape"]]
    recipe = {
        "seed": r.getrandbits(30),
        "shape": shape[1:] if r.random() < 0.2 else shape,
        "dtype": r.choice(FLOATS),
        "order": r.choice("CF"),
    }
    return {"op": "bernoulli_", **place, "p": recipe}


def chosen(r: random.Random) -> Step:
    if r.random() < 0.4:
        n = r.choice([r.randint(0, 12), r.randint(0, 300), r.randint(0, 3000), r.randint(0, 20000)])
        return {"op": "randperm", "args": [n], "dtype": r.choice(["int64", "int64", *ALL])}
    if r.random() < 0.3:
        return {"op": "dropout_mask", **where(r, FLOATS), "args": [r.choice([0.5, r.random()])]}
    n = r.randint(1, r.choice([4, 30, 300]))
    replacement = r.random() < 0.5
    recipe = {
        "seed": r.getrandbits(30),
        "shape": r.choice([[n], [1, n], [7, n]]),
        # ties, frequent in 16 bits, may fall either way without replacement
        "dtype": r.choice(FLOATS if replacement else FLOATS[:2]),
        "order": r.choice("CF"),
        "zeros": replacement and r.random() < 0.3,
    }
    count = r.choice([1, 2, r.randint(1, n), r.randint(1, 40)])
    if not replacement:
        count = min(count, n)
    return {"op": "multinomial", "p": recipe, "args": [count, replacement]}


def reseeding(r: random.Random) -> Step:
    if r.random() < 0.5:
        return {"op": "round trip"}  # the state, out and in again
    return {"op": "manual_seed", "args": [r.choice([0, -1, r.getrandbits(64), 1 - 2**63])]}


# -- errors ------------------------------------------------------------------------------------


def faulty() -> list[Step]:
    """Calls with something wrong, or just right."""

    def fill(op: str, *args: Any, kind: str = "float32", n: int = 4) -> Step:
        place = {"dtype": kind, "shape": [n], "layout": "contiguous"}
        return {"op": op, **place, "args": list(args)}

    inf, nan = math.inf, math.nan
    steps = []
    for kind in ALL:
        steps += [fill("uniform_", kind=kind), fill("normal_", kind=kind)]
        steps += [fill("exponential_", 1.0, kind=kind), fill("cauchy_", 0.0, 1.0, kind=kind)]
        steps += [fill("log_normal_", 0.0, 1.0, kind=kind), fill("geometric_", 0.3, kind=kind)]
        steps += [fill("bernoulli_", 0.5, kind=kind), fill("random_", kind=kind)]
        for args in [(10,), (5, 5), (-5, 9), (0, 300), (0, 70000), (-(2**40), 2**40), (2, None)]:
            steps.append(fill("random_", *args, kind=kind))
        steps += [fill("random_", -(2**63), None, kind=kind), fill("random_", 300, None, kind=kind)]
        steps += [fill("random_", 0, kind=kind), fill("random_", 0, 2**63, kind=kind)]
        steps.append(fill("random_", kind=kind, n=0))
        for n in (5, 300, 3000, 70000):
            steps.append({"op": "randperm", "args": [n], "dtype": kind})
        p = {"seed": 1, "shape": [4], "dtype": kind}
        steps.append({**fill("bernoulli_", kind=kind), "p": {**p, "dtype": "float32"}})
        steps.append({**fill("bernoulli_"), "p": p})
        steps.append({"op": "multinomial", "args": [2, True], "p": p})
        steps.append({"op": "multinomial", "args": [1, False], "p": p})
    for kind in FLOATS:
        for lo, hi in [(3, 1), (nan, 1), (0, nan), (0, inf), (-inf, 0), (1e39, 2e39), (1, 1)]:
            steps.append(fill("uniform_", lo, hi, kind=kind))
        steps += [fill("uniform_", -3e38, 3e38, kind=kind), fill("uniform_", -6e4, 6e4, kind=kind)]
    for bad in (-0.1, 1.1, nan, inf, 0, 1, -1, -0.0):
        steps += [fill("bernoulli_", bad), fill("geometric_", bad), fill("exponential_", bad)]
        steps += [fill("cauchy_", 0.0, bad), fill("log_normal_", 0.0, bad), fill("normal_", 0, bad)]
        if bad not in (0, 1):
            steps.append(fill("dropout_mask", bad))
        p = {"seed": 2, "shape": [4], "dtype": "float32", "first": str(bad)}
        if bad != 1:
            steps.append({**fill("bernoulli_"), "p": p})
        for count, replacement in [(1, False), (1, True), (2, True), (2, False)]:
            steps.append({"op": "multinomial", "args": [count, replacement], "p": p})
    for shape in ([3], [3, 4], [2, 4]):
        p = {"seed": 3, "shape": shape, "dtype": "float32"}
        steps.append({**fill("bernoulli_"), "p": p})
    for shape, count, replacement in [
        ([2], 3, False),
        ([2], 0, True),
        ([2], -1, True),
        ([], 1, True),
        ([2, 2, 2], 1, True),
        ([0], 1, True),
        ([0, 3], 2, True),
        ([3, 0], 2, True),
        ([2], 3, True),
    ]:
        p = {"seed": 4, "shape": shape, "dtype": "float32"}
        steps.append({"op": "multinomial", "args": [count, replacement], "p": p})
    for ends in [(257, 258), (513, 514), (300, None), (256, None), (255, None)]:
        steps.append(fill("random_", *ends, kind="bfloat16"))
    for ends in [(2**24 + 1, 2**24 + 2), (0, 2**25), (0, 2**63 - 1), (2**25, None)]:
        steps.append(fill("random_", *ends, kind="float32"))
    steps += [{"op": "randperm", "args": [n], "dtype": "float16"} for n in (2049, 2050)]
    steps += [{"op": "randperm", "args": [n], "dtype": "int64"} for n in (-1, 2**63)]
    seeds = [2**64, 2**64 - 1, -(2**63), -(2**63) - 1, 1.5, "a", None]
    return steps + [{"op": "manual_seed", "args": [seed]} for seed in seeds]


# -- results -----------------------------------------------------------------------------------


def recorded(value: Any) -> Any:
    """A result as stored: small arrays whole, large ones by their digest."""
    if not isinstance(value, np.ndarray):
        return value
    data = np.ascontiguousarray(value).tobytes()
    record = {"dtype": value.dtype.name, "shape": list(value.shape)}
    if len(data) <= 2048:
        record["bits"] = base64.b64encode(data).decode()
    else:
        record["sha256"] = hashlib.sha256(data).hexdigest()[:16]
    return record


def failure(error: Exception) -> list[str]:
    return [type(error).__name__, str(error).partition("\nException raised from")[0]]


def torch_results(steps: list[Step]) -> list[Any]:
    """What each step gives in PyTorch, the generator's state after it among it."""
    import torch

    generator = torch.default_generator.manual_seed(0)
    results = []
    for step in steps:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                value = recorded(_torch_step(torch, generator, step))
            except (RuntimeError, TypeError, ValueError) as error:
                value = failure(error)
        said = [str(w.message).partition(" (Triggered")[0] for w in caught]
        results.append({"value": value, "warnings": said, "state": state_digest(generator)})
    return results


def state_digest(generator: Any) -> str:
    return hashlib.sha256(np.asarray(generator.get_state()).tobytes()).hexdigest()[:16]


def _torch_step(torch: Any, generator: Any, step: Step) -> Any:
    op, args = step["op"], step.get("args", [])
    if op == "manual_seed":
        return generator.manual_seed(*args).initial_seed()
    if op == "round trip":
        generator.set_state(generator.get_state())
        return None
    if op == "randperm":
        return _array(torch, torch.randperm(*args, dtype=getattr(torch, step["dtype"])))
    if op == "multinomial":
        p = _tensor(torch, probabilities(step["p"]))
        return _array(torch, torch.multinomial(p, *args))
    array = blank(step)
    tensor = _tensor(torch, array)
    if op == "dropout_mask":
        return _array(torch, torch.dropout(tensor.fill_(1), args[0], True))
    if "p" in step:
        args = [_tensor(torch, probabilities(step["p"]))]
    getattr(tensor, op)(*args)
    return array


def _tensor(torch: Any, array: Array) -> Any:
    """A tensor on the array's own memory."""
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _array(torch: Any, tensor: Any) -> Array:
    if tensor.dtype == torch.bfloat16:
        bits: Array = tensor.contiguous().view(torch.int16).numpy()
        return bits.view(ml_dtypes.bfloat16)
    result: Array = tensor.numpy()
    return result


def results(torch: Any) -> Any:
    return {
        "torch": torch.__version__,
        "programs": {seed: torch_results(program(seed)) for seed in range(PROGRAMS)},
        "faulty": torch_results(faulty()),
    }
