"""Calls of public functions, written down so that PyTorch and rushlight can both make them.

A case is plain data: which function, on which tensors (their bytes, shapes and strides), with which
other arguments. `observe` makes the call in either library and says all that the two must agree on:
values, dtypes, gradients, second gradients, the names of nodes, the method, `out=`, the in-place
form, or the error. `differences` compares two such answers. The cases are
drawn by ops_samples.py.
"""

from __future__ import annotations

import gzip
import math
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from tests import harness

ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, OverflowError)

# Differences that stand, each with its reason. A key is the name of an entry (the function's name,
# and the variant after a dot) or of a function, alone or with what is meant: `name:dtype`,
# `name:aspect`. A number instead of the whole: values still agree to that relative precision.
_POLYGAMMA = "PyTorch's series for polygamma(1, x) has an error of 5e-10"
_BESSEL = "PyTorch's rational functions have errors of 1e-8"
KNOWN: dict[str, tuple[str, float]] = {
    "polygamma": (_POLYGAMMA, 1e-8),
    "special.polygamma": (_POLYGAMMA, 1e-8),
    "mvlgamma:second": (_POLYGAMMA, 1e-8),
    "digamma:first": (_POLYGAMMA, 1e-8),
    "digamma:inplace": (_POLYGAMMA, 1e-8),
    "lgamma:second": (_POLYGAMMA, 1e-8),
    "fft.ihfftn:out": ("PyTorch writes nothing into it along one dimension", 0),
    "special.airy_ai": (_BESSEL, 1e-6),
    "special.bessel_j0": (_BESSEL, 1e-6),
    "special.bessel_j1": (_BESSEL, 1e-6),
    "special.bessel_y0": (_BESSEL, 1e-6),
    "special.bessel_y1": (_BESSEL, 1e-6),
    "nn.functional.hardsigmoid:first": ("PyTorch's 1/6 is a float32 there, in float64 too", 1e-7),
    "nn.functional.binary_cross_entropy:second": ("PyTorch adds 1e-12 to denominators", 1e-6),
    **{
        f"kthvalue:{d}": ("which of equal elements is the k-th is left open", 0)
        for d in "uint8 int8 int16 int32 int64 bool bfloat16 float16".split()
    },
    "as_strided_scatter:first": ("PyTorch lets a gradient through to elements it overwrote", 0),
    "addbmm:inplace": ("PyTorch resizes the tensor that is written", 0),
    "linalg.norm.subgradients_at_zero:second": ("NaN in PyTorch, 0 here", 0),
    **{
        f"nn.functional.{name}:{d}": ("rounded at every step, in both", 0)
        for name in ("hinge_embedding_loss", "kl_div", "nll_loss")
        for d in ("bfloat16", "float16")
    },
    # names of nodes, where PyTorch's function is several ops and ours one, or the other way round
    **{
        f"{name}:nodes": ("PyTorch divides by a number in C++", 0)
        for name in ("cumulative_trapezoid", "trapezoid", "trapz")
    },
    "diff:nodes": ("n=0 is a clone", 0),
    "unfold:nodes": ("of a 0-d tensor: a slice of a view", 0),
    "unfold_copy:nodes": ("of a 0-d tensor: a copy of a slice of a view", 0),
    "nn.functional.linear_cross_entropy:nodes": ("of many positions: one op less", 0),
    "__rsub__:nodes": ("the method called by name on two tensors", 0),
    "special.ndtr:nodes": ("one op", 0),
    "stft:nodes": ("the last step is a transpose", 0),
    "nn.functional.pad:nodes": ("circular: one op", 0),
    "nn.functional.cross_entropy:nodes": ("of probabilities: divided by a number", 0),
    "nn.functional.pairwise_distance:nodes": ("the norm is linalg's", 0),
    # errors
    "narrow_copy:error": ("our text is that of narrow", 0),
    "complex:error": ("`out` of another dtype is cast to", 0),
    "aminmax:error": ("`out` of another dtype is cast to", 0),
    "gather:error": ("`out` of another dtype is cast to", 0),
}

