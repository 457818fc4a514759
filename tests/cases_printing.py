"""Tensors and options to print them with.

The cases are drawn with NumPy, so that `test_printing.py` can draw new
ones where PyTorch is installed. A case holds the bytes of a short array that is repeated to fill
the shape: no file of numbers, and no random generator, stands between the reference and the test.
"""

import base64
import warnings
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

Case = dict[str, Any]

FLOATS = ("float64", "float32", "float16", "bfloat16")
FLOAT8 = (
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
)
COMPLEX = ("complex32", "complex64", "complex128")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = (*FLOATS, *FLOATS, *COMPLEX, *FLOAT8, *INTEGERS, "bool")

SMALL = [
    (), (1,), (2,), (3,), (9,), (10,), (23,), (2, 2), (1, 5), (5, 1), (3, 4), (2, 19), (2, 3, 2),
    (1, 1, 4), (3, 2, 8), (2, 1, 2, 3), (1, 2, 1, 2, 3), (2, 2, 2, 2, 2),
]  # fmt: skip
EMPTY = [(0,), (0, 3), (3, 0), (2, 0, 3), (0, 0), (1, 2, 0, 1, 1)]
LARGE = [(1001,), (7, 200), (6, 200), (334, 3), (32, 33), (7, 8, 20), (11, 10, 10), (7, 7, 7, 7)]
ROUNDED = (99999.5, 0.99995, 9.9995, 9.99995e-3)  # one digit more, once rounded
NODES = (None, None, "leaf", "leaf", "CloneBackward0", "ScaledDotProductOfLongNameBackward")


def numpy_type(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)


def _borderline(rng: np.random.Generator, count: int, eps: float) -> np.ndarray:
    """Floats at the limits of plain notation or a bit beyond: max / min > 1000, max > 1e8,
    min < 1e-4."""
    low = float(rng.choice((1.0, 1.0, 2.0, 7.0, 0.5, 0.001, 0.3)))
    pairs = [(low, low * 1000), (low, low * 1000), (2e6, 1e8), (1e-3, 1e-4), ROUNDED]
    chosen = pairs[rng.integers(len(pairs))]
    values = rng.choice(chosen, count)
    limit = values == chosen[-1]
    values[limit] *= 1 + eps * rng.integers(-1, 2)
    return values * rng.choice((1, 1, 1, -1))


def _reals(rng: np.random.Generator, count: int, raw: np.dtype[Any]) -> np.ndarray:
    """Floats of every temper, so that every branch of the choice of form is met."""
    normal = rng.standard_normal(count)
    kind = rng.integers(9)
    if kind == 0:
        values = normal
    elif kind == 1:
        values = normal * 10.0 ** rng.integers(-12, 12)
    elif kind == 2:
        values = normal * 10.0 ** rng.uniform(-4, 4, count)
    elif kind == 3:
        values = np.round(normal * 10.0 ** rng.integers(0, 5))
    elif kind == 4:
        values = np.round(normal * 10.0 ** rng.integers(5, 11))
    elif kind == 5:
        values = _borderline(rng, count, float(ml_dtypes.finfo(raw).eps))
    elif kind == 6:
        values = np.abs(normal) * rng.choice((1e-40, 1e-310, 1e-7, 1e-4, 1.0)) + rng.choice((0, 1))
    elif kind == 7:
        values = np.full(count, rng.choice((0.0, -0.0, 1.0, np.nan, np.inf, 0.1, -5.0, 123.0)))
    else:
        size = count * raw.itemsize
        return rng.integers(0, 256, size, dtype=np.uint8).view(raw)
    with np.errstate(all="ignore"):
        values = values.astype(raw)
    if rng.random() < 0.3:
        specials = np.array([0.0, -0.0, np.nan, np.inf, -np.inf]).astype(raw)
        chosen = rng.random(count) < rng.choice((0.1, 0.5))
        values = np.where(chosen, specials[rng.integers(5, size=count)], values)
    return values