FULL = 32  # results of more elements than this are kept as some elements and a checksum
PICKS = 12

NUMPY = {
    "bool": np.dtype(bool),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "complex32": np.dtype(np.float16),  # real and imaginary parts, side by side
    **{
        name: np.dtype(name)
        for name in "uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 float32 float64 "
        "complex64 complex128".split()
    },
}
# Relative to the value and to the largest one beside it, which sums and products are made of.
TOLERANCE = {
    "float64": 1e-10, "complex128": 1e-10, "float32": 1e-5, "complex64": 1e-5,
    "bfloat16": 2.0**-7, "float16": 2.0**-10, "complex32": 2.0**-10,
}  # fmt: skip


LOW = ("bfloat16", "float16", "complex32")


class Blob:
    """Bytes of many tensors, one after the other, the same bytes once."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.at: dict[bytes, int] = {}

    def put(self, data: bytes) -> list[int]:
        at = self.at.get(data)
        if at is None:
            at = self.at[data] = len(self.data)
            self.data += data
        return [at, len(data)]

    def get(self, place: list[int]) -> bytearray:
        return self.data[place[0] : place[0] + place[1]]


# -- arguments ------------------------------------------------------------------------------------


def encode(m: Any, x: Any, blob: Blob) -> Any:
    """An argument as plain data. Raises ValueError for what cannot be written down."""
    if isinstance(x, m.Tensor):
        return {"t": encode_tensor(m, x, blob)}
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    if isinstance(x, complex):
        return {"c": [x.real, x.imag]}
    if isinstance(x, list):
        return [encode(m, y, blob) for y in x]
    if isinstance(x, tuple):
        return {"u": [encode(m, y, blob) for y in x]}
    if isinstance(x, slice):
        return {"s": [encode(m, y, blob) for y in (x.start, x.stop, x.step)]}
    if x is Ellipsis:
        return {"e": 0}
    if isinstance(x, (m.dtype, m.layout, m.memory_format)):
        return {"n": str(x).removeprefix("torch.")}
    if isinstance(x, m.device):
        return {"n": "cpu"}
    raise ValueError(f"{type(x).__name__} cannot be written down")


def encode_tensor(m: Any, x: Any, blob: Blob) -> list[Any]:
    if x.layout is not m.strided or x.device.type != "cpu":
        raise ValueError("not a plain tensor")
    wants = x.requires_grad
    x = x.detach().resolve_conj().resolve_neg()
    dtype = str(x.dtype).removeprefix("torch.")
    shape, strides = list(x.shape), list(x.stride())
    span = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) if 0 not in shape else 0
    flat = x.as_strided((span,), (1,)) if span else x.new_empty((0,))
    data = flat.contiguous().view(m.uint8).numpy().tobytes()
    return [dtype, shape, strides if not x.is_contiguous() else 0, blob.put(data), int(wants)]


def decode(m: Any, x: Any, blob: Blob, made: list[Any]) -> Any:
    """The argument again, of the library `m`. Tensors that want gradients are added to `made`."""
    if isinstance(x, list):
        return [decode(m, y, blob, made) for y in x]
    if not isinstance(x, dict):
        return x
    ((kind, value),) = x.items()
    if kind == "t":
        return decode_tensor(m, value, blob, made)
    if kind == "c":
        return complex(*value)
    if kind == "u":
        return tuple(decode(m, y, blob, made) for y in value)
    if kind == "s":
        return slice(*[decode(m, y, blob, made) for y in value])
    if kind == "e":
        return Ellipsis
    return m.device("cpu") if value == "cpu" else getattr(m, value)


def decode_tensor(m: Any, entry: list[Any], blob: Blob, made: list[Any]) -> Any:
    name, shape, strides, place, wants = entry
    dtype = getattr(m, name)
    if place[1] == 0:
        x = m.empty(shape, dtype=dtype)
    else:
        x = m.frombuffer(blob.get(place), dtype=dtype)
        x = x.as_strided(shape, strides) if strides else x.reshape(shape)
    if wants:
        x.requires_grad_()
        made.append(x)
    return x


# -- answers --------------------------------------------------------------------------------------


def raw(x: Any) -> np.ndarray[Any, Any]:
    """A tensor's values in NumPy."""
    name = str(x.dtype).removeprefix("torch.")
    x = x.detach().resolve_conj().resolve_neg().contiguous()
    if name in ("bfloat16", "complex32"):
        x = x.reshape(-1)
        dtype = NUMPY[name]
        return np.frombuffer(bytearray(x.view(type_of(x, "int16")).numpy().tobytes()), dtype)
    return np.asarray(x.numpy(force=True))  # force: PyTorch has zeros that hold no memory