def _numbers(rng: np.random.Generator, count: int, name: str) -> np.ndarray:
    raw = numpy_type(name)
    if name in COMPLEX:
        part = np.dtype(f"float{raw.itemsize * 4}")
        pair = np.stack((_reals(rng, count, part), _reals(rng, count, part)), axis=-1)
        return pair.view(raw)[:, 0]
    if name == "bool":
        return rng.random(count) < rng.choice((0.0, 0.5, 1.0))
    if name in INTEGERS:
        if rng.random() < 0.3:
            return rng.integers(0, 256, count * raw.itemsize, dtype=np.uint8).view(raw)
        low = -100 if raw.kind == "i" else 0
        return rng.integers(low, int(rng.choice((2, 11, 100, 120))), count).astype(raw)
    return _reals(rng, count, raw)


def _options(rng: np.random.Generator) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if rng.random() < 0.5:
        return options
    if rng.random() < 0.1:
        options["profile"] = str(rng.choice(("short", "full", "default")))
    if rng.random() < 0.3:
        options["precision"] = int(rng.choice((0, 1, 2, 6, 10, 20)))
    if rng.random() < 0.5:
        options["threshold"] = int(rng.choice((0, 1, 5, 10, 40)))
    if rng.random() < 0.4:
        options["edgeitems"] = int(rng.choice((0, 1, 2, 4)))
    if rng.random() < 0.3:
        options["linewidth"] = int(rng.choice((1, 10, 20, 40, 79, 81, 100, 120, 200)))
    if rng.random() < 0.3:
        options["sci_mode"] = bool(rng.random() < 0.5)
    return options


def draw(seed: int, count: int, large: bool = True) -> Iterator[Case]:
    """Random cases, without the text that is expected of them."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        name = str(rng.choice(DTYPES))
        luck = rng.random()
        shapes = EMPTY if luck < 0.07 else LARGE if luck < 0.17 and large else SMALL
        shape = shapes[rng.integers(len(shapes))]
        node = str(rng.choice([str(n) for n in NODES]))
        if node == "None" or name in FLOAT8 or name in INTEGERS or name == "bool":
            node = ""
        pattern = _numbers(rng, min(max(int(np.prod(shape)), 1), 97), name)
        yield {
            "dtype": name,
            "shape": list(shape),
            "data": base64.b64encode(pattern.tobytes()).decode(),
            "options": _options(rng),
            "default": str(rng.choice(("float32",) * 8 + ("float64", "bfloat16"))),
            "node": node,
        }


def array(case: Case) -> np.ndarray:
    """The elements of a case."""
    pattern = np.frombuffer(base64.b64decode(case["data"]), numpy_type(case["dtype"]))
    index = np.arange(int(np.prod(case["shape"]))) % len(pattern)
    return pattern[index].reshape(case["shape"])


def build(torch: Any, case: Case) -> Any:
    """The tensor of a case, made with PyTorch or with a library that has its names."""

    class ScaledDotProductOfLongName(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    values = array(case)
    t = torch.tensor(values.ravel().tolist(), dtype=getattr(torch, case["dtype"]))
    t = t.reshape(values.shape)
    if case["node"]:
        t.requires_grad_()
    if case["node"] == "CloneBackward0":
        t = t.clone()
    elif case["node"] == "ScaledDotProductOfLongNameBackward":
        t = ScaledDotProductOfLongName.apply(t)
    return t


def printed(torch: Any, case: Case) -> str:
    """What PyTorch, or a library that has its names, prints for a case."""
    t = build(torch, case)
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, case["default"]))
    torch.set_printoptions(**case["options"])
    try:
        return repr(t)
    finally:
        torch.set_printoptions(profile="default")
        torch.set_default_dtype(before)


def expected(torch: Any, case: Case) -> str:
    """What PyTorch prints for a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # complex32 is called experimental
        return printed(torch, case)


def results(torch: Any) -> list[Case]:
    """The stored cases, each with the text that PyTorch prints for it."""
    return [{**case, "text": expected(torch, case)} for case in draw(seed=0, count=1000)]