def type_of(x: Any, name: str) -> Any:
    """The dtype `name` of the library that `x` belongs to."""
    import sys

    return getattr(sys.modules[type(x).__module__.split(".")[0]], name)


def picks(n: int) -> list[int]:
    return [i * (n - 1) // (PICKS - 1) for i in range(PICKS)]


def parts(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Floating values as float64 numbers: real parts, then imaginary ones."""
    if x.dtype.kind == "c":
        return np.concatenate([x.real.ravel(), x.imag.ravel()]).astype(np.float64)
    return x.ravel().astype(np.float64)


def checksum(x: np.ndarray[Any, Any]) -> list[float]:
    """A sum of the finite elements with different weights, and how many are not finite."""
    values = parts(x)
    finite = np.isfinite(values)
    kept = np.where(finite, values, 0.0)
    with np.errstate(all="ignore"):
        total = float((kept * np.cos(np.arange(kept.size) * 0.7)).sum())
    size = float(np.abs(kept).max(initial=0.0)) * math.sqrt(kept.size)
    return [total, size, int(np.isnan(values).sum()), int((~finite).sum())]


def answer(m: Any, x: Any, values: bool = True) -> Any:
    """What a call returned, as plain data and NumPy arrays."""
    if isinstance(x, m.Tensor):
        dtype, shape = str(x.dtype).removeprefix("torch."), list(x.shape)
        if not values or x.layout is not m.strided:
            return {"d": dtype, "s": shape}
        a = raw(x)
        if a.size <= FULL:
            return {"d": dtype, "s": shape, "x": a.ravel()}
        if a.dtype.kind in "biu":
            picked = a.ravel()[picks(a.size)]
            return {"d": dtype, "s": shape, "p": picked, "crc": zlib.crc32(a.tobytes())}
        return {"d": dtype, "s": shape, "p": a.ravel()[picks(a.size)], "sum": checksum(a)}
    if x is None or isinstance(x, (bool, int, float, str)):
        return {"v": x}
    if isinstance(x, complex):
        return {"v": [x.real, x.imag]}
    if isinstance(x, m.Size):
        return {"v": list(x)}
    if isinstance(x, (list, tuple)):
        kind = "list" if isinstance(x, list) else "tuple"
        return {kind: [answer(m, y, values) for y in x]}
    if isinstance(x, m.dtype):
        return {"v": str(x)}
    raise ValueError(f"an answer of type {type(x).__name__}")


def pack(x: Any, blob: Blob) -> Any:
    """An answer with its arrays put into the blob."""
    if isinstance(x, dict):
        return {k: pack(y, blob) for k, y in x.items()}
    if isinstance(x, list):
        return [pack(y, blob) for y in x]
    if isinstance(x, np.ndarray):
        return blob.put(x.tobytes())
    return x


def unpack(x: Any, blob: Blob) -> Any:
    """An answer with its arrays taken out of the blob."""
    if isinstance(x, list):
        return [unpack(y, blob) for y in x]
    if not isinstance(x, dict):
        return x
    if "d" in x:
        found = dict(x)
        for key in ("x", "p"):
            if key in x:
                found[key] = np.frombuffer(bytes(blob.get(x[key])), NUMPY[x["d"]])
        return found
    return {k: unpack(y, blob) for k, y in x.items()}


# -- calls ----------------------------------------------------------------------------------------


def lookup(m: Any, name: str) -> Any:
    """`m.name`, dots and all, or None."""
    found = m
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    return found


def called(m: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function, a method ("Tensor.f") or read an attribute ("Tensor.T")."""
    if name.endswith("_") and not name.endswith("__"):
        args = [args[0].clone(), *args[1:]]  # a leaf cannot be written, and the case is used again
    if name.startswith("Tensor."):
        member = getattr(args[0], name[7:])
        return member(*args[1:], **kwargs) if callable(member) else member
    return lookup(m, name)(*args, **kwargs)


def leaves(m: Any, x: Any) -> list[Any]:
    if isinstance(x, m.Tensor):
        return [x]
    if isinstance(x, (list, tuple)):
        return [t for y in x for t in leaves(m, y)]
    return []


def weights(m: Any, x: Any, phase: float) -> Any:
    """Fixed numbers of a tensor's shape and dtype, to be its cotangent."""
    n = np.arange(math.prod(x.shape))
    w = np.round(np.cos(n * 1.3 + phase), 3)
    if x.dtype.is_complex:
        w = w + 1j * np.round(np.sin(n * 0.9 + phase), 3)
    return m.as_tensor(w.reshape(tuple(x.shape)), dtype=x.dtype)


def pulled(m: Any, outputs: list[Any], inputs: list[Any], phase: float, create: bool) -> list[Any]:
    """The gradients of weighted outputs."""
    roots = [y for y in outputs if y.requires_grad]
    if not roots:
        return [None] * len(inputs)
    given = [weights(m, y, phase) for y in roots]
    return list(m.autograd.grad(roots, inputs, given, create_graph=create, allow_unused=True))


def guarded(make: Callable[[], Any]) -> Any:
    """What `make` returns, or the error it raises, as plain data."""
    try:
        return make()
    except ERRORS as error:
        kind = next(k.__name__ for k in type(error).__mro__ if k in ERRORS)
        return {"error": [kind, str(error)[:100]]}


def observe(m: Any, case: dict[str, Any], blob: Blob) -> dict[str, Any]:
    """All that is asked about a case, in the library `m`."""
    asks = case["asks"]
    name = case["f"]
    values = case.get("values", True)

    def fresh() -> tuple[list[Any], dict[str, Any], list[Any]]:
        made: list[Any] = []
        args = [decode(m, x, blob, made) for x in case["a"]]
        kwargs = {k: decode(m, x, blob, made) for k, x in case["k"].items()}
        if case.get("seed"):
            m.manual_seed(42)
        return args, kwargs, made

    def told(make: Callable[[], Any]) -> Any:
        return guarded(lambda: answer(m, make(), values))

    found: dict[str, Any] = {}
    args, kwargs, inputs = fresh()
    result: Any = None

    def forward() -> Any:
        nonlocal result
        result = called(m, name, args, kwargs)
        return result

    if "forward" in asks:
        found["forward"] = told(forward)
        if "error" in found["forward"]:
            return found
    outputs = leaves(m, result)
    if "nodes" in asks:
        found["nodes"] = [None if y.grad_fn is None else y.grad_fn.name() for y in outputs]
    if "first" in asks:
        create = "second" in asks
        grads: list[Any] = []

        def first() -> Any:
            grads.extend(pulled(m, outputs, inputs, 0.5, create))
            return grads

        found["first"] = told(first)
        if create and grads:
            again = [g for g in grads if g is not None]
            found["second"] = told(lambda: pulled(m, again, inputs, 2.0, False))
    for alias in case.get("also", ()):
        args, kwargs, _ = fresh()
        found["as " + alias] = told(lambda: called(m, alias, args, kwargs))  # noqa: B023
    if "method" in asks:
        args, kwargs, _ = fresh()
        short = name.split(".")[-1]
        found["method"] = told(lambda: called(m, "Tensor." + short, args, kwargs))
    if "inplace" in asks:
        args, kwargs, inputs = fresh()
        where = "Tensor." + name.split(".")[-1] + "_"

        def inplace() -> Any:
            y = called(m, where, args, kwargs)
            grads = pulled(m, [y], inputs, 0.5, False) if inputs and "first" in asks else []
            return [y, *grads]

        found["inplace"] = told(inplace)
    if "out" in asks:
        with m.no_grad():
            args, kwargs, _ = fresh()
            found["out"] = told(lambda: with_out(m, name, args, kwargs, result))
    return found


def with_out(m: Any, name: str, args: list[Any], kwargs: dict[str, Any], result: Any) -> Any:
    """Call with `out=` holding tensors like the results; says whether they are returned."""
    like = leaves(m, result)
    room = [m.full(tuple(y.shape), 1, dtype=y.dtype) for y in like]
    one = isinstance(result, m.Tensor)
    given = called(m, name, args, {**kwargs, "out": room[0] if one else tuple(room)})
    same = all(a is b for a, b in zip(leaves(m, given), room))
    return [same, *room]


# -- comparison -----------------------------------------------------------------------------------


def near(have: Any, want: Any, tolerance: float, scale: float) -> bool:
    """Do two flat arrays of one dtype agree?"""
    if have.dtype.kind in "biu":
        return bool(np.array_equal(have, want))
    a, b = parts(have), parts(want)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return True
    size = np.abs(b)
    if have.dtype.kind == "c":
        size = np.tile(np.maximum(size[: size.size // 2], size[size.size // 2 :]), 2)
    with np.errstate(all="ignore"):
        close = np.abs(a - b) <= tolerance * (np.where(np.isfinite(size), size, 0) + scale)
    return bool((same | close).all())


def differences(have: Any, want: Any, path: str = "", least: float = 0) -> Iterator[str]:
    """Where two answers disagree, in words. `least` is the least tolerance."""
    if isinstance(want, dict) and isinstance(have, dict):
        if "error" in want or "error" in have:
            a, b = have.get("error"), want.get("error")
            if a is None or b is None or a[0] != b[0]:
                yield f"{path}: {shown(have)} instead of {shown(want)}"
            return
        if "d" in want and "d" in have:
            yield from tensor_differences(have, want, path, least)
            return
        if "v" in want and "v" in have:
            if not same_number(have["v"], want["v"]):
                yield f"{path}: {have['v']!r} instead of {want['v']!r}"
            return
        if have.keys() != want.keys():
            yield f"{path}: {shown(have)} instead of {shown(want)}"
            return
        for key in want:
            yield from differences(have[key], want[key], f"{path} {key}".strip(), least)
        return
    if isinstance(want, list) and isinstance(have, list) and len(want) == len(have):
        for i, (a, b) in enumerate(zip(have, want)):
            if path == "second list" and nothing(a) and nothing(b):
                continue  # no second gradient and one of zeros are the same
            yield from differences(a, b, f"{path}[{i}]", least)
        return
    if have != want:
        yield f"{path}: {shown(have)} instead of {shown(want)}"


def nothing(x: Any) -> bool:
    """Is this gradient absent or zero?"""
    if not isinstance(x, dict):
        return False
    if x.get("v", 0) is None:
        return True
    return "d" in x and not any(np.any(x[k]) for k in ("x", "p", "sum") if k in x)


def same_number(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-8) or (math.isnan(a) and math.isnan(b))
    return bool(a == b)


def tensor_differences(have: Any, want: Any, path: str, least: float) -> Iterator[str]:
    if have["d"] != want["d"] or have["s"] != want["s"]:
        yield f"{path}: {have['d']}{have['s']} instead of {want['d']}{want['s']}"
        return
    key = "x" if "x" in want else "p"
    if key not in want:
        return
    a, b, dtype = have[key], want[key], want["d"]
    scale = 1e-3 if dtype in LOW else 1.0
    tolerance = max(TOLERANCE.get(dtype, 0), least)
    if not near(a, b, tolerance, scale):
        yield f"{path}: {shown(have)} instead of {shown(want)}"
    elif "crc" in want and have["crc"] != want["crc"]:
        yield f"{path}: elements between those shown differ: {shown(have)}"
    elif "sum" in want:
        (total, _, nans, odd), (expected, size, nans2, odd2) = have["sum"], want["sum"]
        if (nans, odd) != (nans2, odd2) or not (
            abs(total - expected) <= tolerance * (abs(expected) + size + 1)
        ):
            yield f"{path}: other elements differ: sum {have['sum']} instead of {want['sum']}"


def disagreements(case: dict[str, Any], have: Any, want: Any) -> Iterator[str]:
    """Where two observations of a case differ, KNOWN aside. In low precision, PyTorch's float64
    answer rounded once is as right as what it makes by rounding at every step."""
    exact = want.get("exact")
    for key in sorted(want.keys() | have.keys()):
        excuse = known(case, key)
        if key == "exact" or excuse == 0:
            continue
        if key not in have or key not in want:
            yield f"{key}: {shown(have.get(key))} instead of {shown(want.get(key))}"
            continue
        found = list(differences(have[key], want[key], key, excuse or 0))
        if found and exact is not None:
            form = {"inplace": {"list": [exact]}, "out": {"list": [{"v": True}, exact]}}
            found = list(differences(have[key], form.get(key, exact), key))
        yield from found


def rounded(m: Any, case: dict[str, Any], blob: Blob) -> Any:
    """PyTorch's answer to a case in low precision, computed in float64 and rounded once."""

    def wide(x: Any) -> Any:
        if isinstance(x, m.Tensor):
            return x.double() if x.dtype in (m.bfloat16, m.float16) else x
        if isinstance(x, m.dtype):
            return m.float64 if x in (m.bfloat16, m.float16) else x
        if isinstance(x, (list, tuple)):
            return type(x)(wide(y) for y in x)
        return x

    def narrow(x: Any) -> Any:
        if isinstance(x, m.Tensor):
            if x.dtype is m.complex128:
                return x.to(m.complex32)
            return x.to(getattr(m, case["d"])) if x.dtype is m.float64 else x
        return type(x)(narrow(y) for y in x) if type(x) in (list, tuple) else x

    args = [wide(decode(m, x, blob, [])) for x in case["a"]]
    kwargs = {k: wide(decode(m, x, blob, [])) for k, x in case["k"].items()}
    found = guarded(lambda: answer(m, narrow(called(m, case["f"], args, kwargs))))
    return None if "error" in found else found


def shown(x: Any) -> str:
    if isinstance(x, dict) and "d" in x:
        values = x.get("x", x.get("p"))
        text = np.array2string(values, threshold=12) if values is not None else ""
        return f"{x['d']}{x['s']} {text}"
    return str(x)[:300]


def known(case: dict[str, Any], aspect: str) -> float | None:
    """The precision KNOWN leaves to a case: None where it is not named, 0 where nothing is."""
    for name in (case["n"], case["f"].removeprefix("Tensor.")):
        for key in (name, f"{name}:{case['d']}", f"{name}:{aspect}"):
            if key in KNOWN:
                return KNOWN[key][1]
    return None


# -- files ----------------------------------------------------------------------------------------


def store(torch: Any) -> None:
    """Draw the cases anew, and write them with PyTorch's answers."""
    from tests.laws import ops_samples

    cases, errors, blob = quietly(lambda: ops_samples.drawn(torch))
    harness.store("laws/ops", harness.packed({"cases": cases, "errors": errors}))
    harness.store("laws/ops", bytes(blob.data), ".bin.gz")


def load() -> tuple[list[dict[str, Any]], list[dict[str, Any]], Blob]:
    stored = harness.stored("laws/ops")
    blob = Blob(gzip.decompress(harness.path_of("laws/ops", ".bin.gz").read_bytes()))
    return stored["cases"], stored["errors"], blob


def quietly(make: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def filled(want: dict[str, Any]) -> dict[str, Any]:
    """A stored answer with the parts that repeat others put back in."""
    forward = want["forward"]
    full = {key: forward if isinstance(x, str) else x for key, x in want.items()}
    for key in ("inplace", "out"):
        items = full[key].get("list") if isinstance(full.get(key), dict) else None
        if items and items[-1] == "first":
            items = [items[0], *full["first"]["list"]]
        if items:
            items = [forward if isinstance(x, str) else x for x in items]
            full[key] = {"list": items}
    return full
